"""What hooks start: once for each delivery, whatever fails on the way and however often it comes."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from tests.web.hook_world import WATCHING, HookWorld, github_headers, push, request, started
from tests.workflows.world import World, open_world, url_of

from wikikeeper.adapters.local.sqlite_deliveries import SqliteDeliveries
from wikikeeper.adapters.web.fetch import GuardedFetcher
from wikikeeper.errors import Unfetchable
from wikikeeper.models import CycleState, ModelState, Origin, ReapStale, ResultState, Send, StartCycle
from wikikeeper.policy.hooks import asked, hook_tick
from wikikeeper.settings import Fetch
from wikikeeper.web.hook_work import HookWork
from wikikeeper.web.hooks import router
from wikikeeper.workflows.schedule_cycle import schedule_cycle

ASK = {"kind": "cycle", "topic": "postgres"}
TICK = hook_tick("cycle", "msg_1")
PUSHED_TICK = hook_tick("cycle", "msg_1", pushed=True)
PUSHED = {"kind": "result", "topic": "postgres", "urls": [url_of("x"), url_of("y")]}
LINKS = PUSHED | {"kind": "links"}


@pytest.fixture
def hooks(tmp_path: Path) -> Iterator[HookWorld]:
    with open_world(tmp_path) as world:
        yield HookWorld(world)


@pytest.fixture
def world(hooks: HookWorld) -> World:
    return hooks.world


# -- cycle


def test_a_cycle_is_stored_then_sent_and_runs_as_any_other(hooks: HookWorld, world: World) -> None:
    world.pages(a="One.", b="Two.")

    answer = hooks.cycle(ASK)

    assert answer.status_code == 202
    assert answer.json() == {"status": "accepted", "cycles": [f"postgres#{TICK}"], "urls": 0}
    assert asked(hooks.stored(TICK))
    assert started(hooks.sent) == [("postgres", TICK)]
    hooks.work()
    hooks.work()
    cycle = hooks.stored(TICK)
    assert (cycle.found, cycle.new, cycle.calls) == (2, 2, 2)
    assert world.states() == {"a": ResultState.KEPT, "b": ResultState.KEPT}


@pytest.mark.parametrize("when", ["at once", "while it runs", "after it"])
@pytest.mark.parametrize("content", [ASK, PUSHED, LINKS])
def test_a_replay_gets_the_same_answer_and_has_no_second_effect(
    hooks: HookWorld, world: World, content: dict[str, object], when: str
) -> None:
    world.pages(x="One.", y="Two.")
    first = hooks.cycle(content)
    if when == "while it runs":
        hooks.sent = [send for one in hooks.sent for send in schedule_cycle(one.command, world.app)]  # type: ignore[arg-type]
    elif when == "after it":
        hooks.work()

    second = hooks.cycle(content)

    assert (second.status_code, second.json()) == (first.status_code, first.json())
    hooks.work()
    asked_before = len(world.keeper.asked)
    third = hooks.cycle(content)
    hooks.work()
    assert third.json() == first.json()
    assert len(world.keeper.asked) == asked_before == (0 if content is LINKS else 2)
    assert len(hooks.cycles()) == (0 if content is LINKS else 1)
    assert len(list(world.app.store.results())) == 2 or content is ASK


@pytest.mark.parametrize("content", [ASK, PUSHED])
def test_a_senders_retry_after_a_crash_between_storing_and_sending_works(
    hooks: HookWorld, world: World, content: dict[str, object]
) -> None:
    world.pages(x="One.", y="Two.")
    hooks.failures = 1

    failed = hooks.cycle(content)

    assert (failed.status_code, failed.json()["cause"]) == (503, "failed")
    assert failed.headers["retry-after"] == "30"
    assert world.reporter.of("hook_failed") == [{"hook": "cycle", "status": 503, "cause": "NotSent"}]
    assert len(hooks.cycles()) == 1
    assert not hooks.sent
    assert hooks.cycle(content).status_code == 202
    hooks.work()
    assert len(world.keeper.asked) == 2


def test_a_hook_whose_command_was_lost_is_run_by_the_reaper_without_the_sender(hooks: HookWorld, world: World) -> None:
    world.pages(a="One.")
    hooks.failures = 1
    hooks.cycle(ASK)
    world.run(Send(command=ReapStale()))
    assert world.keeper.asked == []  # its command may still be on its way

    world.clock.advance(world.app.rules.wake_timeout + world.app.rules.cycle_lease)
    world.run(Send(command=ReapStale()))

    assert len(world.keeper.asked) == 1
    assert hooks.stored(TICK).fence == 2


def test_a_hook_whose_worker_died_is_run_once_more(hooks: HookWorld, world: World) -> None:
    world.pages(a="One.")
    hooks.cycle(ASK)
    store = world.app.store
    cycle = hooks.stored(TICK)
    store.end_cycle(cycle.id, CycleState.EXPIRED, hooks.now, only_from=frozenset({CycleState.OPEN}), fence=1)
    store.start_cycle(cycle)  # taken over by a worker that is never heard of again

    world.clock.advance(timedelta(hours=1))
    world.run(Send(command=ReapStale()))

    assert len(world.keeper.asked) == 1
    assert hooks.stored(TICK).fence == 3


def test_a_worker_that_dies_while_it_takes_a_hooks_cycle_over_loses_nothing(hooks: HookWorld, world: World) -> None:
    world.pages(a="One.")
    hooks.cycle(ASK)
    only = frozenset({CycleState.OPEN})
    world.app.store.end_cycle(hooks.stored(TICK).id, CycleState.EXPIRED, hooks.now, only_from=only, fence=1)

    hooks.work()

    assert len(world.keeper.asked) == 1


def test_two_deliveries_at_once_are_one(hooks: HookWorld, world: World) -> None:
    world.pages(a="One.", b="Two.")
    body = json.dumps(ASK).encode()

    answers = hooks.ask(*(request("cycle", body, hooks.standard(body)) for _ in range(8)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.text for answer in answers}) == 1
    assert 1 <= len(hooks.sent) <= 8
    hooks.work()
    assert len(hooks.cycles()) == 1
    assert len(world.keeper.asked) == 2
    assert world.reporter.names().count("cycle_started") == 1


def test_two_deliveries_with_ids_of_their_own_are_two(hooks: HookWorld) -> None:
    hooks.cycle(ASK, delivery="msg_1")
    hooks.cycle(ASK, delivery="msg_2")

    assert len(hooks.cycles()) == 2


def test_a_sleeping_model_is_woken_and_the_hook_waits_for_it(hooks: HookWorld, world: World) -> None:
    world.pages(a="One.")
    world.decider.now = ModelState(state="waking", cause="loading")
    hooks.cycle(ASK)
    [command] = [send.command for send in hooks.sent]
    assert isinstance(command, StartCycle)

    [again] = schedule_cycle(command, world.app)

    assert again.after == timedelta(minutes=1)
    world.decider.now = ModelState(state="healthy")
    hooks.sent = [Send(command=again.command)]
    hooks.work()
    assert len(world.keeper.asked) == 1


@pytest.mark.parametrize("content", [ASK, PUSHED])
def test_an_unhealthy_model_skips_the_cycle_of_a_hook_with_the_cause(
    hooks: HookWorld, world: World, content: dict[str, object]
) -> None:
    world.decider.now = ModelState(state="unhealthy", cause="unreachable", detail="mend it")
    hooks.cycle(content)

    hooks.work()

    [cycle] = hooks.cycles()
    assert (cycle.state, cycle.reason) == (CycleState.SKIPPED, "unreachable: mend it")
    assert (world.app.store.topic("postgres").last_check is None) == (content is PUSHED)


@pytest.mark.parametrize("gone", ["deleted", "over"])
def test_a_topic_that_is_gone_before_the_command_comes_skips_the_cycle(
    hooks: HookWorld, world: World, gone: str
) -> None:
    hooks.cycle(ASK)
    if gone == "deleted":
        (world.root / "topics" / "postgres.md").unlink()
    else:
        world.topic(text="---\ntitle: T\nqueries: [q]\nuntil: 2026-03-01\n---\nB\n")

    hooks.work()

    assert hooks.stored(TICK).state is CycleState.SKIPPED


def test_a_command_of_a_hook_that_stored_nothing_does_nothing(hooks: HookWorld, world: World) -> None:
    world.pages(a="One.")

    world.run(Send(command=StartCycle(topic="postgres", tick=TICK)))

    assert hooks.cycles() == []
    assert world.keeper.asked == []


# -- pushed addresses


def test_pushed_results_are_judged_now_without_asking_a_source_or_touching_the_schedule(
    hooks: HookWorld, world: World
) -> None:
    world.pages(a="One.")
    world.shelf.pages |= {url_of("x"): "Pushed.", url_of("y"): "Pushed as well."}

    answer = hooks.cycle(PUSHED)

    assert answer.json() == {"status": "accepted", "cycles": [f"postgres#{PUSHED_TICK}"], "urls": 2}
    assert [result.origin for result in world.app.store.results()] == [Origin.HOOK] * 2
    hooks.work()
    assert world.states() == {"x": ResultState.KEPT, "y": ResultState.KEPT}
    assert world.search.asked == 0
    state = world.app.store.topic("postgres")
    assert (state.last_check, state.last_run) == (None, None)


def test_pushed_links_wait_for_the_topics_next_cycle(hooks: HookWorld, world: World) -> None:
    world.pages(x="One.")
    world.shelf.pages[url_of("y")] = "Two."

    answer = hooks.cycle(LINKS)

    assert answer.json() == {"status": "accepted", "cycles": [], "urls": 2}
    assert hooks.sent == []
    assert world.states() == {"x": ResultState.WAITING, "y": ResultState.WAITING}
    world.cycle()
    assert world.states() == {"x": ResultState.KEPT, "y": ResultState.KEPT}


def test_an_address_that_the_topic_knows_is_not_judged_again(hooks: HookWorld, world: World) -> None:
    world.pages(x="One.", y="Two.")
    world.cycle()

    answer = hooks.cycle(PUSHED | {"urls": ["https://Example.org/x?utm_source=push#top"]})
    hooks.work()

    assert answer.json()["urls"] == 1
    assert len(world.keeper.asked) == 2


def test_pushed_addresses_are_judged_in_their_order(hooks: HookWorld, world: World) -> None:
    urls = [url_of(name) for name in "zyxwvu"]

    hooks.cycle(LINKS | {"urls": urls})

    assert [result.url for result in world.app.store.results()] == urls


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/", "http://169.254.169.254/latest", "http://[::1]:8080/"])
def test_an_exception_of_the_address_guard_never_holds_for_what_a_hook_pushed(tmp_path: Path, url: str) -> None:
    """The very origins are listed; a link that a person wrote would be asked."""
    listed = Fetch(allow_origins=("127.0.0.1:8080", "169.254.169.254:80", "[::1]:8080"))
    fetcher = GuardedFetcher(listed, tmp_path)

    with pytest.raises(Unfetchable) as refused:
        fetcher.fetch(url, origin=Origin.HOOK, folder=None, etag=None, last_modified=None)

    assert refused.value.cause == "forbidden_address"


def test_a_hook_cannot_name_a_saved_page(tmp_path: Path) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "a.html").write_text("<p>x")

    with pytest.raises(Unfetchable):
        GuardedFetcher(Fetch(), tmp_path).fetch(
            "file:///saved/a.html", origin=Origin.HOOK, folder="saved", etag=None, last_modified=None
        )


# -- in time


def test_a_hook_is_answered_within_a_second_beside_a_hundred_topics(hooks: HookWorld) -> None:
    """In time of our own: what else the machine does is not the hook's."""
    for number in range(100):
        hooks.world.topic(f"t{number}", WATCHING.format(title=f"T{number}"))
    hundred = [url_of(str(number)) for number in range(100)]
    commits = [{"added": [f"src/{n}/{m}" for m in range(10)]} for n in range(1000)]
    body = json.dumps(push("CHANGES.md", commits=[*commits, {"modified": ["CHANGES.md"]}])).encode()
    took = {}
    for name, way, content, headers in [
        ("cycle", "cycle", json.dumps(ASK).encode(), {}),
        ("result", "cycle", json.dumps(PUSHED | {"urls": hundred}).encode(), {}),
        ("push", "github", body, github_headers("push", body)),
    ]:
        signed = headers or hooks.standard(content, delivery=name)
        began = time.process_time()
        assert hooks.post(way, content, signed).status_code == 202
        took[name] = time.process_time() - began

    assert {name: seconds for name, seconds in took.items() if seconds >= 1} == {}


def test_a_fault_of_ours_is_answered_as_one_that_may_be_tried_again(hooks: HookWorld, world: World) -> None:
    def broken(slug: str) -> None:
        raise RuntimeError(f"secret of {slug}")

    class BrokenWiki:
        read = keys = staticmethod(broken)

    app = replace(world.app, wiki=BrokenWiki())  # type: ignore[arg-type]
    answer = HookWorld(replace(world, app=app)).cycle(ASK)

    assert answer.status_code == 503
    assert "secret" not in answer.text
    assert world.reporter.of("hook_failed") == [{"hook": "cycle", "status": 503, "cause": "RuntimeError"}]


def test_a_store_that_does_not_answer_is_said_to_the_sender_and_the_work_goes_on_behind_it(
    hooks: HookWorld, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wikikeeper.web.hooks.ANSWER_SECONDS", 0.05)
    held, stored = threading.Event(), threading.Event()
    send = hooks.send

    def slow(sends: Sequence[Send]) -> None:
        assert held.wait(30)
        send(sends)
        stored.set()

    late = HookWorld(world)
    late.router = router(HookWork(app=world.app, send=slow, deliveries=SqliteDeliveries(world.database)), late.settings)
    late.app = FastAPI()
    late.app.include_router(late.router)
    body = json.dumps(ASK).encode()

    async def asked_twice() -> list[httpx.Response]:
        transport = httpx.ASGITransport(late.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            first = await client.send(request("cycle", body, late.standard(body)))
            monkeypatch.setattr("wikikeeper.web.hooks.ANSWER_SECONDS", 30)
            held.set()
            return [first, await client.send(request("cycle", body, late.standard(body)))]

    first, second = asyncio.run(asked_twice())

    assert (first.status_code, first.json()["cause"], first.headers["retry-after"]) == (503, "late", "30")
    assert second.status_code == 202
    assert stored.wait(30)
    assert len(hooks.cycles()) == 1
    assert set(started(hooks.sent)) == {("postgres", TICK)}

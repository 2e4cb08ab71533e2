"""Cycles: when they start, what they remember, how they end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.workflows.world import TOPIC, World

from wikikeeper.errors import AnswerMalformed, FetchFailed, PageRefused
from wikikeeper.fakes import ListedSource, judgement
from wikikeeper.models import (
    CycleState,
    Found,
    Judgement,
    JudgeResult,
    ModelState,
    Origin,
    ResultState,
    Send,
    StartCycle,
)
from wikikeeper.policy.identity import cycle_id
from wikikeeper.workflows import schedule_cycle


def test_a_cycle_says_what_it_found_sent_and_called_and_ends_done(world: World) -> None:
    world.pages(a="One.", b="Two.")

    cycle = world.cycle()

    assert (cycle.state, cycle.found, cycle.new, cycle.sent, cycle.calls) == (CycleState.DONE, 2, 2, 2, 2)
    state = world.app.store.topic("postgres")
    assert state.last_check == state.last_run == world.clock.now()


def test_what_was_judged_is_not_judged_again(world: World) -> None:
    world.pages(a="One.", b="Two.")
    world.cycle()

    again = world.cycle()

    assert (again.found, again.new, again.sent, again.calls) == (2, 0, 0, 0)
    assert again.state is CycleState.DONE


def test_one_page_under_many_addresses_is_one_result_and_keeps_the_address_as_found(world: World) -> None:
    addresses = [
        "https://Example.org:443/a?utm_source=x#top",
        "https://example.org/a",
        "https://example.org/a/?fbclid=1",
    ]
    world.shelf.pages = dict.fromkeys(addresses, "One text.")
    world.search.all = [ListedSource("s", [Found(url=url, origin=Origin.SEARCH) for url in addresses])]

    cycle = world.cycle()

    assert (cycle.found, cycle.new) == (3, 1)
    [result] = world.app.store.results()
    assert result.url == addresses[0]


def test_a_tick_that_fires_twice_runs_once(world: World) -> None:
    world.pages(a="One.")
    start = StartCycle(topic="postgres", tick="2026-03-02T06:00Z")

    world.run(*(Send(command=start) for _ in range(6)))

    assert len(list(world.app.store.cycles())) == 1
    assert len(world.keeper.asked) == 1


def test_a_tick_whose_commands_died_with_their_worker_sends_them_again(world: World) -> None:
    """The cycle drains, but the worker died before anything was sent: a queue delivers the tick once more."""
    world.pages(a="One.", b="Two.")
    start = StartCycle(topic="postgres", tick="t")
    lost = schedule_cycle.schedule_cycle(start, world.app)

    again = schedule_cycle.schedule_cycle(start, world.app)

    assert sorted(send.model_dump_json() for send in again) == sorted(send.model_dump_json() for send in lost)
    world.run(*again, *again)
    assert len(world.keeper.asked) == 2
    assert schedule_cycle.schedule_cycle(start, world.app) == []


@pytest.mark.parametrize("cause", ["unreachable", "model_missing", "model_failed", "wrong_kind", "unauthorized"])
def test_an_unhealthy_model_skips_the_cycle_and_searches_nothing(world: World, cause: str) -> None:
    world.pages(a="One.")
    world.decider.now = ModelState(state="unhealthy", cause=cause, detail="mend it")

    first, second = world.cycle(), world.cycle()

    assert (first.state, first.reason) == (CycleState.SKIPPED, f"{cause}: mend it")
    assert second.state is CycleState.SKIPPED
    assert (world.search.asked, world.shelf.fetched) == (0, [])
    assert len(world.reporter.of("alert")) == 1, "one alert per cause until the model is well"
    state = world.app.store.topic("postgres")
    assert state.last_check is not None
    assert state.last_run is None


def test_a_model_that_was_well_in_between_is_alerted_again(world: World) -> None:
    unhealthy = ModelState(state="unhealthy", cause="unreachable", detail="start it")
    for state in (unhealthy, ModelState(state="healthy"), unhealthy):
        world.decider.now = state
        world.cycle()

    assert len(world.reporter.of("alert")) == 2


def test_a_waking_model_is_woken_and_the_tick_comes_again_without_a_cycle(world: World) -> None:
    world.pages(a="One.")
    world.decider.now = ModelState(state="waking", cause="loading")
    start = StartCycle(topic="postgres", tick="t1")

    [again] = schedule_cycle.schedule_cycle(start, world.app)

    assert again.after == timedelta(minutes=1)
    assert again.command == start.model_copy(update={"first_wake": world.clock.now()})
    assert world.decider.woken == 1
    assert list(world.app.store.cycles()) == []
    world.decider.now = ModelState(state="healthy")
    world.run(Send(command=again.command))
    assert world.states() == {"a": ResultState.KEPT}


def test_a_model_that_never_wakes_skips_the_cycle_in_the_end(world: World) -> None:
    world.decider.now = ModelState(state="waking", cause="loading")
    [again] = schedule_cycle.schedule_cycle(StartCycle(topic="postgres", tick="t1"), world.app)
    world.clock.advance(timedelta(minutes=11))

    assert schedule_cycle.schedule_cycle(StartCycle.model_validate(again.command.model_dump()), world.app) == []

    cycle = world.app.store.cycle(cycle_id("postgres", "t1"))
    assert cycle is not None
    assert cycle.state is CycleState.SKIPPED
    assert cycle.reason is not None
    assert cycle.reason.startswith("wake_timeout: still loading")


def test_a_search_outage_is_a_state_of_the_cycle_and_other_sources_still_count(world: World) -> None:
    world.pages(a="One.")
    world.outage("json_disabled")

    cycle = world.cycle()

    assert [problem.split(": ")[0] for problem in cycle.problems] == ["search_outage:json_disabled"]
    assert (cycle.found, cycle.state) == (1, CycleState.DONE)


def test_what_is_over_the_cap_waits_and_the_cycle_says_so(world: World) -> None:
    world.app = replace(world.app, rules=replace(world.app.rules, cycle_cap=3))
    world.pages(**{name: f"Text {name}." for name in "abcde"})

    first, second = world.cycle(), world.cycle()

    assert (first.calls, first.cap_reached, second.calls, second.cap_reached) == (3, True, 2, False)
    assert set(world.states().values()) == {ResultState.KEPT}


def test_repeats_count_towards_the_cap(world: World) -> None:
    """A page that is halved takes two calls: with a cap of two nothing is left for the other."""
    halved: list[str] = []

    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        if not halved:
            halved.append(title)
            raise PageRefused("too_long")
        return judgement()

    world.keeper.script = script
    world.app = replace(world.app, rules=replace(world.app.rules, cycle_cap=2))
    world.pages(a="One text. And more.\n\nAnd another paragraph.", b="Two texts. And more.\n\nAnd another.")

    cycle = world.cycle()

    assert cycle.calls == 2
    assert cycle.cap_reached


def test_a_newer_date_in_a_feed_opens_a_revision(world: World) -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC)
    world.shelf.pages = {"https://example.org/a": "One."}

    def listed(published: datetime) -> None:
        found = Found(url="https://example.org/a", origin=Origin.FEED, published=published)
        world.search.all = [ListedSource("feed", [found])]

    listed(day)
    world.cycle()
    assert world.cycle().new == 0
    listed(day + timedelta(days=1))
    world.shelf.pages["https://example.org/a"] = "Something new."

    cycle = world.cycle()

    assert (cycle.new, world.result("a").revision, world.result("a").state) == (1, 2, ResultState.KEPT)


def test_a_changed_brief_judges_nothing_again(world: World) -> None:
    world.pages(a="One.")
    world.cycle()
    world.topic(text=TOPIC.replace("What is new", "Everything"))

    assert world.cycle().sent == 0


def test_a_topic_that_is_deleted_withdraws_its_unfinished_results(world: World) -> None:
    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        if title == "A":
            raise AnswerMalformed("malformed:nan")
        return judgement()

    world.keeper.script = script
    world.pages(a="One.", b="Two.")
    world.cycle()
    (world.root / "topics" / "postgres.md").unlink()

    assert schedule_cycle.withdraw_deleted(world.app) == 1

    assert world.states() == {"a": ResultState.WITHDRAWN, "b": ResultState.KEPT}


def test_a_topic_file_with_a_fault_withdraws_nothing(world: World) -> None:
    world.pages(a="One.")
    world.decider.now = ModelState(state="healthy")

    def failing(title: str, paragraphs: Sequence[str]) -> Judgement:
        raise AnswerMalformed("malformed:nan")

    world.keeper.script = failing
    world.cycle()
    world.topic(text="---\ntitle: [\n---\nbroken")

    assert schedule_cycle.withdraw_deleted(world.app) == 0
    assert world.states() == {"a": ResultState.WAITING}


def test_a_topic_file_that_is_a_link_is_a_fault_and_withdraws_nothing(world: World) -> None:
    """Somebody keeps topics elsewhere and links them in: links are not followed, but the topic is not gone either."""

    def failing(title: str, paragraphs: Sequence[str]) -> Judgement:
        raise AnswerMalformed("malformed:nan")

    world.keeper.script = failing
    world.pages(a="One.")
    world.cycle()
    file = world.root / "topics" / "postgres.md"
    file.rename(world.root / "elsewhere.md")
    file.symlink_to(world.root / "elsewhere.md")
    world.topic("other")

    topics, faults = world.app.topics()

    assert [topic.slug for topic in topics] == ["other"]
    assert [(fault.key, fault.line) for fault in faults] == [("topics/postgres.md", 1)]
    assert "symbolic link" in faults[0].reason
    assert schedule_cycle.withdraw_deleted(world.app) == 0


def test_a_topic_whose_last_day_has_passed_ends_with_one_notice(world: World) -> None:
    world.topic(text=TOPIC.replace("links:", "until: 2026-03-01\nlinks:"))

    for tick in ("t1", "t2"):
        assert schedule_cycle.schedule_cycle(StartCycle(topic="postgres", tick=tick), world.app) == []

    assert len(world.reporter.of("topic_ended")) == 1
    assert world.search.asked == 0


def test_an_ended_topic_is_due_once_more_for_its_notice_and_again_when_it_goes_on(world: World) -> None:
    ended = TOPIC.replace("links:", "until: 2026-03-03\nlinks:")
    world.topic(text=ended)
    schedule_cycle.due(world.app)
    world.clock.advance(timedelta(days=3))

    for _ in range(2):
        world.run(*schedule_cycle.due(world.app))
        world.clock.advance(timedelta(days=1))
    assert schedule_cycle.due(world.app) == []
    assert len(world.reporter.of("topic_ended")) == 1

    world.topic(text=ended.replace("2026-03-03", "2026-03-08"))
    world.run(*schedule_cycle.due(world.app))
    world.clock.advance(timedelta(days=3))
    world.run(*schedule_cycle.due(world.app))
    assert len(world.reporter.of("topic_ended")) == 2


def test_a_scheduled_topic_is_due_once_per_tick_and_says_what_it_missed(world: World) -> None:
    world.pages(a="One.")
    assert schedule_cycle.due(world.app) == [], "a topic that is seen first runs at its next tick"
    world.clock.advance(timedelta(days=3))

    [send] = schedule_cycle.due(world.app)
    world.run(send)

    assert isinstance(send.command, StartCycle)
    assert (send.command.tick, send.command.missed) == ("2026-03-05T06:00Z", 2)
    [cycle] = world.app.store.cycles()
    assert cycle.problems == ("missed_ticks:2",)
    assert schedule_cycle.due(world.app) == []


@pytest.mark.parametrize("day", [datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)])
def test_a_daily_topic_runs_once_a_day_across_a_change_of_the_clocks(world: World, day: datetime) -> None:
    world.topic(text=TOPIC.replace("0 7 * * *", "30 2 * * *"))
    world.clock.advance(day - world.clock.now())
    schedule_cycle.due(world.app)
    started = 0
    for _ in range(3 * 24 * 4):
        world.clock.advance(timedelta(minutes=15))
        sends = schedule_cycle.due(world.app)
        started += len(sends)
        world.run(*sends)

    assert started == 3
    assert len(list(world.app.store.cycles())) == 3


def test_a_cycle_leaves_alone_what_is_on_its_way_for_another_of_the_same_topic(world: World) -> None:
    """A tick comes while the cycle before still drains: no page is taken from it, none of its failures is lost."""
    world.pages(a="One.", b="Two.")
    first = schedule_cycle.schedule_cycle(StartCycle(topic="postgres", tick="t1"), world.app)
    world.pages(c="Three.")

    second = schedule_cycle.schedule_cycle(StartCycle(topic="postgres", tick="t2"), world.app)

    assert (len(first), len(second)) == (2, 1)
    world.run(*first, *second)
    assert set(world.states().values()) == {ResultState.KEPT}


def test_what_was_on_its_way_for_too_long_is_taken_over(world: World) -> None:
    """Its commands may be lost; that must cost time, not work."""
    world.pages(a="One.")
    schedule_cycle.schedule_cycle(StartCycle(topic="postgres", tick="t1"), world.app)
    world.clock.advance(world.app.rules.judge_lease)

    world.cycle()

    assert world.states() == {"a": ResultState.KEPT}


def test_a_failure_counts_though_another_cycle_began_before_its_own_closed(world: World) -> None:
    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        if title == "A":
            raise AnswerMalformed("malformed:nan")
        return judgement()

    world.keeper.script = script
    world.pages(a="One.", b="Two.")
    world.run(*schedule_cycle.schedule_cycle(StartCycle(topic="postgres", tick="t1"), world.app)[:1])
    schedule_cycle.schedule_cycle(StartCycle(topic="postgres", tick="t2"), world.app)
    world.run(
        *(Send(command=JudgeResult(topic="postgres", result=world.result("b").id, cycle="postgres#t1")) for _ in "x")
    )

    assert schedule_cycle.close("postgres#t1", world.app)
    assert world.result("a").attempts == 1


def test_a_saved_page_says_nothing_of_the_network(world: World) -> None:
    """With one page from a folder and one out of reach, an offline machine still loses nothing."""
    world.shelf.pages = {"file:///pages/a.html": "Saved.", "https://example.org/b": FetchFailed("dns")}
    world.search.all = [
        ListedSource(
            "both",
            [
                Found(url="file:///pages/a.html", origin=Origin.FOLDER),
                Found(url="https://example.org/b", origin=Origin.LINK),
            ],
        )
    ]

    for _ in range(4):
        assert not world.cycle().fetched

    assert (world.result("b").state, world.result("b").attempts) == (ResultState.WAITING, 0)


def test_an_address_that_no_page_can_have_is_a_problem_of_the_cycle(world: World) -> None:
    world.search.all = [ListedSource("s", [Found(url="javascript:alert(1)", origin=Origin.SEARCH)])]

    cycle = world.cycle()

    assert [problem.partition(":")[0] for problem in cycle.problems] == ["bad_address"]

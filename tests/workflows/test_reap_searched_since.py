"""Searches that went silent while others of their topic went on: which is sent, which waits, and which is not worth it."""

from collections import Counter
from datetime import timedelta

import pytest
from tests.workflows.reaping import (
    LEASE,
    SILENT_CYCLE,
    TICK,
    begin,
    cycle_of,
    die_while_searching,
    escalations,
    starts,
    sweep,
)
from tests.workflows.world import RULES, TOPIC, World, url_of

from wikikeeper.models import CycleState, Found, Origin, ResultState, Send, StartCycle
from wikikeeper.policy.hooks import PUSHED, asked_cycle
from wikikeeper.policy.identity import cycle_id
from wikikeeper.workflows.schedule_cycle import unknown
from wikikeeper.workflows.silences import SEARCHING

LATER = StartCycle(topic="postgres", tick="later")
LIMIT = 3
MINUTE = timedelta(minutes=1)
CYCLE_LEASE = RULES.cycle_lease + RULES.source_deadline


def put_by_hook(world: World, command: StartCycle) -> None:
    """A page is there, and its cycle, for a worker to begin."""
    lease, now = RULES.wake_timeout + RULES.cycle_lease, world.clock.now()
    found = Found(url=url_of("a"), origin=Origin.HOOK)
    page = unknown(command.topic, found, world.app.store, now, None)
    assert page is not None
    world.app.store.add_results(None, [page])
    assert world.app.store.start_cycle(asked_cycle(command.topic, command.tick, now=now, lease=lease, cap=100))


@pytest.mark.parametrize("lost", ["worker", "command"])
def test_a_search_after_which_its_topic_was_searched_is_not_sent_again(world: World, lost: str) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    if lost == "command":
        assert len(sweep(world)) == 1
    world.clock.advance(SILENT_CYCLE)
    assert begin(world, LATER) != []

    assert starts(sweep(world)) == []

    assert (cycle_of(world).state, cycle_of(world).reason) == (
        CycleState.STOPPED,
        "its topic was searched since",
    )
    assert escalations(world) == []


def test_of_two_silent_searches_the_earlier_goes_first_and_its_success_covers_both(world: World) -> None:
    die_while_searching(world)
    world.clock.advance(timedelta(minutes=1))
    die_while_searching(world, LATER)
    world.clock.advance(LEASE)

    assert [send.command for send in sweep(world)] == [TICK]
    assert sweep(world) == [], "it may get through"
    world.clock.advance(timedelta(minutes=1))
    world.run(Send(command=TICK))
    assert starts(sweep(world)) == []

    later = world.app.store.cycle(cycle_id("postgres", "later"))
    assert later is not None
    assert (later.state, later.reason) == (CycleState.STOPPED, "its topic was searched since")
    assert world.states() == {"a": ResultState.KEPT}
    assert escalations(world) == []


def test_of_two_searches_that_both_stay_silent_each_is_told_of(world: World) -> None:
    die_while_searching(world)
    world.clock.advance(timedelta(minutes=1))
    die_while_searching(world, LATER)
    sent = []
    for _ in range(2 * (LIMIT + 1)):
        world.clock.advance(SILENT_CYCLE)
        sent += [send.command.tick for send in sweep(world) if isinstance(send.command, StartCycle)]

    assert sent == ["t"] * LIMIT + ["later"] * LIMIT
    assert [each.subject for each in escalations(world)] == [
        f"cycle:{cycle_id('postgres', tick)}" for tick in ("later", "t")
    ]


def test_ticks_that_come_faster_than_their_searches_are_given_up_keep_none_from_being_told_of(world: World) -> None:
    """Every minute a worker dies, or has died: somebody hears of it, of one after the other, and a good one ends it."""
    sent: Counter[str] = Counter()
    for minute in range(60):
        world.clock.advance(timedelta(minutes=1))
        die_while_searching(world, StartCycle(topic="postgres", tick=f"t{minute:02}"))
        for send in sweep(world):
            assert isinstance(send.command, StartCycle)
            sent[send.command.tick] += 1
            die_while_searching(world, send.command)

    given_up = [escalation.subject for escalation in reversed(escalations(world))]
    assert len(given_up) >= 60 * MINUTE // ((LIMIT + 1) * (CYCLE_LEASE + MINUTE)) - 1
    assert given_up == [f"cycle:{cycle_id('postgres', f't{each:02}')}" for each in range(len(given_up))]
    assert {sent[f"t{each:02}"] for each in range(len(given_up))} == {LIMIT}

    world.clock.advance(MINUTE)
    world.run(*begin(world, StartCycle(topic="postgres", tick="good")))
    for _ in range(2):
        world.clock.advance(LEASE)
        world.run(*sweep(world))
    assert list(world.app.store.cycles(states=SEARCHING)) == []
    assert len(escalations(world)) == len(given_up)


@pytest.mark.parametrize("by", ["a search", "what was pushed"])
def test_pages_that_a_silent_search_has_on_their_way_are_judged_although_another_has_searched(
    world: World, by: str
) -> None:
    """The other finds them known, and leaves them to the one that has them."""
    tick = TICK if by == "a search" else StartCycle(topic="postgres", tick=f"{PUSHED}x")
    if by == "what was pushed":
        put_by_hook(world, tick)
    die_while_searching(world, tick)
    world.clock.advance(timedelta(minutes=1))
    world.run(*begin(world, LATER))
    assert world.states() == {"a": ResultState.WAITING}

    world.clock.advance(LEASE)
    world.run(*sweep(world))

    assert world.states() == {"a": ResultState.KEPT}
    assert escalations(world) == []


def test_what_was_pushed_is_begun_although_its_topic_was_searched_since(world: World) -> None:
    """Where the search had no room for it, nothing else would: its topic may have no schedule."""
    tick = StartCycle(topic="postgres", tick=f"{PUSHED}x")
    put_by_hook(world, tick)
    world.clock.advance(timedelta(minutes=1))
    begin(world, LATER)

    world.clock.advance(SILENT_CYCLE)

    assert [send.command for send in starts(sweep(world))] == [tick]


def test_a_clock_that_was_once_ahead_covers_no_search(world: World) -> None:
    world.app.store.checked("postgres", world.clock.now() + timedelta(days=365), ran=True)
    die_while_searching(world)
    world.clock.advance(LEASE)

    assert [send.command for send in sweep(world)] == [TICK]


def test_a_topic_that_cannot_be_read_keeps_no_other_work_from_being_taken_back(world: World) -> None:
    world.topic("other")
    die_while_searching(world)
    die_while_searching(world, StartCycle(topic="other", tick="t"))
    world.clock.advance(LEASE)
    unreadable = world.root / "topics" / "postgres.md"
    unreadable.unlink()
    unreadable.symlink_to(world.root / "topics" / "other.md")

    assert [send.command.topic for send in sweep(world) if isinstance(send.command, StartCycle)] == ["other"]

    assert (cycle_of(world).state, cycle_of(world).reason) == (CycleState.STOPPED, "its topic is gone or has a fault")


def test_a_later_cycle_that_asks_no_source_searched_nothing(world: World) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    now = world.clock.now()
    pushed = cycle_of(world).model_copy(
        update={"id": "postgres#pushed", "tick": f"{PUSHED}x", "started": now, "lease_until": now + LEASE}
    )
    assert world.app.store.start_cycle(pushed)

    assert [send.command for send in sweep(world)] == [TICK]


@pytest.mark.parametrize(
    ("gone", "reason"),
    [(True, "its topic is gone or has a fault"), (False, "ended: the last day of the topic was 2020-01-01")],
)
def test_a_search_of_a_topic_that_is_gone_or_over_is_not_sent_again(world: World, gone: bool, reason: str) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    assert len(sweep(world)) == 1
    world.topic(text="no topic" if gone else TOPIC.replace("---\ntitle", "---\nuntil: 2020-01-01\ntitle", 1))
    world.clock.advance(SILENT_CYCLE)

    assert sweep(world) == []

    assert (cycle_of(world).state, cycle_of(world).reason) == (CycleState.STOPPED, reason)
    assert escalations(world) == []


def test_a_search_that_a_person_began_is_theirs_to_begin_again(world: World) -> None:
    die_while_searching(world, StartCycle(topic="postgres", tick="manual-1"))
    world.clock.advance(LEASE)

    assert sweep(world) == []

    cycle = world.app.store.cycle(cycle_id("postgres", "manual-1"))
    assert cycle is not None
    assert (cycle.state, cycle.reason) == (
        CycleState.STOPPED,
        "its worker went silent: whoever began it by hand begins it again",
    )
    assert escalations(world) == []

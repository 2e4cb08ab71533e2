"""Searches that were begun and never ended: whatever dies or is lost, each is begun again, searched for later, or told of."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from tests.workflows.reaping import (
    LEASE,
    SILENT_CYCLE,
    TICK,
    Killed,
    begin,
    cycle_of,
    die_while_searching,
    escalations,
    just_before,
    starts,
    sweep,
    told,
)
from tests.workflows.world import World

from wikikeeper.models import (
    CycleState,
    ReapStale,
    ResultState,
    Send,
    StartCycle,
)
from wikikeeper.workflows.reap_stale import reap_stale

LIMIT = 3
ROUNDS = 12
"""More than any fault here takes to be over."""
MOMENT = timedelta(microseconds=1)
POINTS = ["silence", "count_silence", "end_cycle", "escalate", "escalations", "escalation_delivered"]


def nonresponses(world: World) -> int:
    stored = world.app.store.silence(f"cycle:{cycle_of(world).id}")
    return stored.nonresponses if stored else 0


@contextmanager
def dying(world: World, at: str, *, after: bool) -> Iterator[None]:
    """Whoever gets to this point is gone, before or after it."""
    done: Callable[..., object] = getattr(world.app.store, at)

    def die(*given: object, **named: object) -> object:
        if after:
            done(*given, **named)
        raise Killed

    setattr(world.app.store, at, die)
    try:
        yield
    finally:
        setattr(world.app.store, at, done)


def given_up_and_told_of_once(world: World) -> None:
    assert (cycle_of(world).state, cycle_of(world).reason) == (CycleState.STOPPED, "its worker went silent")
    [escalation] = escalations(world)
    assert escalation.subject == f"cycle:{cycle_of(world).id}"
    assert set(told(world)) == {escalation.id}
    assert f"sent again {nonresponses(world)} times" in escalation.detail
    fence = cycle_of(world).fence
    begin(world)  # a command that was late all the while
    assert (cycle_of(world).state, cycle_of(world).fence) == (CycleState.STOPPED, fence)


@pytest.mark.parametrize("limit", [1, LIMIT])
def test_a_search_that_kills_every_worker_gets_the_limit_of_recoveries_and_one_escalation(
    world: World, limit: int
) -> None:
    world.app = replace(world.app, rules=replace(world.app.rules, recovery_limit=limit))
    die_while_searching(world)
    sent = []
    for _ in range(limit + 3):
        world.clock.advance(LEASE)
        sends = sweep(world)
        assert sweep(world) == []
        sent.append([send.command for send in sends])
        if sends:
            assert cycle_of(world).state is CycleState.EXPIRED
            die_while_searching(world)

    assert sent == [[TICK]] * limit + [[]] * 3
    assert cycle_of(world).fence == 1 + limit
    assert len(told(world)) == 1
    given_up_and_told_of_once(world)


@pytest.mark.parametrize("at", POINTS)
@pytest.mark.parametrize("after", [False, True])
def test_a_reaper_that_is_killed_anywhere_changes_no_outcome_of_a_search(world: World, at: str, after: bool) -> None:
    """Workers and reapers die all the while; every other sweep comes to its end."""
    die_while_searching(world)
    sent = 0
    for _ in range(ROUNDS):
        world.clock.advance(SILENT_CYCLE)
        with dying(world, at, after=after), suppress(Killed):
            sweep(world)  # its commands are lost with it
        sends = sweep(world)
        sent += len(sends)
        for _ in sends:
            die_while_searching(world)

    assert sent <= LIMIT
    assert nonresponses(world) == LIMIT
    given_up_and_told_of_once(world)


@pytest.mark.parametrize("at", POINTS)
@pytest.mark.parametrize("after", [False, True])
def test_a_search_is_done_although_the_reaper_that_found_it_was_killed(world: World, at: str, after: bool) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    with dying(world, at, after=after), suppress(Killed):
        sweep(world)

    sends: list[Send] = []
    for _ in range(2):
        world.clock.advance(SILENT_CYCLE)
        sends += sweep(world)
    assert [send.command for send in starts(sends)][:1] == [TICK]
    world.run(*sends)

    assert world.states() == {"a": ResultState.KEPT}
    assert escalations(world) == []


def test_a_tick_that_the_queue_dropped_is_sent_again_and_at_the_limit_told_of(world: World) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    assert len(sweep(world)) == 1
    for _ in range(LIMIT - 1):
        world.clock.advance(world.app.rules.silence_after - MOMENT)
        assert sweep(world) == [], "it may still be on its way"
        world.clock.advance(MOMENT)
        assert [send.command for send in sweep(world)] == [TICK]
    assert escalations(world) == []

    for _ in range(3):
        world.clock.advance(SILENT_CYCLE)
        assert sweep(world) == []

    assert cycle_of(world).fence == 1
    assert len(told(world)) == 1
    given_up_and_told_of_once(world)


@pytest.mark.parametrize(("at", "begun"), [("saw_model", 0), ("start_cycle", 0), ("cycle", 1)])
def test_a_tick_that_raised_once_and_is_lost_is_sent_again(world: World, at: str, begun: int) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    [again] = sweep(world)
    assert isinstance(again.command, StartCycle)
    with dying(world, at, after=False), pytest.raises(Killed):
        begin(world, again.command)
    assert cycle_of(world).fence == 1 + begun

    world.clock.advance(SILENT_CYCLE)
    world.run(*sweep(world))

    assert world.states() == {"a": ResultState.KEPT}
    assert (cycle_of(world).fence, cycle_of(world).sent) == (2 + begun, 1)
    assert escalations(world) == []


def test_a_worker_that_took_the_tick_and_died_is_not_waited_for_longer_than_its_lease(world: World) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    sweep(world)
    die_while_searching(world)
    lease_until = cycle_of(world).lease_until
    assert lease_until is not None
    left = lease_until - world.clock.now()
    assert left < world.app.rules.silence_after

    world.clock.advance(left - MOMENT)
    assert sweep(world) == []
    world.clock.advance(MOMENT)
    assert [send.command for send in sweep(world)] == [TICK]


@pytest.mark.parametrize("at", ["count_silence", "end_cycle"])
def test_nothing_is_sent_when_the_counter_or_the_state_cannot_be_saved(world: World, at: str) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    done = getattr(world.app.store, at)
    setattr(world.app.store, at, lambda *_, **__: False)

    assert sweep(world) == []

    setattr(world.app.store, at, done)
    assert cycle_of(world).state is CycleState.OPEN
    assert nonresponses(world) == (1 if at == "end_cycle" else 0)


@pytest.mark.parametrize("state", [CycleState.OPEN, CycleState.EXPIRED])
def test_of_two_reapers_at_once_one_sends_a_tick(world: World, state: CycleState) -> None:
    die_while_searching(world)
    world.clock.advance(LEASE)
    if state is CycleState.EXPIRED:
        sweep(world)  # and what it sent is lost
        world.clock.advance(SILENT_CYCLE)
    assert cycle_of(world).state is state
    others: list[list[Send]] = []
    just_before(world, "count_silence", lambda: others.append(sweep(world)))

    assert sweep(world) == []
    assert [[send.command for send in sends] for sends in others] == [[TICK]]


def test_of_two_reapers_at_once_one_tells_of_it_and_none_stops_what_was_begun_again(world: World) -> None:
    die_while_searching(world)
    late = []
    for _ in range(LIMIT):
        world.clock.advance(SILENT_CYCLE)
        late += sweep(world)
    world.clock.advance(SILENT_CYCLE)
    assert isinstance(late[0].command, StartCycle)
    just_before(world, "end_cycle", partial(die_while_searching, world, late[0].command))
    assert sweep(world) == []

    assert (cycle_of(world).state, cycle_of(world).fence) == (CycleState.OPEN, 2)
    world.clock.advance(SILENT_CYCLE)
    assert sweep(world) == []
    given_up_and_told_of_once(world)


def test_one_that_is_alone_sends_an_expired_tick_at_once(world: World) -> None:
    die_while_searching(world)
    assert starts(reap_stale(ReapStale(alone=True), world.app)) == [Send(command=TICK)]

    world.run(*reap_stale(ReapStale(alone=True), world.app))

    assert world.states() == {"a": ResultState.KEPT}
    assert cycle_of(world).fence == 2


def recovered_up_to_the_limit_and_told_of(world: World) -> None:
    sent = []
    for _ in range(LIMIT + 1):
        world.clock.advance(SILENT_CYCLE)
        sent.append([send.command.kind for send in sweep(world)])

    assert sent == [["judge_result"]] * LIMIT + [[]]
    assert len(escalations(world)) == 1


def test_what_was_counted_of_a_search_is_over_when_it_drains(world: World) -> None:
    die_while_searching(world)
    for _ in range(LIMIT):
        world.clock.advance(SILENT_CYCLE)
        assert len(sweep(world)) == 1
    world.clock.advance(timedelta(minutes=1))
    begin(world)
    assert cycle_of(world).state is CycleState.DRAINING

    recovered_up_to_the_limit_and_told_of(world)


def test_what_a_clock_that_was_ahead_counted_of_a_search_is_over_when_it_drains(world: World) -> None:
    die_while_searching(world)
    for _ in range(LIMIT):
        world.clock.advance(SILENT_CYCLE)
        assert len(sweep(world)) == 1
    world.clock.advance(-LIMIT * SILENT_CYCLE)
    begin(world)

    recovered_up_to_the_limit_and_told_of(world)


def test_a_late_worker_of_an_expired_search_is_refused_and_its_pages_are_judged_once(world: World) -> None:
    def frozen() -> None:
        world.clock.advance(LEASE)
        world.run(*sweep(world))

    just_before(world, "drain_cycle", frozen)

    assert begin(world) == []
    assert world.states() == {"a": ResultState.KEPT}
    assert len(world.keeper.asked) == 1

"""A store that fails beside a permit: the permit that somebody got, and the slot that somebody gave back, are not lost."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests.adapters.contracts.gate_callers import HASTE, LONG, SOON, TTL, demands, refused, soon, taken, waiting
from tests.adapters.contracts.samples import NOW, SECOND

from wikikeeper.adapters.gate_line import GateLine
from wikikeeper.adapters.gate_slots import View
from wikikeeper.adapters.local.gate import SqliteSlots
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane, Permit


class Throttled(Exception):
    pass


class FailingSlots(SqliteSlots):
    """Does what it is told to do at an operation: once, before it or after it."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        super().__init__(database, now)
        self.before: dict[str, Callable[[], object]] = {}
        self.after: dict[str, Callable[[], object]] = {}

    def look(self, who: str) -> View:
        self._comes(self.before, "look")
        return super().look(who)

    def take(self, slot: int, holder: str, lane: Lane, until: datetime, fences: int) -> int | None:
        fence = super().take(slot, holder, lane, until, fences)
        self._comes(self.after, "take")
        return fence

    def give_back(self, slot: int, fence: int) -> bool:
        self._comes(self.before, "give_back")
        done = super().give_back(slot, fence)
        self._comes(self.after, "give_back")
        return done

    def unwant(self, who: str, lane: Lane) -> None:
        self._comes(self.before, "unwant")
        super().unwant(who, lane)

    @staticmethod
    def _comes(told: dict[str, Callable[[], object]], operation: str) -> None:
        if (what := told.pop(operation, None)) is not None:
            what()


def fail() -> None:
    raise Throttled


def not_taken_back(gate: GateLine, told: dict[str, Callable[[], object]]) -> Permit:
    """A permit whose slot the store fails to take back."""
    permit = taken(gate)
    told["give_back"] = fail
    with pytest.raises(Throttled):
        gate.release(permit)
    return permit


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.db")
    yield database
    database.close()


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(NOW)


@pytest.fixture
def slots(database: Database, clock: SettableClock) -> FailingSlots:
    return FailingSlots(database, clock.now)


def gate_over(slots: SqliteSlots, limit: int = 1) -> GateLine:
    return GateLine(slots, HASTE, limit)


@pytest.fixture
def other(database: Database, clock: SettableClock) -> GateLine:
    """Of another process."""
    return gate_over(SqliteSlots(database, clock.now))


def test_a_permit_is_not_lost_for_a_demand_that_could_not_be_taken_back(
    slots: FailingSlots, other: GateLine, clock: SettableClock
) -> None:
    gate = gate_over(slots)
    first = taken(other)
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(gate.acquire, Lane.KEEPER, "b", TTL, LONG)
        soon(lambda: len(demands(other)) == 1)
        slots.before["unwant"] = fail
        other.release(first)
        permit = waits.result(SOON)

    assert isinstance(permit, Permit)
    assert gate.release(permit)
    clock.advance(timedelta(seconds=HASTE.demand_lasts))
    assert other.release(taken(other))


def test_a_slot_goes_back_where_nobody_can_see_who_goes_first(slots: FailingSlots, other: GateLine) -> None:
    gate = gate_over(slots)
    permit, here = taken(gate), threading.get_ident()

    def fail_once_here() -> None:
        if threading.get_ident() == here:
            raise Throttled
        slots.before["look"] = fail_once_here  # it was the waiter's

    with waiting(gate, Lane.KEEPER) as queue:
        slots.before["look"] = fail_once_here
        assert gate.release(permit)
        assert queue.served().fence > permit.fence


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_slot_that_was_not_taken_back_is_given_back_by_the_next_look(
    slots: FailingSlots, other: GateLine, when: str
) -> None:
    """Also where it was done and the answer alone was lost."""
    gate = gate_over(slots)
    permit = not_taken_back(gate, getattr(slots, when))
    assert not gate.release(permit)

    again = taken(gate, patience=LONG)

    assert again.fence > permit.fence
    refused(other)
    assert gate.release(again)
    assert other.release(taken(other))


def test_a_slot_that_is_owed_and_anothers_by_now_stays_theirs(
    slots: FailingSlots, other: GateLine, clock: SettableClock
) -> None:
    gate = gate_over(slots)
    not_taken_back(gate, slots.after)
    theirs = taken(other)

    refused(gate)
    clock.advance(SECOND)
    assert other.release(theirs)


def test_a_slot_that_is_owed_when_its_lease_has_ended_is_asked_for_no_more(
    slots: FailingSlots, clock: SettableClock
) -> None:
    gate = gate_over(slots)
    permit = not_taken_back(gate, slots.before)
    clock.advance(2 * TTL)
    slots.before["give_back"] = fail

    assert taken(gate).fence > permit.fence


def test_all_that_ran_out_is_given_back_though_one_of_them_fails(
    slots: FailingSlots, clock: SettableClock, database: Database
) -> None:
    gate, other = gate_over(slots, 2), gate_over(SqliteSlots(database, clock.now), 2)
    taken(gate, ttl=TTL)
    taken(gate, ttl=TTL)
    clock.advance(TTL)  # the leases go on for a tenth
    slots.before["give_back"] = fail
    with pytest.raises(Throttled):
        gate.acquire(Lane.KEEPER, "b", 2 * TTL, LONG)

    assert taken(gate, ttl=2 * TTL).slot != taken(other, ttl=2 * TTL).slot


def test_a_slot_that_was_taken_for_one_who_was_served_meanwhile_goes_to_no_lower_lane_before_anothers_higher_one(
    slots: FailingSlots, database: Database, clock: SettableClock
) -> None:
    gate = gate_over(slots, 2)
    third = gate_over(SqliteSlots(database, clock.now), 2)
    others = gate_over(SqliteSlots(database, clock.now), 2)
    here, there = taken(gate), taken(third)
    taking, served = threading.Event(), threading.Event()

    def stand_still() -> None:
        taking.set()
        assert served.wait(SOON)

    with waiting(gate, Lane.PLEB) as pleb, waiting(others, Lane.AUTHOR) as author, waiting(gate, Lane.KEEPER):
        slots.after["take"] = stand_still
        third.release(there)
        assert taking.wait(SOON)
        gate.release(here)  # handed on to the Keeper, for whom a slot is being taken
        soon(lambda: [waiting.lane for waiting in gate._here.line] == [Lane.PLEB])
        served.set()
        assert author.served().lane is Lane.AUTHOR
        assert pleb.got == []


def test_who_is_turned_away_waits_no_longer_and_holds_what_was_held(slots: FailingSlots, other: GateLine) -> None:
    gate = gate_over(slots)
    permit = taken(gate)
    with ThreadPoolExecutor(3) as pool:
        waits = [pool.submit(refused, gate, LONG) for _ in range(3)]
        soon(lambda: len(gate._here.line) == 3)
        gate.turn_away()
        for wait in waits:
            assert wait.result(SOON).hint > timedelta()

    refused(other)
    refused(gate, LONG)
    assert gate.release(permit)
    refused(gate, LONG)
    assert other.release(taken(other))
    assert demands(other) == set()


def test_who_is_turned_away_while_a_slot_is_taken_for_them_leaves_it_to_others(
    slots: FailingSlots, other: GateLine
) -> None:
    gate = gate_over(slots)
    slots.after["take"] = gate.turn_away

    refused(gate, LONG)

    assert other.release(taken(other))

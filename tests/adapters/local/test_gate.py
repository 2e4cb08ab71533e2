"""The gate on SQLite: the contract, and the order of those who wait in one process."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from tests.adapters.contracts.gate_contract import HASTE, LONG, TTL, GateContract, OpenGate, refused, taken
from tests.adapters.contracts.samples import NOW
from tests.adapters.contracts.slots_contract import SlotsContract

from wikikeeper.adapters.gate_slots import Slots
from wikikeeper.adapters.local.gate import PACE, SqliteGate, SqliteSlots
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.fakes import SettableClock
from wikikeeper.models import Lane, Permit


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.db")
    yield database
    database.close()


class TestSqliteGate(GateContract):
    @pytest.fixture
    def open_gate(self, database: Database) -> OpenGate:
        return partial(SqliteGate, database, pace=HASTE)


class TestSqliteSlots(SlotsContract):
    @pytest.fixture
    def slots(self, database: Database, clock: SettableClock) -> Slots:
        return SqliteSlots(database, clock.now)


def test_threads_are_let_in_in_the_order_they_came(database: Database) -> None:
    gate = SqliteGate(database, 1)
    permit = taken(gate)
    order: list[int] = []

    def work(number: int) -> None:
        mine = taken(gate, patience=LONG)
        order.append(number)
        gate.release(mine)

    with ThreadPoolExecutor(6) as pool:
        for number in range(6):
            pool.submit(work, number)
            while len(gate._here.line) <= number:
                time.sleep(0.001)
        gate.release(permit)

    assert order == list(range(6))


def test_one_who_loses_patience_does_not_hold_up_the_line(database: Database) -> None:
    gate = SqliteGate(database, 1)
    permit = taken(gate)
    with ThreadPoolExecutor(2) as pool:
        impatient = pool.submit(refused, gate, timedelta(milliseconds=50))
        while not gate._here.line:
            time.sleep(0.001)
        patient = pool.submit(taken, gate, "b", TTL, LONG)
        impatient.result(timeout=10)
        gate.release(permit)

        assert isinstance(patient.result(timeout=10), Permit)


def test_the_hint_is_never_so_short_that_asking_again_spins(database: Database) -> None:
    gate = SqliteGate(database, 1, lambda: NOW)
    taken(gate, ttl=timedelta(milliseconds=20))

    assert refused(gate).hint == timedelta(seconds=PACE.others)


def test_who_holds_what_can_be_looked_up(database: Database) -> None:
    SqliteGate(database, 1).acquire(Lane.PLEB, "draft of an article", TTL, timedelta())

    assert [tuple(row) for row in database.read("SELECT slot, fence, holder, lane FROM slots")] == [
        (0, 10, "draft of an article", "pleb")
    ]


def test_a_slot_says_who_has_it_now_and_not_who_had_it(database: Database) -> None:
    first = SqliteGate(database, 1, lambda: NOW, calls_per_permit=1)
    assert first.release(taken(first))
    SqliteGate(database, 1, lambda: NOW).acquire(Lane.KEEPER, "judge r1", TTL, timedelta())

    assert [tuple(row) for row in database.read("SELECT holder, lane FROM slots")] == [("judge r1", "keeper")]


def test_permits_outlive_the_process_that_gave_them(tmp_path: Path) -> None:
    now = datetime.fromisoformat("2026-03-01T12:00:00Z")
    first = Database(tmp_path / "again.db")
    permit = taken(SqliteGate(first, 1, lambda: now))
    first.close()

    second = Database(tmp_path / "again.db")
    gate = SqliteGate(second, 1, lambda: now)
    refused(gate)
    assert not gate.release(permit), "only who took it knows what was handed on since"
    gate.free_all()
    assert taken(gate).fence > permit.fence
    second.close()

"""The SQLite run store: the contract, and what only a file on one machine has to promise."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from tests.adapters.contracts.samples import (
    CYCLE,
    HASH,
    LEASE,
    NOW,
    TOPIC,
    a_cycle,
    a_failure,
    a_run,
    claimed,
    in_parallel,
    stored,
)
from tests.adapters.contracts.store_contract import RunStoreContract
from tests.adapters.contracts.store_silence import SilenceContract

from wikikeeper.adapters.local.sqlite_cycles import HISTORY
from wikikeeper.adapters.local.sqlite_database import Database, SqlValue
from wikikeeper.adapters.local.sqlite_results import FAILURES_KEPT
from wikikeeper.adapters.local.sqlite_store import PURGED_AT_ONCE, SqliteRunStore
from wikikeeper.models import CycleState, ResultState, StoredPage
from wikikeeper.ports import RunStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteRunStore]:
    store = SqliteRunStore(Database(tmp_path / ".wikikeeper" / "state.db"))
    yield store
    store.close()


class TestSqliteRunStore(RunStoreContract, SilenceContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[RunStore]:
        store = SqliteRunStore(Database(tmp_path / ".wikikeeper" / "state.db"))
        yield store
        store.close()


def test_everything_is_there_after_opening_again(tmp_path: Path) -> None:
    store = SqliteRunStore(Database(tmp_path / "state.db"))
    claim = claimed(store)
    store.put_run(a_run())
    store.close()
    again = SqliteRunStore(Database(tmp_path / "state.db"))

    assert again.result("r0001") == claim.result
    assert again.run(a_run().id) == a_run()
    again.close()


def test_the_newest_failures_are_kept(store: SqliteRunStore) -> None:
    claim = claimed(store)
    for number in range(FAILURES_KEPT + 3):
        store.put_back(claim, stay_in_cycle=True, failure=a_failure(number))
        again = store.claim("r0001", CYCLE, NOW, NOW + LEASE)
        assert again is not None
        claim = again

    assert stored(store).failures == tuple(a_failure(number) for number in range(3, FAILURES_KEPT + 3))


def test_history_is_purged_when_its_time_is_over(store: SqliteRunStore) -> None:
    later = NOW + timedelta(days=1)
    in_parallel(store.put_run, [a_run(number, started=NOW) for number in range(PURGED_AT_ONCE + 2)])
    store.put_run(a_run(1000, started=later))
    store.put_page(StoredPage(text_hash=HASH, paragraphs=("a",), stored=NOW))
    store.start_cycle(a_cycle())
    store.end_cycle(CYCLE, CycleState.DONE, NOW, only_from=frozenset({CycleState.OPEN}))

    assert store.purge(NOW + HISTORY - timedelta(seconds=1)) == 0
    assert store.purge(NOW + HISTORY) == PURGED_AT_ONCE + 4
    assert [run.started for run in store.runs()] == [later]
    assert store.page(HASH) is None
    assert store.cycle(CYCLE) is None


def test_a_page_that_was_judged_again_is_kept_for_longer(store: SqliteRunStore) -> None:
    page = StoredPage(text_hash=HASH, paragraphs=("a",), stored=NOW)
    store.put_page(page)
    store.put_page(page.model_copy(update={"stored": NOW + LEASE}))

    store.purge(NOW + HISTORY)
    assert store.page(HASH) is not None


def test_results_and_unfinished_cycles_are_never_purged(store: SqliteRunStore) -> None:
    store.finish(claimed(store), ResultState.DISCARDED, NOW)
    store.purge(NOW + 10 * HISTORY)

    assert stored(store).state is ResultState.DISCARDED
    assert store.cycle(CYCLE) is not None


class Explaining(Database):
    """Notes how SQLite would find the rows of each read."""

    plans: tuple[str, ...] = ()

    def read(self, sql: str, values: Sequence[SqlValue] = ()) -> list[sqlite3.Row]:
        steps = super().read(f"EXPLAIN QUERY PLAN {sql}", values)
        self.plans = (*self.plans, "; ".join(step["detail"] for step in steps))
        return super().read(sql, values)


@pytest.mark.parametrize(
    ("listing", "index"),
    [
        (lambda store: store.results(states=frozenset({ResultState.JUDGING})), "results_open"),
        (lambda store: store.results(topic=TOPIC, states=frozenset({ResultState.WAITING})), "results_of_topic_open"),
        (lambda store: store.results(topic=TOPIC), "results_of_topic"),
        (lambda store: store.results(), "results_all"),
        (lambda store: store.unnoted(TOPIC), "results_unnoted"),
        (lambda store: store.cycles(states=frozenset({CycleState.OPEN})), "cycles_open"),
        (lambda store: store.cycles(topic=TOPIC), "cycles_of_topic"),
        (lambda store: store.runs(), "runs_all"),
        (lambda store: store.runs(topic=TOPIC), "runs_of_topic"),
        (lambda store: store.runs(outcome="failed"), "runs_of_outcome"),
    ],
)
def test_every_listing_reads_along_an_index(
    tmp_path: Path, listing: Callable[[RunStore], Iterator[object]], index: str
) -> None:
    database = Explaining(tmp_path / "state.db")
    list(listing(SqliteRunStore(database)))
    database.close()

    (plan,) = database.plans
    assert f" {index} " in plan + " "
    assert "TEMP B-TREE" not in plan

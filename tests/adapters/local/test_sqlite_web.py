"""The pages' part of the SQLite store: the contract, and how it finds its rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.adapters.contracts.samples import LEASE, NOW, TOPIC
from tests.adapters.contracts.store_web import WebContract
from tests.adapters.local.test_sqlite_store import Explaining

from wikikeeper.adapters.gate_slots import Slots
from wikikeeper.adapters.local.gate import SqliteSlots
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.models import Kind
from wikikeeper.policy.run_filter import Cursor, Ended, RunFilter
from wikikeeper.ports_web import WebStore


class TestSqlitePages(WebContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[WebStore]:
        store = SqliteRunStore(Database(tmp_path / ".wikikeeper" / "state.db"))
        yield store
        store.close()

    def slots(self, store: WebStore) -> Slots:
        assert isinstance(store, SqliteRunStore)
        return SqliteSlots(store.database, lambda: NOW)


@pytest.mark.parametrize(
    ("chosen", "index"),
    [
        (RunFilter(), "runs_all"),
        (RunFilter(kind=Kind.SPAM), "runs_all"),
        (RunFilter(topic=TOPIC, ended=Ended.FAILED), "runs_of_topic"),
        (RunFilter(topic=TOPIC, ended=Ended.KEPT, kind=Kind.SPAM), "runs_of_topic"),
        (RunFilter(ended=Ended.INJECTION), "runs_of_outcome"),
        (RunFilter(ended=Ended.LOST, since=NOW), "runs_of_outcome"),
        (RunFilter(since=NOW, until=NOW + LEASE), "runs_all"),
    ],
)
def test_every_page_reads_along_an_index_from_its_place_on(tmp_path: Path, chosen: RunFilter, index: str) -> None:
    database = Explaining(tmp_path / "state.db")
    SqliteRunStore(database).run_page(chosen, after=Cursor(started=NOW, id="a"), most=5, most_read=50)
    SqliteRunStore(database).cycle_page(TOPIC, after=None, most=5)
    database.close()

    rows, last, cycles = database.plans
    for plan in (rows, last):
        assert f" {index} " in plan
        assert "SCAN runs" not in plan
        assert "started<" in plan or "started>?" in plan or "(started,id)<" in plan
    assert "TEMP B-TREE" not in last
    assert " cycles_of_topic " in cycles

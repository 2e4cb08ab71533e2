"""The life of a result on SQLite, in any order of events."""

from pathlib import Path

from hypothesis import HealthCheck, settings
from tests.adapters.contracts.store_machine import ResultLife

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.ports import RunStore


class SqliteResultLife(ResultLife):
    def open_store(self, folder: Path) -> RunStore:
        return SqliteRunStore(Database(folder / "state.db"))


TestSqliteResultLife = SqliteResultLife.TestCase
# Some 1,200 events: a few seconds, nearly all of them for the disk.
TestSqliteResultLife.settings = settings(
    max_examples=30,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

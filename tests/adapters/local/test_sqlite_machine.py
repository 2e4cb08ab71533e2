"""The store's whole life on SQLite, in any order of events."""

import os
from pathlib import Path

from tests.adapters.contracts.store_machine import ResultLife, live

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.ports import RunStore

STEPS = int(os.environ.get("WIKIKEEPER_STEPS", "10000"))
"""`make soak` asks for 200,000."""


class SqliteResultLife(ResultLife):
    def open_store(self, folder: Path) -> RunStore:
        return SqliteRunStore(Database(folder / ".wikikeeper" / "state.db"))


def test_the_stores_life_is_as_expected_in_any_order_of_events() -> None:
    live(SqliteResultLife, STEPS)

    assert SqliteResultLife.steps >= STEPS

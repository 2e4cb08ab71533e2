"""Deliveries on one machine: the contract, and that they are forgotten."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.adapters.contracts.deliveries_contract import DeliveriesContract
from tests.adapters.contracts.samples import NOW

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_deliveries import REMEMBERED, SqliteDeliveries


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "state.db")
    yield database
    database.close()


class TestSqliteDeliveries(DeliveriesContract):
    @pytest.fixture
    def deliveries(self, database: Database) -> SqliteDeliveries:
        return SqliteDeliveries(database)


def test_what_is_over_is_forgotten_so_that_the_table_stays_small(database: Database) -> None:
    deliveries = SqliteDeliveries(database)
    for number in range(50):
        deliveries.begin(str(number), NOW)
        deliveries.finish(str(number), NOW)

    assert deliveries.begin("new", NOW + REMEMBERED)

    assert [row["key"] for row in database.read("SELECT key FROM deliveries")] == ["new"]

"""Which deliveries of hooks were worked on to the end, on one machine."""

import sqlite3
from datetime import datetime, timedelta

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_rows import micros

REMEMBERED = timedelta(days=7)
"""Longer than any sender tries, and than a recorded delivery is believed."""
FORGOTTEN_AT_ONCE = 100
"""Rows deleted with each new one, so that the table never grows for long."""


class SqliteDeliveries:
    """`Deliveries` in the database of the run store."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def begin(self, key: str, at: datetime) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            connection.execute(
                "DELETE FROM deliveries WHERE key IN (SELECT key FROM deliveries WHERE expires <= ? LIMIT ?)",
                (micros(at), FORGOTTEN_AT_ONCE),
            )
            connection.execute(
                "INSERT INTO deliveries (key, expires) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (key, micros(at + REMEMBERED)),
            )
            row = connection.execute("SELECT finished FROM deliveries WHERE key = ?", (key,)).fetchone()
            return row["finished"] is None

        return self.database.write(work)

    def finish(self, key: str, at: datetime) -> None:
        self.database.change("UPDATE deliveries SET finished = coalesce(finished, ?) WHERE key = ?", (micros(at), key))

"""The run store of one machine, in one SQLite file: what is left of it when topics, cycles and results are told apart."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime

from wikikeeper.adapters.local.sqlite_cycles import HISTORY, Cycles
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_results import Results
from wikikeeper.adapters.local.sqlite_rows import (
    alert_from,
    alert_row,
    insert,
    micros,
    page_from,
    page_row,
    run_from,
    run_row,
)
from wikikeeper.adapters.local.sqlite_silence import Silences
from wikikeeper.adapters.local.sqlite_topics import Topics
from wikikeeper.adapters.local.sqlite_web import Pages
from wikikeeper.models import Alert, Run, RunOutcome, StoredPage

PURGED_AT_ONCE = 500
"""Rows deleted per transaction, so that a purge of a year never holds up a verdict."""


class SqliteRunStore(Topics, Cycles, Results, Silences, Pages):
    """`RunStore` and `PageStore` on one machine. Closing it closes its database, which the gate shares."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # -- texts

    def claim_text(self, topic: str, text_hash: str, result: str, *, instead_of: str | None = None) -> str:
        def work(connection: sqlite3.Connection) -> str:
            connection.execute(
                """INSERT INTO texts (topic, text_hash, owner) VALUES (?, ?, ?)
                ON CONFLICT (topic, text_hash) DO UPDATE SET owner = excluded.owner WHERE owner = ?""",
                (topic, text_hash, result, instead_of),
            )
            row = connection.execute(
                "SELECT owner FROM texts WHERE topic = ? AND text_hash = ?", (topic, text_hash)
            ).fetchone()
            return str(row["owner"])

        return self.database.write(work)

    def put_page(self, page: StoredPage) -> None:
        """A text that is here already keeps its paragraphs, which quotes point into, and is kept for longer."""
        row = page_row(page, page.stored + HISTORY)
        self.database.change(
            insert("pages", row)
            + " ON CONFLICT (text_hash) DO UPDATE SET expires = excluded.expires WHERE expires < excluded.expires",
            row,
        )

    def page(self, text_hash: str) -> StoredPage | None:
        rows = self.database.read("SELECT * FROM pages WHERE text_hash = ?", (text_hash,))
        return page_from(rows[0]) if rows else None

    # -- runs

    def put_run(self, run: Run) -> bool:
        row = run_row(run, run.started + HISTORY)
        late = run_row(run.model_copy(update={"outcome": "superseded"}), run.started + HISTORY)

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(insert("runs", row) + " ON CONFLICT DO NOTHING", row).rowcount:
                return True
            if run.outcome == "lost":
                return False
            return (
                connection.execute(
                    """UPDATE runs SET started = :started, outcome = :outcome, body = :body, expires = :expires
                    WHERE id = :id AND outcome = 'lost'""",
                    late,
                ).rowcount
                > 0
            )

        return self.database.write(work)

    def supersede_run(self, run: str, started: datetime) -> None:  # noqa: ARG002 - ids are the key here
        self.database.change(
            """UPDATE runs SET outcome = 'superseded', body = json_set(body, '$.outcome', 'superseded')
            WHERE id = ? AND outcome = 'answered'""",
            (run,),
        )

    def run(self, run: str, started: datetime | None = None) -> Run | None:  # noqa: ARG002 - ids are the key here
        rows = self.database.read("SELECT * FROM runs WHERE id = ?", (run,))
        return run_from(rows[0]) if rows else None

    def runs(self, *, topic: str | None = None, outcome: RunOutcome | None = None) -> Iterator[Run]:
        where: list[str] = []
        values: list[str] = []
        if topic is not None:
            where.append("topic = ?")
            values.append(topic)
        if outcome is not None:
            where.append("outcome = ?")
            values.append(str(outcome))
        rows = self.database.listing("runs", where=where, values=values, order=("started", "id"), newest_first=True)
        return map(run_from, rows)

    # -- alerts

    def raise_alert(self, alert: Alert) -> bool:
        row = alert_row(alert)
        return self.database.change(insert("alerts", row) + " ON CONFLICT DO NOTHING", row)

    def clear_alerts(self, subject: str) -> None:
        self.database.change("DELETE FROM alerts WHERE subject = ?", (subject,))

    def alerts(self) -> Iterator[Alert]:
        """By subject and cause."""
        return map(alert_from, self.database.listing("alerts", order=("subject", "cause")))

    # -- the file

    def purge(self, now: datetime) -> int:
        """Delete runs, ended cycles and pages whose time is over. Returns how many."""
        return sum(self._purge(table, now) for table in ("runs", "cycles", "pages"))

    def _purge(self, table: str, now: datetime) -> int:
        def some(connection: sqlite3.Connection) -> int:
            return connection.execute(
                f"""DELETE FROM {table} WHERE rowid IN (
                    SELECT rowid FROM {table} WHERE expires <= ? LIMIT {PURGED_AT_ONCE})""",  # noqa: S608 - names of ours, values are bound
                (micros(now),),
            ).rowcount

        purged = last = self.database.write(some)
        while last == PURGED_AT_ONCE:
            last = self.database.write(some)
            purged += last
        return purged

    def close(self) -> None:
        self.database.close()

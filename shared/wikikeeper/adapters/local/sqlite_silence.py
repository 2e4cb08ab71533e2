"""The run store's memory of silence: counters of cycles and notes, escalations, and how the model has been."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_rows import Row, insert, micros, moment, some_micros, some_moment
from wikikeeper.models import Condition, Escalation, ModelSighting, Silence
from wikikeeper.policy.sightings import was_ahead


class Silences:
    """The part of `RunStore` about what went silent."""

    database: Database

    def silence(self, subject: str) -> Silence | None:
        rows = self.database.read("SELECT * FROM silences WHERE subject = ?", (subject,))
        return _silence(rows[0]) if rows else None

    def count_silence(self, silence: Silence, *, instead_of: Silence | None) -> bool:
        row: Row = {
            "subject": silence.subject,
            "nonresponses": silence.nonresponses,
            "since": micros(silence.since),
            "counted": micros(silence.counted),
            "cooldown_until": some_micros(silence.cooldown_until),
        }

        def work(connection: sqlite3.Connection) -> bool:
            rows = connection.execute("SELECT * FROM silences WHERE subject = ?", (silence.subject,)).fetchall()
            if (_silence(rows[0]) if rows else None) != instead_of:
                return False
            connection.execute(insert("silences", row).replace("INSERT", "INSERT OR REPLACE", 1), row)
            return True

        return self.database.write(work)

    def heard(self, subject: str) -> None:
        self.database.change("UPDATE silences SET nonresponses = 0 WHERE subject = ? AND nonresponses > 0", (subject,))

    def escalate(self, escalation: Escalation) -> bool:
        row: Row = {
            "id": escalation.id,
            "raised": micros(escalation.raised),
            "delivered": some_micros(escalation.delivered),
            "body": escalation.model_dump_json(exclude={"delivered"}),
        }
        return self.database.change(insert("escalations", row) + " ON CONFLICT DO NOTHING", row)

    def escalation(self, escalation: str) -> Escalation | None:
        rows = self.database.read("SELECT * FROM escalations WHERE id = ?", (escalation,))
        return _escalation(rows[0]) if rows else None

    def escalations(self, *, undelivered: bool = False) -> Iterator[Escalation]:
        where = ("delivered IS NULL",) if undelivered else ()
        rows = self.database.listing("escalations", where=where, order=("raised", "id"), newest_first=True)
        return map(_escalation, rows)

    def escalation_delivered(self, escalation: str, at: datetime) -> None:
        self.database.change(
            "UPDATE escalations SET delivered = ? WHERE id = ? AND delivered IS NULL", (micros(at), escalation)
        )

    def saw_model(self, sighting: ModelSighting) -> bool:
        row: Row = {
            "model": sighting.model,
            "since": micros(sighting.since),
            "condition": sighting.condition,
            "cause": sighting.cause,
            "detail": sighting.detail,
        }

        def work(connection: sqlite3.Connection) -> bool:
            newest = connection.execute(
                "SELECT * FROM sightings WHERE model = ? ORDER BY since DESC LIMIT 1", (sighting.model,)
            ).fetchone()
            alike = False
            if newest is not None:
                last = _sighting(newest)
                alike = (last.condition, last.cause) == (sighting.condition, sighting.cause)
                if was_ahead(last, sighting):
                    # The newest is how the model is: what a clock that was ahead saw would stand over it.
                    connection.execute(
                        "DELETE FROM sightings WHERE model = ? AND since >= ?", (sighting.model, micros(sighting.since))
                    )
                elif alike or sighting.since <= last.since:
                    return False
            connection.execute(insert("sightings", row), row)
            return not alike

        return self.database.write(work)

    def model_history(self, model: str | None = None) -> Iterator[ModelSighting]:
        where, values = ((), ()) if model is None else (("model = ?",), (model,))
        return map(
            _sighting,
            self.database.listing("sightings", where=where, values=values, order=("since", "model"), newest_first=True),
        )


def _silence(row: sqlite3.Row) -> Silence:
    return Silence(
        subject=row["subject"],
        nonresponses=row["nonresponses"],
        since=moment(row["since"]),
        counted=moment(row["counted"]),
        cooldown_until=some_moment(row["cooldown_until"]),
    )


def _escalation(row: sqlite3.Row) -> Escalation:
    return Escalation.model_validate_json(row["body"]).model_copy(update={"delivered": some_moment(row["delivered"])})


def _sighting(row: sqlite3.Row) -> ModelSighting:
    return ModelSighting(
        model=row["model"],
        condition=Condition(row["condition"]),
        cause=row["cause"],
        detail=row["detail"],
        since=moment(row["since"]),
    )

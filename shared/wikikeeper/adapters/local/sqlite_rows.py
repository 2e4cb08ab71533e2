"""Values to rows and back."""

import json
import sqlite3
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta

from wikikeeper.adapters.local.sqlite_database import SqlValue
from wikikeeper.models import Alert, Cycle, Result, Run, StoredPage, TopicState, Value

Row = dict[str, SqlValue]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_ABOUT = {"url", "origin", "published"}
"""Of a result: what never changes and is never asked for."""


def micros(at: datetime) -> int:
    """Microseconds since 1970. Raises TypeError for a time without a zone."""
    return (at - _EPOCH) // _MICROSECOND


def some_micros(at: datetime | None) -> int | None:
    return None if at is None else micros(at)


def moment(stored: int) -> datetime:
    return _EPOCH + timedelta(microseconds=stored)


def some_moment(stored: int | None) -> datetime | None:
    return None if stored is None else moment(stored)


def insert(table: str, row: Mapping[str, SqlValue]) -> str:
    """The INSERT for a row of ours, to be followed by its ON CONFLICT."""
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(':' + column for column in row)})"  # noqa: S608 - names of ours, values are bound


def marks(values: Sequence[object] | frozenset[str]) -> str:
    """Placeholders for `IN (...)`."""
    return ", ".join("?" * len(values))


def dumped(value: Value | None) -> str | None:
    return None if value is None else value.model_dump_json()


def _listed(values: Sequence[Value]) -> str:
    return "[" + ",".join(value.model_dump_json() for value in values) + "]"


# -- topics


def topic_from(row: sqlite3.Row) -> TopicState:
    return TopicState(
        slug=row["slug"],
        last_check=some_moment(row["last_check"]),
        last_run=some_moment(row["last_run"]),
        open_note=row["open_note"],
        open_note_started=bool(row["open_note_started"]),
        note_due=some_moment(row["note_due"]),
        ended=None if row["ended"] is None else date.fromisoformat(row["ended"]),
    )


# -- cycles


def cycle_row(cycle: Cycle) -> Row:
    return {
        "id": cycle.id,
        "topic": cycle.topic,
        "tick": cycle.tick,
        "state": cycle.state,
        "started": micros(cycle.started),
        "lease_until": some_micros(cycle.lease_until),
        "fence": cycle.fence,
        "ended": some_micros(cycle.ended),
        "reason": cycle.reason,
        "problems": problems(cycle),
        "found": cycle.found,
        "new": cycle.new,
        "sent": cycle.sent,
        "cap": cycle.cap,
        "calls": cycle.calls,
        "active": some_micros(cycle.active),
        "cap_reached": cycle.cap_reached,
        "fetched": cycle.fetched,
        "answered": cycle.answered,
        "refusals": cycle.refusals,
    }


def problems(cycle: Cycle) -> str:
    return json.dumps(cycle.problems, ensure_ascii=False)


def cycle_from(row: sqlite3.Row) -> Cycle:
    return Cycle(
        id=row["id"],
        topic=row["topic"],
        tick=row["tick"],
        state=row["state"],
        started=moment(row["started"]),
        lease_until=some_moment(row["lease_until"]),
        fence=row["fence"],
        ended=some_moment(row["ended"]),
        reason=row["reason"],
        problems=tuple(json.loads(row["problems"])),
        found=row["found"],
        new=row["new"],
        sent=row["sent"],
        cap=row["cap"],
        calls=row["calls"],
        cap_reached=bool(row["cap_reached"]),
        active=some_moment(row["active"]),
        fetched=bool(row["fetched"]),
        answered=bool(row["answered"]),
        refusals=row["refusals"],
    )


# -- results


def result_row(result: Result) -> Row:
    return {
        "id": result.id,
        "topic": result.topic,
        "canonical": result.canonical,
        "revision": result.revision,
        "title": result.title,
        "about": result.model_dump_json(include=_ABOUT),
        "found": micros(result.found),
        "state": result.state,
        "cycle": result.cycle,
        "fence": result.fence,
        "lease_until": some_micros(result.lease_until),
        "call_fence": result.call_fence,
        "call_started": some_micros(result.call_started),
        "nonresponses": result.nonresponses,
        "attempts": result.attempts,
        "not_before": some_micros(result.not_before),
        "failures": _listed(result.failures),
        "settled_cycle": result.settled_cycle,
        "text_hash": result.text_hash,
        "etag": result.etag,
        "last_modified": result.last_modified,
        "finished": some_micros(result.finished),
        "verdict": dumped(result.verdict),
        "folded_into": result.folded_into,
        "noted": result.noted,
    }


def result_from(row: sqlite3.Row) -> Result:
    return Result.model_validate(
        {
            **json.loads(row["about"]),
            "id": row["id"],
            "topic": row["topic"],
            "canonical": row["canonical"],
            "revision": row["revision"],
            "title": row["title"],
            "found": moment(row["found"]),
            "state": row["state"],
            "cycle": row["cycle"],
            "fence": row["fence"],
            "lease_until": some_moment(row["lease_until"]),
            "call_fence": row["call_fence"],
            "call_started": some_moment(row["call_started"]),
            "nonresponses": row["nonresponses"],
            "attempts": row["attempts"],
            "not_before": some_moment(row["not_before"]),
            "failures": json.loads(row["failures"]),
            "settled_cycle": row["settled_cycle"],
            "text_hash": row["text_hash"],
            "etag": row["etag"],
            "last_modified": row["last_modified"],
            "finished": some_moment(row["finished"]),
            "verdict": None if row["verdict"] is None else json.loads(row["verdict"]),
            "folded_into": row["folded_into"],
            "noted": row["noted"],
        }
    )


# -- pages, runs, alerts


def page_row(page: StoredPage, expires: datetime) -> Row:
    text = json.dumps(page.paragraphs, ensure_ascii=False).encode()
    return {
        "text_hash": page.text_hash,
        "stored": micros(page.stored),
        "paragraphs": zlib.compress(text),
        "expires": micros(expires),
    }


def page_from(row: sqlite3.Row) -> StoredPage:
    return StoredPage(
        text_hash=row["text_hash"],
        paragraphs=tuple(json.loads(zlib.decompress(row["paragraphs"]))),
        stored=moment(row["stored"]),
    )


def run_row(run: Run, expires: datetime) -> Row:
    return {
        "id": run.id,
        "topic": run.topic,
        "started": micros(run.started),
        "outcome": run.outcome,
        "body": run.model_dump_json(),
        "expires": micros(expires),
    }


def run_from(row: sqlite3.Row) -> Run:
    return Run.model_validate_json(row["body"])


def alert_row(alert: Alert) -> Row:
    return {
        "subject": alert.subject,
        "cause": alert.cause,
        "detail": alert.detail,
        "raised": micros(alert.raised),
    }


def alert_from(row: sqlite3.Row) -> Alert:
    return Alert(subject=row["subject"], cause=row["cause"], detail=row["detail"], raised=moment(row["raised"]))

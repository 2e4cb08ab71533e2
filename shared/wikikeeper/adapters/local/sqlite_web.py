"""The run store's part for the pages: runs a page at a time, labels, permits."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime

from wikikeeper.adapters.local.sqlite_database import Database, SqlValue
from wikikeeper.adapters.local.sqlite_rows import Row, cycle_from, insert, marks, micros, moment, run_from
from wikikeeper.models import Label, Lane, Permit
from wikikeeper.policy.gate import Demand
from wikikeeper.policy.run_filter import Cursor, CyclePage, Ended, RunFilter, RunPage

_ENDED = {
    Ended.KEPT: "json_extract(body, '$.kept') = 1",
    Ended.DISCARDED: "json_extract(body, '$.kept') = 0",
    Ended.INJECTION: "json_extract(body, '$.verdict.reason') = 'injection'",
}
"""Conditions on an answered run."""


class Pages:
    """`PageStore` on one machine."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def run_page(self, chosen: RunFilter, *, after: Cursor | None, most: int, most_read: int) -> RunPage:
        where, values = _along_the_index(chosen, after)
        match, wanted = _in_the_body(chosen)
        # Where the index says all, the first rows are the page; else those that match of as many as may be read.
        window = f"""SELECT id, started, outcome, body FROM runs {_all(where)}
            ORDER BY started DESC, id DESC LIMIT {int(most_read if match else min(most, most_read))}"""  # noqa: S608 - names of ours, values are bound
        rows = self.database.read(
            f"SELECT body FROM ({window}) {_all(match)} ORDER BY started DESC, id DESC LIMIT {int(most)}"  # noqa: S608 - as above
            if match
            else window,
            (*values, *wanted),
        )
        runs = tuple(map(run_from, rows))
        if len(runs) == most:
            return RunPage(runs=runs, next=Cursor(started=runs[-1].started, id=runs[-1].id))
        # Not full: either that was all, or enough was read for one page.
        last = self.database.read(
            f"""SELECT id, started FROM runs {_all(where)}
            ORDER BY started DESC, id DESC LIMIT 1 OFFSET {int(most_read) - 1}""",  # noqa: S608 - as above
            values,
        )
        if not last:
            return RunPage(runs=runs, next=None)
        return RunPage(runs=runs, next=Cursor(started=moment(last[0]["started"]), id=last[0]["id"]), searched=True)

    def cycle_page(self, topic: str | None, *, after: Cursor | None, most: int) -> CyclePage:
        where, values = _along_the_index(RunFilter(topic=topic), after)
        rows = self.database.read(
            f"SELECT * FROM cycles {_all(where)} ORDER BY started DESC, id DESC LIMIT {int(most)}",  # noqa: S608 - as above
            values,
        )
        cycles = tuple(map(cycle_from, rows))
        full = len(cycles) == most
        return CyclePage(cycles=cycles, next=Cursor(started=cycles[-1].started, id=cycles[-1].id) if full else None)

    def put_label(self, label: Label) -> None:
        row: Row = {
            "result": label.result,
            "drawn": label.drawn,
            "body": label.model_dump_json(exclude={"drawn"}),
        }
        self.database.change(
            insert("labels", row)
            + """ ON CONFLICT (result) DO UPDATE SET body = excluded.body, drawn = max(drawn, excluded.drawn)""",
            row,
        )

    def labels_of(self, results: Sequence[str]) -> dict[str, Label]:
        rows = self.database.read(f"SELECT * FROM labels WHERE result IN ({marks(results)})", results)  # noqa: S608 - as above
        return {row["result"]: _label(row["body"], row["drawn"]) for row in rows}

    def labels(self) -> Iterator[Label]:
        rows = self.database.listing("labels", order=("result", "result"))
        return (_label(row["body"], row["drawn"]) for row in rows)

    def permits(self, now: datetime) -> list[Permit]:
        rows = self.database.read(
            "SELECT * FROM slots WHERE holder IS NOT NULL AND until > ? ORDER BY slot", (micros(now),)
        )
        return [
            Permit(
                slot=row["slot"],
                holder=row["holder"],
                lane=row["lane"],
                fence=row["fence"],
                until=moment(row["until"]),
            )
            for row in rows
        ]

    def demands(self, now: datetime) -> list[Demand]:
        rows = self.database.read("SELECT * FROM demands WHERE until > ? ORDER BY since, who", (micros(now),))
        return [Demand(Lane(row["lane"]), moment(row["since"]), row["who"]) for row in rows]


def _label(body: str, drawn: int) -> Label:
    return Label.model_validate({**json.loads(body), "drawn": bool(drawn)})


def _along_the_index(chosen: RunFilter, after: Cursor | None) -> tuple[list[str], list[SqlValue]]:
    """What an index of the runs answers by itself."""
    where: list[str] = []
    values: list[SqlValue] = []
    if chosen.topic is not None:
        where.append("topic = ?")
        values.append(chosen.topic)
    elif chosen.ended is not None:
        where.append("outcome = ?")
        values.append(_outcome(chosen.ended))
    if chosen.since is not None:
        where.append("started >= ?")
        values.append(micros(chosen.since))
    if chosen.until is not None:
        where.append("started < ?")
        values.append(micros(chosen.until))
    if after is not None:
        where.append("(started, id) < (?, ?)")
        values += [micros(after.started), after.id]
    return where, values


def _in_the_body(chosen: RunFilter) -> tuple[list[str], list[SqlValue]]:
    """What only the record itself says."""
    match: list[str] = []
    wanted: list[SqlValue] = []
    if chosen.ended is not None and chosen.topic is not None:  # of two indexes one can be followed: the topic's
        match.append("outcome = ?")
        wanted.append(_outcome(chosen.ended))
    if chosen.ended in _ENDED:
        match.append(_ENDED[chosen.ended])
    for name, value in (("trigger", chosen.trigger), ("kind", chosen.kind)):
        if value is not None:
            match.append(f"json_extract(body, '$.{name}') = ?")
            wanted.append(str(value))
    return match, wanted


def _outcome(ended: Ended) -> str:
    return "answered" if ended in _ENDED else ended.value


def _all(conditions: list[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""

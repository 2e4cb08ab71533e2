"""The run store's results: one URL of a topic in one revision each, from found to verdict.

 add ─▶ waiting ─ send (cycle) ─ claim (fence+1) ─▶ judging ─ begin_call (fence+1) ─ finish ─▶ kept, discarded, folded
           ▲                                          │ │
           ├──────────── put_back (fence holds) ──────┘ │      settle: waiting ─▶ waiting, discarded, parked
           └──────────── free (lease ran out, fence+1) ─┘      retry: parked ─▶ waiting   withdraw: both ─▶ withdrawn

Whoever lost the claim holds an old fence, and no write of theirs changes anything.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime

from wikikeeper.adapters.local.sqlite_database import Database, SqlValue
from wikikeeper.adapters.local.sqlite_rows import (
    dumped,
    insert,
    marks,
    micros,
    result_from,
    result_row,
    some_micros,
)
from wikikeeper.adapters.local.sqlite_schema import OPEN_RESULTS, UNNOTED_RESULTS
from wikikeeper.models import Claim, Failure, Result, ResultState, Verdict

FAILURES_KEPT = 50
"""Newest failures kept with a result: more than twice the most attempts a setting allows, and a result that stays
offline for years still fits in any store."""

_UNFINISHED = frozenset({ResultState.WAITING, ResultState.JUDGING, ResultState.PARKED})
_JUDGED = frozenset({ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED})
_SETTLED = frozenset({ResultState.WAITING, ResultState.DISCARDED, ResultState.PARKED})


_ADDED = """CASE
    WHEN :failure IS NULL THEN failures
    WHEN json_array_length(failures) < :kept THEN json_insert(failures, '$[#]', json(:failure))
    ELSE json_insert(json_remove(failures, '$[0]'), '$[#]', json(:failure)) END"""
"""The newest failures with one more."""


class Results:
    """The part of `RunStore` about results."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # -- reading

    def result(self, result: str) -> Result | None:
        rows = self.database.read("SELECT * FROM results WHERE id = ?", (result,))
        return result_from(rows[0]) if rows else None

    def latest(self, topic: str, canonical: str) -> Result | None:
        rows = self.database.read(
            "SELECT * FROM results WHERE topic = ? AND canonical = ? ORDER BY revision DESC LIMIT 1", (topic, canonical)
        )
        return result_from(rows[0]) if rows else None

    def results(self, *, topic: str | None = None, states: frozenset[ResultState] | None = None) -> Iterator[Result]:
        where: list[str] = []
        values: list[str] = []
        if topic is not None:
            where.append("topic = ?")
            values.append(topic)
        if states is not None:
            if states <= _UNFINISHED:
                where.append(OPEN_RESULTS)
            where.append(f"state IN ({marks(states)})")
            values.extend(states)
        return map(result_from, self.database.listing("results", where=where, values=values, order=("found", "id")))

    def unnoted(self, topic: str) -> Iterator[Result]:
        rows = self.database.listing(
            "results", where=("topic = ?", UNNOTED_RESULTS), values=(topic,), order=("finished", "id")
        )
        return map(result_from, rows)

    # -- on the way to a verdict

    def add_results(self, cycle: str | None, results: Sequence[Result]) -> list[Result]:  # noqa: ARG002 - what waits has an index
        def work(connection: sqlite3.Connection) -> list[Result]:
            rows = [(result, result_row(result)) for result in results]
            return [
                result
                for result, row in rows
                if connection.execute(insert("results", row) + " ON CONFLICT DO NOTHING", row).rowcount
            ]

        return self.database.write(work)

    def send_result(self, result: str, cycle: str, *, instead_of: str | None) -> bool:
        return self.database.change(
            "UPDATE results SET cycle = ? WHERE id = ? AND state = 'waiting' AND cycle IS ?",
            (cycle, result, instead_of),
        )

    def claim(self, result: str, cycle: str, now: datetime, until: datetime) -> Claim | None:
        def work(connection: sqlite3.Connection) -> Claim | None:
            return _claimed(
                connection.execute(
                    """UPDATE results SET state = 'judging', fence = fence + 1, lease_until = ?
                    WHERE id = ? AND state = 'waiting' AND cycle = ? AND (not_before IS NULL OR not_before <= ?)
                    RETURNING *""",
                    (micros(until), result, cycle, micros(now)),
                )
            )

        return self.database.write(work)

    def begin_call(self, claim: Claim, cycle: str, now: datetime, until: datetime) -> Claim | None:
        def work(connection: sqlite3.Connection) -> Claim | None:
            renewed = _claimed(
                connection.execute(
                    """UPDATE results SET fence = fence + 1, call_fence = fence + 1, call_started = ?, lease_until = ?
                    WHERE id = ? AND state = 'judging' AND fence = ? AND EXISTS (
                        SELECT 1 FROM cycles WHERE id = ? AND state IN ('open', 'draining') AND calls < cap)
                    RETURNING *""",
                    (micros(now), micros(until), claim.result.id, claim.fence, cycle),
                )
            )
            # Both in one transaction of the only writer: the count above cannot have moved.
            if renewed is None:
                return None
            connection.execute(
                "UPDATE cycles SET calls = calls + 1, active = max(coalesce(active, 0), ?) WHERE id = ?",
                (micros(now), cycle),
            )
            return renewed.model_copy(update={"called": now})

        return self.database.write(work)

    def call_begun(self, result: Result) -> datetime | None:
        return result.call_started if result.call_fence == result.fence else None

    def finish(
        self,
        claim: Claim,
        state: ResultState,
        at: datetime,
        *,
        verdict: Verdict | None = None,
        folded_into: str | None = None,
        title: str | None = None,
        text_hash: str | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
    ) -> bool:
        """Raises ValueError for a state that is no verdict. A title, hash or validator that is not given stays as it is."""
        if state not in _JUDGED:
            raise ValueError(f"a claim is not finished as {state}")
        return self.database.change(
            """UPDATE results SET state = ?, lease_until = NULL, not_before = NULL, finished = ?, verdict = ?,
                folded_into = ?, title = coalesce(?, title), text_hash = coalesce(?, text_hash),
                etag = coalesce(?, etag), last_modified = coalesce(?, last_modified)
            WHERE id = ? AND state = 'judging' AND fence = ?""",
            (
                state,
                micros(at),
                dumped(verdict),
                folded_into,
                title,
                text_hash,
                etag,
                last_modified,
                claim.result.id,
                claim.fence,
            ),
        )

    def put_back(
        self,
        claim: Claim,
        *,
        stay_in_cycle: bool,
        failure: Failure | None = None,
        not_before: datetime | None = None,
    ) -> bool:
        """The newest `FAILURES_KEPT` failures are kept."""
        values: dict[str, SqlValue] = {
            "id": claim.result.id,
            "fence": claim.fence,
            "stay": stay_in_cycle,
            "failure": dumped(failure),
            "not_before": some_micros(not_before),
            "kept": FAILURES_KEPT,
        }
        return self.database.change(
            f"""UPDATE results SET state = 'waiting', lease_until = NULL, not_before = :not_before,
                cycle = iif(:stay, cycle, NULL), nonresponses = iif(:failure IS NULL, nonresponses, 0),
                failures = {_ADDED}
            WHERE id = :id AND state = 'judging' AND fence = :fence""",  # noqa: S608 - values are bound
            values,
        )

    def free(
        self,
        result: str,
        fence: int,
        now: datetime,
        *,
        stay_in_cycle: bool,
        called: datetime | None = None,  # noqa: ARG002 - `begin_call` stored it with the result
    ) -> bool:
        return self.database.change(
            """UPDATE results SET state = 'waiting', fence = fence + 1, nonresponses = nonresponses + 1,
                lease_until = NULL, cycle = iif(?, cycle, NULL)
            WHERE id = ? AND state = 'judging' AND fence = ? AND lease_until <= ?""",
            (stay_in_cycle, result, fence, micros(now)),
        )

    def give_up(
        self,
        result: str,
        fence: int,
        now: datetime,
        *,
        failure: Failure,
        called: datetime | None = None,  # noqa: ARG002 - `begin_call` stored it with the result
    ) -> bool:
        return self.database.change(
            f"""UPDATE results SET state = 'parked', fence = fence + 1, lease_until = NULL, cycle = NULL,
                failures = {_ADDED} WHERE id = :id AND state = 'judging' AND fence = :fence AND lease_until <= :now""",  # noqa: S608 - values are bound
            {
                "id": result,
                "fence": fence,
                "now": micros(now),
                "failure": dumped(failure),
                "kept": FAILURES_KEPT,
            },
        )

    # -- beside a verdict

    def settle(
        self,
        result: str,
        cycle: str,
        *,
        attempts: int,
        state: ResultState,
        verdict: Verdict | None,
        at: datetime,
    ) -> bool:
        """Raises ValueError for a state that failures cannot come to."""
        if state not in _SETTLED:
            raise ValueError(f"failures do not come to {state}")
        return self.database.change(
            """UPDATE results SET state = ?, attempts = ?, verdict = ?, finished = ?, settled_cycle = ?
            WHERE id = ? AND state = 'waiting' AND cycle IS NULL AND settled_cycle IS NOT ?""",
            (
                state,
                attempts,
                dumped(verdict),
                micros(at) if state is ResultState.DISCARDED else None,
                cycle,
                result,
                cycle,
            ),
        )

    def withdraw(self, result: str, at: datetime) -> bool:
        return self.database.change(
            """UPDATE results SET state = 'withdrawn', finished = ?, not_before = NULL
            WHERE id = ? AND state IN ('waiting', 'parked')""",
            (micros(at), result),
        )

    def retry(self, result: str) -> bool:
        return self.database.change(
            """UPDATE results SET state = 'waiting', cycle = NULL, attempts = 0, nonresponses = 0, not_before = NULL,
                verdict = NULL
            WHERE id = ? AND state = 'parked'""",
            (result,),
        )

    def mark_noted(self, results: Sequence[str], key: str) -> None:
        """What is noted already keeps its note."""
        self.database.write(
            lambda connection: (
                connection.executemany(
                    f"UPDATE results SET noted = ? WHERE id = ? AND {UNNOTED_RESULTS}",  # noqa: S608 - names of ours, values are bound
                    [(key, result) for result in results],
                ).rowcount
            )
        )


def _claimed(cursor: sqlite3.Cursor) -> Claim | None:
    # All rows are fetched: a statement with RETURNING that is not read to its end cannot be committed.
    rows = cursor.fetchall()
    if not rows:
        return None
    result = result_from(rows[0])
    assert result.lease_until is not None  # the table's own CHECK
    return Claim(result=result, fence=result.fence, until=result.lease_until)

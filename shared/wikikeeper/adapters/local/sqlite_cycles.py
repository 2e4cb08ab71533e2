"""The run store's cycles: one tick of one topic each."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_rows import cycle_from, cycle_row, insert, marks, micros, problems, some_micros
from wikikeeper.adapters.local.sqlite_schema import OPEN_CYCLES
from wikikeeper.models import RUNNING_CYCLES, UNFINISHED_CYCLES, Cycle, CycleState

HISTORY = timedelta(days=365)
"""How long runs, ended cycles and judged pages are kept: a year of notes can be asked why, and the file stays at some
hundred MB with 200 calls a day. Results are never forgotten: they are how a page is judged only once."""

_LEFT = frozenset(CycleState) - RUNNING_CYCLES
"""What `end_cycle` leads to. All but `expired` are history from then on."""


class Cycles:
    """The part of `RunStore` about cycles."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def start_cycle(self, cycle: Cycle) -> bool:
        # Opened again it keeps its start, its cap and what it has counted: it is the same tick, with the same promises.
        return self.database.change(
            insert("cycles", cycle_row(cycle))
            + """ ON CONFLICT (id) DO UPDATE SET state = excluded.state, fence = fence + 1,
                lease_until = excluded.lease_until, ended = NULL, reason = NULL
            WHERE state = 'expired'""",
            cycle_row(cycle),
        )

    def cycle(self, cycle: str) -> Cycle | None:
        rows = self.database.read("SELECT * FROM cycles WHERE id = ?", (cycle,))
        return cycle_from(rows[0]) if rows else None

    def cycles(self, *, topic: str | None = None, states: frozenset[CycleState] | None = None) -> Iterator[Cycle]:
        where: list[str] = []
        values: list[str] = []
        if topic is not None:
            where.append("topic = ?")
            values.append(topic)
        if states is not None:
            if states <= UNFINISHED_CYCLES:
                where.append(OPEN_CYCLES)
            where.append(f"state IN ({marks(states)})")
            values.extend(states)
        rows = self.database.listing("cycles", where=where, values=values, order=("started", "id"), newest_first=True)
        return map(cycle_from, rows)

    def drain_cycle(self, cycle: Cycle) -> bool:
        # Only what searching found. What judging counts meanwhile (calls, flags, refusals) is newer than `cycle`.
        return self.database.change(
            """UPDATE cycles SET state = 'draining', lease_until = NULL, problems = ?, found = ?, new = ?, sent = ?,
                active = coalesce(?, active), cap_reached = max(cap_reached, ?)
            WHERE id = ? AND fence = ? AND state = 'open'""",
            (
                problems(cycle),
                cycle.found,
                cycle.new,
                cycle.sent,
                some_micros(cycle.active),
                cycle.cap_reached,
                cycle.id,
                cycle.fence,
            ),
        )

    def end_cycle(
        self,
        cycle: str,
        state: CycleState,
        at: datetime,
        *,
        reason: str | None = None,
        only_from: frozenset[CycleState],
        fence: int | None = None,
    ) -> bool:
        """Raises ValueError for a state that is no end."""
        if state not in _LEFT:
            raise ValueError(f"a cycle does not end as {state}")
        expires = None if state in UNFINISHED_CYCLES else at + HISTORY
        return self.database.change(
            f"""UPDATE cycles SET state = ?, ended = ?, reason = coalesce(?, reason), lease_until = NULL, expires = ?
            WHERE id = ? AND fence = coalesce(?, fence) AND state IN ({marks(only_from)})""",  # noqa: S608 - names of ours, values are bound
            (state, micros(at), reason, some_micros(expires), cycle, fence, *only_from),
        )

    def mark_cycle(
        self, cycle: str, *, fetched: bool = False, answered: bool = False, cap_reached: bool = False
    ) -> None:
        # The condition keeps the hundredth "fetched" of a cycle from writing anything.
        self.database.change(
            """UPDATE cycles SET fetched = max(fetched, :fetched), answered = max(answered, :answered),
                cap_reached = max(cap_reached, :cap_reached), refusals = iif(:answered, 0, refusals)
            WHERE id = :cycle AND (fetched < :fetched OR answered < :answered OR cap_reached < :cap_reached
                OR (:answered AND refusals > 0))""",
            {"cycle": cycle, "fetched": fetched, "answered": answered, "cap_reached": cap_reached},
        )

    def count_refusal(self, cycle: str) -> int:
        """Raises KeyError for a cycle that was never started."""

        def work(connection: sqlite3.Connection) -> int:
            rows = connection.execute(
                "UPDATE cycles SET refusals = refusals + 1 WHERE id = ? RETURNING refusals", (cycle,)
            ).fetchall()
            if not rows:
                raise KeyError(cycle)
            return int(rows[0]["refusals"])

        return self.database.write(work)

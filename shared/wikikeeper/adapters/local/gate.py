"""The gate of one machine: slots and demands as rows of the run store, shared by all its processes.

Slots are not flushed to disk: when the power fails, their holders are gone as well. So a lease costs a fraction of a
millisecond, where a flush would cost several, twice per lease. All processes go by the one clock of their machine.

`adapters.gate_line` is who waits and who is handed what; here is only what is asked of the file.
"""

import sqlite3
from collections.abc import Callable
from datetime import datetime, timedelta

from wikikeeper.adapters.gate_line import DEFAULTS, GateLine
from wikikeeper.adapters.gate_slots import Pace, View
from wikikeeper.adapters.local.clock import utc_now
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_rows import micros, moment
from wikikeeper.models import Lane
from wikikeeper.policy.gate import Demand

PACE = Pace(
    first=0.01,  # a look takes some 40 µs and no lock; a slot stands empty for half of this, a hundredth of a quick call
    next=0.02,
    others=0.1,
    demand_after=0,  # a write takes a fifth of a millisecond, of one who has nothing else to do
    demand_again=0.25,
    demand_lasts=1,  # so long a dead waiter holds up others; one that a busy machine keeps from its turn loses its place
    view_lasts=0,
)


class SqliteGate(GateLine):
    """`Gate` on one machine: at most `limit` live permits over all processes that use the same file and limit.

    Where the limit was lowered, permits given out before count against it until they end. `now` is the clock that
    permits end by; it must be the same for all processes.
    """

    def __init__(
        self,
        database: Database,
        limit: int,
        now: Callable[[], datetime] = utc_now,
        *,
        calls_per_permit: int = DEFAULTS.calls_per_permit,
        max_wait: timedelta = timedelta(seconds=DEFAULTS.max_wait),
        pace: Pace = PACE,
    ) -> None:
        slots = SqliteSlots(database, now)
        super().__init__(slots, pace, limit, calls_per_permit=calls_per_permit, max_wait=max_wait)


class SqliteSlots:
    """`Slots` in the tables `slots` and `demands`."""

    def __init__(self, database: Database, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self.now = now

    def look(self, who: str) -> View:
        at = self.now()
        rows = self._database.read(
            """SELECT slot, until, NULL AS lane, NULL AS who FROM slots WHERE holder IS NOT NULL AND until > ?
            UNION ALL SELECT NULL, since, lane, who FROM demands WHERE until > ? AND who != ?""",
            (micros(at), micros(at), who),
        )
        return View(
            at,
            {row["slot"]: moment(row["until"]) for row in rows if row["slot"] is not None},
            tuple(Demand(Lane(row["lane"]), moment(row["until"]), row["who"]) for row in rows if row["slot"] is None),
        )

    def take(self, slot: int, holder: str, lane: Lane, until: datetime, fences: int) -> int | None:
        rows = self._database.write(
            # A slot is made once and then only changes hands, so its fence never starts again.
            lambda connection: connection.execute(
                """INSERT INTO slots (slot, fence, holder, lane, until) VALUES (:slot, :fences, :holder, :lane, :until)
                ON CONFLICT (slot) DO UPDATE SET fence = fence + :fences, holder = :holder, lane = :lane, until = :until
                    WHERE holder IS NULL OR slots.until <= :now
                RETURNING fence""",
                {
                    "slot": slot,
                    "fences": fences,
                    "holder": holder,
                    "lane": lane,
                    "until": micros(until),
                    "now": micros(self.now()),
                },
            ).fetchall(),
            durable=False,
        )
        return int(rows[0]["fence"]) if rows else None

    def extend(self, slot: int, fence: int, until: datetime) -> bool:
        return self._database.change(
            "UPDATE slots SET until = ? WHERE slot = ? AND fence = ? AND holder IS NOT NULL AND until > ?",
            (micros(until), slot, fence, micros(self.now())),
            durable=False,
        )

    def give_back(self, slot: int, fence: int) -> bool:
        return self._database.change(
            "UPDATE slots SET holder = NULL, lane = NULL WHERE slot = ? AND fence = ? AND holder IS NOT NULL AND until > ?",
            (slot, fence, micros(self.now())),
            durable=False,
        )

    def want(self, who: str, lane: Lane, since: datetime, until: datetime) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM demands WHERE until <= ?", (micros(self.now()),))
            connection.execute(
                "INSERT OR REPLACE INTO demands (lane, who, since, until) VALUES (?, ?, ?, ?)",
                (lane, who, micros(since), micros(until)),
            )

        self._database.write(work, durable=False)

    def unwant(self, who: str, lane: Lane) -> None:
        self._database.change("DELETE FROM demands WHERE lane = ? AND who = ?", (lane, who), durable=False)

    def free_all(self) -> None:
        self._database.change("UPDATE slots SET holder = NULL, lane = NULL WHERE holder IS NOT NULL", durable=False)
        self._database.change("DELETE FROM demands", durable=False)

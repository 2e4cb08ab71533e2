"""The gate of one machine: permits as rows of the run store, shared by all its processes.

 thread 1 ─ acquire ─ holds slot 0 ─────────────── release ─┐
 thread 2 ─ acquire ─ first in line, tries and waits ───────┴▶ tries, holds slot 0 with fence + 1
 thread 3 ─ acquire ─ second in line, waits ──────────────────▶ first in line now

Only the first in line of a process asks the store: at once when this process releases, and every now and then for what
other processes release and for permits that ran out. A holder that dies gives nothing back; its permit ends by itself,
and its late release finds another fence. Among the threads of a process it is first come, first served; among
processes it is chance.

Permits are not flushed to disk: when the power fails, their holders are gone as well. So a permit costs a fraction of a
millisecond, where a flush would cost several, twice per call.
"""

import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta

from wikikeeper.adapters.local.clock import utc_now
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_rows import micros, moment
from wikikeeper.models import Lane, Permit, Wait

POLL_FIRST = 0.02
"""Seconds to the first look for what other processes released: a twentieth of a quick call."""
POLL_SLOWEST = 0.25
"""Seconds between looks after a while: a slot stands empty that long at most, and a look costs some 20 µs."""
POLL_GROWTH = 1.5
"""Reaches the slowest after seven looks, some 0.6 s."""


class SqliteGate:
    """`Gate` on one machine: at most `limit` live permits over all processes that use the same file and limit.

    Where the limit was lowered, permits given out before count against it until they end. `now` is the clock that
    permits end by; it must be the same for all processes. Waiting itself is by the monotonic clock.
    """

    def __init__(self, database: Database, limit: int, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._limit = limit
        self._now = now
        self._turn = threading.Condition()
        self._line: deque[object] = deque()
        self._released = 0

    def acquire(self, lane: Lane, holder: str, ttl: timedelta, patience: timedelta) -> Permit | Wait:
        """The hint of a `Wait` is the time to the end of the permit that ends first, unless it is released before."""
        last = time.monotonic() + patience.total_seconds()
        me = object()
        with self._turn:
            self._line.append(me)
        try:
            return self._wait_in_line(me, lane, holder, ttl, last)
        finally:
            with self._turn:
                self._line.remove(me)
                self._turn.notify_all()

    def renew(self, permit: Permit, ttl: timedelta) -> Permit | None:
        now = self._now()
        held = self._database.change(
            "UPDATE slots SET until = ? WHERE slot = ? AND fence = ? AND holder IS NOT NULL AND until > ?",
            (micros(now + ttl), permit.slot, permit.fence, micros(now)),
            durable=False,
        )
        return permit.model_copy(update={"until": now + ttl}) if held else None

    def release(self, permit: Permit) -> bool:
        held = self._database.change(
            "UPDATE slots SET holder = NULL, lane = NULL WHERE slot = ? AND fence = ? AND holder IS NOT NULL AND until > ?",
            (permit.slot, permit.fence, micros(self._now())),
            durable=False,
        )
        with self._turn:
            self._released += 1
            self._turn.notify_all()
        return held

    def free_all(self) -> None:
        self._database.change("UPDATE slots SET holder = NULL, lane = NULL WHERE holder IS NOT NULL", durable=False)

    def _wait_in_line(self, me: object, lane: Lane, holder: str, ttl: timedelta, last: float) -> Permit | Wait:
        interval = POLL_FIRST
        while True:
            with self._turn:
                first = self._line[0] is me
                seen = self._released
            # A look takes no lock on the file; only a slot that looks free is worth a write.
            if first and self._free_at() is None:
                permit = self._take(lane, holder, ttl)
                if permit is not None:
                    return permit
            left = last - time.monotonic()
            if left <= 0:
                return Wait(hint=self._hint())
            with self._turn:
                if first:
                    # Jitter keeps processes from looking in step.
                    pause = interval * random.uniform(0.5, 1)  # noqa: S311 - no secret
                    if self._released == seen:
                        self._turn.wait(min(pause, left))
                    interval = POLL_FIRST if self._released != seen else min(interval * POLL_GROWTH, POLL_SLOWEST)
                else:
                    self._turn.wait_for(lambda: self._line[0] is me, left)

    def _free_at(self) -> datetime | None:
        """None: a slot is free now. Otherwise when the first permit runs out."""
        row = self._database.read(
            "SELECT count(*) AS live, min(until) AS soonest FROM slots WHERE holder IS NOT NULL AND until > ?",
            (micros(self._now()),),
        )[0]
        return None if row["live"] < self._limit else moment(row["soonest"])

    def _hint(self) -> timedelta:
        # A slot that is free just now belongs to the first in line; a moment later there may be another.
        soonest = timedelta(seconds=POLL_SLOWEST)
        free_at = self._free_at()
        return soonest if free_at is None else max(free_at - self._now(), soonest)

    def _take(self, lane: Lane, holder: str, ttl: timedelta) -> Permit | None:
        def work(connection: sqlite3.Connection) -> Permit | None:
            now = self._now()
            taken = connection.execute(
                "SELECT slot FROM slots WHERE holder IS NOT NULL AND until > ?", (micros(now),)
            ).fetchall()
            if len(taken) >= self._limit:
                return None
            slot = min(set(range(self._limit)) - {row["slot"] for row in taken})
            # A slot is made once and then only changes hands, so its fence never starts again.
            row = connection.execute(
                """INSERT INTO slots (slot, fence, holder, lane, until) VALUES (?, 1, ?, ?, ?)
                ON CONFLICT (slot) DO UPDATE SET fence = fence + 1, holder = excluded.holder, lane = excluded.lane,
                    until = excluded.until
                RETURNING fence""",
                (slot, holder, lane, micros(now + ttl)),
            ).fetchall()[0]
            return Permit(slot=slot, holder=holder, lane=lane, fence=row["fence"], until=now + ttl)

        return self._database.write(work, durable=False)

"""The gate in the cloud: one item per slot, taken by one conditional write, handed on without any.

 container 1   take slot 0 ── call ──┬─ call ──┬─ call ── ... ── release ─┐
               (lease, 1 write)      │ handed on to who waits in          │ (1 write)
                                     └ this container: no write           │
 container 2   waits, looks ──────────────────────────────────────────────┴▶ takes slot 0, fence + 1

A slot's lease is as long as the permit that it was taken for, and longer by `KEPT` when others wait in the same process:
for so long it is handed from one to the next. Then it is given back, so that other containers get their turn. With the
lease, as many fences are taken as permits may be handed on, so a fence grows even where a container died in between.

A holder that dies gives nothing back; its lease ends by itself, and its late release finds another fence. Clocks of two
containers differ: a lease is taken over only `skew` after its end, while who holds it stops at its end.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from wikikeeper.adapters.aws.dynamodb_items import micros, moment
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Plus, Table
from wikikeeper.models import Lane, Permit, Wait

GATE = "gate"
SKEW = timedelta(seconds=1)
"""Clocks inside AWS are within milliseconds of each other; a second costs nothing, since leases end only after crashes."""
KEPT = timedelta(seconds=30)
"""How long a slot is handed on inside one process: some seventy calls for two writes, and a quarter of the patience
that others wait with."""
HANDED_ON = 1000
"""Most permits of one lease: more than calls fit into `KEPT`, each of them 30 ms at least."""
POLL_FIRST = 0.1
"""Seconds to the first look for what other containers released. A look is one read unit."""
POLL_SLOWEST = 1.0
"""Seconds between looks after a while: a minute of waiting costs 60 read units, a hundred thousandth of a cent."""
POLL_GROWTH = 1.5


@dataclass(slots=True, eq=False)
class _Waiting:
    lane: Lane
    holder: str
    ttl: timedelta
    looking: bool = False
    """It is at the store just now, and may come back with a slot of its own."""
    permit: Permit | None = None
    """What was handed on to it."""


@dataclass(slots=True)
class _Lease:
    """A slot that this process holds in the store."""

    fence: int
    """The store's, up to which permits may be handed on."""
    until: datetime
    permit: Permit
    """Who holds it now."""


class DynamoGate:
    """`Gate` on DynamoDB: at most `limit` live permits over all containers that use the same table and limit.

    Where the limit was lowered, permits given out before count against it until they end. `now` is the clock that
    permits end by; waiting itself is by the monotonic clock. Among the threads of a process it is first come, first
    served; among processes it is chance. A permit is renewed and released through the gate that gave it.
    """

    def __init__(
        self,
        table: Table,
        limit: int,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        skew: timedelta = SKEW,
    ) -> None:
        self._table = table
        self._limit = limit
        self._now = now
        self._skew = skew
        self._turn = threading.Condition()
        self._line: deque[_Waiting] = deque()
        self._leases: dict[int, _Lease] = {}
        self._released = 0

    def acquire(self, lane: Lane, holder: str, ttl: timedelta, patience: timedelta) -> Permit | Wait:
        """The hint of a `Wait` is the time to the end of the permit that ends first, unless it is released before."""
        last = time.monotonic() + patience.total_seconds()
        me = _Waiting(lane, holder, ttl)
        with self._turn:
            self._line.append(me)
        try:
            return self._wait_in_line(me, last)
        finally:
            with self._turn:
                self._line.remove(me)
                self._turn.notify_all()

    def renew(self, permit: Permit, ttl: timedelta) -> Permit | None:
        now = self._now()
        with self._turn:
            lease = self._lease_of(permit)
            if permit.until <= now or (lease is None and self._is_known(permit)):
                return None
            fence = permit.fence if lease is None else lease.fence
            until = now + ttl if lease is None else max(now + ttl, lease.until)
        held = self._table.change(
            _slot(permit.slot),
            {"until": micros(until)},
            "attribute_exists(#holder) AND #fence = :fence AND #until > :now",
            {"fence": fence, "now": micros(now)},
        )
        if held is None:
            return None
        renewed = permit.model_copy(update={"until": now + ttl})
        with self._turn:
            if lease is not None and lease.permit == permit:
                lease.until, lease.permit = until, renewed
        return renewed

    def release(self, permit: Permit) -> bool:
        now = self._now()
        live = permit.until > now
        with self._turn:
            lease = self._lease_of(permit)
            if lease is None and self._is_known(permit):
                return False  # handed on since
            if lease is not None:
                if live and self._hand_on(lease, now):
                    return True
                del self._leases[permit.slot]
        held = self._table.change(
            _slot(permit.slot),
            {"holder": None, "lane": None},
            "attribute_exists(#holder) AND #fence = :fence AND #until > :now",
            {"fence": permit.fence if lease is None else lease.fence, "now": micros(now)},
        )
        with self._turn:
            self._released += 1
            self._turn.notify_all()
        return live and held is not None

    def free_all(self) -> None:
        with self._turn:
            self._leases.clear()
        for slot in self._table.query("#pk = :gate", {"gate": GATE}):
            if "holder" in slot:
                # Only as it was seen: one that somebody took meanwhile is theirs.
                self._table.change(
                    Key(GATE, str(slot["sk"])),
                    {"holder": None, "lane": None},
                    "attribute_exists(#holder) AND #fence = :fence",
                    {"fence": slot["fence"]},
                )
        with self._turn:
            self._released += 1
            self._turn.notify_all()

    # -- inside this process; all of it under the lock

    def _lease_of(self, permit: Permit) -> _Lease | None:
        lease = self._leases.get(permit.slot)
        return lease if lease is not None and lease.permit.fence == permit.fence else None

    def _is_known(self, permit: Permit) -> bool:
        """It was of a lease that this process still has, and is somebody else's now."""
        lease = self._leases.get(permit.slot)
        return lease is not None and permit.fence < lease.permit.fence

    def _hand_on(self, lease: _Lease, now: datetime) -> bool:
        """To the first who waits here, if the lease outlasts what that one needs."""
        last = lease.permit
        if last.fence >= lease.fence:
            return False
        for waiting in self._line:
            if waiting.looking or waiting.permit is not None or now + waiting.ttl > lease.until:
                continue
            waiting.permit = lease.permit = Permit(
                slot=last.slot,
                holder=waiting.holder,
                lane=waiting.lane,
                fence=last.fence + 1,
                until=now + waiting.ttl,
            )
            self._turn.notify_all()
            return True
        return False

    @staticmethod
    def _handed(me: _Waiting) -> Permit | None:
        return me.permit

    # -- waiting

    def _wait_in_line(self, me: _Waiting, last: float) -> Permit | Wait:
        interval = POLL_FIRST
        while True:
            with self._turn:
                if (permit := self._handed(me)) is not None:
                    return permit
                me.looking = self._line[0] is me
                others = len(self._line) > 1
                seen = self._released
            soonest: datetime | None = None
            if me.looking:
                taken = self._look(me, others=others)
                if isinstance(taken, Permit):
                    return taken
                soonest = taken
            with self._turn:
                me.looking = False
                left = last - time.monotonic()
                if left <= 0:
                    # What was handed on at the last moment is not lost.
                    return self._handed(me) or Wait(hint=self._hint(soonest))
                if self._released != seen:
                    interval = POLL_FIRST
                elif self._line[0] is me:
                    # Jitter keeps containers from looking in step.
                    self._turn.wait(min(interval * random.uniform(0.5, 1), left))  # noqa: S311 - no secret
                    interval = min(interval * POLL_GROWTH, POLL_SLOWEST)
                else:
                    self._turn.wait_for(lambda: self._line[0] is me or me.permit is not None, left)

    def _hint(self, soonest: datetime | None) -> timedelta:
        # Who was not first in line did not look: then it is about a call.
        shortest = timedelta(seconds=POLL_SLOWEST)
        return shortest if soonest is None else max(soonest - self._now(), shortest)

    # -- the store

    def _look(self, me: _Waiting, *, others: bool) -> Permit | datetime:
        """A permit, or when the first of the others ends."""
        now = self._now()
        over = micros(now - self._skew)
        slots = list(self._table.query("#pk = :gate", {"gate": GATE}))
        live = {int(str(slot["sk"])): int(slot["until"]) for slot in slots if "holder" in slot and slot["until"] > over}  # type: ignore[operator]
        free = [slot for slot in range(self._limit) if slot not in live]
        if len(live) < self._limit:
            # A random start: containers that come at once try different slots first.
            random.shuffle(free)
            for slot in free:
                if (permit := self._take(slot, me, now, over, others=others)) is not None:
                    return permit
        return moment(min(live.values())) + self._skew if live else now

    def _take(self, slot: int, me: _Waiting, now: datetime, over: int, *, others: bool) -> Permit | None:
        until = now + me.ttl + (KEPT if others else timedelta())
        spare = HANDED_ON if others else 0
        # A slot is made once and then only changes hands, so its fence never starts again.
        item = self._table.change(
            _slot(slot),
            {"fence": Plus(1 + spare), "holder": me.holder, "lane": me.lane, "until": micros(until)},
            "attribute_not_exists(#holder) OR #until <= :over",
            {"over": over},
        )
        if item is None:
            return None
        fence = _fence(item)
        permit = Permit(slot=slot, holder=me.holder, lane=me.lane, fence=fence - spare, until=now + me.ttl)
        with self._turn:
            self._leases[slot] = _Lease(fence=fence, until=until, permit=permit)
        return permit


def _slot(number: int) -> Key:
    return Key(GATE, str(number))


def _fence(item: Item) -> int:
    return int(item["fence"])

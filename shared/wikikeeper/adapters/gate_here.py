"""What one process knows of its gate: who waits in it, and which slots it holds. All of it under the lock `turn`."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from wikikeeper.adapters.gate_slots import View
from wikikeeper.models import Lane, Permit
from wikikeeper.policy import gate as policy
from wikikeeper.policy.gate import Demand


@dataclass(slots=True, eq=False)
class Waiting:
    lane: Lane
    holder: str
    ttl: timedelta
    since: datetime
    began: float
    permit: Permit | None = None
    """What it was given."""

    def served(self) -> bool:
        return self.permit is not None


@dataclass(slots=True, eq=False)
class Lease:
    """A slot that this process holds in the store."""

    slot: int
    fence: int
    """The store's: the last that may be given out."""
    until: datetime
    served: int = 0
    permit: Permit | None = None
    """Who holds it now."""


@dataclass(slots=True)
class Wanted:
    since: datetime
    again: float
    """When to refresh it, by the monotonic clock."""


class Here:
    """The line and the leases of a process."""

    def __init__(self, me: str, now: Callable[[], datetime], calls_per_permit: int, max_wait: timedelta) -> None:
        self._me = me
        self._now = now
        self._calls_per_permit = calls_per_permit
        self._max_wait = max_wait
        self.turn = threading.Condition()
        self.line: list[Waiting] = []
        self.leases: dict[int, Lease] = {}
        self.owed: list[Lease] = []
        """What the store did not take back when it should have."""
        self.wanted: dict[Lane, Wanted] = {}
        self.view: View | None = None
        self.seen = float("-inf")
        """When that was, by the monotonic clock."""
        self.looking = False
        """Somebody of the line is at the store: whatever comes of it is for whoever is first then."""
        self.changes = 0
        """Counts what may let somebody in without another process."""
        self.closed = False
        """Nobody is let in any more."""

    # -- who waits

    def oldest(self) -> Iterable[Waiting]:
        """The first of each lane."""
        return {waiting.lane: waiting for waiting in reversed(self.line)}.values()

    def demand(self, waiting: Waiting) -> Demand:
        """As others see it: a demand is a little older than its waiter until it is refreshed."""
        wanted = self.wanted.get(waiting.lane)
        return Demand(waiting.lane, waiting.since if wanted is None else min(wanted.since, waiting.since), self._me)

    def first(self) -> Waiting | None:
        """None where nobody waits, or nobody is let in."""
        if self.closed:
            return None
        now = self._now()
        return min(
            self.oldest(), key=lambda waiting: policy.place(self.demand(waiting), now, self._max_wait), default=None
        )

    def left(self, last: float) -> float:
        """Seconds of a patience that ends at `last`, by the monotonic clock."""
        return 0.0 if self.closed else last - time.monotonic()

    # -- who is given what

    def hand_on(self, lease: Lease, now: datetime) -> bool:
        """To whoever is first here, where that takes nothing from anybody who goes before."""
        if (following := self.first()) is None:
            return False
        may = policy.may_hand_on(
            self.demand(following),
            self.view.demands if self.view is not None else (),
            now,
            self._max_wait,
            served=lease.served,
            calls_per_permit=self._calls_per_permit,
            left=lease.until - now,
            asked=following.ttl,
        )
        if may:
            self._give(lease, following, now)
        return may

    def give_fresh(self, lease: Lease, now: datetime, mine: Demand, view: View) -> bool:
        """A slot that was just taken for `mine`, as others were seen in `view`.

        To the first; to the next one where the lease is too short for the first, who came since it was asked for. One
        that comes after `mine` has it only if nobody elsewhere goes before.
        """
        if (first := self.first()) is None:
            return False
        own = policy.place(mine, now, self._max_wait)
        for waiting in [first, *self.line]:
            demand = self.demand(waiting)
            after = policy.place(demand, now, self._max_wait) > own
            if after and policy.ahead(demand, view.demands, now, self._max_wait):
                continue
            if now + waiting.ttl <= lease.until:
                self._give(lease, waiting, now)
                return True
        return False

    def _give(self, lease: Lease, to: Waiting, now: datetime) -> None:
        lease.served += 1
        lease.permit = to.permit = Permit(
            slot=lease.slot,
            holder=to.holder,
            lane=to.lane,
            fence=lease.fence - self._calls_per_permit + lease.served,
            until=now + to.ttl,
        )
        self.line.remove(to)
        self.turn.notify_all()

    def lease_of(self, permit: Permit) -> Lease | None:
        """The lease whose permit it is now. None: it was given back, handed on, or of another gate."""
        lease = self.leases.get(permit.slot)
        held = lease is not None and lease.permit is not None and lease.permit.fence == permit.fence
        return lease if held else None

    def forget(self, lease: Lease) -> None:
        if self.leases.get(lease.slot) is lease:
            del self.leases[lease.slot]

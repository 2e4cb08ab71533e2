"""The line before the gate in one process: who asks the store, who is handed what, and what goes back.

 thread 1   takes slot 0 ── call ──┬─ handed on ── call ──┬─ ... ─ given back, 1 write ─┐
            (lease, 1 write)       │                      │                             │
 thread 2   waits in line ─────────┘ call ── release ─────┘                             │
 process 2  waits, looks, says so (demand) ── looks ────────────────────────────────────┴▶ takes slot 0

A process holds a slot by a lease in the store, and its threads hold permits of that lease, one after the other. Only the
first in line looks at the store: at once when something changed here, and every now and then for what others gave back.
Whether it may take a slot, and whether a slot is handed on, is `policy.gate`'s to say.

The lease is longer than the permit that it is taken for, so that there is something to hand on. With it as many fences
are reserved as permits may be handed on: a fence grows without a write, also where the process dies in between.

 a holder dies       its slot is free once the lease ends: a tenth of a permit after that would have
 a waiter dies       its demand ends by itself after `Pace.demand_lasts`
 a thread overruns   its permit ends, and the next thread of its process has the slot; its late release changes nothing
 the store fails     a slot that could not be given back is given back by whoever of its process looks next
"""

import random
import secrets
import time
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from wikikeeper.adapters.gate_here import Here, Lease, Waiting, Wanted
from wikikeeper.adapters.gate_slots import Pace, Slots, View
from wikikeeper.models import Lane, Permit, Wait
from wikikeeper.policy import gate as policy
from wikikeeper.policy.gate import Demand
from wikikeeper.settings import GateSettings

DEFAULTS = GateSettings()
POLL_GROWTH = 1.5


class GateLine:
    """`Gate` over the slots of a store: at most `limit` live permits over all processes that use the same ones.

    A permit is renewed and released through the gate that gave it. Waiting is by the monotonic clock.
    """

    def __init__(
        self,
        slots: Slots,
        pace: Pace,
        limit: int,
        *,
        calls_per_permit: int = DEFAULTS.calls_per_permit,
        max_wait: timedelta = timedelta(seconds=DEFAULTS.max_wait),
    ) -> None:
        self._slots = slots
        self._pace = pace
        self._limit = limit
        self._calls_per_permit = calls_per_permit
        self._max_wait = max_wait
        self._me = secrets.token_hex(4)
        self._here = Here(self._me, slots.now, calls_per_permit, max_wait)
        self._turn = self._here.turn

    def acquire(self, lane: Lane, holder: str, ttl: timedelta, patience: timedelta) -> Permit | Wait:
        """The hint of a `Wait` is the time to the end of the permit that ends first, unless it is released before."""
        began = time.monotonic()
        me = Waiting(lane, holder, ttl, self._slots.now(), began)
        with self._turn:
            self._here.line.append(me)
        try:
            return self._wait_in_line(me, began + patience.total_seconds())
        except BaseException:
            self._leave(me)
            if me.permit is not None:
                self.release(me.permit)
            raise
        finally:
            self._tidy(lane)

    def renew(self, permit: Permit, ttl: timedelta) -> Permit | None:
        now = self._slots.now()
        until = now + ttl
        with self._turn:
            lease = self._here.lease_of(permit)
            if lease is None or permit.until <= now:
                return None
            if until <= lease.until:
                lease.permit = permit.model_copy(update={"until": until})
                return lease.permit
        held = self._slots.extend(permit.slot, lease.fence, until)
        with self._turn:
            if not held:
                self._here.forget(lease)
                return None
            lease.until = max(lease.until, until)
            if self._here.lease_of(permit) is not lease:
                return None  # it ran out, and went to another thread, while the store was asked
            lease.permit = permit.model_copy(update={"until": until})
            return lease.permit

    def left(self, permit: Permit) -> timedelta:
        return permit.until - self._slots.now()

    def release(self, permit: Permit) -> bool:
        try:
            self._refresh_view_to_hand_on(permit)
            known = True
        except Exception:  # noqa: BLE001 - whatever a store raises: who goes first is not known, so it goes back for all
            known = False
        now = self._slots.now()
        with self._turn:
            lease = self._here.lease_of(permit)
            if lease is None:
                return False
            live = permit.until > now
            lease.permit = None
            if known and self._here.hand_on(lease, now):
                return live
            self._here.forget(lease)
        try:
            held = self._give_back(lease)
        finally:
            self._changed()
        return live and held

    def free_all(self) -> None:
        with self._turn:
            self._here.leases.clear()
        self._slots.free_all()
        self._changed()

    def turn_away(self) -> None:
        with self._turn:
            self._here.closed = True
        self._changed()

    # -- waiting

    def _wait_in_line(self, me: Waiting, last: float) -> Permit | Wait:
        interval = self._pace.first
        while True:
            with self._turn:
                first = self._wait_to_be_first(me, last)
                changes = self._here.changes
                self._here.looking |= first
            if not first:
                return self._given_at_last(me)
            try:
                near = self._look(me)
            finally:
                with self._turn:
                    self._here.looking = False
                    self._turn.notify_all()
            left = self._here.left(last)
            if left <= 0 or me.served():
                return self._given_at_last(me)
            self._leave_demands()
            with self._turn:
                # Jitter keeps processes from looking in step.
                pause = min(interval * random.uniform(0.5, 1), left)  # noqa: S311 - no secret
                self._turn.wait_for(partial(self._stirred, me, changes), pause)
                if self._here.first() is not me:
                    self._turn.notify_all()  # who became late meanwhile is first without a word from anybody
                slowest = self._pace.next if near else self._pace.others
                interval = self._pace.first if self._here.changes != changes else min(interval * POLL_GROWTH, slowest)

    def _stirred(self, me: Waiting, changes: int) -> bool:
        """Something happened that is worth a look. Others of the line come and go without it."""
        return me.served() or self._here.changes != changes

    def _wait_to_be_first(self, me: Waiting, last: float) -> bool:
        """Under the lock. False: it was given a permit, or its patience is over."""
        while me.permit is None:
            if self._here.first() is me and not self._here.looking:
                return True
            left = self._here.left(last)
            if left <= 0:
                return False
            self._turn.wait(left)
        return False

    def _given_at_last(self, me: Waiting) -> Permit | Wait:
        """What was handed on at the last moment is not lost."""
        with self._turn:
            if me.permit is not None:
                return me.permit
            self._leave(me)
            return Wait(hint=self._hint())

    def _leave(self, me: Waiting) -> None:
        with self._turn:
            if me in self._here.line:
                self._here.line.remove(me)
            self._turn.notify_all()

    def _hint(self) -> timedelta:
        shortest = timedelta(seconds=self._pace.others)
        if self._here.view is None:
            return shortest  # below: of a slot of our own the permit ends before the lease does
        own = {lease.slot: lease.permit.until for lease in self._here.leases.values() if lease.permit is not None}
        ends = {**self._here.view.live, **own}.values()
        return max(min(ends) - self._slots.now(), shortest) if ends else shortest

    # -- looking at the store

    def _look(self, me: Waiting) -> bool:
        """Take a slot for the line if it is our turn. Returns whether our turn is among the next."""
        self._reclaim()
        if me.permit is not None:
            return True
        view = self._see()
        with self._turn:
            mine = self._here.demand(me)
        free = policy.open_slots(self._limit, view.live)
        mine_to_take = policy.may_take(mine, view.demands, free, view.at, self._max_wait)
        until = view.at + policy.lease(me.ttl)
        # A random order: processes that come at once try different slots first.
        for slot in random.sample(mine_to_take, len(mine_to_take)):
            if not self._here.line or self._here.closed:
                return True  # all were served meanwhile, or are turned away
            fence = self._slots.take(slot, me.holder, me.lane, until, self._calls_per_permit)
            if fence is not None:
                self._taken(Lease(slot, fence, until), mine, view)
                return True
        return policy.ahead(mine, view.demands, view.at, self._max_wait) < self._limit

    def _taken(self, lease: Lease, mine: Demand, view: View) -> None:
        """`mine`: for whom it was taken, as others were seen in `view`."""
        now = self._slots.now()
        with self._turn:
            self._here.leases[lease.slot] = lease
            if self._here.give_fresh(lease, now, mine, view):
                return
            self._here.forget(lease)
        self._give_back(lease)  # all who waited were served meanwhile

    def _reclaim(self) -> None:
        """Hand on, or give back, what a thread of ours has held for longer than its permit."""
        with self._turn:
            now = self._slots.now()
            over = [
                lease for lease in self._here.leases.values() if lease.permit is not None and lease.permit.until <= now
            ]
            rest = [lease for lease in over if not self._here.hand_on(lease, now)]
            for lease in rest:
                self._here.forget(lease)
            self._here.owed += rest
        while (owed := self._next_owed()) is not None:
            self._give_back(owed)

    def _next_owed(self) -> Lease | None:
        now = self._slots.now()
        with self._turn:
            while self._here.owed:
                if (lease := self._here.owed.pop()).until > now:
                    return lease
        return None

    def _give_back(self, lease: Lease) -> bool:
        try:
            return self._slots.give_back(lease.slot, lease.fence)
        except BaseException:
            # Also where it was done and only the answer was lost: then its fence is nobody's, and nothing is changed.
            with self._turn:
                self._here.owed.append(lease)
            raise

    def _see(self) -> View:
        view = self._slots.look(self._me)
        with self._turn:
            self._here.view, self._here.seen = view, time.monotonic()
        return view

    def _refresh_view_to_hand_on(self, permit: Permit) -> None:
        with self._turn:
            lease = self._here.lease_of(permit)
            if lease is None or not self._here.line or lease.served >= self._calls_per_permit:
                return
            if time.monotonic() - self._here.seen <= self._pace.view_lasts:
                return
        self._see()

    # -- demands

    def _leave_demands(self) -> None:
        """Say who waits here, where they have waited for a while."""
        waited = time.monotonic()
        due: list[tuple[Lane, datetime]] = []
        with self._turn:
            for oldest in self._here.oldest():
                known = self._here.wanted.get(oldest.lane)
                # Once left it is kept fresh however short the waits are: it stands for the lane, not for one waiter.
                if waited < (oldest.began + self._pace.demand_after if known is None else known.again):
                    continue
                self._here.wanted[oldest.lane] = Wanted(oldest.since, waited + self._pace.demand_again)
                due.append((oldest.lane, oldest.since))
        until = self._slots.now() + timedelta(seconds=self._pace.demand_lasts)
        for lane, since in due:
            self._slots.want(self._me, lane, since, until)
            with self._turn:
                gone = lane not in self._here.wanted
            if gone:  # taken back before it was written
                self._slots.unwant(self._me, lane)

    def _tidy(self, lane: Lane) -> None:
        """Take the demand of a lane back when nobody of it waits here any longer."""
        with self._turn:
            if lane not in self._here.wanted or any(waiting.lane is lane for waiting in self._here.line):
                return
            del self._here.wanted[lane]
        with suppress(Exception):  # it ends by itself; what was acquired must not be lost for it
            self._slots.unwant(self._me, lane)

    def _changed(self) -> None:
        with self._turn:
            self._here.changes += 1
            self._turn.notify_all()

"""Model calls: counted with their cycle, before they are made.

The count and the mark that a call was begun are one write of the cycle's item:

    calls + 1, call_<result>_<fence> = when      while open or draining, calls < cap, and no such mark is there

The mark is what the reaper goes by when a worker went silent. It is removed by the next count of the same process, when
the call has its run: so an item holds the marks of the calls that are being made, and of those that died with a process.
"""

import threading
from collections import deque
from datetime import datetime

from wikikeeper.adapters.aws.dynamodb_items import (
    call_mark,
    cycle_key,
    micros,
    result_from,
    result_key,
    some_moment,
)
from wikikeeper.adapters.aws.dynamodb_table import Item, Plus, Scalar, Table
from wikikeeper.models import RUNNING_CYCLES, Claim, CycleState, Result, ResultState

REMEMBERED = 100
"""Most marks that wait to be removed. Those that are forgotten stay with their cycle, 40 bytes each."""
AT_ONCE = 20
"""Most marks that one count removes: its expression stays far below DynamoDB's 4 kB."""

HELD = "#state = :held_state AND #fence = :held_fence"


def held(fence: int) -> dict[str, Scalar]:
    return {"held_state": ResultState.JUDGING, "held_fence": fence}


def claimed(item: Item | None) -> Claim | None:
    if item is None:
        return None
    result = result_from(item)
    assert result.lease_until is not None  # every change to `judging` sets it
    return Claim(result=result, fence=result.fence, until=result.lease_until)


class Calls:
    """Calls by the claim that they are made under. Threads may share it."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._over: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)

    def begin(self, claim: Claim, cycle: str, now: datetime, until: datetime) -> Claim | None:
        """One write, as long as the claim is live until `until` and no call was begun under its fence.

        Nobody frees a live lease, so looking at the clock is as good as renewing it: the reaper's clock would have to be
        ahead by the time that the call may take. A worker that is frozen after its look counts a call of a claim that it
        may have lost; the cap holds, the call has a run of its own, and its verdict is refused.

            renew (fence + 1) ── count ── the call may begin
               │ lost: None        └ refused: the claim as it was; None
               └ only for a repeated call, or a lease that would end before the call
        """
        mine: Claim | None = claim
        if claim.called is not None or claim.until < until:
            mine = self._renewed(claim, cycle, until)
        if mine is None:
            return None
        if self._counted(mine, cycle, now):
            return mine.model_copy(update={"called": now})
        if mine is not claim:
            self._as_it_was(claim, mine.fence)
        return None

    def begun(self, result: Result) -> datetime | None:
        cycle = None if result.cycle is None else self._table.get(cycle_key(result.cycle))
        return None if cycle is None else some_moment(cycle, call_mark(result.id, result.fence))

    def ended(self, claim: Claim) -> None:
        """The run of its call is written, if it made one: the mark has done its work."""
        if claim.called is not None and claim.result.cycle is not None:
            with self._lock:
                self._over.append((claim.result.cycle, call_mark(claim.result.id, claim.fence)))

    def _renewed(self, claim: Claim, cycle: str, until: datetime) -> Claim | None:
        item = self._table.get(cycle_key(cycle))
        if (
            item is None
            or CycleState(str(item["state"])) not in RUNNING_CYCLES
            or int(item["calls"]) >= int(item["cap"])
        ):
            return None
        longer = {"fence": claim.fence + 1, "lease_until": micros(max(until, claim.until))}
        renewed = claimed(self._table.change(result_key(claim.result.id), longer, HELD, held(claim.fence)))
        if renewed is not None:
            self.ended(claim)
        return renewed

    def _counted(self, claim: Claim, cycle: str, now: datetime) -> bool:
        mark = call_mark(claim.result.id, claim.fence)
        changes: dict[str, Scalar | Plus | None] = {"calls": Plus(1), "active": micros(now), mark: micros(now)}
        changes |= dict.fromkeys(self._to_remove(cycle))
        counted = self._table.change(
            cycle_key(cycle),
            changes,
            f"#state IN (:open, :draining) AND #calls < #cap AND attribute_not_exists(#{mark})",
            {"open": CycleState.OPEN, "draining": CycleState.DRAINING},
            shown_by=mark,
        )
        return counted is not None

    def _to_remove(self, cycle: str) -> list[str]:
        """They are forgotten with that: a count that is refused for good needs the item no smaller."""
        with self._lock:
            marks = [mark for of, mark in self._over if of == cycle][:AT_ONCE]
            for mark in marks:
                self._over.remove((cycle, mark))
        return marks

    def _as_it_was(self, claim: Claim, renewed: int) -> None:
        # Nobody but the holder of the claim ever saw this fence, so it can be given out again.
        before = {"fence": claim.fence, "lease_until": micros(claim.until)}
        self._table.change(result_key(claim.result.id), before, HELD, held(renewed))

"""Who may have the next slot: lanes first, then age, and nobody waits for ever.

 who waits                            goes before
 one past `max_wait`                  everybody who is not: the oldest first, of whichever lane
 keeper > author > reviewer           every lower lane
   > explorer > pleb
 the older of the same lane           the younger

Of each lane and process only the oldest waiter counts: that is its demand. Processes that see the same demands agree on
the order, so of two that wait one is always first, and a slot is never left to each by the other.

A slot that one process holds serves several calls in a row without a word to the store. So a permit is handed on only
while that takes nothing from anybody who goes first: up to `calls_per_permit`, no higher lane waiting, nobody past
`max_wait`, and enough of the lease left for the whole of the next permit.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from wikikeeper.models import Lane

LANES = tuple(Lane)
"""From the first to the last."""

KEPT = 0.1
"""By how much of a permit's time a process holds its slot for longer, to hand it on: the calls of a permit fit in, where
they are quick enough for a write to count. So much longer, too, is the slot of a process that died out of use."""


class Demand(NamedTuple):
    """That somebody waits: the oldest of a lane in one process."""

    lane: Lane
    since: datetime
    who: str
    """The process: decides between two that came at the same time."""


def place(demand: Demand, now: datetime, max_wait: timedelta) -> tuple[object, ...]:
    """Sorts who waits into the order in which they are let in."""
    lane = LANES.index(demand.lane)
    if is_late(demand, now, max_wait):
        return 0, demand.since, lane, demand.who
    return 1, lane, demand.since, demand.who


def is_late(demand: Demand, now: datetime, max_wait: timedelta) -> bool:
    """It has waited so long that its age counts more than its lane."""
    return now - demand.since >= max_wait


def ahead(mine: Demand, others: Iterable[Demand], now: datetime, max_wait: timedelta) -> int:
    """How many of the others go before."""
    own = place(mine, now, max_wait)
    return sum(place(other, now, max_wait) < own for other in others)


def open_slots(limit: int, live: Iterable[int]) -> list[int]:
    """The slots that may be taken now, given those whose lease has not ended.

    Where the limit was lowered, slots above it count until they end. They leave as many of the lower ones closed, and
    always the last: two processes that take one at the same moment then take the same one, and one of them fails.
    """
    taken = set(live)
    free = [slot for slot in range(limit) if slot not in taken]
    return free[: max(limit - len(taken), 0)]


def may_take(
    mine: Demand, others: Iterable[Demand], free: Sequence[int], now: datetime, max_wait: timedelta
) -> Sequence[int]:
    """Which of the open slots are left for this one by those who go before.

    They are left the first ones, by number: so nobody takes theirs who looked a moment ago, when there was one more.
    """
    return free[ahead(mine, others, now, max_wait) :]


def lease(ttl: timedelta) -> timedelta:
    """How long a slot is taken for, when a permit of so long is asked for."""
    return ttl * (1 + KEPT)


def may_hand_on(
    following: Demand,
    others: Iterable[Demand],
    now: datetime,
    max_wait: timedelta,
    *,
    served: int,
    calls_per_permit: int,
    left: timedelta,
    asked: timedelta,
) -> bool:
    """Whether a slot goes on to the next in this process, or back to the store for the others to have their turn.

    `served` permits were given of its lease so far, and `left` is what remains of it. Others of the same lane wait until
    the calls of the permit are used up, unless they are late: otherwise every call would change processes.
    """
    if served >= calls_per_permit or left < asked:
        return False
    own = place(following, now, max_wait)
    return not any(
        place(other, now, max_wait) < own and (other.lane is not following.lane or is_late(other, now, max_wait))
        for other in others
    )

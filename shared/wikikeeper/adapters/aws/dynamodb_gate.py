"""The gate in the cloud: one item per slot, taken by one conditional write; one per demand, reused by whoever waits next.

| item   | sk                       | taken when                                |
|--------|--------------------------|-------------------------------------------|
| slot   | number                   | it has no holder, or its lease has ended  |
| demand | `demand#<lane>#<number>` | it has ended, or it is the process's own  |

No item is ever deleted: a slot keeps its fence, and of a lane there are as many demands as processes ever waited at once.
One consistent query shows all of them.

Clocks of two containers differ. Each goes by the store's as its answers tell it (`StoreClock`), which leaves them some
seconds apart at worst: a lease is taken over only `skew` after its end, while who holds it stops at its end.

`adapters.gate_line` is who waits and who is handed what; here is only what is asked of the table.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from wikikeeper.adapters.aws.dynamodb_items import micros, moment
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Plus, Table
from wikikeeper.adapters.aws.store_clock import PROMPT, RESOLUTION, GivenClock, StoreClock, utc_now
from wikikeeper.adapters.gate_line import DEFAULTS, GateLine
from wikikeeper.adapters.gate_slots import Pace, View
from wikikeeper.errors import ClockUnknown
from wikikeeper.models import Lane
from wikikeeper.policy.gate import Demand

GATE, DEMAND = "gate", "demand"
SKEW = 2 * (RESOLUTION + PROMPT)
"""Two clocks that are each known differ by less; it costs something after a crash only."""
LOOKS = 4
"""Before a table counts as too slow to tell the time by."""
PACE = Pace(
    first=0.1,  # a look is one read unit, and takes milliseconds
    next=0.25,  # a slot stands empty for half of this, after some ten calls; a minute costs 240 units, 0.00003 dollars
    others=1,
    demand_after=1,  # longer than a quick call: who is let in before costs no write
    demand_again=5,
    demand_lasts=15,  # two lost refreshes; so long a container that was killed while it waited holds up others
    view_lasts=1,  # the first in line looks that often anyhow
)


class DynamoGate(GateLine):
    """`Gate` on DynamoDB: at most `limit` live permits over all containers that use the same table and limit.

    Where the limit was lowered, permits given out before count against it until they end. `machine` is the clock that is
    corrected by the store's; `acquire` raises Unusable when it is wrong by more than `max_skew`. `now` is given instead
    where a clock is known to be the store's.
    """

    def __init__(
        self,
        table: Table,
        limit: int,
        now: Callable[[], datetime] | None = None,
        *,
        calls_per_permit: int = DEFAULTS.calls_per_permit,
        max_wait: timedelta = timedelta(seconds=DEFAULTS.max_wait),
        max_skew: timedelta = timedelta(seconds=DEFAULTS.max_skew),
        machine: Callable[[], datetime] = utc_now,
        skew: timedelta = SKEW,
        pace: Pace = PACE,
    ) -> None:
        clock = StoreClock(max_skew, machine) if now is None else GivenClock(now)
        slots = DynamoSlots(table, clock, skew)
        super().__init__(slots, pace, limit, calls_per_permit=calls_per_permit, max_wait=max_wait)


class DynamoSlots:
    """`Slots` as items of the partition `gate`."""

    def __init__(self, table: Table, clock: StoreClock, skew: timedelta) -> None:
        self._table = table
        self._clock = clock
        self._skew = skew

    def now(self) -> datetime:
        return self._clock.now()

    def look(self, who: str) -> View:
        """Raises ClockUnknown."""
        items = self._items_by_a_known_clock()
        at = self.now()
        over = at - self._skew
        live = {int(str(item["sk"])): moment(item["until"]) for item in items if "holder" in item}
        return View(
            at,
            {slot: until + self._skew for slot, until in live.items() if until > over},
            tuple(
                Demand(lane_of(item), moment(item["since"]), str(item["who"]))
                for item in items
                if _is_demand(item) and item["who"] != who and moment(item["until"]) > at
            ),
        )

    def _items_by_a_known_clock(self) -> list[Item]:
        for _ in range(LOOKS):
            items = self._items()
            if self._clock.is_known():
                return items
        raise ClockUnknown(
            "slow", detail=f"none of {LOOKS} answers of the table came within {PROMPT.total_seconds()} s"
        )

    def _items(self) -> list[Item]:
        asked = self._clock.machine()
        return list(
            self._table.query("#pk = :gate", {"gate": GATE}, heard=lambda headers: self._clock.hear(headers, asked))
        )

    def take(self, slot: int, holder: str, lane: Lane, until: datetime, fences: int) -> int | None:
        # A slot is made once and then only changes hands, so its fence never starts again.
        item = self._table.change(
            _slot(slot),
            {"fence": Plus(fences), "holder": holder, "lane": lane, "until": micros(until)},
            "attribute_not_exists(#holder) OR #until <= :over",
            {"over": micros(self.now() - self._skew)},
        )
        return None if item is None else int(item["fence"])

    def extend(self, slot: int, fence: int, until: datetime) -> bool:
        return self._held(slot, fence, until=micros(until))

    def give_back(self, slot: int, fence: int) -> bool:
        return self._held(slot, fence, holder=None, lane=None)

    def want(self, who: str, lane: Lane, since: datetime, until: datetime) -> None:
        """Where two processes want the same item at once, one of them tries the next: a few tries find one at worst."""
        while not self._wanted(who, lane, since, until):
            pass

    def unwant(self, who: str, lane: Lane) -> None:
        for item in self._demands(lane):
            if item["who"] == who:
                self._table.change(_key(item), {"until": 0}, "#who = :who", {"who": who})

    def free_all(self) -> None:
        for item in self._table.query("#pk = :gate", {"gate": GATE}):
            # Only as it was seen: what somebody took meanwhile is theirs.
            if _is_demand(item):
                self._table.change(_key(item), {"until": 0}, "#who = :who", {"who": item["who"]})
            elif "holder" in item:
                self._table.change(
                    _key(item),
                    {"holder": None, "lane": None},
                    "attribute_exists(#holder) AND #fence = :fence",
                    {"fence": item["fence"]},
                )

    def _held(self, slot: int, fence: int, **changes: int | None) -> bool:
        changed = self._table.change(
            _slot(slot),
            changes,
            "attribute_exists(#holder) AND #fence = :fence AND #until > :now",
            {"fence": fence, "now": micros(self.now())},
        )
        return changed is not None

    def _demands(self, lane: Lane) -> list[Item]:
        return list(
            self._table.query("#pk = :gate AND begins_with(#sk, :lane)", {"gate": GATE, "lane": f"{DEMAND}#{lane}#"})
        )

    def _wanted(self, who: str, lane: Lane, since: datetime, until: datetime) -> bool:
        now = micros(self.now())
        items = self._demands(lane)
        own = [item for item in items if item["who"] == who]
        ended = [item for item in items if moment(item["until"]) <= self.now()]
        key = _key((own or ended)[0]) if own or ended else Key(GATE, f"{DEMAND}#{lane}#{len(items)}")
        changed = self._table.change(
            key,
            {"who": who, "lane": lane, "since": micros(since), "until": micros(until)},
            "attribute_not_exists(#who) OR #who = :mine OR #until <= :now",
            {"mine": who, "now": now},
        )
        return changed is not None


def _slot(number: int) -> Key:
    return Key(GATE, str(number))


def _key(item: Item) -> Key:
    return Key(GATE, str(item["sk"]))


def _is_demand(item: Item) -> bool:
    return str(item["sk"]).startswith(DEMAND)


def lane_of(item: Item) -> Lane:
    return Lane(str(item["lane"]))

"""The run store's cycles: one tick of one topic each."""

import threading
from collections.abc import Iterator
from datetime import datetime

from wikikeeper.adapters.aws.dynamodb_items import (
    CYCLES,
    cycle_from,
    cycle_item,
    cycle_key,
    expiry,
    micros,
    problems,
    some_micros,
)
from wikikeeper.adapters.aws.dynamodb_listing import LISTED, OPEN, entries, items
from wikikeeper.adapters.aws.dynamodb_table import Plus, Scalar, Table
from wikikeeper.models import RUNNING_CYCLES, UNFINISHED_CYCLES, Cycle, CycleState

_LEFT = frozenset(CycleState) - RUNNING_CYCLES
"""What `end_cycle` leads to. All but `expired` are history from then on."""


class Cycles:
    """The part of `RunStore` about cycles."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._marking = threading.Lock()

    def start_cycle(self, cycle: Cycle) -> bool:
        item = cycle_item(cycle)
        if self.table.put_new(item):
            return True
        # Opened again it keeps its start, its cap and what it has counted: it is the same tick, with the same promises.
        again = {name: item.get(name) for name in ("state", "lease_until", "ended", "reason", "expires", "open")}
        opened = self.table.change(
            cycle_key(cycle.id), {**again, "fence": Plus(1)}, "#state = :expired", {"expired": CycleState.EXPIRED}
        )
        return opened is not None

    def cycle(self, cycle: str) -> Cycle | None:
        item = self.table.get(cycle_key(cycle))
        return None if item is None else cycle_from(item)

    def cycles(self, *, topic: str | None = None, states: frozenset[CycleState] | None = None) -> Iterator[Cycle]:
        if states is not None and states <= UNFINISHED_CYCLES:
            listed = entries(self.table, OPEN, CYCLES, newest_first=True)
        else:
            keeping, values = (None, {}) if topic is None else ("#topic = :topic", {"topic": topic})
            listed = entries(self.table, LISTED, CYCLES, keeping=keeping, values=values, newest_first=True)
        for cycle in map(cycle_from, items(self.table, (key for _, key in listed))):
            if (topic is None or cycle.topic == topic) and (states is None or cycle.state in states):
                yield cycle

    def drain_cycle(self, cycle: Cycle) -> bool:
        # Only what searching found. What judging counts meanwhile (calls, flags, refusals) is newer than `cycle`.
        changes: dict[str, Scalar | Plus | None] = {
            "state": CycleState.DRAINING,
            "lease_until": None,
            "problems": problems(cycle),
            "found": cycle.found,
            "new": cycle.new,
            "sent": cycle.sent,
        }
        if cycle.active is not None:
            changes["active"] = some_micros(cycle.active)
        if cycle.cap_reached:
            changes["cap_reached"] = True
        held: dict[str, Scalar] = {"fence": cycle.fence, "open_state": CycleState.OPEN}
        return (
            self.table.change(cycle_key(cycle.id), changes, "#fence = :fence AND #state = :open_state", held)
            is not None
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
        if not only_from:
            return False
        changes: dict[str, Scalar | Plus | None] = {
            "state": state,
            "ended": micros(at),
            "lease_until": None,
        }
        if state not in UNFINISHED_CYCLES:
            changes |= {"open": None, "expires": expiry(at)}
        if reason is not None:
            changes["reason"] = reason
        values: dict[str, Scalar] = {f"from_{number}": each for number, each in enumerate(sorted(only_from))}
        when = f"#state IN ({', '.join(f':{name}' for name in values)})"
        if fence is not None:
            when += " AND #fence = :fence"
            values["fence"] = fence
        return self.table.change(cycle_key(cycle), changes, when, values) is not None

    def mark_cycle(
        self, cycle: str, *, fetched: bool = False, answered: bool = False, cap_reached: bool = False
    ) -> None:
        flags = {"fetched": fetched, "answered": answered, "cap_reached": cap_reached}
        raised = [name for name, flag in flags.items() if flag]
        if not raised:
            return
        changes: dict[str, Scalar | Plus | None] = dict.fromkeys(raised, True)
        # The condition keeps a cycle from being made here. A refused write costs as much as one that is carried out, so
        # the ten threads that get here with the first pages of a cycle look first, one after the other.
        news = [f"#{name} = :no" for name in raised]
        values: dict[str, Scalar] = {"no": False}
        if answered:
            changes["refusals"] = 0
            news.append("#refusals > :none")
            values["none"] = 0
        with self._marking:
            item = self.table.get(cycle_key(cycle))
            if item is None or (all(item[name] for name in raised) and not (answered and item["refusals"])):
                return
            self.table.change(cycle_key(cycle), changes, " OR ".join(news), values)

    def count_refusal(self, cycle: str) -> int:
        """Raises KeyError for a cycle that was never started."""
        item = self.table.change(cycle_key(cycle), {"refusals": Plus(1)}, "attribute_exists(#pk)")
        if item is None:
            raise KeyError(cycle)
        return int(item["refusals"])

"""What the line before the gate asks of a store, and how often: few operations, each one read or one conditional write."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from wikikeeper.models import Lane
from wikikeeper.policy.gate import Demand


class View(NamedTuple):
    """What a look at the store showed."""

    at: datetime
    live: Mapping[int, datetime]
    """The slots whose lease others have to wait for, and until when."""
    demands: tuple[Demand, ...]
    """Of other processes, and not ended."""


class Slots(Protocol):
    """The gate's part of a store. A slot is made once and then only changes hands, so its fence never starts again."""

    def now(self) -> datetime:
        """The clock that leases end by, the same for all who use the store."""
        ...

    def look(self, who: str) -> View:
        """Slots and the demands of others than `who`. Takes no lock."""
        ...

    def take(self, slot: int, holder: str, lane: Lane, until: datetime, fences: int) -> int | None:
        """Lease a slot with so many fences more, by one conditional write. Returns the last. None: another was first."""
        ...

    def extend(self, slot: int, fence: int, until: datetime) -> bool:
        """Lengthen a lease. False: it has ended."""
        ...

    def give_back(self, slot: int, fence: int) -> bool:
        """End a lease. False: it had ended."""
        ...

    def want(self, who: str, lane: Lane, since: datetime, until: datetime) -> None:
        """Leave or refresh a demand."""
        ...

    def unwant(self, who: str, lane: Lane) -> None:
        """Take a demand back."""
        ...

    def free_all(self) -> None:
        """End all leases and demands."""
        ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a store is asked: what a look costs there against how long a slot may stand empty. All in seconds."""

    first: float
    """To the first look for what others gave back."""
    next: float
    """Between looks of one whose turn is next, after a while."""
    others: float
    """Between looks of those behind."""
    demand_after: float
    """Waited before a demand is left: most waits are shorter, and cost no write."""
    demand_again: float
    """Between refreshes of a demand."""
    demand_lasts: float
    """From its last refresh to its end: some refreshes long, so that a slow one loses nobody its place."""
    view_lasts: float
    """A slot is handed on by a look that is not older."""

"""What the pages need of a store beyond what the workflows do: a page of runs, labels, and who holds a permit."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from wikikeeper.models import Label, Permit
from wikikeeper.policy.gate import Demand
from wikikeeper.policy.run_filter import Cursor, CyclePage, RunFilter, RunPage
from wikikeeper.ports import RunStore


class PageStore(Protocol):
    """Bounded work for each request: a page reads at most so many runs, however many there are."""

    def run_page(self, chosen: RunFilter, *, after: Cursor | None, most: int, most_read: int) -> RunPage:
        """Up to `most` runs that match, newest first, older than `after`, of the next `most_read` at the most."""
        ...

    def cycle_page(self, topic: str | None, *, after: Cursor | None, most: int) -> CyclePage:
        """Up to `most` cycles, newest first, older than `after`."""
        ...

    def put_label(self, label: Label) -> None:
        """Store what a person said of a result, in place of what was said before.

        A result that was drawn stays drawn, whoever labels it later.
        """
        ...

    def labels_of(self, results: Sequence[str]) -> dict[str, Label]:
        """By result; those without a label are left out."""
        ...

    def labels(self) -> Iterator[Label]:
        """By result."""
        ...

    def permits(self, now: datetime) -> list[Permit]:
        """Who holds a place at the gate now, by slot."""
        ...

    def demands(self, now: datetime) -> list[Demand]:
        """Who has waited at the gate for a while, longest first: of each lane and process its oldest."""
        ...


class WebStore(RunStore, PageStore, Protocol):
    """The run store as the pages use it."""

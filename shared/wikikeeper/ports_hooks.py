"""What hooks need of a store beyond what the workflows do."""

from datetime import datetime
from typing import Protocol


class Deliveries(Protocol):
    """Which deliveries were worked on to the end: of hooks that put no cycle and no result of their own."""

    def begin(self, key: str, at: datetime) -> bool:
        """True until the delivery is finished: then it is to be worked on, perhaps once more after a crash.

        So work that two of them do at once, or one after the other, must come to the same.
        """
        ...

    def finish(self, key: str, at: datetime) -> None:
        """From now on it is known. Safe to repeat."""
        ...

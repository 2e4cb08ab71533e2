"""A permit as a workflow holds it: for the calls that it makes, and no longer.

What the gate raises says nothing of the page in hand, so it is kept apart from faults of our own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wikikeeper.errors import ModelUnavailable, Unusable
from wikikeeper.models import Lane, Permit, Wait
from wikikeeper.workflows.context import App

OVER = ModelUnavailable("permit_over", "the store was so slow that the permit had ended before the call was sent")
"""What came of a call that was counted and not made."""


class GateFailed(Exception):
    """The gate could not be asked."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.fault = fault
        """What it raised."""
        self.cause = f"gate:{type(fault).__name__}"
        self.mend = str(fault) if isinstance(fault, Unusable) else ""
        """What a person has to do. Without it, it may be better the next time."""


@dataclass(slots=True)
class HeldPermit:
    permit: Permit
    app: App

    def lasts(self) -> bool:
        """Whether a whole call fits in from now. It is renewed where less of it is left: a store may have been slow.

        Raises GateFailed.
        """
        with _gate_asked():
            if self._fits():
                return True
            renewed = self.app.gate.renew(self.permit, self.app.rules.permit_lease)
            if renewed is None:
                return False
            self.permit = renewed
            return self._fits()

    def _fits(self) -> bool:
        return self.app.gate.left(self.permit) >= self.app.rules.call_deadline

    def give_back(self) -> None:
        try:
            self.app.gate.release(self.permit)
        except Exception as error:  # noqa: BLE001 - it ends by itself, and the answer that it was held for is not lost
            self.app.reporter.event("permit_not_released", slot=self.permit.slot, cause=type(error).__name__)


def acquire(lane: Lane, app: App) -> HeldPermit | Wait:
    """Wait for a permit, within the patience. Raises GateFailed."""
    with _gate_asked():
        permit = app.gate.acquire(lane, app.holder, app.rules.permit_lease, app.rules.patience)
    return permit if isinstance(permit, Wait) else HeldPermit(permit, app)


@contextmanager
def _gate_asked() -> Iterator[None]:
    """Whatever is raised inside, a store's or a clock's, is the gate's: nothing of a page is at work there."""
    try:
        yield
    except Exception as fault:
        raise GateFailed(fault) from fault

"""Which runs a person asked to see, and where in their order a page of them begins."""

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from wikikeeper.models import Cycle, Kind, Run, Trigger, Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
LONGEST_ID = 200
"""Characters of an id in a cursor; those of runs have some thirty, those of cycles up to a hundred."""


class Ended(StrEnum):
    """How a run ended, as people ask for it: kept, discarded and injection are kinds of answered."""

    ANSWERED = "answered"
    KEPT = "kept"
    DISCARDED = "discarded"
    INJECTION = "injection"
    """Discarded for its injection."""
    FAILED = "failed"
    LOST = "lost"
    SUPERSEDED = "superseded"


class RunFilter(Value):
    """None: all of them."""

    topic: str | None = None
    trigger: Trigger | None = None
    ended: Ended | None = None
    kind: Kind | None = None
    since: datetime | None = None
    """Started then or later."""
    until: datetime | None = None
    """Started before."""

    def matches(self, run: Run) -> bool:
        """What a store's own filter must agree with."""
        return (
            _fits(self.topic, run.topic)
            and _fits(self.trigger, run.trigger)
            and (self.ended is None or _ended(run, self.ended))
            and _fits(self.kind, run.kind)
            and (self.since is None or run.started >= self.since)
            and (self.until is None or run.started < self.until)
        )


def _fits(wanted: object, found: object) -> bool:
    return wanted is None or wanted == found


def _ended(run: Run, ended: Ended) -> bool:
    match ended:
        case Ended.KEPT:
            return run.outcome == "answered" and run.kept is True
        case Ended.DISCARDED:
            return run.outcome == "answered" and run.kept is False
        case Ended.INJECTION:
            return run.outcome == "answered" and run.verdict is not None and run.verdict.reason == "injection"
        case _:
            return run.outcome == ended.value


class Cursor(Value):
    """A place in the order of runs, or of cycles, newest first: what comes after it is older."""

    started: datetime
    id: str

    @property
    def text(self) -> str:
        """As it stands in an address."""
        return f"{(self.started - _EPOCH) // _MICROSECOND}.{self.id}"

    @classmethod
    def read(cls, text: str) -> "Cursor":
        """Raises ValueError for what is no cursor."""
        started, dot, run = text.partition(".")
        if not dot or not run or len(run) > LONGEST_ID or not started.isascii() or not started.isdigit():
            raise ValueError("this is no place in the list")
        if len(started) > len(str((datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND)):
            raise ValueError("this place in the list lies beyond all time")
        try:
            return cls(started=_EPOCH + int(started) * _MICROSECOND, id=run)
        except OverflowError as error:
            raise ValueError("this place in the list lies beyond all time") from error


class RunPage(Value):
    """Runs, newest first, and what to ask for next."""

    runs: tuple[Run, ...]
    next: Cursor | None
    """None: there is nothing older."""
    searched: bool = False
    """The page ends where enough was read, not where it is full: what matches further back is found from `next` on."""


class CyclePage(Value):
    """Cycles, newest first, and what to ask for next."""

    cycles: tuple[Cycle, ...]
    next: Cursor | None

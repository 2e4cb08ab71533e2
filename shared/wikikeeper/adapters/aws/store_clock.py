"""The time by the store's clock: a container's own, corrected by what the store's answers say.

    asked                          answered
 ─────┼─────────── Date ─────────────┼──────▶   its own clock
              T <= store < T + 1 s

An answer's `Date` is cut to whole seconds, so it bounds the offset from both sides; each further answer narrows it. A
clock that may be right is left alone, one that cannot be is moved by the least that makes it possible. So in AWS, where
clocks are within milliseconds, nothing moves; and two containers never differ by more than the width of two bounds. An
answer that took long bounds little: until one was prompt, the time is not known.
"""

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from wikikeeper.errors import Unusable

RESOLUTION = timedelta(seconds=1)
"""Of a `Date` header."""
PROMPT = timedelta(milliseconds=500)
"""An answer in this time tells the clock well enough: a table of the same region takes some hundredths, with a new connection
some tenths. What was lost and asked for once more takes seconds, and would hide a clock that is wrong by as much."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class StoreClock:
    """Threads may share one."""

    def __init__(self, max_skew: timedelta, machine: Callable[[], datetime] = utc_now) -> None:
        self._max_skew = max_skew
        self._machine = machine
        self._lock = threading.Lock()
        self._least = timedelta.min
        self._most = timedelta.max

    def machine(self) -> datetime:
        """The container's own clock, to be given to `hear`."""
        return self._machine()

    def now(self) -> datetime:
        with self._lock:
            return self._machine() + self._offset()

    def hear(self, headers: Mapping[str, str], asked: datetime) -> None:
        """Learn from an answer to what was asked at `asked`, by the container's own clock.

        Raises Unusable when that clock is wrong by more than is allowed, or the answer does not say the time.
        """
        try:
            date = parsedate_to_datetime(headers["date"])
        except (KeyError, ValueError):
            raise Unusable(
                "the table's server does not say the time (no Date in its answer), and permits end by its clock: "
                "check aws.endpoint_url and proxies before it"
            ) from None
        least, most = date - self._machine(), date + RESOLUTION - asked
        with self._lock:
            # The machine's clock was set meanwhile, or runs fast or slow: what was learned before is void.
            fits = least <= self._most and self._least <= most
            self._least = max(self._least, least) if fits else least
            self._most = min(self._most, most) if fits else most
            offset = self._offset()
        if abs(offset) > self._max_skew:
            raise Unusable(
                f"the clock of this machine is {abs(offset).total_seconds():.1f} s "
                f"{'behind' if offset > timedelta() else 'ahead of'} the table's, and a permit must end for all at the same "
                "time: set the clock (NTP), or raise gate.max_skew if it cannot be set"
            )

    def is_known(self) -> bool:
        """Whether it is off by less than `RESOLUTION` and `PROMPT`, whatever the machine's clock says."""
        with self._lock:
            return self._most <= self._least + RESOLUTION + PROMPT

    def _offset(self) -> timedelta:
        return min(max(timedelta(), self._least), self._most)


class GivenClock(StoreClock):
    """One that is the store's already, as where a test has one clock for everything."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(timedelta.max, now)

    def hear(self, headers: Mapping[str, str], asked: datetime) -> None:
        pass

    def is_known(self) -> bool:
        return True

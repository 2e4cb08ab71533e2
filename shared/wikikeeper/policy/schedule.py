"""When a topic is due: cron in the topic's own zone, each tick once, also when the clocks change.

A schedule names times of day on the wall clock. Where the clock and time part:

    the clock skips 02:00-03:00     a tick in the gap comes at its end, 03:00; several in it are one
    the clock shows 02:00 twice     a tick comes the first time only
    the schedule names every hour   it goes by time that passes, so an hour that comes twice counts twice

So a daily job runs once each day. Debian's cron asks whether minute and hour are written with `*`; we ask whether the
job runs in every hour, because `*/30 2 * * *` would otherwise be lost in the gap and run twice as often in the overlap.
"""

import difflib
import zoneinfo
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice, takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

FIELDS = ("minute", "hour", "day of month", "month", "day of week")
LONGEST_CRON = 100
"""Characters. A real one has twenty; the parser's time grows with the length."""
NEVER = timedelta(days=366 * 9)
"""Without a tick in nine years there is none: a leap day is at most eight years away."""
MOST_COUNTED = 1000
"""Missed ticks are counted up to here: "1000" says as much to a person as the exact number, and costs no minute."""
ANY_DAY = datetime(2024, 1, 1, tzinfo=UTC)
"""Where the search for a first tick starts when only the schedule is checked, not the time: makes it a pure question."""
OTHER_NAMES = frozenset({"localtime", "posixrules", "Factory"})
"""Files in some zone databases that mean another place on another machine, or none."""


DAY = timedelta(days=1)


class Due(NamedTuple):
    """What a look at the clock found."""

    tick: datetime | None
    """The latest tick that is due, in UTC; only this one runs."""
    missed: int
    """Ticks before it that nobody looked at, at most `MOST_COUNTED`."""


def cron_fault(cron: str) -> str | None:
    """Why a schedule cannot be used; None: it can."""
    parts = cron.split()
    if len(cron) > LONGEST_CRON:
        return f"the schedule is longer than {LONGEST_CRON} characters"
    if len(parts) != len(FIELDS):
        return f"a schedule has five fields ({', '.join(FIELDS)}), such as 0 7 * * 1-5; {cron!r} has {len(parts)}"
    try:
        first = next(CronSim(cron, ANY_DAY), None)
    except CronSimError as error:
        return f"{cron!r} is no schedule: {str(error).removeprefix('Bad ').replace('-', ' ')} cannot be read"
    if first is None or first - ANY_DAY > NEVER:
        return f"{cron!r} never comes: there is no such day"
    return None


def zone_fault(zone: str) -> str | None:
    """Why a time zone cannot be used; None: it can."""
    known = zones()
    if zone in known:
        return None
    alike = {name.casefold(): name for name in known}
    cities = {name.rpartition("/")[2].casefold(): name for name in known}
    wanted = zone.casefold().replace(" ", "_")
    close = difflib.get_close_matches(wanted, alike, n=1) or difflib.get_close_matches(wanted, cities, n=1)
    hint = f": did you mean {alike.get(close[0]) or cities[close[0]]}?" if close else ", such as Europe/Berlin"
    return f"{zone!r} is not an IANA time zone{hint}"


@lru_cache(maxsize=1)
def zones() -> frozenset[str]:
    """The names of all time zones. The database is part of the installation: it does not change while we run."""
    return frozenset(zoneinfo.available_timezones()) - OTHER_NAMES


def occurrences(cron: str, zone: str, after: datetime) -> Iterator[datetime]:
    """The ticks later than `after`, in order, each once, in UTC. Ends only where the schedule never comes again."""
    last = after.astimezone(UTC)
    for wall in _walls(cron, last.astimezone(ZoneInfo(zone))):
        tick = _instant(wall)
        if tick > last:
            last = tick
            yield tick


def next_run(cron: str, zone: str, now: datetime) -> datetime | None:
    """The first tick later than `now`, in UTC; None: there is none."""
    tick = next(occurrences(cron, zone, now), None)
    return tick if tick is not None and tick - now <= NEVER else None


def ticks_due(cron: str, zone: str, since: datetime, now: datetime) -> Due:
    """The latest tick after `since` (the last check, or when the topic was first seen) that is not later than `now`.

    Asking again with the same `since` gives the same tick, so a clock that fires twice starts nothing twice.
    """
    latest = _latest(cron, zone, since, now)
    if latest is None:
        return Due(None, 0)
    before = takewhile(lambda tick: tick < latest, occurrences(cron, zone, since))
    return Due(latest, sum(1 for _ in islice(before, MOST_COUNTED)))


def last_check(stored: datetime, begun: Iterable[datetime], now: datetime) -> datetime:
    """The last check, or what stands for it where a clock that was once ahead wrote it down: when the newest cycle began
    that is of no such clock, of at most a day ago. `begun`: when cycles of the topic began, newest first.
    """
    if stored <= now:
        return stored
    return max(next((moment for moment in begun if moment <= now), now - DAY), now - DAY)


def tick_id(tick: datetime) -> str:
    """The name of a tick: its minute in UTC, such as 2026-03-29T01:00Z."""
    return tick.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")


def ended(until: date | None, zone: str, now: datetime) -> bool:
    """Is the last day, in the topic's zone, over?"""
    return until is not None and now.astimezone(ZoneInfo(zone)).date() > until


def _latest(cron: str, zone: str, since: datetime, now: datetime) -> datetime | None:
    # Looks back twice as far each time: a machine that was off for a year must not count through each minute of it.
    back = timedelta(hours=1)
    while True:
        start = max(since, now - back)
        latest = None
        for tick in occurrences(cron, zone, start):
            if tick > now:
                break
            latest = tick
        if latest is not None or start == since:
            return latest
        back *= 2


def _walls(cron: str, start: datetime) -> Iterator[datetime]:
    """Aware local times from about `start`, as the schedule names them; not yet mended for gaps and overlaps."""
    minute, _, *rest = cron.split()
    if _every_hour(cron):
        # `*` is what tells cronsim to go by time that passes.
        yield from CronSim(" ".join((minute, "*", *rest)), start)
    else:
        for wall in CronSim(cron, start.replace(tzinfo=None)):
            yield wall.replace(tzinfo=start.tzinfo)


def _every_hour(cron: str) -> bool:
    return CronSim(cron, ANY_DAY).hours == set(range(24))


def _instant(wall: datetime) -> datetime:
    """The moment of a wall-clock time; of one that the clock skips, the end of the gap."""
    instant = wall.astimezone(UTC)
    if instant.astimezone(wall.tzinfo).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return instant
    # PEP 495: in a gap, fold=0 counts with the offset before it and fold=1 with the one after it. The end of the gap
    # is where the offset changes, between the two.
    low, high = sorted((wall.replace(fold=1).astimezone(UTC), instant))
    offset = high.astimezone(wall.tzinfo).utcoffset()
    while high - low > timedelta(minutes=1):
        middle = low + (high - low) // 2
        if middle.astimezone(wall.tzinfo).utcoffset() == offset:
            high = middle
        else:
            low = middle
    return high.replace(second=0, microsecond=0)

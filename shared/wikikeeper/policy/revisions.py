"""When a known URL is looked at again.

Revisions are numbers from 1. A newer date in a feed opens the next, and so does `research.recheck_after_days`. A changed
brief re-judges nothing by itself.
"""

from datetime import datetime, timedelta

from wikikeeper.models import TERMINAL, Found, Result, ResultState


def next_revision(latest: Result | None, found: Found, now: datetime, recheck_after: timedelta | None) -> int | None:
    """The revision that this find opens; None when the URL is known and nothing says that it changed."""
    if latest is None:
        return 1
    if latest.state not in TERMINAL and latest.state is not ResultState.PARKED:
        return None
    changed = (
        latest.state is ResultState.WITHDRAWN  # its topic was deleted and is back
        or _newer(found.published, latest)
        or (recheck_after is not None and latest.finished is not None and now - latest.finished >= recheck_after)
    )
    return latest.revision + 1 if changed else None


def _newer(published: datetime | None, latest: Result) -> bool:
    """Newer than the date known before; where none was known, than the time of the find."""
    return published is not None and published > (latest.published or latest.found)

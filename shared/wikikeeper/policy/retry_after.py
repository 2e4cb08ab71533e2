"""When a server asks to be left alone until."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST = timedelta(days=1)
"""A server that says "next year" is asked again tomorrow: its clock or its mind may have changed."""


def retry_after(header: str | None, now: datetime) -> timedelta | None:
    """How long to wait by a Retry-After header, in seconds or as an HTTP date: none to a day. None: it says nothing."""
    value = (header or "").strip()
    if value.isascii() and value.isdecimal():
        # More digits than that are more than a day anyway, and too many for a timedelta.
        return min(timedelta(seconds=int(value[:9])), LONGEST) if value.lstrip("0")[9:] == "" else LONGEST
    try:
        moment = parsedate_to_datetime(value)
        wait = (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment) - now
    except (ValueError, OverflowError):  # OverflowError: a zone that leads out of all time
        return None
    return min(max(wait, timedelta()), LONGEST)

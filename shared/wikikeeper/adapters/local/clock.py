"""The machine's clock, for what waits or is dated here."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(UTC)

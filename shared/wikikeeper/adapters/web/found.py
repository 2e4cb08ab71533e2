"""What sources say, made into `Found` values: other people's data, so nothing in it is taken for granted."""

import html
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from wikikeeper.models import Found, Origin
from wikikeeper.policy.urls import wellformed

MAX_TITLE = 500
"""Characters. No headline is longer; what is stored for each result stays small."""
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def found(raw_url: object, raw_title: object, origin: Origin, published: datetime | None = None) -> Found | None:
    """One entry; None where it has no http(s) address that could be fetched.

    Raw spaces and umlauts in the address come out encoded, so it can go on the wire and into a note.
    """
    if not isinstance(raw_url, str):
        return None
    try:
        url = wellformed(raw_url)
    except ValueError:
        return None
    return Found(url=url, title=clean_title(raw_title), origin=origin, published=published)


def clean_title(raw: object) -> str:
    """One line of plain text. "" where there is none; it is then taken from the page."""
    if not isinstance(raw, str):
        return ""
    # A JSON string may hold half a character, which no file or database can.
    whole = raw[: MAX_TITLE * 10].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = html.unescape(_TAG.sub("", whole))
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:MAX_TITLE].rstrip()


def aware(raw: object) -> datetime | None:
    """A date in ISO 8601 as a moment in UTC; without a zone it is taken for UTC. None where it is none."""
    if not isinstance(raw, str):
        return None
    try:
        moment = datetime.fromisoformat(raw.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError: a zone that leads out of the years 1 to 9999
        return None


def unique(entries: Iterable[Found | None]) -> Iterator[Found]:
    """Those with an address, each address once, in their order."""
    seen: set[str] = set()
    for entry in entries:
        if entry is not None and entry.url not in seen:
            seen.add(entry.url)
            yield entry

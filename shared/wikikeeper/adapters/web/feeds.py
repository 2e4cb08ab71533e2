"""RSS, RDF and Atom feeds: their entries, each with its address and its date.

feedparser reads the bytes and nothing else. It is never given text, which it would take for an address to fetch or a
file to open, and nothing that a feed names (DTDs, entities) is fetched.
"""

import io
import re
import xml.sax
from collections.abc import Iterator
from datetime import UTC, datetime
from time import struct_time
from typing import TYPE_CHECKING, Protocol

from wikikeeper.adapters.web.found import found, unique
from wikikeeper.errors import FetchFailed, SearchFailed, Unfetchable
from wikikeeper.models import Fetched, Found, Origin
from wikikeeper.policy.redaction import redact

if TYPE_CHECKING:
    from feedparser import FeedParserDict

MOST_ENTRIES = 100
"""The newest. A feed lists ten to fifty; what lists thousands is an archive, which would use up a cycle's calls."""
MAX_BYTES = 2_000_000
"""Of a feed. A hundred entries with their full texts are half of it; feedparser takes seconds for more."""
MOST_TAGS = 100_000
"""In a feed. Thousands of entries have that many; feedparser's time is in its tags, and no limit of time is on it."""
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*|<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_FEED = re.compile(rb"<(?:rss|feed|rdf:rdf|channel)\b", re.IGNORECASE)
"""Some feeds stand under HTML's doctype."""
_HEAD = 4096
"""Bytes looked at to tell a web page from a feed: either says what it is in its first lines."""


class FeedClient(Protocol):
    def get(self, url: str) -> Fetched:
        """One guarded GET of an address that a person wrote in a topic: listed origins are allowed, for it alone.

        Raises Unfetchable (definite) or FetchFailed (try later).
        """
        ...


class FeedSource:
    """One feed of a topic."""

    def __init__(self, client: FeedClient, url: str) -> None:
        self.name = f"feed {redact(url)}"
        self.warnings: tuple[str, ...] = ()
        self._client = client
        self._url = url

    def find(self) -> list[Found]:
        """The newest entries that have an address, each once.

        Raises SearchFailed: not_a_feed, bad_feed, too_large, or the cause for which it could not be fetched.
        """
        self.warnings = ()
        try:
            page = self._client.get(self._url)
        except FetchFailed as error:
            raise SearchFailed(error.cause, f"the feed cannot be reached: {error}", after=error.after) from error
        except Unfetchable as error:
            raise SearchFailed(error.cause, f"the feed cannot be used: {error}") from error
        entries, self.warnings = read(page)
        return entries


def read(page: Fetched) -> tuple[list[Found], tuple[str, ...]]:
    """The entries of a feed that was fetched, and warnings. A malformed feed with entries is taken as it is.

    Raises SearchFailed: not_a_feed, bad_feed, too_large.
    """
    if len(page.body) > MAX_BYTES or page.body.count(b"<") > MOST_TAGS:
        raise SearchFailed("too_large", f"the feed is larger than {MAX_BYTES // 1_000_000} MB or {MOST_TAGS} tags")
    if not page.body.strip():
        raise SearchFailed("bad_feed", "the feed is empty")
    head = page.body[:_HEAD]
    if _HTML.match(head) and not _FEED.search(head):
        raise SearchFailed("not_a_feed", "this is a web page: look in it for the address of its feed")
    reply = _parsed(page)
    malformed = isinstance(reply.get("bozo_exception"), xml.sax.SAXException)
    if not reply.entries:
        if not reply.version:
            raise SearchFailed("not_a_feed", "this is neither RSS nor Atom")
        if malformed:
            raise SearchFailed("bad_feed", f"the feed cannot be read: {_why(reply)}")
    entries = list(unique(_entry(entry) for entry in reply.entries))
    # An entry without a date may be new, so it stays in front; sorting keeps the feed's order otherwise.
    entries.sort(key=lambda entry: entry.published or datetime.max.replace(tzinfo=UTC), reverse=True)
    warnings = [f"the feed is malformed ({_why(reply)}); {len(entries)} entries could be read"] if malformed else []
    if reply.entries and not entries:
        warnings.append(f"none of the {len(reply.entries)} entries has a web address")
    return entries[:MOST_ENTRIES], tuple(warnings)


def _parsed(page: Fetched) -> "FeedParserDict":
    import feedparser  # noqa: PLC0415 - most events of a function read no feed, and it is a thirtieth of a cold start

    content_type = page.content_type + (f"; charset={page.charset}" if page.charset else "")
    try:
        return feedparser.parse(
            io.BytesIO(page.body),
            response_headers={"content-location": page.url, "content-type": content_type},
            # Both are for the texts of entries, which we never show: the page itself is fetched and judged.
            resolve_relative_uris=False,
            sanitize_html=False,
        )
    # feedparser has no exception of its own: what its handlers stumble over in a broken feed comes out as it is, from
    # LookupError to AssertionError. Whatever it was, this feed is unreadable and the topic's other sources are not.
    except Exception as error:
        raise SearchFailed("bad_feed", f"the feed cannot be read: {type(error).__name__}: {error}") from error


def _entry(entry: "FeedParserDict") -> Found | None:
    return found(entry.get("link"), entry.get("title"), Origin.FEED, max(_dates(entry), default=None))


def _dates(entry: "FeedParserDict") -> Iterator[datetime]:
    """When it was published and last changed, whichever is there."""
    for name in ("published_parsed", "updated_parsed", "created_parsed"):
        # Plain dict access: feedparser's own falls back from one date to another, and warns.
        moment = dict.get(entry, name)
        if isinstance(moment, struct_time):
            try:
                yield datetime(*moment[:6], tzinfo=UTC)
            except ValueError:
                continue  # such as a leap second or the year 0


def _why(reply: "FeedParserDict") -> str:
    return " ".join(str(reply.bozo_exception).split())[:200]

"""Pages: what was found, what was fetched, and what text came out of it."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from wikikeeper.models.values import Value
from wikikeeper.models.verdicts import Findings


class Origin(StrEnum):
    """How a URL came to us. Only what a person wrote may use a listed `host:port` exception."""

    SEARCH = "search"
    FEED = "feed"
    LINK = "link"
    FOLDER = "folder"
    HOOK = "hook"


class Found(Value):
    """A search hit, a feed entry, a link or a saved file, before anything was fetched."""

    url: str
    title: str = ""
    origin: Origin
    published: datetime | None = None


class Fetched(Value):
    """A response body that kept to every limit, undecoded."""

    url: str
    """The address that answered, after redirects."""
    status: int
    content_type: str
    """Lower case, without parameters: "text/html", "application/pdf"."""
    charset: str | None = None
    """What the header declared, if anything."""
    body: bytes = Field(repr=False)
    etag: str | None = None
    last_modified: str | None = None
    not_modified: bool = False
    """The server answered 304 to a conditional request; the body is empty."""


class Extract(Value):
    """The readable text of one page."""

    title: str = ""
    paragraphs: tuple[str, ...] = Field(repr=False)
    concealed: tuple[str, ...] = Field(default=(), repr=False)
    """Text that a reader of the rendered page does not see: hidden by style or attribute, or in a comment. It is
    never judged or quoted, only searched for text that addresses a model."""
    findings: Findings = Findings()
    """What structure alone shows, counted before the text was cleaned."""
    extractor: str
    """Which extractor gave the text: "trafilatura", "resiliparse", "pdf", "plain"."""


class StoredPage(Value):
    """The paragraphs that a verdict was given on, kept so that quotes can be checked later."""

    text_hash: str
    paragraphs: tuple[str, ...] = Field(repr=False)
    stored: datetime

"""Templates, and how values are shown in them. Everything is escaped; nothing here marks a stranger's text as safe."""

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from wikikeeper.policy.markdown import one_line
from wikikeeper.policy.redaction import redact

SHORT = 160
"""Characters of a stranger's line in a list: two lines of a phone."""
_HTTP = re.compile(r"(?i)https?://[^/\\\s]")
PAGES = (
    ("/runs", "Runs"),
    ("/topics", "Topics"),
    ("/cycles", "Cycles"),
    ("/notes", "Notes"),
    ("/attention", "Attention"),
    ("/thresholds", "Thresholds"),
    ("/label", "Label"),
    ("/calibrate", "Calibrate"),
)


class Html(Response):
    """A page. What cannot be encoded (half a surrogate pair out of a broken title) shows as a question mark."""

    media_type = "text/html"

    def render(self, content: object) -> bytes:
        return str(content).encode("utf-8", "replace")


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Html:  # noqa: ANN401 - for templates
    """The page of a template."""
    shown = _TEMPLATES.get_template(template).render(
        values, path=request.url.path, pages=PAGES, signed_in=request.app.state.access.token is not None
    )
    return Html(shown, status)


def when(at: datetime | None) -> Markup:
    """A moment, to the second, for people and machines."""
    if at is None:
        return Markup("never")
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}">{} UTC</time>').format(
        utc.isoformat(timespec="seconds"), utc.strftime("%Y-%m-%d %H:%M:%S")
    )


def line(text: str) -> str:
    """A stranger's text on one line, without what a reader can't see."""
    return one_line(text)


def short(text: str, most: int = SHORT) -> str:
    shown = one_line(text)
    return shown if len(shown) <= most else shown[:most].rstrip() + " […]"


def address(url: str) -> str:
    """An address without what must not be shown; of a saved page its place in the wiki."""
    return one_line(redact(url)).removeprefix("file:///")


def linkable(url: str) -> bool:
    """May it be made a link? Only what a browser opens as a page of the web."""
    return _HTTP.match(url) is not None and url.isprintable()


def segment(text: str) -> str:
    """For one part of a path."""
    return quote(text, safe="", errors="replace")


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def words(value: str) -> str:
    return value.replace("_", " ")


def percent(probability: float) -> str:
    """For lengths in pictures a hundred wide."""
    return f"{probability * 100:.2f}"


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("wikikeeper.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for own in (when, line, short, address, segment, number, words, percent):
        environment.filters[own.__name__] = own
    environment.tests["linkable"] = linkable
    return environment


_TEMPLATES = _environment()

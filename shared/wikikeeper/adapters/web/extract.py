"""The extractor: bytes to paragraphs, in one long-lived child process that is killed when a page is too much for it."""

import shlex
import sys
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from wikikeeper.adapters.web import extract_frames as frames
from wikikeeper.adapters.web.extract_process import Child, ChildLost, end_all
from wikikeeper.errors import Unfetchable, Unusable
from wikikeeper.models import Extract, Fetched
from wikikeeper.settings import Extraction

FAST_ABOVE = 2_000_000
"""Bytes of HTML above which the better extractor is not tried: it would only run into the time limit."""
FAST_ABOVE_TAGS = 40_000
"""The same for tags: its time grows with their square, and here passes three seconds. A long article of an
encyclopedia has 6,000."""
_SNIFFED = 1024
"""Bytes in which a file says what it is. PDF readers accept as much rubbish before the mark."""
_BLANK = b"\xef\xbb\xbf\t\n\r "
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT: Mapping[str, frames.Form] = {"text/plain": "plain", "text/markdown": "markdown", "text/x-markdown": "markdown"}
_UNSURE = frozenset({"", "application/octet-stream", "application/xml", "text/xml"})


def child_command(extraction: Extraction) -> tuple[str, ...]:
    """How the child is started. -P: nothing is imported from the folder that we happen to be in."""
    return (sys.executable, "-P", "-m", "wikikeeper.adapters.web.extract_child", str(extraction.max_memory_mb))


class ChildExtractor:
    """Implements `Extractor`. Many threads may call it at once; pages are read one by one, first come, first served.

    What happens to a page:

        better extractor ── text ──▶ done
              │ time is up, child died, or it gave up: new child
        fast extractor ──── text ──▶ done
              │ the same again
        Unfetchable("too_complex")

    The limit of time runs from the moment the child is handed the page, once for each extractor.
    """

    def __init__(self, extraction: Extraction, command: Sequence[str] | None = None) -> None:
        """`command` replaces the child, for tests of how it fails."""
        self._seconds = extraction.seconds
        self._command = tuple(command or child_command(extraction))
        self._line = ThreadPoolExecutor(max_workers=1, thread_name_prefix="extract")
        """Its queue is the fair queue; its one thread is the only one that touches the child."""
        self._children: list[Child] = []
        self._end = weakref.finalize(self, end_all, self._children)

    def extract(self, page: Fetched) -> Extract:
        """The main text as paragraphs, within the time and memory limit.

        Raises Unfetchable: bot_challenge, login_wall, consent_wall, no_text, too_complex, wrong_type.
        """
        form = form_of(page)
        return self._line.submit(self._read, form, page).result()

    def close(self) -> None:
        """End the child. Pages in the queue are still read."""
        self._line.shutdown(wait=True)
        self._end()

    def _read(self, form: frames.Form, page: Fetched) -> Extract:
        detail = ""
        for fast in _tries(form, page.body):
            reply = self._ask(frames.Job(form=form, charset=page.charset, fast=fast), page.body)
            if reply.unfetchable is not None:
                raise Unfetchable(reply.unfetchable, reply.failed or "")
            if reply.failed is None:
                return Extract(
                    title=reply.title,
                    paragraphs=reply.paragraphs,
                    concealed=reply.concealed,
                    findings=reply.findings,
                    extractor=reply.extractor,
                )
            detail = reply.failed
        raise Unfetchable("too_complex", detail)

    def _ask(self, job: frames.Job, body: bytes) -> frames.Reply:
        child = self._ready_child()
        try:
            return child.ask(job, body, self._seconds)
        except ChildLost as lost:
            end_all(self._children)
            return frames.Reply(failed=str(lost))

    def _ready_child(self) -> Child:
        if self._children and not self._children[0].is_worn:
            return self._children[0]
        end_all(self._children)
        child = Child(self._command)
        self._children.append(child)
        try:
            child.wait_until_ready()
        except ChildLost as lost:
            # No page is to blame, and none must be discarded for it.
            end_all(self._children)
            raise Unusable(f"the process that reads pages does not start: {shlex.join(self._command)}") from lost
        return child


def _tries(form: frames.Form, body: bytes) -> tuple[bool, ...]:
    """With the fast extractor or not, in order. There is one for HTML only."""
    if form != "html":
        return (False,)
    too_much = len(body) > FAST_ABOVE or body.count(b"<") > FAST_ABOVE_TAGS
    return (True,) if too_much else (False, True)


def form_of(page: Fetched) -> frames.Form:
    """What a body is, by its magic bytes first and then by its content type: servers are wrong about PDF and text.

    Raises Unfetchable("wrong_type").
    """
    start = page.body[:_SNIFFED].lower()
    if b"%pdf-" in start:
        return "pdf"
    if page.content_type in _HTML or start.lstrip(_BLANK).startswith((b"<!doctype html", b"<html")):
        return "html"
    if page.content_type in _TEXT and b"\0" not in start:
        return _TEXT[page.content_type]
    if page.content_type in _UNSURE and b"<html" in start:
        return "html"
    raise Unfetchable("wrong_type", page.content_type)

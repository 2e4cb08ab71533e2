"""The child process that reads pages: `python -m wikikeeper.adapters.web.extract_child`, jobs in, replies out.

It may be killed at any moment and holds nothing that anybody would miss. It ends when its standard input does, so it
never outlives its parent.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from wikikeeper.adapters.web import extract_frames as frames
from wikikeeper.adapters.web.charset import decode
from wikikeeper.adapters.web.extract_html import read_html
from wikikeeper.adapters.web.extract_pdf import UnreadablePdf, read_pdf
from wikikeeper.adapters.web.extract_plain import read_plain
from wikikeeper.policy.findings import find, tagged_texts
from wikikeeper.policy.paragraphs import clean, paragraphs
from wikikeeper.policy.walls import wall

if sys.platform != "win32":  # no limits there; the time limit and the kill remain
    import resource

_LONGEST_BODY = 1 << 30
"""The parent bounds bodies; this only keeps a broken frame from being taken for a huge one."""
_HTML_START = 100_000
"""Characters of source in which a bot challenge loads its scripts."""
_MOST_CHARS = 400_000
"""Characters of main text that become paragraphs: four times the most that settings let the Keeper judge."""
_MOST_SEARCHED = 2_000_000
"""Characters of visible text searched for what structure shows: all of a page that anybody would read."""
_MOST_PIECES = 50
_LONGEST_PIECE = 2000
"""Concealed texts that are handed on, and characters of each: enough to look at. All of them were searched before."""


def read(job: frames.Job, body: bytes) -> frames.Reply:
    """Read one page."""
    start = ""
    if job.form == "pdf":
        try:
            page = read_pdf(body)
        except UnreadablePdf as error:
            return frames.Reply(unfetchable="no_text", failed=str(error))
    else:
        text = decode(body, job.charset)
        if job.form == "html":
            start = text[:_HTML_START]
            page = read_html(text, fast=job.fast)
        else:
            page = read_plain(text, markdown=job.form == "markdown")
    title = clean(page.title)
    if start and (cause := wall(title, page.visible, start)):
        return frames.Reply(unfetchable=cause)
    pieces = paragraphs(_beginning(page.blocks))
    if not pieces:
        return frames.Reply(unfetchable="no_text")
    visible = page.visible[:_MOST_SEARCHED]
    concealed = [*page.concealed, *tagged_texts(visible)]
    return frames.Reply(
        title=title,
        paragraphs=pieces,
        concealed=tuple(filter(None, (clean(piece[:_LONGEST_PIECE]) for piece in concealed[:_MOST_PIECES]))),
        findings=find(visible, page.concealed),
        extractor=page.extractor,
    )


def _beginning(blocks: list[str]) -> Iterator[str]:
    left = _MOST_CHARS
    for block in blocks:
        if left <= 0:
            return
        yield block[:left]
        left -= len(block)


def serve(jobs: IO[bytes], replies: IO[bytes]) -> None:
    """Answer jobs until there are no more."""
    frames.send(replies, frames.READY)
    while True:
        try:
            job = frames.Job.model_validate_json(frames.receive(jobs, _LONGEST_BODY))
            body = frames.receive(jobs, _LONGEST_BODY)
        except frames.BrokenFrame:
            return
        try:
            reply = read(job, body)
        except Exception as error:  # noqa: BLE001 - a parser may raise anything on hostile input; the parent decides what next
            reply = frames.Reply(failed=f"{type(error).__name__}: {error}"[:_LONGEST_PIECE])
        frames.send(replies, reply.model_dump_json().encode())


def _lower_limits(extra_mb: int) -> None:
    """No core files, and so much memory above what the parsers took when they were loaded."""
    if sys.platform == "win32":
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    statm = Path("/proc/self/statm")
    if statm.exists():  # elsewhere the address space in use can't be read, or the limit is not kept
        in_use = int(statm.read_text().split()[0]) * resource.getpagesize()
        limit = in_use + extra_mb * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> None:
    """Serve on standard input and output. The argument is the memory allowed, in MiB."""
    # Who stops a service tells all its processes at once. The parent lets what it works on end, and for that needs its page.
    for told in (signal.SIGINT, signal.SIGTERM):
        signal.signal(told, signal.SIG_IGN)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever a library prints must not end up between the frames.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    read(frames.Job(form="html", charset=None, fast=False), _WARM_UP)
    _lower_limits(int(sys.argv[1]))
    serve(sys.stdin.buffer, replies)


_WARM_UP = b"<p>Parsers load their word lists with the first page, and that must not count against a page of yours.</p>"

if __name__ == "__main__":
    main()

"""Research notes: one Markdown file per topic, to which kept results are added until a person moves it away.

    ---                                      front matter, written once; only `sources` is kept up to date
    type: research-note
    ...
    ---
    # Topic title

    ## Title of a kept page                  one entry per kept result, in the order of their verdicts
    <!-- result: 3f2a... -->                 how the entry is found again, also after a person edited around it

    release · [https://...](<https://...>)

    > An exact quote.

Entries are only ever added at the end. What a person changed or deleted stays as they left it.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from itertools import groupby
from pathlib import PurePosixPath

import yaml

from wikikeeper.models import Origin, Result, Topic, Value
from wikikeeper.policy import markdown
from wikikeeper.policy.identity import digest
from wikikeeper.policy.urls import folder_url, redact, saved_path

AWAITING = "inbox/awaiting/"
COMPLETED = "inbox/completed/"

_ENTRY = re.compile(rb"^<!-- result: ([0-9a-f]{24}) -->[ \t]*\r?$", re.MULTILINE)
_FRONT_MATTER = re.compile(rb"\A(?:\xef\xbb\xbf)?---\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(rb"^ {0,3}#{1,2}[ \t]", re.MULTILINE)
"""A heading as high as an entry's own ends the entry: what follows is the next one, or a person's own section."""
_QUOTE = re.compile(r"(?:^ {0,3}>.*\n?)+", re.MULTILINE)
_SOURCES = re.compile(rb"^sources: \d+(?=[ \t]*\r?$)", re.MULTILINE)


def note_key(topic: Topic, opened: datetime, first_result: str) -> str:
    """Where a new note goes. The date is the day of opening in the topic's zone; the name never changes afterwards."""
    day = opened.astimezone(topic.tz).date()
    return f"{AWAITING}{day.isoformat()}-{topic.slug}-{digest('note', topic.slug, first_result)[:6]}.md"


def completed_key(key: str) -> str:
    """Where a note goes when a person is done with it: same name, other folder."""
    return COMPLETED + PurePosixPath(key).name


def opened_on(key: str) -> date:
    """The day in a note's name: also when the file is made later than its name, both say the same."""
    return date.fromisoformat(PurePosixPath(key).name[:10])


def new_note(topic: Topic, opened: date, results: Sequence[Result]) -> bytes:
    """A whole note. `results` are kept, have verdicts, and are in their order."""
    first = results[0].verdict
    assert first is not None
    fields = {
        "type": "research-note",
        "topic": topic.slug,
        "opened": opened,
        "sources": len(results),
        "keeper": first.model or "unknown",
        "questions": first.question_version or "unknown",
    }
    front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=10_000)
    text = f"---\n{front}---\n\n# {markdown.title(topic.title)}\n" + "".join(entry(result) for result in results)
    return text.encode()


def with_entries(data: bytes, results: Sequence[Result]) -> bytes:
    """The note with the entries of `results` below what is there, line ends as the file has them."""
    newline = b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
    added = "".join(entry(result) for result in results).encode().replace(b"\n", newline)
    joined = data + (b"" if data.endswith(b"\n") or not data else newline) + added
    front = _FRONT_MATTER.match(joined)
    if front is None:
        return joined
    counted = _SOURCES.sub(b"sources: %d" % len(entry_ids(joined)), front[1], count=1)
    return joined[: front.start(1)] + counted + joined[front.end(1) :]


def entry(result: Result) -> str:
    """The lines of one kept result, beginning with an empty one."""
    verdict = result.verdict
    assert verdict is not None and verdict.kind is not None
    kind = verdict.kind.value.replace("_", " ")
    heading = markdown.title(result.title or _shown_address(result))
    lines = ["", f"## {heading}", f"<!-- result: {result.id} -->", ""]
    lines.append(f"{kind} · {source_link(result)}")
    for quote in verdict.quotes:
        lines += ["", quote_line(quote.text)]
    return "\n".join(lines) + "\n"


def quote_line(text: str) -> str:
    return f"> {markdown.escape(text)}"


def source_link(result: Result) -> str:
    """The page's address as a link, secrets in it blanked; a saved page is linked relative to the note."""
    shown = _shown_address(result)
    if result.origin is Origin.FOLDER:
        # From the path and not from what is shown: names hold "%", "#" and bytes that are no text.
        return markdown.link(f"../../{folder_url(saved_path(result.url)).removeprefix('file:///')}", shown)
    return markdown.link(shown, shown)


def _shown_address(result: Result) -> str:
    return str(saved_path(result.url)) if result.origin is Origin.FOLDER else redact(result.url)


class Entry(Value):
    """One entry as it stands in a note now."""

    result: str
    quotes: tuple[str, ...]
    """The text of each block quote, unescaped. Lines that an editor wrapped are joined; an empty `>` parts two."""


def entries(data: bytes) -> tuple[Entry, ...]:
    """What a note holds, whoever edited it. Never fails: a file that is no note has no entries."""
    found = []
    for mark in _ENTRY.finditer(data):
        after = min(
            (match.start() for ends in (_ENTRY, _SECTION) if (match := ends.search(data, mark.end()))),
            default=len(data),
        )
        body = data[mark.end() : after].decode("utf-8", "replace")
        found.append(Entry(result=mark[1].decode(), quotes=tuple(_quotes(body))))
    return tuple(found)


def _quotes(body: str) -> Iterator[str]:
    for block in _QUOTE.findall(body):
        lines = [line.strip().removeprefix(">").strip() for line in block.splitlines()]
        for written, paragraph in groupby(lines, key=bool):
            if written:
                yield markdown.unescape(" ".join(paragraph))


def entry_ids(data: bytes) -> frozenset[str]:
    return frozenset(mark.decode() for mark in _ENTRY.findall(data))

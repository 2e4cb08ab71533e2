"""Research notes: what is written, what is read back, and what of a person's file is never touched."""

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import PurePosixPath

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from wikikeeper.fakes import judgement
from wikikeeper.models import Findings, Origin, Result, ResultState, Thresholds, Topic
from wikikeeper.policy.identity import result_id
from wikikeeper.policy.markdown import one_line, unescape
from wikikeeper.policy.notes import completed_key, entries, entry, entry_ids, new_note, note_key, with_entries
from wikikeeper.policy.slugs import slugify
from wikikeeper.policy.urls import folder_url
from wikikeeper.policy.verdict import decide

TOPIC = Topic(slug="heronbase", title="Heronbase releases", brief="New versions.", zone="Europe/Berlin")
OPENED = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
PARAGRAPHS = ("Heronbase 4.2 is out.", "It is 3x faster, they say.", "终わり。", "# no heading", "<b>no tag</b>")
RENDERER = MarkdownIt("commonmark", {"html": True})
ODD = [
    'He said: "yes" / no',
    "🦩" * 40,
    "x" * 10_000,
    "\u202egnp.exe\u202c",
    "# *Markdown* [a](javascript:x) ![b](http://e.org)",
    "<script>alert(1)</script>",
    "[[wiki|link]] #tag ^block",
    "---\ntype: research-note\nsources: 99\n---",
    "<!-- result: 0123456789abcdef01234567 -->",
    "a\n<!-- result: 0123456789abcdef01234567 -->\n> not a quote",
    "a\r\n\r\n## A heading",
    "",
    "\u200b",
]


def result(
    number: int = 1,
    *,
    title: str = "A page",
    url: str = "https://e.org/a",
    quoted: Sequence[int] = (0, 1),
    origin: Origin = Origin.SEARCH,
    paragraphs: tuple[str, ...] = PARAGRAPHS,
) -> Result:
    """A kept result with the quotes of these paragraphs."""
    shares = {index: 1 / len(quoted) for index in quoted} or {0: 0.0}
    verdict = decide(
        judgement(quotes=shares), Findings(), paragraphs, Thresholds(keep=0.6, injection=0.5), quote_max_chars=400
    )
    return Result(
        id=result_id("heronbase", url, number),
        topic="heronbase",
        url=url,
        canonical=url,
        revision=number,
        title=title,
        origin=origin,
        found=OPENED,
        state=ResultState.KEPT,
        verdict=verdict.model_copy(update={"model": "decider-1", "question_version": "triage-1"}),
    )


def written(*results: Result) -> bytes:
    return new_note(TOPIC, OPENED.astimezone(TOPIC.tz).date(), results or [result()])


# -- a new note


def test_a_note_is_as_it_should_be_read() -> None:
    one = result(title="Heronbase 4.2: what's new?")

    assert (
        written(one).decode()
        == f"""---
type: research-note
topic: heronbase
opened: 2026-03-02
sources: 1
keeper: decider-1
questions: triage-1
---

# Heronbase releases

## Heronbase 4.2: what's new?
<!-- result: {one.id} -->

release · [https\\://e.org/a](<https://e.org/a>)

> Heronbase 4.2 is out.

> It is 3x faster, they say.
"""
    )


def test_a_page_without_a_quote_is_an_entry_with_its_link() -> None:
    one = result(quoted=())

    assert entry(one).endswith("(<https://e.org/a>)\n")
    assert entries(written(one))[0].quotes == ()


@pytest.mark.parametrize("title", ODD)
def test_a_title_of_any_kind_is_one_heading_and_nothing_else(title: str) -> None:
    note = written(result(1, title=title), result(2, title="Another"))

    tokens = RENDERER.parse(note.decode().split("---\n", 2)[2])
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert len(headings) == 3
    shown = unescape(headings[1])
    assert one_line(title).startswith(shown) or title in ("", "\u200b")
    assert {token.type for token in tokens if token.type.endswith("_open")} == {
        "heading_open",
        "paragraph_open",
        "blockquote_open",
    }
    assert entry_ids(note) == {result(1).id, result(2).id}
    assert yaml.safe_load(note.decode().split("---\n")[1])["sources"] == 2


@pytest.mark.parametrize("model", ["m", "---\nx: y\n---", "a: b # c", "no", "<|x|>", "ü" * 300])
def test_front_matter_is_yaml_whatever_the_server_calls_its_model(model: str) -> None:
    one = result()
    assert one.verdict is not None
    odd = one.model_copy(update={"verdict": one.verdict.model_copy(update={"model": model})})

    front = yaml.safe_load(written(odd).decode().split("\n---\n")[0].removeprefix("---\n"))

    assert front["keeper"] == model
    assert b"sources: 2\n" in with_entries(written(odd), [result(2)])


def test_secrets_in_an_address_are_blanked_also_where_it_stands_for_a_title() -> None:
    note = written(result(title="", url="https://e.org/feed?token=canary&page=2")).decode()

    assert "canary" not in note
    assert note.count("redacted") == 3


@pytest.mark.parametrize(
    "path", ["pages/a.html", "pages/100% #1?.html", "pages/naïve (1).html", "pages/raw\udcff.html", "p/a:b.html"]
)
def test_a_saved_page_is_linked_from_the_note(path: str) -> None:
    url = folder_url(PurePosixPath(path))
    text = entry(result(title="", url=url, origin=Origin.FOLDER))

    assert f"(<../../{url.removeprefix('file:///')}>)" in text
    text.encode()


# -- names


def test_the_day_in_a_name_is_that_of_the_topics_zone() -> None:
    assert note_key(TOPIC, OPENED, "r").startswith("inbox/awaiting/2026-03-02-heronbase-")
    assert note_key(TOPIC.model_copy(update={"zone": "UTC"}), OPENED, "r").startswith("inbox/awaiting/2026-03-01-")


@given(st.text(min_size=1).map(slugify).filter(bool), st.text(), st.datetimes(timezones=st.just(UTC)))
@example("the-con", "r", OPENED)
def test_a_name_is_stable_and_safe_on_every_system(slug: str, first: str, opened: datetime) -> None:
    topic = Topic(slug=slug, title="x", brief="y")
    key = note_key(topic, opened, first)
    name = key.rsplit("/", 1)[1]

    assert key == note_key(topic, opened, first)
    assert re.fullmatch(r"inbox/awaiting/\d{4}-\d\d-\d\d-[^/\\:*?\"<>|\x00-\x1f]+-[0-9a-f]{6}\.md", key)
    assert unicodedata.is_normalized("NFC", key)
    assert len(name.encode()) < 230
    assert completed_key(key) == f"inbox/completed/{name}"


def test_two_notes_of_a_topic_on_one_day_have_two_names() -> None:
    assert note_key(TOPIC, OPENED, "one") != note_key(TOPIC, OPENED, "two")
    other = TOPIC.model_copy(update={"slug": "heron"})
    assert note_key(other, OPENED, "one")[-9:] != note_key(TOPIC, OPENED, "one")[-9:]


# -- what was written is read back


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*ODD, "A page"]), st.lists(st.integers(0, len(PARAGRAPHS) - 1), max_size=3, unique=True)
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 5),
    st.booleans(),
)
def test_entries_come_back_in_their_order_with_their_quotes(
    pages: list[tuple[str, list[int]]], first: int, crlf: bool
) -> None:
    results = [result(number, title=title, quoted=quoted) for number, (title, quoted) in enumerate(pages, start=1)]
    first = min(max(first, 1), len(results))

    note = written(*results[:first])
    note = with_entries(note.replace(b"\n", b"\r\n") if crlf else note, results[first:]) if results[first:] else note

    read = entries(note)
    assert [each.result for each in read] == [each.id for each in results]
    assert entry_ids(note) == {each.id for each in results}
    for each, one in zip(read, results, strict=True):
        assert one.verdict is not None
        assert each.quotes == tuple(one_line(quote.text) for quote in one.verdict.quotes)


# -- a person's file

EDITS = st.lists(
    st.sampled_from(
        [
            b"My remark", b"\n", b"\r\n", b"\n\n", b"> a quote of mine", b"\xff\xfe not utf-8", b"\xef\xbb\xbf",
            b"---\n", b"sources: 12\n", b"type: research-note\n", b"## Mine\n", b"```\ncode", "é終".encode(),
            b"<!-- result: 0123456789abcdef01234567 -->\n", b"<!-- result: nonsense -->", b"# sources: 3\n", b"\t",
        ]
    ),
    max_size=12,
).map(b"".join)  # fmt: skip
FILES = st.one_of(EDITS, EDITS.map(lambda more: written() + more), EDITS.map(lambda before: before + written()))


@given(FILES, st.integers(1, 3))
@example(b"", 1)
@example(written().replace(b"\n", b"\r\n"), 1)
@example(b"\xef\xbb\xbf" + written(), 2)
@example(written().rstrip(b"\n"), 1)
@example(written().split(b"---\n", 2)[2], 1)
def test_of_what_is_there_only_the_count_of_sources_changes(data: bytes, number: int) -> None:
    added = [result(n) for n in range(10, 10 + number)]

    joined = with_entries(data, added)

    front = re.match(rb"\A(?:\xef\xbb\xbf)?---\r?\n.*?^---[ \t]*\r?$", data, re.S | re.M)
    border = front.end() if front else 0
    moved = re.match(rb"\A(?:\xef\xbb\xbf)?---\r?\n.*?^---[ \t]*\r?$", joined, re.S | re.M) if front else None
    head, below = (joined[: moved.end()], joined[moved.end() :]) if moved else (b"", joined)
    assert _uncounted(head) == _uncounted(data[:border])
    assert below.startswith(data[border:])
    assert entry_ids(below[len(data) - border :]) == {each.id for each in added}
    assert entry_ids(joined) == entry_ids(data) | {each.id for each in added}


def _uncounted(front: bytes) -> bytes:
    return re.sub(rb"^sources: \d+(?=[ \t]*\r?$)", b"sources: N", front, count=1, flags=re.M)


def test_the_count_of_sources_is_kept_up_to_date() -> None:
    for note in (written(), written().replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + written()):
        assert b"sources: 3" in with_entries(note, [result(2), result(3)])[:200]


def test_an_entry_that_a_person_copied_is_counted_once() -> None:
    doubled = written() + entry(result()).encode()

    assert b"sources: 2\n" in with_entries(doubled, [result(2)])


def test_sources_below_the_front_matter_are_a_persons_own_words() -> None:
    note = written() + b"\nsources: 12\n"

    assert b"\nsources: 12\n" in with_entries(note, [result(2)])


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_new_entries_begin_on_a_line_of_their_own_with_the_files_line_ends(end: bytes) -> None:
    crlf = end == b"\r\n"
    data = (written().replace(b"\n", b"\r\n") if crlf else written()) + b"My last remark" + end

    joined = with_entries(data, [result(2)])

    newline = b"\r\n" if crlf else b"\n"
    assert b"My last remark" + newline * 2 + b"## A page" + newline in joined
    assert (b"\n" in joined.replace(b"\r\n", b"")) is not crlf


def test_one_line_end_of_another_system_does_not_turn_the_file() -> None:
    assert b"\r\n" not in with_entries(written() + b"pasted\r\n", [result(2)]).split(b"pasted\r\n")[1]


@given(st.binary())
def test_any_file_can_be_read(data: bytes) -> None:
    assert frozenset(each.result for each in entries(data)) == entry_ids(data)


# -- quotes as they stand in an edited note


def quotes_of(body: str) -> tuple[str, ...]:
    return entries(f"## T\n<!-- result: {result().id} -->\n\n{body}".encode())[0].quotes


@pytest.mark.parametrize(
    ("body", "quotes"),
    [
        ("> one\n\n> two\n", ("one", "two")),
        ("> one\n> more of it\n", ("one more of it",)),
        (">one\r\n>more\r\n", ("one more",)),
        ("   > indented\n", ("indented",)),
        ("> one\n>\n> two\n", ("one", "two")),
        ("> \\*starred\\* &lt;b&gt;\n", ("*starred* <b>",)),
        ("a > b\n", ()),
        ("> one", ("one",)),
        (">\n", ()),
        ("> one\n\n## My own section\n\n> a quote of mine\n", ("one",)),
        ("> one\n\n### Below it\n\n> two\n", ("one", "two")),
    ],
)
def test_quotes_are_read_as_a_person_sees_them(body: str, quotes: tuple[str, ...]) -> None:
    assert quotes_of(body) == quotes

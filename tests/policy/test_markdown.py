"""Foreign text in Markdown: shown exactly, doing nothing. Held against a CommonMark parser, not against our own idea of it."""

from collections.abc import Callable
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from wikikeeper.policy.markdown import TITLE_CHARS, escape, link, one_line, title, unescape

RENDERER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])

PIECES = st.sampled_from(
    [
        *"\\`~*_{}[]()!<>&#-+=|$^%@:.\"' \t\n\r\f\x85\u2028\u2029\u00a0\u200b\u202e\ufeff\U000e0041\ud800é",
        *"``` ~~~ ~~ ** __ ![ ]( [[ ]] [^1] [x]: <b> </p> <!-- --> <script> &amp; &lt; &#35; &copy ## -- --- :: |-|".split(),
        *"1. 1) 99999999) $$ %% ^a ==x== http:// https://e.org www. a@b.org //e.org javascript: mailto: xmpp:".split(),
        *"e\u0301 ﬁ 你好 שלום 👩\u200d💻 :smile: @you #tag {{x}} {%y%} ]]> a b word".split(),
    ]
)
TEXT = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=30).map("".join), st.lists(PIECES).map(" ".join))

HOSTILE = [
    "</script><script>alert(1)</script>",
    "![x](http://evil.example/?q)",
    "[a](javascript:alert(1))",
    "[a]: http://evil.example/ 'x'",
    "---\ntype: research-note\n---",
    "[[secret|shown]] ![[embed]] [^note] ^block ==mark== %%gone%% $x$ #tag",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "# heading\n\n- list\n1. one\n> quote\n```\ncode\n```",
    "<!-- result: 0123456789abcdef01234567 -->",
    "<img src=x onerror=alert(1)> &lt;b&gt; &amp;amp;",
    "\\\\[a\\](b) \\<b>",
    "setext\n=====\nand\n-----",
    "*bold* _em_ ~~struck~~ `code` ``` ` ```",
    "https://evil.example www.evil.example mailto:a@b.example",
    "    four spaces",
    "+1 -1 1. 1) 0000000001.",
    "x" * 10_000,
    "x " * 5_000,
    "\u202egnp.exe\u202c \u200bzero\ufeff \U000e0069\U000e0067 tags",
]


def any_text(test: Callable[[str], None]) -> Callable[[], None]:
    """Drawn texts, and always the hostile ones."""
    for text in HOSTILE:
        test = example(text)(test)
    return given(TEXT)(test)


def shown(tokens: list[Token]) -> str:
    """What the one line of text shows. It fails where there is more than text: a link, an image, a tag, emphasis."""
    [inline] = [token for token in tokens if token.type == "inline"]
    children = inline.children or []
    assert {child.type for child in children} <= {"text", "text_special"}
    return "".join(child.content for child in children)


# -- text


@any_text
def test_a_quote_is_one_paragraph_that_shows_exactly_the_text(text: str) -> None:
    if not one_line(text):
        return

    tokens = RENDERER.parse(f"> {escape(text)}\n")

    kinds = ["blockquote_open", "paragraph_open", "inline", "paragraph_close", "blockquote_close"]
    assert [token.type for token in tokens] == kinds
    assert shown(tokens) == one_line(text)


@any_text
def test_a_title_is_one_heading_that_shows_the_beginning_of_the_text(text: str) -> None:
    tokens = RENDERER.parse(f"## {title(text)}\n")

    assert [token.type for token in tokens] == ["heading_open", "inline", "heading_close"]
    read = shown(tokens)
    whole = one_line(text)
    assert len(read) <= TITLE_CHARS
    if len(whole) <= TITLE_CHARS:
        assert read == (whole or "(no title)")
    else:
        assert whole.startswith(read)
        assert len(read) > TITLE_CHARS // 2 - 1


def test_a_long_title_ends_at_a_word() -> None:
    assert unescape(title("word " * 100)).endswith(" word")


@any_text
def test_nothing_of_a_text_reaches_a_page_as_markup(text: str) -> None:
    html = RENDERER.render(f"## {title(text)}\n\n> {escape(text)}\n")

    inside = html.replace("<h2>", "").replace("</h2>", "").replace("<blockquote>", "").replace("</blockquote>", "")
    assert "<" not in inside.replace("<p>", "", 1).replace("</p>", "", 1)


@any_text
def test_unescaping_gives_the_text_back(text: str) -> None:
    assert unescape(escape(text)) == one_line(text)


@any_text
def test_a_line_is_one_line_and_stays_as_it_is(text: str) -> None:
    line = one_line(text)

    assert line.splitlines() in ([], [line])
    assert line == line.strip()
    assert one_line(line) == line
    line.encode()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("pay\u200bpal", "paypal"),
        ("\u202egnp.exe", "gnp.exe"),
        ("a\nb\tc\u2028d", "a b c d"),
        ("read \U000e0069\U000e0067\U000e006eme", "read me"),
        ("e\u0301", "é"),
        ("👩\u200d💻", "👩\u200d💻"),
    ],
)
def test_what_a_reader_cannot_see_is_gone_and_what_he_sees_stays(text: str, line: str) -> None:
    assert one_line(text) == line


@pytest.mark.parametrize("mark", ["#tag", "[[page]]", "$x$", "==x==", "%%x%%", "^block", "~~x~~", "| x |", "www.x.org"])
def test_marks_of_other_dialects_are_escaped(mark: str) -> None:
    assert "\\" in escape(mark)


def test_ordinary_text_stays_readable_in_the_file() -> None:
    text = 'Postgres 18: up to 3x faster (on Linux), says J. Smith\'s team - see "Notes", §4.'

    assert escape(text) == text


# -- links

ADDRESSES = st.one_of(
    TEXT,
    TEXT.map(lambda text: f"http://e.org/{text}"),
    TEXT.map(lambda text: f"https://{text}"),
    TEXT.map(lambda text: f"../../{text}"),
    TEXT.map(lambda text: f"{text}://e.org/"),
)


@given(ADDRESSES, TEXT)
@example("javascript:alert(1)", "x")
@example("JaVaScRiPt:alert(1)", "x")
@example("../javascript:alert(1)", "x")
@example("\tjavascript:alert(1)", "x")
@example("data:text/html,<script>", "x")
@example("//evil.example/", "x")
@example("\\\\evil.example/", "x")
@example("../..//evil.example", "x")
@example("http:///evil", "x")
@example("http://e.org/>) [x](http://evil.example", "x")
@example("http://e.org/?a&amp;b&lt;c&#106;d", "x](http://evil.example)")
def test_a_link_leads_to_the_web_or_to_a_relative_path_or_is_none(target: str, text: str) -> None:
    line = link(target, text)

    assert "\n" not in line
    tokens = RENDERER.parse(f"release · {line}\n")
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    children = tokens[1].children or []
    opened = [child for child in children if child.type == "link_open"]
    assert {child.type for child in children} <= {"text", "text_special", "link_open", "link_close"}
    assert len(opened) <= 1
    if opened:
        href = str(opened[0].attrs["href"])
        assert href.lower().startswith(("http://", "https://")) or ":" not in href.partition("/")[0]
        assert not href.startswith(("/", "\\"))
        assert unquote(href, errors="replace") == unquote(target.encode(errors="replace").decode(), errors="replace")
    read = "".join(child.content for child in children)
    assert read.rstrip() == f"release · {one_line(text)}".rstrip()


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//evil.example", "/x"]
)
def test_another_address_is_shown_without_a_link(target: str) -> None:
    assert link(target, "shown") == "shown"


@pytest.mark.parametrize(
    "target",
    ["https://e.org/a%20b?x=1&y=2#z", "http://e.org/a_(b)", "../../pages/100%25%20done%23.html", "../../~notes/a.html"],
)
def test_an_address_that_is_encoded_already_stays_as_it_is(target: str) -> None:
    assert unquote(link(target, "x")) == unquote(f"[x](<{target}>)")
    assert "%2525" not in link(target, "x")

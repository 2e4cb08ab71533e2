"""Taking Markdown files apart and writing them again."""

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.front_matter import Broken, Field, FrontMatter, Plain, dump, parse

NAMES = st.text(alphabet=string.ascii_lowercase + "_", min_size=1, max_size=12)
TEXTS = st.text(max_size=40)
VALUES = TEXTS | st.lists(TEXTS, min_size=1, max_size=4) | st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3)


def parsed(text: str) -> FrontMatter:
    front = parse(text)
    assert isinstance(front, FrontMatter), front
    return front


def plain(front: FrontMatter) -> dict[str, Plain]:
    return {name: field.plain for name, field in front.fields.items()}


def test_values_are_read_as_written_with_the_lines_they_stand_on() -> None:
    front = parsed("---\ntitle: no\nday: 2026-12-31\n\nitems:\n  - 1e3\n  - ~\n---\nBody\n")

    assert front.fields["title"] == Field(2, "no")
    assert front.fields["day"] == Field(3, "2026-12-31")
    assert front.fields["items"].line == 5
    assert front.fields["items"].value == (Field(6, "1e3"), Field(7, None))
    assert (front.body, front.body_line) == ("Body\n", 9)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_line_end_and_a_byte_order_mark_are_accepted(end: str) -> None:
    front = parsed("\ufeff" + end.join(["---", "a: 1", "b: 2", "--- ", "Body", ""]))

    assert front.fields["b"] == Field(3, "2")
    assert front.body == f"Body{end}"
    assert front.body_line == 5


def test_line_separators_that_editors_do_not_count_shift_no_line() -> None:
    assert parsed("---\na: 'x\u2028y'\nb: 2\n---\n").fields["b"].line == 3
    assert parsed("---\na: 'x\u0085y'\nb: 2\n---\n").fields["b"].line == 3


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("", 1, "no front matter"),
        ("title: x\n", 1, "no front matter"),
        ("---\ntitle: x\n", 1, "never ends"),
        ("---\na: 1\nb: * * * * *\n---\n", 3, "quotes"),
        ("---\na: *b\n---\n", 2, "quotes"),
        ("---\na: x: y\n---\n", 2, "colon"),
        ("---\na: 1\n\tb: 2\n---\n", 3, "tab"),
        ("---\na: 1\nb: 2\na: 3\n---\n", 4, "twice (first in line 2)"),
        ("---\n- a\n- b\n---\n", 2, "name: value"),
        ("---\n? [a]\n: b\n---\n", 2, "single word"),
        ("---\na: [\n---\n", 3, "not YAML"),
        ("---\na: !!python/object/apply:os.system [x]\n---\n", 2, "tag"),
        ("---\na: &x 1\n---\n", 2, "quotes"),
        ("---\na: 1\nb: \x01\n---\n", 3, "U+0001"),
        ("---\na: [[[[[1]]]]]\n---\n", 2, "nested"),
        ("---\na: 1\n...\nb: 2\n---\n", 4, "not YAML"),
    ],
)
def test_what_cannot_be_read_says_line_and_reason(text: str, line: int, word: str) -> None:
    broken = parse(text)

    assert isinstance(broken, Broken)
    assert broken.line == line
    assert word in broken.reason


@pytest.mark.parametrize("bomb", ["a: " + "[" * 60_000, "{a: " * 15_000, "a: &a [x]\n" + "b: [*a, *a]\n" * 5000])
def test_a_bomb_is_refused_at_once(bomb: str) -> None:
    start = time.process_time()

    assert isinstance(parse(f"---\n{bomb}\n---\n"), Broken)
    assert time.process_time() - start < 2


@given(st.text(alphabet=st.sampled_from("-ab:[]{}&*!#|>'\"%@`,? \n\r\t\\~"), max_size=60))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    assert isinstance(parse(f"---\n{text}\n---\n"), FrontMatter | Broken)


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.text(max_size=60))
def test_what_was_written_is_read_again(fields: dict[str, Plain], body: str) -> None:
    front = parsed(dump(fields, body))

    assert plain(front) == fields
    assert list(front.fields) == list(fields)
    assert front.body == body


@given(st.text(max_size=80))
def test_no_value_can_close_the_block_early(text: str) -> None:
    block = dump({"title": text, "topic": "x"}, "")

    assert block.splitlines().count("---") == 2
    assert plain(parsed(block))["topic"] == "x"


def test_a_text_is_written_on_one_line_and_without_guesses() -> None:
    written = dump({"title": "a\n---\nb", "flag": "no", "day": "2026-12-31", "none": None, "n": 3}, "x")

    assert written == "---\ntitle: \"a\\n---\\nb\"\nflag: 'no'\nday: '2026-12-31'\nnone: null\nn: 3\n---\nx"

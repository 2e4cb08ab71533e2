"""Whether the quotes of a note still hold: changed ones are caught, an editor's habits are not taken for changes."""

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.fakes import judgement
from wikikeeper.models import Findings, Origin, Result, ResultState, StoredPage, Thresholds, Topic
from wikikeeper.policy.notes import entries, new_note
from wikikeeper.policy.verdict import decide
from wikikeeper.policy.verification import FAULTS, Check, Standing, check_entry, fold, on_page

AT = datetime(2026, 3, 2, tzinfo=UTC)
TOPIC = Topic(slug="heronbase", title="Heronbase releases", brief="New versions.")
PAGE = (
    "Heronbase 4.2 is not slower than 4.1 on large tables, the authors say; on small ones it is.",
    'Backups taken by 4.1 can be read, but "cold" ones can\'t - see §4 of *the manual*.',
    "新しい版では耐久性が上がった。古い版のバックアップも読める。",
)
HOLDS, EDITED = Standing.HOLDS, Standing.EDITED


def result(paragraphs: Sequence[str] = PAGE, quoted: Sequence[int] = (0, 1, 2)) -> Result:
    answer = judgement(quotes={index: 1 / len(quoted) for index in quoted})
    verdict = decide(answer, Findings(), paragraphs, Thresholds(keep=0.6, injection=0.5), quote_max_chars=400)
    return Result(
        id="0" * 24,
        topic="heronbase",
        url="https://e.org/a",
        canonical="https://e.org/a",
        revision=1,
        title="A page",
        origin=Origin.SEARCH,
        found=AT,
        state=ResultState.KEPT,
        verdict=verdict,
    )


def stored(paragraphs: Sequence[str] = PAGE) -> StoredPage:
    return StoredPage(text_hash="h", paragraphs=tuple(paragraphs), stored=AT)


def note() -> str:
    return new_note(TOPIC, AT.date(), [result()]).decode()


def checked(text: str | bytes, one: Result | None = None, page: StoredPage | None = None) -> list[Check]:
    [entry] = entries(text.encode() if isinstance(text, str) else text)
    return check_entry("inbox/awaiting/n.md", entry, one or result(), page or stored())


def standings(text: str | bytes) -> list[Standing]:
    return [check.standing for check in checked(text)]


def wrapped(text: str, width: int) -> str:
    """As an editor that wraps long lines writes the note."""
    lines = []
    for line in text.splitlines():
        rest = line.removeprefix("> ")
        if rest == line:
            lines.append(line)
        elif "新" in rest:
            lines += [f"> {rest[i : i + width]}" for i in range(0, len(rest), width)]
        else:
            lines += [
                f"> {part}" for part in textwrap.wrap(rest, width, break_long_words=False, break_on_hyphens=False)
            ]
    return "\n".join(lines) + "\n"


# -- in the note


def test_what_was_written_holds() -> None:
    assert standings(note()) == [HOLDS] * 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("4.2 is not slower", "4.2 is slower"),
        ("4.2 is not slower", "4.2 is now slower"),
        ("; on small ones it is.", "."),  # shortened: still on the page, and means something else
        ("Heronbase 4.2", "heronbase 4.2"),
        ("not slower", "notslower"),
        ("4.1 on", "4.10 on"),
        ("the authors say", "the [...] authors say"),
        ("the authors say", "the **authors** say"),
    ],
)
def test_an_edited_quote_is_caught(old: str, new: str) -> None:
    text = note()
    assert old in text

    assert standings(text.replace(old, new, 1)) == [EDITED, HOLDS, HOLDS]


@given(st.integers(0, 2), st.integers(0, 30), st.sampled_from(["x", "nicht", "7", "終"]))
def test_no_word_gets_into_a_quote_unseen(which: int, at: int, word: str) -> None:
    quotes = [line for line in note().splitlines() if line.startswith("> ")]
    changed = f"> {quotes[which][2 : 2 + at]}{word}{quotes[which][2 + at :]}"

    assert standings(note().replace(quotes[which], changed))[which] is EDITED


@pytest.mark.parametrize("width", [8, 20, 40, 72])
def test_lines_that_an_editor_wrapped_still_hold(width: int) -> None:
    text = wrapped(note(), width)

    assert text.count("\n> ") > 4
    assert standings(text) == [HOLDS] * 3


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("> ", ">   "),
        lambda text: text.replace("> ", ">"),
        lambda text: text.replace("\n> ", "\n  > "),
        lambda text: text.replace(" slower ", "  slower   "),
        lambda text: text.replace("\n\n> ", "\n>\n> "),
        lambda text: "\ufeff" + text.rstrip("\n"),
        lambda text: text.split("---\n", 2)[2],
        lambda text: text.replace("\\*the manual\\*", "&#42;the manual\\*"),
        lambda text: text.replace("## A page", "### My own title"),
    ],
)
def test_white_space_and_other_spellings_of_the_same_text_hold(edit: object) -> None:
    assert callable(edit)
    text = edit(note())

    assert text != note()
    assert set(standings(text)) == {HOLDS}


def test_a_quote_or_an_entry_that_was_deleted_is_no_fault() -> None:
    without = "\n".join(line for line in note().splitlines() if "small ones" not in line)

    assert standings(without) == [HOLDS, HOLDS]
    assert entries(note().split("## A page")[0].encode()) == ()


def test_a_quote_that_a_person_put_under_an_entry_is_reported() -> None:
    assert standings(note() + "\n> What I think of it.\n") == [HOLDS, HOLDS, HOLDS, EDITED]


def test_a_quote_that_was_taken_from_another_entry_is_reported() -> None:
    one, other = result(quoted=(0,)), result(quoted=(1,))

    assert [c.standing for c in checked(new_note(TOPIC, AT.date(), [other]), one)] == [EDITED]


def test_a_persons_remarks_and_own_section_are_theirs() -> None:
    text = note() + "\nI doubt it, see 3 > 2.\n\n## My notes\n\n> Somebody else said so.\n"

    assert standings(text) == [HOLDS] * 3


# -- in the store


def test_where_the_stored_page_differs_it_is_said() -> None:
    damaged = stored([PAGE[0].replace("not ", ""), *PAGE[1:]])

    assert [c.standing for c in checked(note(), page=damaged)] == [Standing.SOURCE_DIFFERS, HOLDS, HOLDS]


def test_a_page_whose_time_was_over_says_nothing_of_its_quotes() -> None:
    [entry] = entries(note().replace("not slower", "slower").encode())

    found = [check.standing for check in check_entry("n", entry, result(), None)]

    assert found == [EDITED, Standing.SOURCE_GONE, Standing.SOURCE_GONE]
    assert Standing.SOURCE_GONE not in FAULTS
    assert EDITED in FAULTS


@pytest.mark.parametrize("text", [note(), note().split("> ")[0]])
def test_an_entry_that_the_store_does_not_know_is_said_even_without_quotes(text: str) -> None:
    [entry] = entries(text.encode())

    for unknown in (None, result().model_copy(update={"verdict": None})):
        found = check_entry("n", entry, unknown, None)
        assert found
        assert {check.standing for check in found} == {Standing.UNKNOWN_RESULT} <= FAULTS


# -- on the web


@pytest.mark.parametrize(
    "there",
    [
        "The authors “say” it’s fast – very fast.",
        'Before it. The authors "say" it\'s fast\u00a0-\u202fvery   fast. After it.',
        "The authors «say» it´s fast \u2014 very fast.",
        "The authors „say“ it's fast - very fast.",
    ],
)
def test_a_site_that_changed_its_typography_still_has_the_quote(there: str) -> None:
    assert on_page('The authors "say" it\'s fast - very fast.', ["First.", there])


@pytest.mark.parametrize(
    "there",
    [
        "The authors say it is slow.",
        "The authors say it is fastidious.",
        "Coauthors say: The authors say it isn't fast.",
        "the authors say it is fast",
        "The authors say it is. fast",
        "",
    ],
)
def test_words_may_not_differ(there: str) -> None:
    assert not on_page("The authors say it is fast", [there])


def test_a_quote_is_not_found_inside_other_words() -> None:
    assert not on_page("authors say", ["Coauthors say so."])
    assert not on_page("authors say", ["The authors saying so."])
    assert on_page("authors say", ['The "authors say" so.'])


def test_powers_are_not_digits() -> None:
    assert not on_page("about 10² rows", ["about 102 rows"])
    assert on_page("about 10² rows", ["It has about 10² rows."])


def test_where_paragraphs_end_may_differ() -> None:
    assert on_page("A heading The text below it.", ["Before.", "A heading", "The text below it.", "After."])


def test_scripts_without_spaces_have_no_word_borders() -> None:
    assert on_page("耐久性が上がった", ["新しい版では耐久性が上がった。"])
    assert on_page("Postgres", ["新しいPostgresの版"])
    assert not on_page("耐久性が下がった", ["新しい版では耐久性が上がった。"])


@given(
    st.lists(st.text(min_size=1, max_size=40).map(lambda t: " ".join(t.split())).filter(bool), min_size=1, max_size=5)
)
def test_a_page_has_each_of_its_own_paragraphs(paragraphs: list[str]) -> None:
    assert all(on_page(paragraph, paragraphs) for paragraph in paragraphs)


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)

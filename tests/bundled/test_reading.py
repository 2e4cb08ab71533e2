from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.bundled.reading import (
    MOST_CHARS,
    PASSAGE_CHARS,
    Subject,
    flattened,
    parts,
    passages,
    pieces,
    question,
    subject,
)
from wikikeeper.policy.paragraphs import sentence_cut

PAGE = "The harbour tram opens in May. " * 5
BRIEF = "New tram lines"
STATE = {"brief": BRIEF, "page": PAGE}
ASKED = "Does `page` help someone who researches the topic in `brief`?"

texts = st.text(st.sampled_from("ab. é字\n"), max_size=3000)


@given(texts)
def test_passages_are_never_empty_and_never_too_long(text: str) -> None:
    found = passages(text)

    assert found
    assert all(0 < len(piece) <= PASSAGE_CHARS for piece in found)
    assert sum(map(len, found)) <= MOST_CHARS + PASSAGE_CHARS


@given(st.lists(st.sampled_from(["One two three.", "Vier fünf sechs!", "七八九。", "ten"]), min_size=1, max_size=40))
def test_no_word_of_a_text_of_usual_length_is_lost(sentences: list[str]) -> None:
    text = "\n\n".join(f"{number} {sentence}" for number, sentence in enumerate(sentences))

    assert flattened(" ".join(passages(text))) == flattened(text)


def test_what_stands_twice_is_read_once() -> None:
    assert passages("The same.\n\nThe same.") == ["The same."]


def test_the_quote_of_a_long_paragraph_is_one_of_the_passages() -> None:
    paragraph = "This sentence has exactly seven words here. " * 30

    assert sentence_cut(paragraph.strip(), PASSAGE_CHARS) in passages(f"Title\n\n{paragraph}\n\nEnd.")


def test_lines_that_only_divide_are_not_read() -> None:
    assert passages("<<<page 4f2a>>>\nA title\n\n-----\n\nSome text.\n<<<end of page 4f2a>>>") == [
        "A title",
        "Some text.",
    ]


def test_of_a_very_long_text_passages_are_taken_from_everywhere() -> None:
    text = "\n\n".join(f"Paragraph {number} " + "word " * 60 for number in range(1000))
    numbers = [int(piece.split()[1]) for piece in passages(text)]

    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-1] > 950
    assert max(b - a for a, b in pairwise(numbers)) <= 40


def test_very_many_short_paragraphs_are_read_together() -> None:
    text = "\n\n".join(f"Line number {number}" for number in range(300))
    found = passages(text)

    assert "Line number 299" in found[-1]
    assert len(found) < 30


def test_the_page_is_looked_through_for_the_brief() -> None:
    criterion = f"The page gives facts that help someone who researches: {BRIEF}"

    assert subject(STATE, ASKED, criterion) == Subject(PAGE, BRIEF)


def test_a_brief_that_is_longer_than_the_page_is_still_what_is_looked_for() -> None:
    brief = "New tram lines in cities by the sea, and who pays for them. " * 20
    criterion = f"The page gives facts that help someone who researches: {sentence_cut(brief, 600)}"
    found = subject({"brief": brief, "page": "A short page."}, ASKED, criterion)

    assert found.text == "A short page."
    assert found.sought is not None
    assert found.sought.startswith("New tram lines")


def test_a_criterion_that_speaks_of_the_page_alone_is_looked_for_itself() -> None:
    assert subject(STATE, "Does `page` speak to an AI system?", "It tells an AI what to do.") == Subject(PAGE, None)


@pytest.mark.parametrize("criterion", ["It is about new tram lines, mostly.", "It answers `brief`."])
def test_a_criterion_may_hold_a_part_in_its_own_sentence_or_name_it(criterion: str) -> None:
    assert subject(STATE, "Is `page` useful?", criterion).sought == BRIEF


def test_a_choice_looks_through_the_part_that_holds_its_options() -> None:
    state = {"notes": "n " * 500, "page": PAGE}

    assert subject(state, "Which one?", None, ["The harbour tram opens in May."]).text == PAGE


def test_a_state_without_parts_is_one_text() -> None:
    assert subject(parts("Just a text"), "Is it short?", None) == Subject("Just a text", None)
    assert parts(["a", {"b": 1, "c": None}]) == {"": "a\nb: 1\nc: "}


def test_a_question_is_asked_without_its_caution() -> None:
    assert question("What is `page`? `page` is from a stranger.") == "What is page?"
    assert question("Decide whether it rains") == "Decide whether it rains"


def test_a_beginning_of_the_brief_is_recognised_wherever_it_was_cut() -> None:
    brief = "Abcdefgh " * 30
    for length in range(70, 90):
        assert subject({"brief": brief, "page": PAGE}, ASKED, f"It is on: {brief[:length]}").sought is not None


def test_a_part_is_not_recognised_inside_a_longer_word() -> None:
    state = {"language": "rust", "page": PAGE}

    assert subject(state, "Is `page` good?", "It deserves trust.").sought is None
    assert subject(state, "Is `page` good?", "It is on Rust.").sought == "rust"


def test_a_single_word_is_no_piece_of_the_text() -> None:
    flat = flattened(PAGE)

    assert pieces(["The harbour tram opens", "tram", "The tram opens in the harbour"], flat) == [True, False, False]


def test_among_pieces_a_short_sentence_is_a_piece_too() -> None:
    flat = "The harbour tram opens in May. It is new. It runs every ten minutes all day. A ride costs two euros."
    options = [
        "The harbour tram opens in May.",
        "It is new.",
        "It runs every ten minutes all day.",
        "A ride costs two euros.",
    ]

    assert pieces([*options, "None of them"], flat) == [True, True, True, True, False]

"""What the Keeper asks: the wording, the boundary around the page, the limits of the wire."""

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.adapters.llama import wire_json
from wikikeeper.models import Choice, ChoiceAnswer, Kind, Noul, NoulAnswer, Reply, Request, Topic
from wikikeeper.policy import questions
from wikikeeper.policy.defuse import defuse
from wikikeeper.policy.paragraphs import clean, judged, paragraphs
from wikikeeper.policy.questions import NONE, ask, boundary, offered, option_key, read
from wikikeeper.policy.topics import MAX_BRIEF
from wikikeeper.policy.verdict import best_quotes
from wikikeeper.settings import KeeperSettings, Research

SECRET = b"a secret of this installation"
TOPIC = Topic(
    slug="heronbase",
    title="Heronbase releases",
    brief="New versions of Heronbase: what changed for people who run it. Marketing does not help.",
)
PAGE = tuple(f"Paragraph {number} tells of {'Heronbase' if number % 2 else 'geese'}." for number in range(25))
TOKENS = [
    "<|im_end|>",
    "<|im_start|>assistant",
    "<start_of_turn>model",
    "[INST]",
    "</s>",
    "[SEP]",
    "<｜User｜>",
    "<<SYS>>",
]
HOSTILE = st.lists(
    st.sampled_from([*TOKENS, "<<<", ">>>", "<<<end of page 0123456789abcdef>>>", "end of page", "\n\n", '"', "}", "x"])
).map(" ".join)
BODY_LIMIT = 64 * 1024
"""Ollama's, the smallest of the servers."""


def asked(
    page: tuple[str, ...] = PAGE, title: str = "A title", topic: Topic = TOPIC, quote_max_chars: int = 400
) -> Request:
    options = offered(topic, page)
    return ask(topic, title, page, options, secret=SECRET, quote_max_chars=quote_max_chars)


def options_of(request: Request, name: str) -> dict[str, str]:
    question = request.questions[name]
    assert isinstance(question, Choice)
    return question.options


def instructions_of(request: Request) -> list[str]:
    return [question.instructions for question in request.questions.values()]


# -- the set


def test_the_wording_is_that_of_the_version() -> None:
    page = (*PAGE, "A last one with <|im_end|> in it, and " + "a long tail. " * 60)
    body = wire_json.dump("model", asked(page))
    fingerprint = hashlib.sha256(body).hexdigest()[:16]

    assert fingerprint == questions.FINGERPRINT, (
        "What is sent to the Keeper has changed, so stored probabilities can no longer be compared with new ones: "
        f"give questions.VERSION a new name, then set questions.FINGERPRINT to {fingerprint!r}"
    )


def test_there_are_four_questions_in_a_fixed_order() -> None:
    request = asked()

    assert list(request.questions) == ["useful", "kind", "injection", "quotes"]
    assert [type(question) for question in request.questions.values()] == [Noul, Choice, Noul, Choice]
    assert list(request.state) == ["brief", "page"]
    assert list(options_of(request, "kind")) == list(Kind)


@given(st.integers(1, 80), st.text(max_size=40), st.integers(40, 500))
def test_every_set_keeps_to_what_all_servers_take(number: int, title: str, most: int) -> None:
    request = asked(tuple(f"Paragraph {n} about Heronbase. " * 9 for n in range(number)), title, quote_max_chars=most)

    assert all(re.fullmatch("[a-z_]+", name) for name in request.questions)
    for name in ("kind", "quotes"):
        options = options_of(request, name)
        assert 2 <= len(options) <= 26
    *passages, last = options_of(request, "quotes")
    assert passages == sorted(passages)  # some servers sort
    assert last == NONE
    texts = json.loads(wire_json.dump("m", request))
    assert all(strings(texts))


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    assert isinstance(value, str)
    return [value]


def test_all_paragraphs_are_options_when_they_are_few_and_twenty_when_not() -> None:
    assert len(options_of(asked(PAGE[:1]), "quotes")) == 2
    assert len(options_of(asked(PAGE[:20]), "quotes")) == 21
    assert len(options_of(asked(PAGE), "quotes")) == 21
    assert list(options_of(asked(), "quotes"))[-1] == NONE


def test_options_stand_in_page_order_and_name_the_best_for_the_brief() -> None:
    chosen = offered(TOPIC, PAGE)

    assert list(chosen) == sorted(chosen)
    assert set(chosen) >= {n for n in range(25) if n % 2}


@given(st.integers(40, 400))
def test_an_option_is_what_would_be_quoted(most: int) -> None:
    page = ("One fact. " * 30, "Another fact. " * 30)

    shown = options_of(asked(page, quote_max_chars=most), "quotes")

    assert len(shown["p01"]) <= most
    assert page[0].startswith(shown["p01"])
    assert shown["p01"].endswith(".")


# -- untrusted text


@given(HOSTILE, st.lists(HOSTILE.filter(clean), min_size=1, max_size=25))
def test_a_page_neither_closes_its_boundary_nor_speaks_as_a_token(title: str, blocks: list[str]) -> None:
    page = paragraphs(blocks)
    mark = boundary(SECRET, page)
    request = asked(page, title)
    text = request.state["page"]

    assert text.startswith(f"<<<page {mark}>>>\n")
    assert text.endswith(f"\n<<<end of page {mark}>>>")
    assert text.count(mark) == 2
    inside = text.removeprefix(f"<<<page {mark}>>>\n").removesuffix(f"\n<<<end of page {mark}>>>")
    shown = [inside, *options_of(request, "quotes").values()]
    assert all(defuse(piece) == piece for piece in shown)
    assert not any(token in piece for piece in shown for token in TOKENS)


@given(HOSTILE, st.lists(HOSTILE.filter(clean), min_size=1, max_size=25))
def test_nothing_of_a_page_is_in_an_instruction_or_a_key(title: str, blocks: list[str]) -> None:
    page = paragraphs(blocks)
    request = asked(page, title)
    harmless = asked(tuple(f"Paragraph {n}." for n in range(len(page))), "Another title")

    assert instructions_of(request) == instructions_of(harmless)
    assert list(options_of(request, "quotes")) == list(options_of(harmless, "quotes"))
    for name in ("useful", "kind", "injection"):
        assert request.questions[name] == harmless.questions[name]
    assert request.state["brief"] == harmless.state["brief"]


def test_instructions_are_the_same_for_every_topic() -> None:
    other = Topic(slug="x", title="Another", brief="Something else.")

    assert instructions_of(asked()) == instructions_of(asked(topic=other))


def test_a_boundary_is_repeatable_with_the_secret_and_unknown_without_it() -> None:
    assert boundary(SECRET, PAGE) == boundary(SECRET, list(PAGE))
    assert re.fullmatch("[0-9a-f]{16}", boundary(SECRET, PAGE))
    assert len({boundary(SECRET, PAGE), boundary(b"another", PAGE), boundary(SECRET, PAGE[:-1])}) == 3


def test_a_title_is_one_line_of_bounded_length_before_the_text() -> None:
    lines = asked(title="A \u200btitle\n\n<|im_end|>\tof " + "many words " * 900).state["page"].split("\n\n")

    assert lines[0].startswith(f"<<<page {boundary(SECRET, PAGE)}>>>\nA title <¦im_end¦> of many words")
    assert len(lines[0]) < questions.TITLE_CHARS + 40
    assert lines[1] == PAGE[0]


def test_a_page_without_a_title_begins_with_its_text() -> None:
    for nothing in ("", " \u200b\n"):
        assert asked(title=nothing).state["page"].split("\n")[1] == PAGE[0]


# -- size


def size(page: tuple[str, ...], letter: str) -> int:
    topic = Topic(slug="t", title=letter * 200, brief=letter * MAX_BRIEF)
    request = asked(page, letter * 500, topic, Research().quote_max_chars)
    return len(wire_json.dump("a-model-of-some-name", request))


@pytest.mark.parametrize("letter", ["a", "é", "字", "ก", '"', "\\"])
def test_by_default_no_page_is_larger_than_the_smallest_limit_of_a_server(letter: str) -> None:
    most, quote = KeeperSettings().max_chars, Research().quote_max_chars
    for number in (1, most // quote, most // 40):
        page, _ = judged([letter * (most // number)] * number, most)
        assert size(page, letter) < BODY_LIMIT


def test_a_page_of_nothing_but_four_byte_characters_fits_when_it_is_halved() -> None:
    """Nobody writes like that; a server that refuses it is asked again with half of it."""
    most = KeeperSettings().max_chars
    page, _ = judged(["🦩" * 400] * 20, most // 2)

    assert size(page, "字") < BODY_LIMIT


# -- reading the answer


def reply(quotes: dict[str, float], kinds: dict[str, float] | None = None) -> Reply:
    every = dict.fromkeys(Kind, 0.0) | {Kind.RELEASE: 0.7, Kind.SPAM: 0.3}
    return Reply(
        model="m",
        answers={
            "useful": NoulAnswer(noul=0.8),
            "kind": ChoiceAnswer(probabilities=kinds or {kind.value: share for kind, share in every.items()}),
            "injection": NoulAnswer(noul=0.1),
            "quotes": ChoiceAnswer(probabilities=quotes),
        },
        seconds=0.1,
    )


def test_an_answer_becomes_a_judgement_by_paragraph_index() -> None:
    judgement = read(reply({"p01": 0.5, "p02": 0.3, NONE: 0.2}), (4, 9))

    assert (judgement.useful, judgement.injection, judgement.kind) == (0.8, 0.1, Kind.RELEASE)
    assert judgement.quotes == pytest.approx({4: 0.5, 9: 0.3})


@given(st.lists(st.integers(1, 100), min_size=2, max_size=21), st.floats(0.98, 1.02))
def test_what_is_missing_in_the_quotes_is_the_share_of_none(weights: list[int], total: float) -> None:
    shares = [weight / sum(weights) * total for weight in weights]
    keys = [*map(option_key, range(len(weights) - 1)), NONE]

    judgement = read(
        reply({key: min(share, 1.0) for key, share in zip(keys, shares, strict=True)}), range(len(weights) - 1)
    )

    assert 1 - sum(judgement.quotes.values()) == pytest.approx(weights[-1] / sum(weights), abs=0.02)
    if max(shares) <= 1:
        assert 1 - sum(judgement.quotes.values()) == pytest.approx(weights[-1] / sum(weights))


def test_rounding_does_not_make_none_lead() -> None:
    """0.33 + 0.33 + 0.32: what rounding took away is nobody's."""
    assert best_quotes(read(reply({"p01": 0.33, "p02": 0.33, NONE: 0.32}), (0, 1))) == (0, 1)

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.adapters.llama.wire_json import Malformed, dump, load
from wikikeeper.models import Choice, ChoiceAnswer, Noul, NoulAnswer, Request

ASKED = Request(
    state={"page": "Grüße 世界"},
    questions={
        "useful": Noul(instructions="Is it?", true="It is.", false="It is not."),
        "kind": Choice(
            instructions="Which?", options={"Release": "A version.", "café": "A place.", "none": "Neither."}
        ),
    },
)
NOTHING = "nothing at all"
"""Stands for a field that is left out."""


def answer(**changed: object) -> dict[str, Any]:
    """A good answer with some top-level fields changed."""
    good: dict[str, Any] = {
        "model": "m",
        "answers": {
            "useful": {"type": "noul", "noul": 0.25},
            "kind": {
                "type": "choice",
                "choice": "Release",
                "probabilities": {"none": 0.2, "Release": 0.5, "café": 0.3},
                "confidence": 7,
            },
        },
        "usage": {"input_tokens": 12, "output_tokens": 0},
    }
    return {key: value for key, value in (good | changed).items() if value is not NOTHING}


def with_answer(question: str, **changed: object) -> bytes:
    whole = answer()
    old = whole["answers"][question]
    whole["answers"][question] = {key: value for key, value in (old | changed).items() if value is not NOTHING}
    return raw(whole)


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


def fault(body: bytes) -> str:
    with pytest.raises(Malformed) as malformed:
        load(body, ASKED)
    return malformed.value.what


def test_a_call_is_what_every_server_takes() -> None:
    body = dump("decider", ASKED)

    assert json.loads(body) == {
        "model": "decider",
        "state": {"page": "Grüße 世界"},
        "questions": {
            "useful": {"type": "noul", "instructions": "Is it?", "criteria": {"true": "It is.", "false": "It is not."}},
            "kind": {
                "type": "choice",
                "instructions": "Which?",
                "criteria": {"Release": "A version.", "café": "A place.", "none": "Neither."},
            },
        },
    }
    assert "Grüße 世界".encode() in body, "not escaped: it would be three times as long"


def test_questions_and_options_are_sent_in_the_order_in_which_they_were_asked() -> None:
    sent = json.loads(dump("m", ASKED))

    assert list(sent["questions"]) == ["useful", "kind"]
    assert list(sent["questions"]["kind"]["criteria"]) == ["Release", "café", "none"]


def test_a_good_answer_is_read_in_the_order_of_the_question() -> None:
    answers = load(raw(answer()), ASKED)

    assert answers.model == "m"
    assert answers.input_tokens == 12
    assert answers.answers == {
        "useful": NoulAnswer(noul=0.25),
        "kind": ChoiceAnswer(probabilities={"Release": 0.5, "café": 0.3, "none": 0.2}),
    }
    kind = answers.answers["kind"]
    assert isinstance(kind, ChoiceAnswer)
    assert list(kind.probabilities) == ["Release", "café", "none"]


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "empty"),
        (b" \r\n", "empty"),
        (b"<!doctype html><p>Sign in", "not_json"),
        (b")]}'\n" + raw(answer()), "not_json"),
        (raw(answer())[:-5], "not_json"),
        (raw(answer()) + raw(answer()), "not_json"),
        (b"\xff\xfe\x00", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"model": ' + b"9" * 5000 + b"}", "not_json"),
        (b"null", "not_object"),
        (b"[]", "not_object"),
        (raw("text"), "not_object"),
        (b'{"model": "m", "model": "m"}', "duplicate_key"),
        (raw(answer())[:-1] + b', "x": {"a": 1, "a": 2}}', "duplicate_key"),
        (raw(answer(x_debug=float("nan"))), "not_finite"),
        (raw(answer(x_debug=float("-inf"))), "not_finite"),
        (raw(answer(answers=NOTHING)), "no_answers"),
        (raw(answer(answers=None)), "no_answers"),
        (raw(answer(answers=[])), "no_answers"),
        (raw({"error": {"message": "no"}}), "no_answers"),
        (raw(answer(answers={})), "missing_question"),
        (raw(answer(answers={"useful": answer()["answers"]["useful"]})), "missing_question"),
        (raw(answer(model=NOTHING)), "no_model"),
        (raw(answer(model=None)), "no_model"),
        (raw(answer(model="")), "no_model"),
        (raw(answer(model=3)), "no_model"),
        (raw(answer(model="\ud800")), "no_model"),
        (raw(answer(model="two\nlines")), "no_model"),
        (raw(answer(model="x" * 501)), "no_model"),
    ],
)
def test_a_body_that_is_no_complete_answer_is_malformed(body: bytes, what: str) -> None:
    assert fault(body) == what


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"type": NOTHING}, "wrong_type"),
        ({"type": "boolean"}, "wrong_type"),
        ({"type": "choice"}, "wrong_type"),
        ({"noul": NOTHING}, "wrong_type"),
        ({"noul": None}, "wrong_type"),
        ({"noul": "0.5"}, "wrong_type"),
        ({"noul": True}, "wrong_type"),
        ({"noul": [0.5]}, "wrong_type"),
        ({"noul": 1.25}, "out_of_range"),
        ({"noul": -0.01}, "out_of_range"),
        ({"noul": 10**400}, "out_of_range"),
        ({"error": "no memory"}, "question_error"),
        ({"error": {"code": 500}, "noul": NOTHING}, "question_error"),
    ],
)
def test_a_yes_or_no_answer_is_one_probability(changed: dict[str, object], what: str) -> None:
    assert fault(with_answer("useful", **changed)) == what


def test_a_number_too_large_for_a_float_is_not_finite() -> None:
    assert fault(with_answer("useful").replace(b"0.25", b"1e999")) == "not_finite"


@pytest.mark.parametrize(
    ("probabilities", "what"),
    [
        (NOTHING, "wrong_type"),
        (None, "wrong_type"),
        ([0.5, 0.3, 0.2], "wrong_type"),
        ({"Release": 0.5, "café": 0.3, "none": None}, "wrong_type"),
        ({"Release": 0.5, "café": 0.3, "none": "0.2"}, "wrong_type"),
        ({"Release": 0.5, "café": 0.5}, "wrong_keys"),
        ({"Release": 0.5, "café": 0.3, "none": 0.2, "more": 0.0}, "wrong_keys"),
        ({"release": 0.5, "café": 0.3, "none": 0.2}, "wrong_keys"),
        ({"Release": 0.5, "cafe\u0301": 0.3, "none": 0.2}, "wrong_keys"),
        ({"Release": 0.5, "café": 0.3, "none": 0.25}, "sum"),
        ({"Release": 0.5, "café": 0.3, "none": 0.15}, "sum"),
        ({"Release": 0.0, "café": 0.0, "none": 0.0}, "sum"),
        ({"Release": 1.5, "café": -0.5, "none": 0.0}, "out_of_range"),
    ],
)
def test_a_choice_is_a_distribution_over_exactly_what_was_offered(probabilities: object, what: str) -> None:
    assert fault(with_answer("kind", probabilities=probabilities)) == what


@pytest.mark.parametrize("none", [0.181, 0.219])
def test_a_choice_may_miss_one_by_two_hundredths(none: float) -> None:
    load(with_answer("kind", probabilities={"Release": 0.5, "café": 0.3, "none": none}), ASKED)


def test_what_single_precision_puts_outside_is_put_back() -> None:
    answers = load(with_answer("useful", noul=1.0000002), ASKED)

    assert answers.answers["useful"] == NoulAnswer(noul=1.0)


@pytest.mark.parametrize(
    "usage", [NOTHING, None, {}, {"input_tokens": -1}, {"input_tokens": "12"}, {"input_tokens": True}]
)
def test_an_odd_account_of_tokens_is_no_fault(usage: object) -> None:
    assert load(raw(answer(usage=usage)), ASKED).input_tokens is None


def test_what_nobody_asked_for_is_ignored() -> None:
    whole = answer(latency_ms=3)
    whole["answers"]["more"] = {"type": "noul", "noul": 2}
    whole["answers"]["useful"]["error"] = None

    assert load(raw(whole), ASKED).answers == load(raw(answer()), ASKED).answers


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "noul", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(body=st.binary(max_size=200) | JSON.map(raw))
def test_no_body_raises_anything_but_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        load(body, ASKED)


@given(useful=JSON, kind=JSON, model=JSON)
def test_whatever_is_accepted_is_sound(useful: object, kind: object, model: object) -> None:
    whole = answer(model=model)
    whole["answers"]["useful"]["noul"] = useful
    whole["answers"]["kind"]["probabilities"] = kind
    try:
        answers = load(raw(whole), ASKED)
    except Malformed:
        return
    read = answers.answers["useful"]
    assert isinstance(read, NoulAnswer)
    assert 0 <= read.noul <= 1
    assert answers.model

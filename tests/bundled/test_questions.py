import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.bundled.questions import MOST_QUESTIONS, Fault, Invalid, Unsupported, parse

NOUL = {"type": "noul", "instructions": "Is it?"}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
maybe_question = st.fixed_dictionaries(
    {"type": st.sampled_from(["noul", "choice", "score", "other"]) | anything},
    optional={"instructions": anything, "criteria": anything},
)


def body(**changes: object) -> bytes:
    return json.dumps({"model": "any", "state": "A text", "questions": {"q": NOUL}} | changes).encode()


@given(st.binary(max_size=40) | anything.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_understood_or_refused(given_body: bytes) -> None:
    with pytest.raises(Invalid):
        parse(given_body)


@given(st.dictionaries(st.text(max_size=5), maybe_question | anything, max_size=3), anything)
def test_any_questions_are_understood_or_refused_with_a_place(questions: dict[str, object], state: object) -> None:
    faults: list[Fault] = []
    understood: list[str] = []
    try:
        understood = list(parse(body(state=state, questions=questions)).questions)
    except Invalid as refused:
        faults = list(refused.faults)

    assert bool(faults) != (understood == list(questions) and bool(questions))
    assert all(fault["loc"][0] == "body" and fault["msg"] and fault["type"] for fault in faults)


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ({"type": "boolean"}, ["type"]),
        ({"type": "noul", "criteria": {"yes": "It is."}}, ["criteria"]),
        ({"type": "noul", "criteria": {"true": 1}}, ["criteria", "true"]),
        ({"type": "choice", "criteria": {}}, ["criteria"]),
        ({"type": "choice", "criteria": {"a": 1}}, ["criteria", "a"]),
        ({"type": "choice", "criteria": {str(number): None for number in range(256)}}, ["criteria"]),
        ({"type": "score", "criteria": {"0": "Low"}}, ["criteria"]),
        ({"type": "score", "criteria": ["Low", None]}, ["criteria", 1]),
        ({"type": "score", "criteria": ["Level"] * 11}, ["criteria"]),
        ({"type": "noul", "instructions": 5}, ["instructions"]),
    ],
)
def test_each_fault_says_where_it_is(question: dict[str, Any], place: list[str | int]) -> None:
    with pytest.raises(Invalid) as refused:
        parse(body(questions={"q": question}))

    assert [fault["loc"] for fault in refused.value.faults] == [["body", "questions", "q", *place]]


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        parse(json.dumps({"model": 7, "questions": {"q": {"type": "?"}}}).encode())

    assert len(refused.value.faults) == 3


@pytest.mark.parametrize("given_body", [b'{"state": NaN}', b"\xff", b"", b"[" * 100_000])
def test_what_is_not_json_is_refused(given_body: bytes) -> None:
    with pytest.raises(Invalid):
        parse(given_body)


def test_too_many_questions_are_refused() -> None:
    with pytest.raises(Invalid):
        parse(body(questions={str(number): NOUL for number in range(MOST_QUESTIONS + 1)}))


def test_the_model_may_be_left_out() -> None:
    assert parse(b'{"state": "", "questions": {"q": {"type": "noul"}}}').state == ""


def test_images_are_not_ignored_but_refused() -> None:
    with pytest.raises(Unsupported):
        parse(body(images=["data:image/png;base64,AAAA"]))

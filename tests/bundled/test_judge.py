import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bundled.words import WordEncoder

from wikikeeper.bundled.calibration import CALIBRATION
from wikikeeper.bundled.judge import Judge
from wikikeeper.bundled.questions import Asked, parse

ENCODER = WordEncoder()
JUDGE = Judge(ENCODER, CALIBRATION)
PAGE = "Trams are green here, all of them.\n\nBread is baked at night in this town.\n\nThe museum is closed in winter."
QUESTIONS: dict[str, Any] = {
    "bread": {"type": "noul", "instructions": "Is it about bread?", "criteria": {"true": "Bread is baked"}},
    "what": {"type": "choice", "instructions": "What is it?", "criteria": {"zebra": "A zebra", "bread": None, "a": ""}},
    "pick": {
        "type": "choice",
        "instructions": "Which passage of `page` is on `brief`?",
        "criteria": {f"p{i}": text for i, text in enumerate(PAGE.split("\n\n"))} | {"none": "None of them."},
    },
    "how": {"type": "score", "instructions": "How dark?", "criteria": ["At night", "In winter", "Green"]},
}


def asked(questions: dict[str, Any] = QUESTIONS, **state: str) -> Asked:
    state = state or {"brief": "baked bread", "page": PAGE}
    return parse(json.dumps({"state": state, "questions": questions}).encode())


def test_every_choice_adds_up_to_one_and_keeps_its_order() -> None:
    answers = JUDGE.answer(asked())["answers"]

    assert list(answers) == list(QUESTIONS)
    for name in ("what", "pick"):
        assert list(answers[name]["probabilities"]) == list(QUESTIONS[name]["criteria"])
        assert answers[name]["choice"] == max(answers[name]["probabilities"], key=answers[name]["probabilities"].get)
    for name in ("what", "pick", "how"):
        assert math.fsum(answers[name]["probabilities"].values()) == pytest.approx(1)
        assert 0 <= answers[name]["confidence"] <= 1


def test_the_piece_on_the_topic_is_picked() -> None:
    assert JUDGE.answer(asked())["answers"]["pick"]["choice"] == "p1"


def test_a_score_is_the_mean_of_its_levels() -> None:
    how = JUDGE.answer(asked())["answers"]["how"]

    assert how["legend"] == {"0": "At night", "1": "In winter", "2": "Green"}
    assert how["score"] == pytest.approx(how["probabilities"]["1"] + 2 * how["probabilities"]["2"])


@given(st.permutations(list(QUESTIONS)), st.integers(min_value=1, max_value=4))
def test_answers_depend_on_no_id_no_order_and_no_other_question(order: list[str], count: int) -> None:
    renamed = {f"other {name}": QUESTIONS[name] for name in order[:count]}
    whole, some = JUDGE.answer(asked())["answers"], JUDGE.answer(asked(renamed))["answers"]

    assert some == {f"other {name}": whole[name] for name in order[:count]}


def test_each_paragraph_is_read_once_however_many_questions_are_about_it() -> None:
    ENCODER.read.clear()
    JUDGE.answer(asked())

    assert sorted(ENCODER.read) == sorted([*PAGE.split("\n\n"), "None of them."])


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_gets_finite_probabilities(brief: str, page: str) -> None:
    answers = JUDGE.answer(asked(brief=brief, page=page))["answers"]

    assert 0 <= answers["bread"]["noul"] <= 1
    assert all(math.isfinite(p) for name in ("what", "pick", "how") for p in answers[name]["probabilities"].values())


def test_a_noul_without_criteria_looks_for_the_question() -> None:
    question = {"q": {"type": "noul", "instructions": "Bread baked at night?"}}
    near, far = (JUDGE.answer(asked(question, page=text))["answers"]["q"]["noul"] for text in (PAGE, "Stars shine."))

    assert near > far


def test_one_option_is_certain() -> None:
    question = {"q": {"type": "choice", "instructions": "Which?", "criteria": {"only": None}}}
    answer = JUDGE.answer(asked(question))["answers"]["q"]

    assert answer == {"type": "choice", "choice": "only", "probabilities": {"only": 1.0}, "confidence": 1.0}

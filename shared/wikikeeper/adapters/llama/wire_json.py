"""Requests and answers of `POST /v1/systemone` as JSON.

Out goes what every server takes. In comes only what can be trusted with a decision: an answer that is not complete,
finite and of the right types is no answer, however much of it there is.
"""

import json
import math
from dataclasses import dataclass
from typing import Any, NoReturn

from wikikeeper.models import Answer, Choice, ChoiceAnswer, Noul, NoulAnswer, Question, Request

LONGEST_MODEL = 500
"""Characters of a model's name: the path of a file, at the most."""
SUM_TOLERANCE = 0.02
"""How far the probabilities of a choice may be from 1 together. Servers round to 4 places: 26 options err by 0.0013."""

RANGE_TOLERANCE = 1e-6
"""How far a probability may be outside 0 to 1: what single-precision sums do. It is put back inside."""


class Malformed(ValueError):
    """An answer that breaks the wire's promises. Holds no text of the answer: it could repeat the page."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(f"{what}: {detail}")
        self.what = what
        """Short and stable, such as "missing_question"."""
        self.detail = detail


@dataclass(frozen=True)
class Answers:
    """What a checked body says."""

    model: str
    answers: dict[str, Answer]
    input_tokens: int | None


def dump(model: str, request: Request) -> bytes:
    """The body of a call. Not escaped to ASCII: six bytes for each letter would pass Ollama's 64 KiB soon."""
    questions = {name: _question(question) for name, question in request.questions.items()}
    body = {"model": model, "state": request.state, "questions": questions}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def load(body: bytes, request: Request) -> Answers:
    """Check the body of a 200 against what was asked.

    Fields that nobody asked for are ignored, and so is `confidence`, which every server computes in its own way.
    Raises Malformed.
    """
    reply = parse(body)
    if not isinstance(reply, dict):
        raise Malformed("not_object", "the answer is JSON, but no object")
    answers = reply.get("answers")
    if not isinstance(answers, dict):
        raise Malformed("no_answers", "the answer has no object `answers`")
    checked = {name: _answer(name, question, answers) for name, question in request.questions.items()}
    model = reply.get("model")
    # Printable leaves out lone surrogates too, which no store can keep.
    if not isinstance(model, str) or not model.isprintable() or not 0 < len(model) <= LONGEST_MODEL:
        raise Malformed("no_model", "the answer does not say which model answered")
    return Answers(model, checked, _input_tokens(reply.get("usage")))


def parse(body: bytes) -> object:
    """JSON in the strict sense: UTF-8, no NaN or Infinity, no key twice in one object. Raises Malformed."""
    if not body.strip():
        raise Malformed("empty", "the body is empty")
    try:
        return json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_not_finite)
    except Malformed:
        raise
    except (ValueError, RecursionError):
        # Without its cause: JSONDecodeError carries the whole document, which may repeat the page.
        raise Malformed("not_json", "the body is not JSON") from None


def _question(question: Question) -> dict[str, Any]:
    criteria: dict[str, str]
    match question:
        case Noul():
            criteria = {"true": question.true, "false": question.false}
        case Choice():
            criteria = question.options
    return {"type": question.type, "instructions": question.instructions, "criteria": criteria}


def _answer(name: str, question: Question, answers: dict[str, Any]) -> Answer:
    if name not in answers:
        raise Malformed("missing_question", f"`{name}` was not answered")
    answer = answers[name]
    if not isinstance(answer, dict):
        raise Malformed("wrong_type", f"the answer to `{name}` is no object")
    if answer.get("error") is not None:
        raise Malformed("question_error", f"the server reports an error for `{name}`")
    if answer.get("type") != question.type:
        raise Malformed("wrong_type", f"the answer to `{name}` is no {question.type}")
    match question:
        case Noul():
            return NoulAnswer(noul=_probability(name, answer.get("noul")))
        case Choice():
            return ChoiceAnswer(probabilities=_distribution(name, question, answer.get("probabilities")))


def _distribution(name: str, question: Choice, given: object) -> dict[str, float]:
    if not isinstance(given, dict):
        raise Malformed("wrong_type", f"`{name}` has no object `probabilities`")
    if given.keys() != question.options.keys():
        raise Malformed("wrong_keys", f"`{name}` answers other options than those that were offered")
    probabilities = {option: _probability(name, given[option]) for option in question.options}
    total = math.fsum(probabilities.values())
    if abs(total - 1) > SUM_TOLERANCE:
        raise Malformed("sum", f"the probabilities of `{name}` add up to {total:.3f}")
    return probabilities


def _probability(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Malformed("wrong_type", f"a probability of `{name}` is no number")
    if isinstance(value, float) and not math.isfinite(value):
        raise Malformed("not_finite", f"a probability of `{name}` is too large to be a number")
    if not -RANGE_TOLERANCE <= value <= 1 + RANGE_TOLERANCE:
        raise Malformed("out_of_range", f"a probability of `{name}` is outside 0 to 1")
    return min(1.0, max(0.0, float(value)))


def _input_tokens(usage: object) -> int | None:
    tokens = usage.get("input_tokens") if isinstance(usage, dict) else None
    if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not 0 <= tokens < 1 << 53:
        return None  # beside the answer: a server that counts oddly still answers
    return int(tokens)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise Malformed("duplicate_key", "a key occurs twice in one object")
    return unique


def _not_finite(_: str) -> NoReturn:
    raise Malformed("not_finite", "the body holds NaN or Infinity")

"""The questions of a request, checked: what `POST /v1/systemone` takes, and the faults of what it does not."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

MOST_QUESTIONS = 64
MOST_OPTIONS = 255
MOST_LEVELS = 10

Fault = dict[str, Any]
"""One entry of a validation error: `loc`, `msg`, `type`."""

Json = str | dict[str, Any] | list[Any]


class Invalid(Exception):
    """The body can't be answered. `faults` says where and why, as the hosted service does."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault["msg"] for fault in faults))
        self.faults = faults


class Unsupported(Exception):
    """A part of the wire that this judge does not have."""


@dataclass(frozen=True)
class Question:
    """One checked question."""

    type: Literal["noul", "choice", "score"]
    instructions: Json | None
    criteria: Mapping[str, Json | None]
    """noul: "true" and "false", where given. choice: options, described or not. score: "0" to "n-1"."""


@dataclass(frozen=True)
class Asked:
    """One checked request. The name of the model is not looked at: there is only one."""

    state: Json
    questions: Mapping[str, Question]


def parse(body: bytes) -> Asked:
    """Check a body. Raises Invalid with every fault that was found, or Unsupported."""
    try:
        given = json.loads(body.decode("utf-8"), parse_constant=_not_finite)
    except (ValueError, RecursionError):
        raise Invalid(_fault([], "The body is not JSON", "json_invalid")) from None
    if not isinstance(given, dict):
        raise Invalid(_fault([], "The body should be an object", "dict_type"))
    if faults := list(_faults(given)):
        raise Invalid(*faults)
    if given.get("images") or given.get("videos"):
        raise Unsupported("This model reads text only, no images or videos")
    return Asked(given["state"], {name: _question(asked) for name, asked in given["questions"].items()})


def _question(asked: dict[str, Any]) -> Question:
    criteria = asked.get("criteria") or {}
    if isinstance(criteria, list):
        criteria = {str(level): described for level, described in enumerate(criteria)}
    return Question(asked["type"], asked.get("instructions"), criteria)


def _faults(given: dict[str, Any]) -> Iterator[Fault]:
    if "state" not in given:
        yield _fault(["state"], "The state is missing", "missing")
    elif not _is_json(given["state"]):
        yield _fault(["state"], "The state should be a text, an object or a list", "union_type")
    if not isinstance(given.get("model", ""), str):
        yield _fault(["model"], "The model should be a name", "string_type")
    asked = given.get("questions")
    if not isinstance(asked, dict) or not asked:
        yield _fault(
            ["questions"], "There should be at least one question", "missing" if asked is None else "too_short"
        )
    elif len(asked) > MOST_QUESTIONS:
        yield _fault(["questions"], f"There are more than {MOST_QUESTIONS} questions", "too_long")
    else:
        for name, question in asked.items():
            yield from _faults_of(["questions", name], question)


def _faults_of(loc: list[str | int], asked: object) -> Iterator[Fault]:
    if not isinstance(asked, dict):
        yield _fault(loc, "A question should be an object", "dict_type")
        return
    instructions, criteria = asked.get("instructions"), asked.get("criteria")
    if instructions is not None and not _is_json(instructions):
        yield _fault([*loc, "instructions"], "Instructions should be a text, an object or a list", "union_type")
    match asked.get("type"):
        case "noul":
            yield from _faults_of_noul([*loc, "criteria"], criteria)
        case "choice":
            yield from _faults_of_choice([*loc, "criteria"], criteria)
        case "score":
            yield from _faults_of_score([*loc, "criteria"], criteria)
        case _:
            yield _fault([*loc, "type"], "The type should be noul, choice or score", "union_tag_invalid")


def _faults_of_noul(loc: list[str | int], criteria: object) -> Iterator[Fault]:
    if criteria is None:
        return
    if not isinstance(criteria, dict) or criteria.keys() - {"true", "false"}:
        yield _fault(loc, 'Criteria of a noul should have "true" and "false", or one of them', "model_type")
        return
    for side, described in criteria.items():
        if described is not None and not _is_json(described):
            yield _fault([*loc, side], "A criterion should be a text, an object or a list", "union_type")


def _faults_of_choice(loc: list[str | int], criteria: object) -> Iterator[Fault]:
    if not isinstance(criteria, dict) or not criteria:
        yield _fault(loc, "A choice should have options", "missing" if criteria is None else "too_short")
        return
    if len(criteria) > MOST_OPTIONS:
        yield _fault(loc, f"There are {len(criteria)} options, this model takes at most {MOST_OPTIONS}", "too_long")
    for option, described in criteria.items():
        if described is not None and not _is_json(described):
            yield _fault([*loc, option], "A description should be a text, an object or a list", "union_type")


def _faults_of_score(loc: list[str | int], criteria: object) -> Iterator[Fault]:
    if not isinstance(criteria, list) or not criteria:
        yield _fault(loc, "A score should have a list of levels", "list_type")
        return
    if len(criteria) > MOST_LEVELS:
        yield _fault(loc, f"There are {len(criteria)} levels, this model takes at most {MOST_LEVELS}", "too_long")
    for level, described in enumerate(criteria):
        if not _is_json(described):
            yield _fault([*loc, level], "A level should be a text, an object or a list", "union_type")


def _fault(loc: list[str | int], message: str, kind: str) -> Fault:
    return {"loc": ["body", *loc], "msg": message, "type": kind}


def _is_json(value: object) -> bool:
    return isinstance(value, str | dict | list)


def _not_finite(_: str) -> NoReturn:
    raise ValueError

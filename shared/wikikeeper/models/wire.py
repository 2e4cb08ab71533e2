"""The System One wire (`POST /v1/systemone`) as types: typed questions about a state, probabilities back.

Kept to what llama-server, Ollama, sparrow-decider and the hosted API all take: non-empty strings, 2 to 26 options, ids of [a-z_]+,
no reliance on `confidence`.
"""

from typing import Annotated, Literal

from pydantic import Field

from wikikeeper.models.values import Probability, Value

QuestionId = Annotated[str, Field(pattern=r"^[a-z_]+$")]
Text = Annotated[str, Field(min_length=1)]


class Noul(Value):
    """A yes/no question. The answer is the probability of yes."""

    type: Literal["noul"] = "noul"
    instructions: Text
    true: Text
    false: Text


class Choice(Value):
    """Pick one of 2 to 26 described options. The answer is a probability for each."""

    type: Literal["choice"] = "choice"
    instructions: Text
    options: dict[str, Text] = Field(min_length=2, max_length=26)


Question = Annotated[Noul | Choice, Field(discriminator="type")]


class Request(Value):
    """One call: named parts of the state, and the questions in their fixed order."""

    state: dict[str, Text] = Field(min_length=1, repr=False)
    questions: dict[QuestionId, Question] = Field(min_length=1, repr=False)


class NoulAnswer(Value):
    type: Literal["noul"] = "noul"
    noul: Probability


class ChoiceAnswer(Value):
    type: Literal["choice"] = "choice"
    probabilities: dict[str, Probability]
    """One per option that was asked, adding up to 1 within 0.02."""


Answer = Annotated[NoulAnswer | ChoiceAnswer, Field(discriminator="type")]


class Reply(Value):
    """A checked answer: every question answered in its own type, every number finite."""

    model: str
    """What the server says answered; pinned in the run record."""
    answers: dict[QuestionId, Answer]
    input_tokens: int | None = None
    seconds: float
    """Wall-clock time of the call, retries included."""
    attempts: int = 1


class ModelState(Value):
    """Can the model be asked now?"""

    state: Literal["healthy", "waking", "unhealthy"]
    cause: str = ""
    """Short and stable, to alert once per cause: "unreachable", "model_missing", "model_failed", "wrong_kind",
    "loading", "sleeping", "unloaded", "unauthorized"."""
    detail: str = ""
    """One sentence for a person: what was seen and how to mend it."""

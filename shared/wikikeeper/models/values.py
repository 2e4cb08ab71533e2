"""What all value types share, and the small closed vocabularies of the domain."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Value(BaseModel):
    """A frozen value: equal by content, refused when a field is unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Kind(StrEnum):
    """What sort of page a result is, as the Keeper sees it."""

    RELEASE = "release"
    ANNOUNCEMENT = "announcement"
    DISCUSSION = "discussion"
    TUTORIAL = "tutorial"
    OPINION = "opinion"
    BEGINNER_QUESTION = "beginner_question"
    SPAM = "spam"
    UNRELATED = "unrelated"


class Trigger(StrEnum):
    """Why a model was called. Later jobs add theirs."""

    TRIAGE = "Triage"


class Lane(StrEnum):
    """Who asks for a permit. Lanes order callers; today only the Keeper asks."""

    KEEPER = "keeper"
    AUTHOR = "author"
    REVIEWER = "reviewer"
    EXPLORER = "explorer"
    PLEB = "pleb"

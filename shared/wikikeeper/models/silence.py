"""Work that went silent, what reaches a person of it, and how the model server has been."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from wikikeeper.models.values import Value


class Stage(StrEnum):
    """Where unfinished work stands. Only silent work is touched."""

    QUEUED = "queued"
    """On its way for a running cycle, to be claimed."""
    AT_GATE = "at the gate"
    """Claimed and being fetched or read, or waiting for a permit: no call was begun."""
    CALLING = "calling"
    """Claimed, with a call that was begun."""
    SILENT = "silent"
    """Its lease ran out, or nothing was heard of it for longer than anything takes."""


class Action(StrEnum):
    """What the reaper does about a silence."""

    RECOVER = "recover"
    """Raise its counter, then send it again under a new fence."""
    GIVE_UP = "give up"
    """No call: tell a person, once."""
    LEAVE = "leave"
    """It was given up, or is in its cooldown: only a person or real activity starts it again."""


class Silence(Value):
    """How often a cycle or a note was found silent since something was last heard of it. Results count on themselves."""

    subject: str
    """`cycle:<id>` or `note:<topic>`."""
    nonresponses: int = Field(ge=0)
    since: datetime
    """When this silence was first found: it names the silence."""
    counted: datetime
    """When it was last found and sent again."""
    cooldown_until: datetime | None = None
    """Given up: nothing is sent before, and nothing by itself after."""


class Escalation(Value):
    """Silent work that reached a person, exactly once. Its id is the silence's: two reapers make one record."""

    id: str
    subject: str
    """`result:<id>`, `cycle:<id>` or `note:<topic>`."""
    topic: str
    detail: str
    """One sentence for a person: what went silent how often, and what to do."""
    raised: datetime
    delivered: datetime | None = None
    """When it was first told to every place that is set up; until then each sweep tells it again, with its id."""


class Condition(StrEnum):
    """How a model is, in the words of its history."""

    HEALTHY = "healthy"
    WAKING = "waking"
    LOADING = "loading"
    MODEL_MISSING = "model missing"
    WRONG_KIND = "wrong kind"
    UNREACHABLE = "unreachable"
    REFUSING = "refusing"
    """It answers, but not us: key, permission, redirect, a model that failed to load."""


class ModelSighting(Value):
    """From when on a model was seen in a condition."""

    model: str
    condition: Condition
    cause: str
    detail: str
    since: datetime

"""What verified bodies say. Ours are held to every field; of GitHub's and Slack's a few fields are read, the rest is theirs."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from wikikeeper.models import Value
from wikikeeper.models.topics import Slug
from wikikeeper.policy.identity import digest
from wikikeeper.policy.urls import wellformed
from wikikeeper.web.hook_door import HookRefused

MOST_URLS = 100
"""In one delivery: half of what a cycle may judge, and stored well within the second that an answer may take."""
FAULTS_SAID = 5
LONGEST_NAME = 60
"""Characters of a field's name that are repeated to the sender."""
LATER = ("extract", "article")
"""Kinds that come with the jobs that they start."""


def _address(raw: object, handler: ValidatorFunctionWrapHandler) -> str:
    text = handler(raw)
    assert isinstance(text, str)
    return wellformed(text)


Urls = Annotated[
    tuple[Annotated[str, WrapValidator(_address), Field(json_schema_extra={"format": "uri"})], ...],
    Field(min_length=1, max_length=MOST_URLS, description="http(s) addresses of pages. Never text."),
]


class AskCycle(Value):
    """Start a cycle of a topic now, as its schedule would."""

    kind: Literal["cycle"]
    topic: Slug


class PushLinks(Value):
    """Put addresses among those that the topic's next cycle judges."""

    kind: Literal["links"]
    topic: Slug
    urls: Urls


class PushResults(Value):
    """Judge these addresses for a topic now, without asking its sources."""

    kind: Literal["result"]
    topic: Slug
    urls: Urls


Ask = AskCycle | PushLinks | PushResults
ASKS: dict[str, type[Ask]] = {"cycle": AskCycle, "links": PushLinks, "result": PushResults}


class _Theirs(BaseModel):
    """A part of somebody else's body."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Kinded(_Theirs):
    kind: str = ""


class Repository(_Theirs):
    full_name: str = Field(max_length=200)
    default_branch: str = Field(max_length=300)


class _Release(_Theirs):
    draft: bool = False


class Commit(_Theirs):
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


class ReleaseEvent(_Theirs):
    action: str
    repository: Repository
    release: _Release

    @property
    def counts(self) -> bool:
        """One release comes as several events; only this one comes once, with it there to be read."""
        return self.action == "published" and not self.release.draft


class PushEvent(_Theirs):
    ref: str
    repository: Repository
    deleted: bool = False
    commits: tuple[Commit, ...]

    @property
    def counts(self) -> bool:
        return not self.deleted and self.ref == f"refs/heads/{self.repository.default_branch}"

    @property
    def changed(self) -> list[str]:
        return [path for commit in self.commits for path in (*commit.added, *commit.removed, *commit.modified)]


class _Item(_Theirs):
    type: str = ""
    channel: str | None = None
    ts: str | None = None


class _SlackEvent(_Theirs):
    type: str
    user: str | None = None
    reaction: str | None = None
    item: _Item | None = None
    event_ts: str | None = None


class _Authorization(_Theirs):
    user_id: str | None = None
    is_bot: bool | None = None


class SlackBody(_Theirs):
    type: str
    challenge: str | None = Field(default=None, max_length=1000)
    team_id: str | None = None
    event: _SlackEvent | None = None
    authorizations: tuple[_Authorization, ...] = ()

    @property
    def reaction(self) -> "Reaction | None":
        """What it says of a reaction to a message; None: it is about something else."""
        event = self.event
        if self.type != "event_callback" or event is None or event.item is None or event.item.type != "message":
            return None
        if event.type not in ("reaction_added", "reaction_removed"):
            return None
        channel, message = event.item.channel, event.item.ts
        if not (self.team_id and event.user and event.reaction and event.event_ts and channel and message):
            return None
        return Reaction(
            key=digest("slack", event.type, self.team_id, channel, message, event.user, event.reaction, event.event_ts),
            added=event.type == "reaction_added",
            team=self.team_id,
            channel=channel,
            message=message,
            user=event.user,
            reaction=event.reaction,
        )

    @property
    def bots(self) -> set[str]:
        """The members that are our own app."""
        return {each.user_id for each in self.authorizations if each.is_bot and each.user_id}


class Reaction(Value):
    """Somebody reacted to a message, or took it back."""

    key: str
    """The same for all copies: Slack sends some twice, with other event ids."""
    added: bool
    team: str
    channel: str
    message: str
    """The message's time stamp, which is its name within the channel."""
    user: str
    reaction: str


T = TypeVar("T", bound=BaseModel)


def read(body: bytes, shape: type[T]) -> T:
    """Raises HookRefused (422), naming the fields that are wrong."""
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_context=False, include_url=False)
        # A list that lost its bad items is also "too short": what is wrong within says enough.
        holders = {fault["loc"][:end] for fault in faults for end in range(len(fault["loc"]))}
        faults = [fault for fault in faults if fault["loc"] not in holders]
        raise HookRefused(
            422,
            "bad_body",
            "; ".join(_said(fault["loc"], fault["type"], fault["msg"]) for fault in faults[:FAULTS_SAID]),
        ) from None


def read_ask(body: bytes) -> Ask:
    """A body of `POST /hooks/cycle`. Raises HookRefused (422)."""
    kind = read(body, _Kinded).kind
    if kind in LATER:
        raise HookRefused(422, "later_kind", f"kind {kind} is not known to this version; known are {', '.join(ASKS)}")
    if kind not in ASKS:
        raise HookRefused(422, "unknown_kind", f"kind must be one of {', '.join(ASKS)}")
    return read(body, ASKS[kind])


def _said(where: Sequence[int | str], fault: str, message: str) -> str:
    name = ".".join(map(str, where))[:LONGEST_NAME]
    if fault == "json_invalid":
        return "not valid JSON"
    if fault == "extra_forbidden":
        return f"{name!a} is no field of this kind: hooks take addresses, never text"
    message = message.removeprefix("Value error, ")  # what pydantic sets before a reason of ours
    return f"{name}: {message}" if name else message

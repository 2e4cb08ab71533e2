"""Work in progress: results, cycles, claims, runs, permits."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from pydantic import Field

from wikikeeper.models.pages import Origin
from wikikeeper.models.values import Kind, Lane, Trigger, Value
from wikikeeper.models.verdicts import Judgement, Verdict


class ResultState(StrEnum):
    WAITING = "waiting"
    JUDGING = "judging"
    KEPT = "kept"
    DISCARDED = "discarded"
    FOLDED = "folded"
    PARKED = "parked"
    WITHDRAWN = "withdrawn"


TERMINAL = frozenset({ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED, ResultState.WITHDRAWN})
"""States that nothing leaves. Parked is left by `retry` alone."""


class FailureKind(StrEnum):
    """Whose fault a failure was: that decides whether it counts against the page."""

    FETCH = "fetch"
    """The page could not be reached this time (DNS, connect, deadline, 429, 5xx)."""
    ANSWER = "answer"
    """The model's answer to this page was unusable or late."""
    REFUSED = "refused"
    """The server refuses this page for good, even halved: too long or invalid."""
    SERVER = "server"
    """The server, not the page: busy, unreachable, stopped."""
    SILENT = "silent"
    """Whoever worked on it was not heard of again, as often as the reaper allows."""


class Failure(Value):
    """One failed try at a result, kept as its history."""

    at: datetime
    cycle: str
    kind: FailureKind
    cause: str
    """Short and stable: "dns", "http_503", "malformed:missing_question", "too_long"."""
    detail: str = ""


class Result(Value):
    """One URL of one topic in one revision, from found to verdict."""

    id: str
    """Hash of topic, canonical URL and revision: the same find gives the same id."""
    topic: str
    url: str
    """As found; this is what is fetched and what notes link to."""
    canonical: str
    revision: int = Field(ge=1)
    title: str = ""
    origin: Origin
    published: datetime | None = None
    found: datetime
    state: ResultState = ResultState.WAITING
    cycle: str | None = None
    """The cycle on whose behalf it is on its way; None while it waits for the next one."""
    fence: int = 0
    lease_until: datetime | None = None
    call_fence: int | None = None
    """Fence of the last call that is known to have been begun under a claim that has ended; the run's id is made of it."""
    call_started: datetime | None = None
    """When that call began."""
    nonresponses: int = 0
    """How often its claims went silent since an outcome was last recorded. Being sent or claimed again changes nothing."""
    attempts: int = 0
    """Failures that were the page's own, counted when cycles close."""
    not_before: datetime | None = None
    failures: tuple[Failure, ...] = ()
    settled_cycle: str | None = None
    """The last cycle whose failures were counted at its close: a close that is repeated counts nothing twice."""
    text_hash: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    finished: datetime | None = None
    verdict: Verdict | None = None
    folded_into: str | None = None
    """For folded results: the id of the result whose text it repeats."""
    noted: str | None = None
    """Key of the note that holds it."""


class Claim(Value):
    """The right to work on one result until the lease ends. Writes that finish it check the fence."""

    result: Result
    fence: int
    until: datetime
    called: datetime | None = None
    """When the call under this fence began; None: none did."""


class CycleState(StrEnum):
    OPEN = "open"
    DRAINING = "draining"
    DONE = "done"
    SKIPPED = "skipped"
    STOPPED = "stopped"
    EXPIRED = "expired"
    """Its worker went silent while it searched: it is to be begun again, by whoever gets its tick."""


RUNNING_CYCLES = frozenset({CycleState.OPEN, CycleState.DRAINING})
UNFINISHED_CYCLES = RUNNING_CYCLES | {CycleState.EXPIRED}
"""Listed by stores without looking at history; all others are history."""


class Cycle(Value):
    """One tick of one topic."""

    id: str
    """`<topic>#<tick>`: a tick runs once."""
    topic: str
    tick: str
    """The tick's UTC minute, or `manual-<UTC time>`."""
    state: CycleState
    started: datetime
    lease_until: datetime | None = None
    fence: int = 1
    ended: datetime | None = None
    reason: str | None = None
    """Why it was skipped or stopped: the model's state or the error that stopped it."""
    problems: tuple[str, ...] = ()
    """What went wrong without ending it: `search_outage:<cause>: <detail>`, `feed_failed:...`, `missed_ticks:3`."""
    found: int = 0
    new: int = 0
    sent: int = 0
    cap: int
    calls: int = 0
    """Model calls counted, repeats included. Never more than `cap`."""
    active: datetime | None = None
    """When it was last heard of: its search ended, or the last of them was counted."""
    cap_reached: bool = False
    """More waited than was sent, or a call was refused its count: the rest stays waiting."""
    fetched: bool = False
    """Some page came over the network: so it was there, and a failed fetch says something of its page."""
    answered: bool = False
    """Some call got a good answer: so the server was well, and a bad answer says something of its page."""
    refusals: int = 0
    """Permanent errors with no good answer between them."""


RunOutcome = Literal["answered", "failed", "lost", "superseded"]


class Run(Value):
    """One model call, as it is kept for people who ask why."""

    id: str
    """`<result id>-<fence of the call>`."""
    trigger: Trigger
    topic: str
    subject: str
    """What was judged: the result's id."""
    title: str = ""
    url: str = ""
    cycle: str | None = None
    text_hash: str | None = None
    """Of the whole text, also where only half was judged: by this hash other results are folded."""
    started: datetime
    """When the call was counted, just before it was made."""
    seconds: float | None = None
    gate_wait: float | None = None
    """Seconds from asking for the permit to having it."""
    outcome: RunOutcome
    error: str | None = None
    model_asked: str | None = None
    model: str | None = None
    question_version: str | None = None
    judgement: Judgement | None = None
    verdict: Verdict | None = None
    """What follows from the answer. A crash before it reached the result is repaired from here, without a call."""
    kept: bool | None = None
    kind: Kind | None = None
    tool_calls: tuple[str, ...] = ()
    input_tokens: int | None = None
    attempts: int | None = None
    """HTTP tries inside the call."""


class Permit(Value):
    """The right to have one call at the GPU. A lease with a fence."""

    slot: int
    holder: str
    lane: Lane
    fence: int
    until: datetime


class Wait(Value):
    """No permit now."""

    hint: timedelta
    """When asking again may help."""


class Alert(Value):
    """Something a person should know once per cause, until it is well again."""

    subject: str
    """What it is about, such as `model:<name>`."""
    cause: str
    detail: str
    raised: datetime

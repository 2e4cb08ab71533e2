"""What the workflows need from the outside. Each port has one contract suite in tests/adapters, run against every adapter.

Times are aware datetimes in UTC and come in as arguments: no adapter reads a clock to decide anything, except the
gate, which waits.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Protocol

from wikikeeper.models import (
    Alert,
    Claim,
    Cycle,
    CycleState,
    Escalation,
    Extract,
    Failure,
    Fetched,
    Found,
    Judgement,
    Lane,
    ModelSighting,
    ModelState,
    Origin,
    Permit,
    Reply,
    Request,
    Result,
    ResultState,
    Run,
    RunOutcome,
    Silence,
    StoredPage,
    Topic,
    TopicState,
    Value,
    Verdict,
    Wait,
)


class Clock(Protocol):
    def now(self) -> datetime:
        """The time, aware, in UTC."""
        ...


class Decider(Protocol):
    """The System One wire."""

    @property
    def model(self) -> str:
        """The name that is asked for."""
        ...

    def decide(self, request: Request) -> Reply:
        """Ask once. The reply is checked: complete, finite, of the right types, choices adding up to 1 within 0.02.

        Raises a `ModelError` of the kind that says what to do next; retries inside the total deadline are its own.
        """
        ...

    def state(self) -> ModelState:
        """Look at the model without waking it. Never raises for a server that is down: that is a state."""
        ...

    def wake(self) -> None:
        """Ask a sleeping or unloaded model to load, without waiting for it. A failure shows in the next `state`."""
        ...


class Judged(Value):
    """The Keeper's answer on one page, and what it took."""

    judgement: Judgement
    reply: Reply
    offered: tuple[int, ...]
    """Indices of the paragraphs that stood as options, in their order."""


class Keeper(Protocol):
    """The decision model's four questions about one page."""

    @property
    def question_version(self) -> str: ...

    @property
    def model(self) -> str:
        """The name that is asked for."""
        ...

    def judge(self, topic: Topic, title: str, paragraphs: Sequence[str]) -> Judged:
        """One call. Raises what `Decider.decide` raises."""
        ...


class Search(Protocol):
    """The sources of one topic."""

    def sources(self, topic: Topic) -> Iterable["Source"]:
        """Each source of the topic, to be asked one by one, so that one that is out takes no other with it."""
        ...


class Source(Protocol):
    @property
    def name(self) -> str:
        """For people: "search 'postgres release'", "feed https://…"."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What a person should know of the last `find` although it worked: engines without an answer, files left out."""
        ...

    def find(self) -> Sequence[Found]:
        """What the source has now. Raises SearchFailed when it is out; an empty answer really means nothing new."""
        ...


class Fetcher(Protocol):
    def fetch(
        self, url: str, *, origin: Origin, folder: str | None, etag: str | None, last_modified: str | None
    ) -> Fetched:
        """One guarded GET within the deadline, redirects included.

        `origin` decides whether a listed `host:port` exception may apply. `folder` is the topic's folder, the only
        place that a `file:` URL may point into. Validators make the request conditional.
        Raises Unfetchable (definite) or FetchFailed (try later).
        """
        ...


class Extractor(Protocol):
    def extract(self, page: Fetched) -> Extract:
        """The main text as paragraphs, within the time and memory limit.

        Raises Unfetchable: bot_challenge, login_wall, consent_wall, no_text, too_complex, wrong_type.
        """
        ...

    def close(self) -> None: ...


class Document(Value):
    """A file of the wiki as it was read."""

    key: str
    data: bytes
    etag: str


class Wiki(Protocol):
    """Markdown files under keys with forward slashes, in NFC. All writes are conditional."""

    def read(self, key: str) -> Document | None: ...

    def create(self, key: str, data: bytes) -> str:
        """Write a file that must not exist. Returns its etag; raises WikiConflict if it does exist."""
        ...

    def replace(self, key: str, data: bytes, etag: str) -> str:
        """Write over exactly the version that was read. Raises WikiConflict if it changed or is gone."""
        ...

    def move(self, source: str, target: str, etag: str) -> None:
        """Move that version. Raises WikiConflict if it changed, is gone, or the target exists."""
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key below a prefix that ends in "/", in order."""
        ...


class Gate(Protocol):
    """The semaphore before the GPU: at most `limit` live permits. One is renewed and released through the gate that gave it."""

    def acquire(self, lane: Lane, holder: str, ttl: timedelta, patience: timedelta) -> Permit | Wait:
        """Wait up to `patience` for a permit. The permit ends by itself after `ttl`; its fence only grows."""
        ...

    def renew(self, permit: Permit, ttl: timedelta) -> Permit | None:
        """Extend a permit that is still held. None: it ran out and may be someone else's."""
        ...

    def left(self, permit: Permit) -> timedelta:
        """How long it lasts from now, by the clock that it ends by; below nothing once it has ended."""
        ...

    def release(self, permit: Permit) -> bool:
        """Give it back. False: it was no longer held."""
        ...

    def free_all(self) -> None:
        """Free every slot. Only for one who knows that nobody is alive that could hold one; fences stay."""
        ...

    def turn_away(self) -> None:
        """Whoever waits in this process, or comes from now on, gets a `Wait` at once: it is being stopped. Permits that
        are held stay.
        """
        ...


class RunStore(Protocol):
    """Everything a machine needs to remember. Single-item conditional writes; every list is an iterator over pages."""

    # -- topics
    def topic(self, slug: str) -> TopicState:
        """The state of a topic, empty if it was never seen."""
        ...

    def topics(self) -> Iterator[TopicState]: ...

    def checked(self, slug: str, at: datetime, *, ran: bool) -> None:
        """Record the last check, and the last run if it ran. Never moves backwards."""
        ...

    def end_topic(self, slug: str, until: date) -> bool:
        """True for the one caller that ends it as of this day: that one gives the notice."""
        ...

    def set_note_due(self, slug: str, at: datetime) -> bool:
        """True for the one caller that found it unset: that one sends WriteNote."""
        ...

    def clear_note_due(self, slug: str) -> None: ...

    def open_note(self, slug: str, key: str, *, instead_of: str | None) -> bool:
        """Make `key` the open note if the open note still is `instead_of`. False: somebody else was first."""
        ...

    def start_note(self, slug: str, key: str) -> None:
        """Remember that something was noted in the open note `key`."""
        ...

    # -- cycles
    def start_cycle(self, cycle: Cycle) -> bool:
        """Put a new cycle, or open an `expired` one again with its fence + 1. False: this tick has run or runs."""
        ...

    def cycle(self, cycle: str) -> Cycle | None: ...

    def cycles(self, *, topic: str | None = None, states: frozenset[CycleState] | None = None) -> Iterator[Cycle]:
        """Newest first."""
        ...

    def drain_cycle(self, cycle: Cycle) -> bool:
        """open -> draining with everything that `cycle` says was found, and when; checked by its fence."""
        ...

    def end_cycle(
        self,
        cycle: str,
        state: CycleState,
        at: datetime,
        *,
        reason: str | None = None,
        only_from: frozenset[CycleState],
        fence: int | None = None,
    ) -> bool:
        """Move to done, skipped, stopped or expired, once. False: it was not in one of `only_from`, or not at `fence`.

        `expired` is no end: it is unfinished until it is opened again, or moved on from there.

        Whoever ends a cycle for its silence gives the fence that was silent: the tick may have been sent again since.
        """
        ...

    def mark_cycle(
        self, cycle: str, *, fetched: bool = False, answered: bool = False, cap_reached: bool = False
    ) -> None:
        """Set flags that only go up. `answered` also sets `refusals` to 0."""
        ...

    def count_refusal(self, cycle: str) -> int:
        """One more permanent error; returns how many there are with no good answer between them."""
        ...

    # -- results
    def add_results(self, cycle: str | None, results: Sequence[Result]) -> list[Result]:
        """Put what a cycle or a hook found, each waiting, on its way for this cycle or for none.

        Returns those that were not known. A crash in between leaves the first of them.
        """
        ...

    def result(self, result: str) -> Result | None: ...

    def latest(self, topic: str, canonical: str) -> Result | None:
        """The newest revision of a URL in a topic."""
        ...

    def results(self, *, topic: str | None = None, states: frozenset[ResultState] | None = None) -> Iterator[Result]:
        """Oldest find first."""
        ...

    def unnoted(self, topic: str) -> Iterator[Result]:
        """Kept and not noted, in the order of their verdicts."""
        ...

    def send_result(self, result: str, cycle: str, *, instead_of: str | None) -> bool:
        """Put a waiting result on its way for a cycle. False: it no longer waits, or not as `instead_of` says."""
        ...

    def claim(self, result: str, cycle: str, now: datetime, until: datetime) -> Claim | None:
        """waiting -> judging with fence + 1. None: not waiting, not on its way for this cycle, or `not_before` is later."""
        ...

    def begin_call(self, claim: Claim, cycle: str, now: datetime, until: datetime) -> Claim | None:
        """Count one call of the cycle and hold the claim until `until` at least, both or neither.

        The claim that is returned says when the call began, under a fence that no other call has.
        None: the cap is reached, the cycle is no longer open or draining, or the claim was lost; nothing was counted.
        """
        ...

    def call_begun(self, result: Result) -> datetime | None:
        """When a call was begun under the claim of a judging result, at the fence that it shows. None: none was."""
        ...

    def finish(
        self,
        claim: Claim,
        state: ResultState,
        at: datetime,
        *,
        verdict: Verdict | None = None,
        folded_into: str | None = None,
        title: str | None = None,
        text_hash: str | None = None,
        etag: str | None = None,
        last_modified: str | None = None,
    ) -> bool:
        """judging -> kept, discarded or folded, if the fence still holds. False: the claim was lost.

        `title`, the hash and the validators are stored where given; None leaves what is there.
        """
        ...

    def put_back(
        self,
        claim: Claim,
        *,
        stay_in_cycle: bool,
        failure: Failure | None = None,
        not_before: datetime | None = None,
    ) -> bool:
        """judging -> waiting, if the fence still holds. Leaves the cycle unless it is to be tried again within it.

        A failure is a recorded outcome: non-responses are 0 again.
        """
        ...

    def free(
        self, result: str, fence: int, now: datetime, *, stay_in_cycle: bool, called: datetime | None = None
    ) -> bool:
        """An expired judging -> waiting, fence + 1, nonresponses + 1. For the reaper alone.

        `called` is when a call was begun under that fence, where one was: so the next claim finds its run.
        """
        ...

    def give_up(
        self, result: str, fence: int, now: datetime, *, failure: Failure, called: datetime | None = None
    ) -> bool:
        """An expired judging -> parked, fence + 1, with this failure as its reason. As `free`, for the reaper alone."""
        ...

    def settle(
        self,
        result: str,
        cycle: str,
        *,
        attempts: int,
        state: ResultState,
        verdict: Verdict | None,
        at: datetime,
    ) -> bool:
        """At the close of a cycle: store what its failures came to, and that this cycle is settled.

        `state` is waiting, discarded or parked. Only if the result waits outside any cycle and `cycle` was not settled
        on it before.
        """
        ...

    def withdraw(self, result: str, at: datetime) -> bool:
        """waiting or parked -> withdrawn: its topic is gone."""
        ...

    def retry(self, result: str) -> bool:
        """parked -> waiting, attempts and non-responses 0, history kept."""
        ...

    def mark_noted(self, results: Sequence[str], key: str) -> None: ...

    # -- texts
    def claim_text(self, topic: str, text_hash: str, result: str, *, instead_of: str | None = None) -> str:
        """Make `result` the owner of a text if nobody is, or if `instead_of` is. Returns the owner after that."""
        ...

    def put_page(self, page: StoredPage) -> None: ...

    def page(self, text_hash: str) -> StoredPage | None: ...

    # -- runs
    def put_run(self, run: Run) -> bool:
        """Put if absent; over a `lost` run the late answer is stored as `superseded`. False: it was there already.

        Whoever writes the run of a call says the same start: that of `begin_call`.
        """
        ...

    def supersede_run(self, run: str, started: datetime) -> None:
        """answered -> superseded: its answer came after its claim was lost."""
        ...

    def run(self, run: str, started: datetime | None = None) -> Run | None:
        """With its start, where that is known, it need not be searched for."""
        ...

    def runs(self, *, topic: str | None = None, outcome: RunOutcome | None = None) -> Iterator[Run]:
        """Newest first."""
        ...

    # -- silence
    def silence(self, subject: str) -> Silence | None: ...

    def count_silence(self, silence: Silence, *, instead_of: Silence | None) -> bool:
        """Store it if what is stored still is `instead_of`. False: another reaper was first."""
        ...

    def heard(self, subject: str) -> None:
        """Something was heard of it: non-responses are 0 again. A cooldown goes on."""
        ...

    def escalate(self, escalation: Escalation) -> bool:
        """Put if absent, by its id. False: it was there."""
        ...

    def escalation(self, escalation: str) -> Escalation | None: ...

    def escalations(self, *, undelivered: bool = False) -> Iterator[Escalation]:
        """Newest first."""
        ...

    def escalation_delivered(self, escalation: str, at: datetime) -> None:
        """Record the first delivery; a later one changes nothing."""
        ...

    # -- the model
    def saw_model(self, sighting: ModelSighting) -> bool:
        """True if this model was in another condition, or for another cause, until now: then it is history."""
        ...

    def model_history(self, model: str | None = None) -> Iterator[ModelSighting]:
        """Newest first."""
        ...

    # -- alerts
    def raise_alert(self, alert: Alert) -> bool:
        """True for the first of its subject and cause since the subject was last well: that one is told to a person."""
        ...

    def clear_alerts(self, subject: str) -> None: ...

    def alerts(self) -> Iterator[Alert]: ...

    def purge(self, now: datetime) -> int:
        """Delete history whose time is over; returns how much."""
        ...

    def close(self) -> None: ...


class Reporter(Protocol):
    """Where workflows say what a person should see. Structured: an event name and fields, no page text, no secrets."""

    def event(self, name: str, **fields: object) -> None: ...


class Messenger(Protocol):
    """Where people read what they have to know."""

    def send(self, text: str) -> None:
        """Deliver a plain text, whatever is in it; a repeat is delivered again.

        Raises NotDelivered (try later) or Unusable (nothing will be delivered until a person mends a setting).
        """
        ...

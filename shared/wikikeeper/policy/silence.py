"""When work is silent, and what is done about it.

    unfinished work                                        stage
    waiting, on its way for a running cycle                queued
    judging, lease live, no call begun                     at the gate
    judging, lease live, call begun                        calling: its lease is the heartbeat
    judging, lease over                                    silent
    searching, lease over                                  silent, and expired: its tick is sent again
    expired, and not begun again for `after`               silent
    draining, nothing heard of it for `after`              silent, unless anything is worked on: it is queued behind that

    non-responses       0 ───── 1 ───── 2 ───── 3            (limit 3)
    a silence is found  recover recover recover give up: parked or stopped, one escalation, cooldown
    an outcome          0 again, whatever it was
    sent, claimed       as it was
    taken along         as it was: by the next tick of its topic, whose cycle is silent under the name of the first
    end of the cooldown as it was: nothing starts by itself

So one silence gets at most `limit` recoveries, each a call at most.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from wikikeeper.models import (
    Action,
    Condition,
    Cycle,
    CycleState,
    Escalation,
    FailureKind,
    ModelState,
    Result,
    ResultState,
    Silence,
    Stage,
    Topic,
)
from wikikeeper.policy import hooks, schedule
from wikikeeper.policy.identity import MANUAL

WORKER_SILENT = "its worker went silent"
SILENT = "silent: "
"""How the reason begins of a draining cycle that was given up."""

CONDITIONS = {
    "loading": Condition.LOADING,
    "model_missing": Condition.MODEL_MISSING,
    "wrong_kind": Condition.WRONG_KIND,
    "unreachable": Condition.UNREACHABLE,
    "wake_timeout": Condition.LOADING,
}
"""By the causes that a look at the model gives; any other is the state's own."""
BY_STATE = {"healthy": Condition.HEALTHY, "waking": Condition.WAKING, "unhealthy": Condition.REFUSING}


def stage(result: Result, called: datetime | None, now: datetime) -> Stage | None:
    """Of one result. None: it is not on its way, or done. `called` is when a call began under its claim."""
    if result.state is ResultState.WAITING:
        return None if result.cycle is None else Stage.QUEUED
    if result.state is not ResultState.JUDGING or result.lease_until is None:
        return None
    if result.lease_until <= now:
        return Stage.SILENT
    return Stage.AT_GATE if called is None else Stage.CALLING


def action(nonresponses: int, limit: int, *, now: datetime, cooldown_until: datetime | None = None) -> Action:
    """What is done about a silence whose counter stands there.

    Given up once, it is left alone: in its cooldown whatever its counter says, and afterwards until something was heard.
    """
    if cooldown_until is not None and (now < cooldown_until or nonresponses >= limit):
        return Action.LEAVE
    return Action.RECOVER if nonresponses < limit else Action.GIVE_UP


def gap(nonresponses: int, lease: timedelta) -> timedelta:
    """Between the recoveries of results that went silent so often, which may have had one worker for all of them.

    `lease` is the longest that a claim may take: a part of it is as long as most results take, and a larger one as nearly
    all do. One that kills its worker is then alone with it.
    """
    if nonresponses < 2:
        return timedelta()
    return lease / 30 if nonresponses == 2 else lease / 5


def counted(silence: Silence | None, subject: str, now: datetime) -> Silence:
    """The record with one more non-response. The first of a silence leaves the cooldown of an earlier one behind."""
    if silence is None or silence.nonresponses == 0:
        return Silence(subject=subject, nonresponses=1, since=now, counted=now)
    return silence.model_copy(update={"nonresponses": silence.nonresponses + 1, "counted": now})


def cools_until(silence: Silence | None, now: datetime, cooldown: timedelta) -> datetime | None:
    """The end of its cooldown. None where it has none, or one that only a clock that was once ahead can have given it."""
    if silence is None or silence.cooldown_until is None or silence.cooldown_until > now + cooldown:
        return None
    return silence.cooldown_until


def since_heard(silence: Silence | None, heard: datetime | None, now: datetime) -> Silence | None:
    """The record as it stands after activity at `heard`: what was heard later than the last count, ends the silence."""
    # What a clock that was once ahead wrote down, says nothing.
    if silence is None or heard is None or not silence.counted < heard <= now:
        return silence
    return silence.model_copy(update={"nonresponses": 0})


def search_is_silent(cycle: Cycle, *, last_sent: datetime | None, now: datetime, after: timedelta) -> bool:
    """Whether the worker of a cycle that searches was lost, or the command that was to begin it again.

    `last_sent`: when it was last counted. That command may still be on its way for `after`, unless it has come: a lease
    that ended later is that of the worker which took it.
    """
    if cycle.state is CycleState.OPEN and (cycle.lease_until is None or cycle.lease_until > now):
        return False
    # What a clock that was once ahead wrote down, says nothing.
    if last_sent is None or last_sent > now:
        return True
    begun = cycle.lease_until is not None and cycle.lease_until > last_sent
    return begun or now - last_sent >= after


def not_worth_sending(
    cycle: Cycle, topic: Topic | None, last_run: datetime | None, now: datetime, *, left: bool
) -> str | None:
    """Why a search that went silent is ended without a word: nothing is lost with it. None: it is to be sent again.

    `last_run`: when a cycle of its topic began that got through searching. `left`: results are on their way for this one,
    and those another cycle leaves alone at first. What was pushed is no search's to find.
    """
    if topic is None:
        return "its topic is gone or has a fault"
    if schedule.ended(topic.until, topic.zone, now):
        return f"ended: the last day of the topic was {topic.until}"
    # What a clock that was once ahead wrote down, says nothing.
    searched = last_run is not None and cycle.started < last_run <= now
    if searched and not left and not hooks.asks_no_source(cycle.tick):
        return "its topic was searched since"
    if cycle.tick.startswith(MANUAL):
        return f"{WORKER_SILENT}: whoever began it by hand begins it again"
    return None


def waits_for(cycle: Cycle, other: Cycle) -> bool:
    """Whether this search, gone silent, is left until it shows what becomes of the other: an earlier one of its topic.

    Begun again, that one finds whatever this one would. The earlier goes first because it is done or given up after so
    many recoveries: were it the later, ticks that come faster than that would keep every one of them waiting for ever.
    """
    if hooks.asks_no_source(cycle.tick) or hooks.asks_no_source(other.tick):
        return False
    return other.topic == cycle.topic and (other.started, other.id) < (cycle.started, cycle.id)


def first_of(cycle: Cycle, earlier: Iterable[Cycle]) -> Cycle:
    """The cycle that a silence began with: this one, or the first of those before it whose results nobody worked on either
    until the next took them along. Ticks that come faster than a silence is told by would else begin it anew each time.

    `earlier`: the cycles of its topic that began before, newest first.
    """
    first = cycle
    for each in earlier:
        if first.calls or first.fetched or each.calls or each.fetched:
            break
        given_up = each.state is CycleState.STOPPED and (each.reason or "").startswith(SILENT)
        if given_up or (each.ended is not None and each.ended >= first.started):
            first = each
        elif each.sent:
            break
    return first


def cycle_is_silent(
    cycle: Cycle,
    first: Cycle,
    *,
    claimed: bool,
    busy: bool,
    last_sent: datetime | None,
    now: datetime,
    after: timedelta,
) -> bool:
    """Whether the commands of a draining cycle were lost. `first`: with which that began.

    `claimed`: some of its results are; if they went silent, that is settled first. `busy`: anything is worked on, of
    whichever cycle. Queues are long when much is due at once, and then a cycle may just not have had its turn; in a
    house that is never idle its topic's next tick takes its results along.
    """
    if cycle.state is not CycleState.DRAINING or claimed or busy:
        return False
    # What a clock that was once ahead wrote down, says nothing.
    heard = [moment for moment in (first.started, first.active, last_sent) if moment is not None and moment <= now]
    return all(now - moment >= after for moment in heard)


def note_is_silent(
    due: datetime | None, *, busy: bool, now: datetime, soon: timedelta, after: timedelta, last_sent: datetime | None
) -> bool:
    """Whether the command that writes a note was lost, for a note that has something to write.

    It comes within `soon` where nothing else is to be done, and may be queued where results are worked on: then for as
    long as a cycle may be. Of a note that nobody set due, its writer may be at it.
    """
    if due is None:
        return False
    patience = after if busy else soon
    heard = due if last_sent is None else max(due, last_sent)
    return now - heard >= patience


def was_given_up(result: Result) -> bool:
    """Whether it is parked for its silence: only a person brings it back."""
    silent = bool(result.failures) and result.failures[-1].kind is FailureKind.SILENT
    return silent and result.state is ResultState.PARKED


def escalation_of(result: Result) -> str:
    """The id of the escalation that belongs to its being given up."""
    return f"result:{result.id}:{result.fence}"


def message(escalation: Escalation) -> str:
    """What a person is sent: nothing in it comes from a page."""
    return "\n".join(
        (
            f"wikikeeper gave up on silent work of the topic {escalation.topic}",
            escalation.detail,
            f"Given up since {escalation.raised.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
            f"Id: {escalation.id}",
        )
    )


def condition(state: ModelState) -> Condition:
    """A look at the model in the words of its history."""
    return CONDITIONS.get(state.cause, BY_STATE[state.state])

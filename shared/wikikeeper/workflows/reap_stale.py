"""Find work that went silent and send it again; what stays silent reaches a person, once.

The only code that frees an expired claim, so that a limit on recovery cannot be passed by another way.

    attempts        failures that were recorded: they count when the cycle closes, and never here
    non-responses   0 ── silent ──▶ 1 ── silent ──▶ 2 ── silent ──▶ 3 ── silent ──▶ given up
                    ▲      raised first, with a new fence; then    │                  │ parked (a result), stopped (a cycle)
                    │      sent again. Not raised: not sent        │                  │ one escalation, by its id
                    └── an outcome was recorded ───────────────────┘                  ▼
    escalated       told with its id until log and messenger have it             cooldown ── its end starts nothing;
                                                                                  a person or real activity does
    what                          silent when                        recovered by            given up as
    a claim                       its lease ran out                  waiting, fence + 1      parked, reason silent
    a draining cycle              nothing heard of it, model well    its commands again      stopped
    an open cycle                 its lease ran out                  expired, its tick sent  stopped
    an expired cycle              not begun again                    its tick sent           stopped
    a note                        due, kept, and not written         WriteNote again         left to a person

Two reapers at once do no harm: each step is one conditional write, and only who made it sends. One that dies leaves what
the next finds: a claim is freed before the `lost` run of its call is written, which the next claim makes up for; a parked
result or a silent note without its escalation gets it in the next sweep, under the same id; an expired cycle whose tick
was not sent, or was lost, is found until it was begun again, searched for by a later one, or stopped.

Where the caller knows that nobody else is alive (`alone`), leases need not run out first, permits are free, and what waits
on its way for a draining cycle is sent again, since the commands died with their process.
"""

from collections import Counter
from datetime import datetime, timedelta

from wikikeeper.errors import NotDelivered, Unusable
from wikikeeper.models import (
    RUNNING_CYCLES,
    Action,
    Alert,
    CloseCycle,
    Cycle,
    CycleState,
    Escalation,
    Failure,
    FailureKind,
    JudgeResult,
    ReapStale,
    Result,
    ResultState,
    Send,
    Silence,
    StartCycle,
    WriteNote,
)
from wikikeeper.policy import silence as policy
from wikikeeper.policy.identity import run_id
from wikikeeper.policy.runs import triage_run
from wikikeeper.workflows.context import App
from wikikeeper.workflows.schedule_cycle import DRAINING
from wikikeeper.workflows.silences import PARKED, SEARCHING, WAITING, Silent, first_of, is_answered, look

LONGEST_DELAY = timedelta(minutes=15)
"""Of a command, in every host: what SQS takes."""
MESSENGER = "messenger"
"""The subject of alerts about it."""


def reap_stale(command: ReapStale, app: App) -> list[Send]:
    """One sweep. What it finds and cannot finish, the next sweep finds again."""
    app.store.purge(app.clock.now())
    if command.alone:
        app.gate.free_all()
    _make_up_for_a_reaper_that_died(app)
    sends: list[Send] = []
    for silent in look(app, alone=command.alone):
        sends += _act(silent, app)
    _note_as_sent(sends, app)
    if command.alone:
        sends = [send for send in sends if not isinstance(send.command, JudgeResult)] + _send_what_waits(app)
    sends = _apart(sends, app)
    # A command that was sent just now keeps its cycle from closing: the next sweep closes it.
    sends += closes(app)
    _deliver(app)
    return sends


def closes(app: App) -> list[Send]:
    """A CloseCycle for each cycle that drains; it closes those of which nothing is unfinished."""
    return [Send(command=CloseCycle(cycle=cycle.id)) for cycle in app.store.cycles(states=DRAINING)]


# -- acting


def _act(silent: Silent, app: App) -> list[Send]:
    if silent.action is Action.LEAVE:
        if silent.result is None and silent.cycle is None:
            app.store.clear_note_due(silent.topic)  # so that the next kept page sends its command
        return []
    if silent.result is not None:
        return _claim(silent, silent.result, app)
    if silent.cycle is None:
        return _note(silent, app)
    searching = silent.cycle.state in SEARCHING
    return _search(silent, silent.cycle, app) if searching else _cycle(silent, silent.cycle, app)


def _claim(silent: Silent, result: Result, app: App) -> list[Send]:
    now = app.clock.now()
    over = max(now, result.lease_until or now)
    called = app.store.call_begun(result)
    cycle = app.store.cycle(result.cycle) if result.cycle else None
    live = cycle is not None and cycle.state in RUNNING_CYCLES
    if silent.action is Action.GIVE_UP and not is_answered(result, called, app):  # it may have come since the look
        given_up = Failure(
            at=now,
            cycle=result.cycle or "",
            kind=FailureKind.SILENT,
            cause="silent",
            detail=f"silent again after {silent.nonresponses} recoveries",
        )
        if app.store.give_up(result.id, result.fence, over, failure=given_up, called=called):
            app.reporter.event("result_parked", topic=result.topic, result=result.id, reason="silent")
            _make_up(result.id, app)
        return []
    if not app.store.free(result.id, result.fence, over, stay_in_cycle=live, called=called):
        return []
    app.reporter.event("claim_freed", topic=result.topic, result=result.id, fence=result.fence)
    if called is not None:
        record_lost_call(result, result.fence, called, app)
    if not live or cycle is None:
        return []
    return [Send(command=JudgeResult(topic=result.topic, result=result.id, cycle=cycle.id))]


def _as_seen(cycle: Cycle, app: App) -> bool:
    """Nothing was heard of it since this sweep looked: else it must not be given up."""
    now = app.store.cycle(cycle.id)
    if now is None or (now.state, now.fence, now.active) != (cycle.state, cycle.fence, cycle.active):
        return False
    judging = app.store.results(topic=cycle.topic, states=frozenset({ResultState.JUDGING}))
    return all(result.cycle != cycle.id for result in judging)


def _search(silent: Silent, cycle: Cycle, app: App) -> list[Send]:
    now, since = app.clock.now(), silent.stored.since if silent.stored else cycle.started
    if silent.action is Action.GIVE_UP:
        if not _as_seen(cycle, app):
            return []
        reason = silent.ended or policy.WORKER_SILENT
        if silent.ended is None:
            # The record first: once the cycle is stopped, no sweep looks at it again.
            _escalate(silent, since.isoformat(), app)
        app.store.end_cycle(cycle.id, CycleState.STOPPED, now, reason=reason, only_from=SEARCHING, fence=cycle.fence)
        return []
    counted = policy.counted(silent.stored, silent.subject, now)
    if not app.store.count_silence(counted, instead_of=silent.stored):
        return []
    if cycle.state is CycleState.OPEN and not app.store.end_cycle(
        cycle.id,
        CycleState.EXPIRED,
        now,
        reason=policy.WORKER_SILENT,
        only_from=frozenset({cycle.state}),
        fence=cycle.fence,
    ):
        return []
    return [Send(command=StartCycle(topic=cycle.topic, tick=cycle.tick))]


def _cycle(silent: Silent, cycle: Cycle, app: App) -> list[Send]:
    assert silent.first is not None  # it drains
    now, first = app.clock.now(), silent.first
    known = policy.since_heard(silent.stored, first.active or first.started, now)
    if silent.action is Action.GIVE_UP:
        if not _as_seen(cycle, app):
            return []
        # The record first: once the cycle is stopped, no sweep looks at it again.
        _escalate(silent, first.started.isoformat(), app)
        reason = policy.SILENT + silent.said
        if app.store.end_cycle(cycle.id, CycleState.STOPPED, now, reason=reason, only_from=DRAINING):
            app.reporter.event("cycle_stopped", cycle=cycle.id, cause="silent")
        if known is not None:  # for the cycles that take its results along, while nobody works on those either
            app.store.count_silence(
                known.model_copy(update={"cooldown_until": now + app.rules.cooldown}), instead_of=silent.stored
            )
        return []
    counted = policy.counted(known, silent.subject, now)
    if not app.store.count_silence(counted, instead_of=silent.stored):
        return []
    app.reporter.event("cycle_recovered", topic=cycle.topic, cycle=cycle.id, nonresponses=counted.nonresponses)
    return [
        Send(command=JudgeResult(topic=cycle.topic, result=result.id, cycle=cycle.id))
        for result in app.store.results(topic=cycle.topic, states=WAITING)
        if result.cycle == cycle.id
    ]


def _note(silent: Silent, app: App) -> list[Send]:
    now = app.clock.now()
    if silent.only_seen:
        app.store.clear_note_due(silent.topic)  # a clock that was once ahead may have set it to a time to come
        app.store.set_note_due(silent.topic, now)
        return []
    counted = policy.counted(silent.stored, silent.subject, now)
    if silent.action is Action.GIVE_UP:
        since = silent.stored.since if silent.stored else now
        _escalate(silent, since.isoformat(), app)
        given_up = counted.model_copy(
            update={"nonresponses": silent.nonresponses, "cooldown_until": now + app.rules.cooldown}
        )
        app.store.count_silence(given_up, instead_of=silent.stored)
        app.store.clear_note_due(silent.topic)
        return []
    if not app.store.count_silence(counted, instead_of=silent.stored):
        return []
    app.store.clear_note_due(silent.topic)
    app.store.set_note_due(silent.topic, now)
    return [Send(command=WriteNote(topic=silent.topic))]


def _note_as_sent(sends: list[Send], app: App) -> None:
    """A claim that was sent again just now is on its way: its cycle is not silent for that as well."""
    now = app.clock.now()
    for identity in {send.command.cycle for send in sends if isinstance(send.command, JudgeResult)}:
        cycle = app.store.cycle(identity)
        if cycle is None:
            continue
        first = first_of(cycle, app)
        subject = f"cycle:{first.id}"
        stored = app.store.silence(subject)
        if stored is not None and stored.counted >= now:
            continue
        known = policy.since_heard(stored, first.active or first.started, now)
        sent = known or Silence(subject=subject, nonresponses=0, since=now, counted=now)
        app.store.count_silence(sent.model_copy(update={"counted": now}), instead_of=stored)


def _apart(sends: list[Send], app: App) -> list[Send]:
    """What died together more than once is sent one by one: a page that kills its worker takes others with it, and they
    must not be given up for that. The first time it is sent at once, since most deaths are no page's doing.
    """
    if not any(isinstance(send.command, JudgeResult) for send in sends):
        return sends
    silent = {result.id: result.nonresponses for result in app.store.results(states=WAITING) if result.nonresponses}
    apart: list[Send] = []
    delays: Counter[timedelta] = Counter()
    for send in sends:
        nonresponses = silent.get(send.command.result, 0) if isinstance(send.command, JudgeResult) else 0
        gap = policy.gap(nonresponses, app.rules.judge_lease)
        apart.append(send.model_copy(update={"after": min(gap * delays[gap], LONGEST_DELAY)}) if gap else send)
        delays[gap] += 1
    return apart


def _send_what_waits(app: App) -> list[Send]:
    """The commands of draining cycles once more: the cycles then end as they would have."""
    draining = {cycle.id for cycle in app.store.cycles(states=DRAINING)}
    return [
        Send(command=JudgeResult(topic=result.topic, result=result.id, cycle=result.cycle))
        for result in app.store.results(states=WAITING)
        if result.cycle is not None and result.cycle in draining
    ]


def record_lost_call(result: Result, fence: int, called: datetime, app: App) -> None:
    """Every counted call has its run: the call of this claim was counted, and nobody wrote what came of it.

    Put if absent: where the worker did write its run, that stands, and its verdict is used at the next claim.
    """
    if app.store.run(run_id(result.id, fence), called) is not None:
        return
    app.store.put_run(
        triage_run(
            result,
            fence,
            "lost",
            started=called,
            model_asked=app.keeper.model,
            question_version=app.keeper.question_version,
            error="the worker went silent during the call",
        )
    )


# -- telling


def _escalate(silent: Silent, which: str, app: App) -> None:
    """Make the record of this silence, if nobody has. `which` tells it from other silences of the same work."""
    detail = f"{silent.said}; sent again {silent.nonresponses} times. {_mending(silent)}"
    app.store.escalate(
        Escalation(
            id=f"{silent.subject}:{which}",
            subject=silent.subject,
            topic=silent.topic,
            detail=detail,
            raised=app.clock.now(),
        )
    )


def _mending(silent: Silent) -> str:
    if silent.result is not None:
        return f"Look at the log of that time, then 'wikikeeper retry {silent.result.id}' tries it again"
    if silent.cycle is None:
        again = f"'wikikeeper retry note:{silent.topic}'"
        return f"Look whether the wiki can be written; {again}, or the next page that is kept, tries it again"
    return "Look whether the workers run; the next tick takes its results along"


def _make_up_for_a_reaper_that_died(app: App) -> None:
    for result in app.store.results(states=PARKED):
        if policy.was_given_up(result) and app.store.escalation(policy.escalation_of(result)) is None:
            _make_up(result.id, app)


def _make_up(identity: str, app: App) -> None:
    """The run and the escalation of a result that was given up. The escalation last: it stands for both."""
    result = app.store.result(identity)
    if result is None or not policy.was_given_up(result):
        return
    if result.call_fence is not None and result.call_started is not None:
        record_lost_call(result, result.call_fence, result.call_started, app)
    silent = Silent(
        subject=f"result:{result.id}",
        topic=result.topic,
        action=Action.GIVE_UP,
        nonresponses=result.nonresponses,
        said="whoever was judging this page was not heard of again",
        result=result,
    )
    _escalate(silent, str(result.fence), app)


def _deliver(app: App) -> None:
    """Tell what was not told everywhere. Delivered at least once: it is marked only after it was told.

    A messenger that cannot be reached is not asked again in this sweep: each try may take its whole deadline. Whatever
    fails, what was taken back is still sent: it is counted already.
    """
    reachable = True
    for escalation in app.store.escalations(undelivered=True):
        app.reporter.event(
            "escalated",
            escalation=escalation.id,
            subject=escalation.subject,
            topic=escalation.topic,
            detail=escalation.detail,
        )
        if not reachable:
            continue
        try:
            if app.messenger is not None:
                app.messenger.send(policy.message(escalation))
        except NotDelivered as error:
            reachable = False
            _not_delivered(escalation, error.cause, error.detail, app)
        except Unusable as error:
            # Of this text perhaps, so the others are tried; it waits for a person, who sees it where alerts are shown.
            _not_delivered(escalation, "unusable", str(error), app)
            raised = Alert(subject=MESSENGER, cause="unusable", detail=str(error), raised=app.clock.now())
            if app.store.raise_alert(raised):
                app.reporter.event("alert", subject=MESSENGER, cause=raised.cause, detail=raised.detail)
        except Exception as error:  # noqa: BLE001 - a fault of ours as well: the next sweep tells, and says so again
            reachable = False
            _not_delivered(escalation, f"internal:{type(error).__name__}", "", app)
        else:
            app.store.escalation_delivered(escalation.id, app.clock.now())
            app.store.clear_alerts(MESSENGER)


def _not_delivered(escalation: Escalation, cause: str, detail: str, app: App) -> None:
    app.reporter.event("escalation_not_delivered", escalation=escalation.id, cause=cause, detail=detail)

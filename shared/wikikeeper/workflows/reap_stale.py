"""Find work that went silent, and send it again. The only code that frees an expired claim.

    judging, lease over    a call was begun and has no run ──▶ a `lost` run is written for it
                           then waiting again, fence + 1: a late worker's verdict is refused
    open, lease over       expired; the tick is sent once more (a tick that a person caused is not)
    kept, not noted        the note is due again
    draining, all ended    closed

Two reapers at once do no harm: each step is one conditional write, and only who made it sends.

Where the caller knows that nobody else is alive (`alone`), leases need not run out first, permits are free, and what waits on its way for a
draining cycle is sent again, since the commands died with their process.
"""

from datetime import timedelta

from wikikeeper.models import (
    CloseCycle,
    CycleState,
    JudgeResult,
    ReapStale,
    Result,
    ResultState,
    Send,
    StartCycle,
    WriteNote,
)
from wikikeeper.policy.hooks import first_fence
from wikikeeper.policy.identity import MANUAL, run_id
from wikikeeper.policy.runs import triage_run
from wikikeeper.workflows.context import App
from wikikeeper.workflows.schedule_cycle import DRAINING, RUNNING


def reap_stale(command: ReapStale, app: App) -> list[Send]:
    """One sweep. What it finds and cannot finish, the next sweep finds again."""
    app.store.purge(app.clock.now())
    if command.alone:
        app.gate.free_all()
    sends = _expire_open_cycles(app, alone=command.alone)
    freed = _free_silent_claims(app, alone=command.alone)
    sends += _send_what_waits(app) if command.alone else freed
    # A command that was sent just now keeps its cycle from closing: the next sweep closes it.
    sends += closes(app)
    return sends + due_notes(app, older_than=timedelta() if command.alone else app.rules.note_delay * 2)


def closes(app: App) -> list[Send]:
    """A CloseCycle for each cycle that drains; it closes those of which nothing is unfinished."""
    return [Send(command=CloseCycle(cycle=cycle.id)) for cycle in app.store.cycles(states=DRAINING)]


def due_notes(app: App, *, older_than: timedelta) -> list[Send]:
    """A WriteNote for each topic with something kept and not noted.

    A note that became due less than `older_than` ago is left to the command of the one who set it. A host that is idle
    knows that there is none on its way, and passes zero.
    """
    now = app.clock.now()
    sends = []
    for state in app.store.topics():
        if state.note_due is not None and now - state.note_due < older_than:
            continue
        if next(iter(app.store.unnoted(state.slug)), None) is None or app.topic(state.slug) is None:
            continue
        app.store.set_note_due(state.slug, now)
        sends.append(Send(command=WriteNote(topic=state.slug)))
    return sends


def _free_silent_claims(app: App, *, alone: bool) -> list[Send]:
    now = app.clock.now()
    sends = []
    for result in app.store.results(states=frozenset({ResultState.JUDGING})):
        if result.lease_until is None or (result.lease_until > now and not alone):
            continue
        if result.call_fence == result.fence:
            _record_lost_call(result, app)
        cycle = app.store.cycle(result.cycle) if result.cycle else None
        live = cycle is not None and cycle.state in RUNNING
        if not app.store.free(result.id, result.fence, max(now, result.lease_until), stay_in_cycle=live):
            continue
        app.reporter.event("claim_freed", topic=result.topic, result=result.id, fence=result.fence)
        if live and cycle is not None:
            sends.append(Send(command=JudgeResult(topic=result.topic, result=result.id, cycle=cycle.id)))
    return sends


def _send_what_waits(app: App) -> list[Send]:
    """The commands of draining cycles once more: the cycles then end as they would have."""
    draining = {cycle.id for cycle in app.store.cycles(states=DRAINING)}
    return [
        Send(command=JudgeResult(topic=result.topic, result=result.id, cycle=result.cycle))
        for result in app.store.results(states=frozenset({ResultState.WAITING}))
        if result.cycle is not None and result.cycle in draining
    ]


def _record_lost_call(result: Result, app: App) -> None:
    """Every counted call has its run: the call of this claim was counted, and nobody wrote what came of it.

    Put if absent: where the worker did write its run, that stands, and its verdict is used at the next claim.
    """
    if app.store.run(run_id(result.id, result.fence)) is not None:
        return
    app.store.put_run(
        triage_run(
            result,
            result.fence,
            "lost",
            started=app.clock.now(),
            model_asked=app.keeper.model,
            question_version=app.keeper.question_version,
            error="the worker went silent during the call",
        )
    )


def _expire_open_cycles(app: App, *, alone: bool) -> list[Send]:
    now = app.clock.now()
    sends = []
    for cycle in app.store.cycles(states=frozenset({CycleState.OPEN})):
        if cycle.lease_until is None or (cycle.lease_until > now and not alone):
            continue
        expired = app.store.end_cycle(
            cycle.id,
            CycleState.EXPIRED,
            now,
            reason="its worker went silent",
            only_from=frozenset({CycleState.OPEN}),
            fence=cycle.fence,
        )
        if expired and cycle.fence <= first_fence(cycle.tick) and not cycle.tick.startswith(MANUAL):
            sends.append(Send(command=StartCycle(topic=cycle.topic, tick=cycle.tick)))
    return sends

"""Start a cycle of a topic: look at the model, search, remember what is new, send what waits. And close it again.

    (no item) ── model waking ──▶ the same command again in a minute, no cycle yet
        │
        ├── model unhealthy ──▶ skipped, with the cause; nothing was searched
        ▼
      open (leased) ── a crash here: the lease runs out, the reaper makes it `expired` and sends the tick again
        │  search, put new results, send
        ▼
     draining ── judge_result works; it may set `stopped`
        │  nothing of it is unfinished: its failures are settled, then
        ▼
       done

The cycle item is put only if absent, so a tick that fires twice runs once. A hook has put its own before its command is
sent (`policy.hooks`); the first worker takes it over.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from wikikeeper.errors import SearchFailed
from wikikeeper.models import (
    RUNNING_CYCLES,
    Alert,
    CloseCycle,
    Cycle,
    CycleState,
    Found,
    JudgeResult,
    ModelSighting,
    ModelState,
    Result,
    ResultState,
    Send,
    StartCycle,
    Topic,
)
from wikikeeper.policy import closing, hooks, schedule
from wikikeeper.policy.identity import cycle_id, result_id
from wikikeeper.policy.revisions import next_revision
from wikikeeper.policy.silence import condition
from wikikeeper.policy.topics import slug_of
from wikikeeper.policy.urls import canonical
from wikikeeper.ports import RunStore
from wikikeeper.workflows.context import App

WAKE_AGAIN = timedelta(minutes=1)
"""A tick is a minute: a model that loads is looked at with the next one."""
UNFINISHED = frozenset({ResultState.WAITING, ResultState.JUDGING})
JUDGED = frozenset({ResultState.KEPT, ResultState.DISCARDED, ResultState.FOLDED})
DRAINING = frozenset({CycleState.DRAINING})
OPEN = frozenset({CycleState.OPEN})
WITHDRAWABLE = frozenset({ResultState.WAITING, ResultState.PARKED})


def schedule_cycle(command: StartCycle | CloseCycle, app: App) -> list[Send]:
    """Start or close a cycle. A command for a tick that has run, or for a topic that is gone, changes nothing."""
    if isinstance(command, CloseCycle):
        close(command.cycle, app)
        return []
    topic = app.topic(command.topic)
    now = app.clock.now()
    if topic is None:
        _skip_asked(command, "no_topic: its file is gone or has a fault", app, now)
        return []
    if schedule.ended(topic.until, topic.zone, now):
        _skip_asked(command, f"ended: the last day of the topic was {topic.until}", app, now)
        if topic.until is not None and app.store.end_topic(topic.slug, topic.until):
            app.reporter.event("topic_ended", topic=topic.slug, until=str(topic.until))
        return []
    for old in app.store.cycles(topic=topic.slug, states=DRAINING):
        close(old.id, app)

    if (asked_again := _unless_healthy(command, topic, app, now)) is not None:
        return asked_again
    return _run(command, topic, app, now)


def due(app: App) -> list[Send]:
    """One StartCycle for each topic with a tick that has come since its last check."""
    return due_starts(app.topics()[0], app.store, app.clock.now())


def due_starts(topics: Iterable[Topic], store: RunStore, now: datetime) -> list[Send]:
    """As `due`. A topic that is seen for the first time runs at its next tick: this look is its first check."""
    sends = []
    for topic in topics:
        if topic.cron is None:
            continue
        state = store.topic(topic.slug)
        if schedule.ended(topic.until, topic.zone, now) and state.ended == topic.until:
            continue  # the notice was given
        if state.last_check is None:
            store.checked(topic.slug, now, ran=False)
            continue
        begun = (cycle.started for cycle in store.cycles(topic=topic.slug))
        last_check = schedule.last_check(state.last_check, begun, now)
        tick, missed = schedule.ticks_due(topic.cron, topic.zone, last_check, now)
        if tick is not None:
            sends.append(Send(command=StartCycle(topic=topic.slug, tick=schedule.tick_id(tick), missed=missed)))
    return sends


def withdraw_deleted(app: App) -> int:
    """Withdraw the unfinished results of topics whose file is gone. A file that only has a fault is still there."""
    topics, faults = app.topics()
    there = {topic.slug for topic in topics} | {slug_of(fault.key) for fault in faults}
    withdrawn = 0
    for result in app.store.results(states=WITHDRAWABLE):
        if result.topic not in there and app.store.withdraw(result.id, app.clock.now()):
            withdrawn += 1
    if withdrawn:
        app.reporter.event("results_withdrawn", count=withdrawn)
    return withdrawn


def close(cycle: str, app: App) -> bool:
    """Close a draining cycle when nothing of it is unfinished. Safe to repeat: a settled failure counts once."""
    item = app.store.cycle(cycle)
    if item is None or item.state is not CycleState.DRAINING:
        return False
    left = list(app.store.results(topic=item.topic, states=UNFINISHED))
    if any(result.cycle == cycle for result in left):
        return False
    # Read again: what its last results set on the cycle is there once they are no longer on their way.
    item = app.store.cycle(cycle) or item
    now = app.clock.now()
    reason = closing.without_an_answer(item, left)
    for result in left:
        settled = closing.settle(result, item, app.rules.max_attempts)
        if settled is None:
            continue
        stored = app.store.settle(
            result.id, cycle, attempts=settled.attempts, state=settled.state, verdict=settled.verdict, at=now
        )
        if stored and settled.state is not ResultState.WAITING:
            why = settled.verdict.reason if settled.verdict else None
            app.reporter.event(f"result_{settled.state}", topic=result.topic, result=result.id, cycle=cycle, reason=why)
    ended = app.store.end_cycle(cycle, CycleState.DONE, now, reason=reason, only_from=DRAINING)
    if not ended:
        return False
    if reason is None:
        app.reporter.event("cycle_done", topic=item.topic, cycle=cycle)
    else:
        which, where = ("every call", "the runs") if item.calls else ("every page", "the log")
        alert(reason, f"{which} of a cycle failed: look at {where} and at the model server", app, now, calls=True)
    return True


def stop(cycle: str, cause: str, detail: str, app: App) -> None:
    """Stop a cycle for a cause that no page can help, and tell a person once per cause."""
    now = app.clock.now()
    if app.store.end_cycle(cycle, CycleState.STOPPED, now, reason=f"{cause}: {detail}", only_from=RUNNING_CYCLES):
        app.reporter.event("cycle_stopped", cycle=cycle, cause=cause)
    alert(cause, detail, app, now, calls=True)


def answered(app: App) -> None:
    """A good answer came: what was wrong with calls is over."""
    app.store.clear_alerts(_subject(app, calls=True))


def alert(cause: str, detail: str, app: App, now: datetime, *, calls: bool = False) -> None:
    """Tell a person about the model, once per cause until it is well.

    What calls brought up is kept apart: a server that looks well and refuses every call is not well again.
    """
    subject = _subject(app, calls=calls)
    if app.store.raise_alert(Alert(subject=subject, cause=cause, detail=detail, raised=now)):
        app.reporter.event("alert", subject=subject, cause=cause, detail=detail)


def see_model(app: App) -> ModelState:
    """Look at the model, and remember how it was seen."""
    state = app.decider.state()
    sighting = ModelSighting(
        model=app.decider.model,
        condition=condition(state),
        cause=state.cause,
        detail=state.detail,
        since=app.clock.now(),
    )
    if app.store.saw_model(sighting):
        app.reporter.event("model_seen", model=sighting.model, condition=sighting.condition, cause=sighting.cause)
    return state


def _subject(app: App, *, calls: bool) -> str:
    return f"{'calls' if calls else 'model'}:{app.decider.model}"


def _unless_healthy(command: StartCycle, topic: Topic, app: App, now: datetime) -> list[Send] | None:
    """None when the model can be asked; otherwise what follows instead of a cycle."""
    model = see_model(app)
    if model.state == "healthy":
        app.store.clear_alerts(_subject(app, calls=False))
        return None
    known = app.store.cycle(cycle_id(topic.slug, command.tick))
    if not (hooks.to_be_begun(known) if known else not hooks.by_hook(command.tick)):
        return []
    if model.state == "waking":
        first = command.first_wake or now
        if now - first < app.rules.wake_timeout:
            app.decider.wake()
            app.reporter.event("model_waking", topic=topic.slug, cause=model.cause)
            return [Send(command=command.model_copy(update={"first_wake": first}), after=WAKE_AGAIN)]
        waited = f"still {model.cause} after {(now - first).total_seconds():.0f} s"
        model = ModelState(state="unhealthy", cause="wake_timeout", detail=waited)
    reason = f"{model.cause}: {model.detail}"
    skipped = _new_cycle(command, topic, app, now).model_copy(
        update={"state": CycleState.SKIPPED, "reason": reason, "ended": now}
    )
    if _skip_asked(command, reason, app, now) if known else app.store.start_cycle(skipped):
        if not hooks.asks_no_source(command.tick):
            app.store.checked(topic.slug, now, ran=False)
        app.reporter.event("cycle_skipped", topic=topic.slug, cycle=skipped.id, cause=model.cause)
        alert(model.cause, model.detail, app, now)
    return []


def _skip_asked(command: StartCycle, reason: str, app: App, now: datetime) -> bool:
    """End a cycle that is there and still to be begun. False: there is none, or somebody was first."""
    cycle = app.store.cycle(cycle_id(command.topic, command.tick))
    if cycle is None or not hooks.to_be_begun(cycle):
        return False
    return app.store.end_cycle(
        cycle.id, CycleState.SKIPPED, now, reason=reason, only_from=frozenset({cycle.state}), fence=cycle.fence
    )


def _begin(cycle: Cycle, app: App, now: datetime) -> bool:
    """Put the cycle, or take over the one that a hook put. True for one caller.

    Over twice: it ends as expired, which of several workers one can do, and is opened again, which one can do. A worker
    that dies between the two leaves it expired, and whoever gets the command next opens it.
    """
    if not hooks.by_hook(cycle.tick):
        return app.store.start_cycle(cycle)
    put = app.store.cycle(cycle.id)
    if put is None:  # its history is over: a hook's cycle is there before its command
        return False
    if hooks.asked(put):
        app.store.end_cycle(put.id, CycleState.EXPIRED, now, only_from=OPEN, fence=put.fence)
    return app.store.start_cycle(cycle)


def _new_cycle(command: StartCycle, topic: Topic, app: App, now: datetime) -> Cycle:
    return Cycle(
        id=cycle_id(topic.slug, command.tick),
        topic=topic.slug,
        tick=command.tick,
        state=CycleState.OPEN,
        started=now,
        lease_until=now + app.rules.cycle_lease + app.rules.source_deadline * (len(topic.queries) + len(topic.feeds)),
        cap=app.rules.cycle_cap,
        problems=(f"missed_ticks:{command.missed}",) if command.missed else (),
    )


def _run(command: StartCycle, topic: Topic, app: App, now: datetime) -> list[Send]:
    cycle = _new_cycle(command, topic, app, now)
    if not _begin(cycle, app, now):
        return _sent_before(app.store.cycle(cycle.id), app)
    cycle = app.store.cycle(cycle.id) or cycle  # a tick that is run once more carries a higher fence
    searches = not hooks.asks_no_source(command.tick)
    if searches:
        app.store.checked(topic.slug, now, ran=False)
    app.reporter.event("cycle_started", topic=topic.slug, cycle=cycle.id)

    found, problems = _search(topic, app) if searches else ([], [])
    finds: dict[str, Result] = {}
    for place, find in enumerate(found):
        try:
            # A microsecond apart, so that what was ranked first is judged first where not all can be.
            at = now + timedelta(microseconds=place)
            result = unknown(topic.slug, find, app.store, at, app.rules.recheck_after)
        except ValueError as error:
            problems.append(f"bad_address: {error}")
            continue
        if result is not None:
            finds.setdefault(result.canonical, result)
    sends, new, more = _send(topic, cycle.id, list(finds.values()), app, now)
    drained = cycle.model_copy(
        update={
            "state": CycleState.DRAINING,
            "active": app.clock.now(),
            "found": len(found),
            "new": new,
            "sent": len(sends),
            "cap_reached": more,
            "problems": cycle.problems + tuple(problems),
        }
    )
    if not app.store.drain_cycle(drained):
        return []  # our lease ran out and the tick was sent again; what we put is found by that run
    if cycle.fence > 1:
        # Its times alone would not say so to a clock that was once ahead.
        app.store.heard(f"cycle:{cycle.id}")
    if searches:
        app.store.checked(topic.slug, now, ran=True)
    for problem in problems:
        app.reporter.event("cycle_problem", topic=topic.slug, cycle=cycle.id, problem=problem)
    app.reporter.event("cycle_sent", topic=topic.slug, cycle=cycle.id, sent=len(sends), cap_reached=more)
    if not sends:
        close(cycle.id, app)
    return sends


def _sent_before(cycle: Cycle | None, app: App) -> list[Send]:
    """The same tick again. Its commands may have died with the worker that drained the cycle, so they are sent once
    more; those that did not are found to be done, and change nothing.
    """
    if cycle is None or cycle.state is not CycleState.DRAINING:
        return []
    waiting = app.store.results(topic=cycle.topic, states=frozenset({ResultState.WAITING}))
    return [
        Send(command=JudgeResult(topic=cycle.topic, result=result.id, cycle=cycle.id))
        for result in waiting
        if result.cycle == cycle.id
    ]


def _search(topic: Topic, app: App) -> tuple[list[Found], list[str]]:
    """Everything the sources have, and what was out. An outage is a problem of the cycle, never an empty answer."""
    found: list[Found] = []
    problems: list[str] = []
    for source in app.search.sources(topic):
        try:
            found.extend(source.find())
        except SearchFailed as error:
            problems.append(f"search_outage:{error.cause}: {source.name}: {error.detail}")
        problems.extend(source.warnings)
    return found, problems


def unknown(topic: str, find: Found, store: RunStore, now: datetime, recheck_after: timedelta | None) -> Result | None:
    """A find as a new waiting result. None: this topic knows it in this revision.

    Raises ValueError for an address that no page can have.
    """
    identity = canonical(find.url)
    latest = store.latest(topic, identity)
    revision = next_revision(latest, find, now, recheck_after)
    if revision is None:
        return None
    # "Not modified" is only worth asking for against a text that has a verdict.
    judged = latest if latest is not None and latest.state in JUDGED else None
    return Result(
        id=result_id(topic, identity, revision),
        topic=topic,
        url=find.url,
        canonical=identity,
        revision=revision,
        title=find.title,
        origin=find.origin,
        published=find.published,
        found=now,
        etag=judged.etag if judged else None,
        last_modified=judged.last_modified if judged else None,
    )


def _send(topic: Topic, cycle: str, found: list[Result], app: App, now: datetime) -> tuple[list[Send], int, bool]:
    """Store what was found; put what waits on its way, oldest first, up to the cap.

    Returns the commands, how many of the found were new, and whether more waits than the cap allows.

    What failed before comes last: pages that stop every cycle must not keep the others from ever being judged.
    What is on its way for another running cycle of the topic, or failed in it, is that cycle's until it closes. After the
    time that a worker has for a result its commands may be lost: then it is taken over.
    """
    running = app.store.cycles(topic=topic.slug, states=RUNNING_CYCLES)
    # One from a time to come is of a clock that was once ahead.
    others = {other.id for other in running if timedelta() <= now - other.started < app.rules.judge_lease} - {cycle}
    waiting = app.store.results(topic=topic.slug, states=frozenset({ResultState.WAITING}))
    untried: list[Result] = []
    tried: list[Result] = []
    for result in waiting:
        if len(untried) > app.rules.cycle_cap:
            break
        if _ready(result, others, now):
            (tried if result.failures or result.nonresponses else untried).append(result)
    room = max(app.rules.cycle_cap - len(untried), 0)
    on_their_way = [result.model_copy(update={"cycle": cycle}) for result in found[:room]]
    new = app.store.add_results(cycle, on_their_way + found[room:])
    sends: list[Send] = []
    for result in untried + new + tried:
        if len(sends) >= app.rules.cycle_cap:
            return sends, len(new), True
        if result.cycle == cycle or app.store.send_result(result.id, cycle, instead_of=result.cycle):
            sends.append(Send(command=JudgeResult(topic=topic.slug, result=result.id, cycle=cycle)))
    return sends, len(new), False


def _ready(result: Result, others: set[str], now: datetime) -> bool:
    last = result.failures[-1].cycle if result.failures else None
    unsettled = last in others and result.settled_cycle != last
    return result.cycle not in others and not unsettled and (result.not_before is None or result.not_before <= now)

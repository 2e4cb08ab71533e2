"""What is silent just now, and what is due about it. Changes nothing: `reap_stale` does, and a dry run only shows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from wikikeeper.models import Action, Condition, Cycle, CycleState, Result, ResultState, Silence
from wikikeeper.policy import silence as policy
from wikikeeper.policy.identity import run_id
from wikikeeper.workflows.context import App
from wikikeeper.workflows.schedule_cycle import DRAINING, UNFINISHED

WAITING = frozenset({ResultState.WAITING})
PARKED = frozenset({ResultState.PARKED})
SEARCHING = frozenset({CycleState.OPEN, CycleState.EXPIRED})
LONG = timedelta(days=1)
"""A cycle that drains for longer is worth a warning: every tick of a daily topic finds the one before. Nothing more is
done about it while it is worked on."""


SOONEST = timedelta(minutes=1)
"""In which no note without a delay counts as silent: its command is on its way."""


@dataclass(frozen=True, slots=True)
class Silent:
    """One silence, and what is due about it."""

    subject: str
    topic: str
    action: Action
    nonresponses: int
    """As they stand, before this silence is counted."""
    said: str
    """What is silent, for a person."""
    result: Result | None = None
    cycle: Cycle | None = None
    first: Cycle | None = None
    """The cycle that its silence began with; of one that drains."""
    stored: Silence | None = None
    ended: str | None = None
    """Why it is given up without telling anybody."""
    only_seen: bool = False
    """Too early to be called silent: it is noted down, for the next sweep to tell by."""


def look(app: App, *, alone: bool = False) -> list[Silent]:
    """Every silence there is. `alone`: nobody else is at work, so that nothing is left to its lease."""
    results = Unfinished.of(app)
    return [
        *_searches(results, app, alone=alone),
        *_claims(results, app, alone=alone),
        *_draining_cycles(results, app, alone=alone),
        *_notes(results, app, alone=alone),
    ]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What one look at all results tells: most wait, and of those only their cycle matters."""

    judging: list[Result]
    waiting: set[str | None]
    """Cycles for which something waits."""

    def busy(self, now: datetime) -> bool:
        """Something is worked on."""
        return any(result.lease_until is not None and result.lease_until > now for result in self.judging)

    @classmethod
    def of(cls, app: App) -> "Unfinished":
        judging: list[Result] = []
        waiting: set[str | None] = set()
        for result in app.store.results(states=UNFINISHED):
            if result.state is ResultState.WAITING:
                waiting.add(result.cycle)
            else:
                judging.append(result)
        return cls(judging, waiting)


def _searches(results: Unfinished, app: App, *, alone: bool) -> Iterator[Silent]:
    now = app.clock.now()
    searching = list(app.store.cycles(states=SEARCHING))
    for cycle in searching:
        if cycle.state is CycleState.OPEN and (cycle.lease_until is None or (cycle.lease_until > now and not alone)):
            continue
        stored = app.store.silence(f"cycle:{cycle.id}")
        last_sent = stored.counted if stored else None
        if not alone and not policy.search_is_silent(
            cycle, last_sent=last_sent, now=now, after=app.rules.silence_after
        ):
            continue
        last_run = app.store.topic(cycle.topic).last_run
        left = cycle.id in results.waiting
        ended = policy.not_worth_sending(cycle, app.topic(cycle.topic), last_run, now, left=left)
        if ended is None and any(policy.waits_for(cycle, other) for other in searching):
            continue
        nonresponses = stored.nonresponses if stored else 0
        counted = policy.action(nonresponses, app.rules.recovery_limit, now=now)
        yield Silent(
            subject=f"cycle:{cycle.id}",
            topic=cycle.topic,
            action=counted if ended is None else Action.GIVE_UP,
            nonresponses=nonresponses,
            said="searching for it was begun and never ended",
            cycle=cycle,
            stored=stored,
            ended=ended,
        )


def _claims(results: Unfinished, app: App, *, alone: bool) -> Iterator[Silent]:
    now = app.clock.now()
    for result in results.judging:
        if result.lease_until is None or (result.lease_until > now and not alone):
            continue
        action = policy.action(result.nonresponses, app.rules.recovery_limit, now=now)
        if action is Action.GIVE_UP and is_answered(result, app.store.call_begun(result), app):
            action = Action.RECOVER
        yield Silent(
            subject=f"result:{result.id}",
            topic=result.topic,
            action=action,
            nonresponses=result.nonresponses,
            said="whoever was judging this page was not heard of again",
            result=result,
        )


def is_answered(result: Result, called: datetime | None, app: App) -> bool:
    """An answer that is recorded is an outcome: the next claim has its verdict from it, without a call."""
    run = None if called is None else app.store.run(run_id(result.id, result.fence), called)
    return run is not None and run.outcome == "answered"


def _draining_cycles(results: Unfinished, app: App, *, alone: bool) -> Iterator[Silent]:
    draining = list(app.store.cycles(states=DRAINING))
    # Whoever is alone sends what waits without counting: that it was not heard of is this machine's doing.
    if alone or not draining:
        return
    now = app.clock.now()
    claimed = {result.cycle for result in results.judging}
    for cycle in draining:
        if now - cycle.started >= LONG:
            app.reporter.event("stage_long", topic=cycle.topic, cycle=cycle.id, since=cycle.started.isoformat())
    for cycle in draining:
        if cycle.id not in results.waiting:
            continue
        first = first_of(cycle, app)
        stored = app.store.silence(f"cycle:{first.id}")
        known = policy.since_heard(stored, first.active or first.started, now)
        silent = policy.cycle_is_silent(
            cycle,
            first,
            claimed=cycle.id in claimed,
            busy=results.busy(now),
            last_sent=stored.counted if stored else None,
            now=now,
            after=app.rules.silence_after,
        )
        if silent and not _model_explains_it(app):
            nonresponses = known.nonresponses if known else 0
            yield Silent(
                subject=f"cycle:{first.id}",
                topic=cycle.topic,
                action=policy.action(
                    nonresponses,
                    app.rules.recovery_limit,
                    now=now,
                    cooldown_until=policy.cools_until(known, now, app.rules.cooldown),
                ),
                nonresponses=nonresponses,
                said="results are on their way and nobody works on them",
                cycle=cycle,
                first=first,
                stored=stored,
            )


def _model_explains_it(app: App) -> bool:
    """A model that was seen to load or to be down a while ago: sending more would not help. Who judges looks at it."""
    seen = next(iter(app.store.model_history(app.keeper.model)), None)
    if seen is None or seen.condition is Condition.HEALTHY:
        return False
    # One from a time to come is of a clock that was once ahead.
    return timedelta() <= app.clock.now() - seen.since < app.rules.wake_timeout


def first_of(cycle: Cycle, app: App) -> Cycle:
    """The cycle with which the silence of this one began, were it silent."""
    place = (cycle.started, cycle.id)
    earlier = (each for each in app.store.cycles(topic=cycle.topic) if (each.started, each.id) < place)
    return policy.first_of(cycle, earlier)


def _notes(results: Unfinished, app: App, *, alone: bool) -> Iterator[Silent]:
    now = app.clock.now()
    for topic in _unnoted(app):
        due, stored = app.store.topic(topic).note_due, app.store.silence(f"note:{topic}")
        if due is not None and due > now:
            due = None  # set by a clock that was once ahead
        last_sent = stored.counted if stored is not None and stored.nonresponses and stored.counted <= now else None
        # Where one is alone, a command of somebody else is lost however young it is; its own was sent just now.
        soon = app.rules.note_delay * 2 or SOONEST
        first = alone and (last_sent is None or now - last_sent >= soon)
        silent = first or policy.note_is_silent(
            due, busy=results.busy(now), now=now, soon=soon, after=app.rules.silence_after, last_sent=last_sent
        )
        if not silent and due is not None:
            continue
        nonresponses = stored.nonresponses if stored else 0
        yield Silent(
            subject=f"note:{topic}",
            topic=topic,
            action=policy.action(
                nonresponses,
                app.rules.recovery_limit,
                now=now,
                cooldown_until=policy.cools_until(stored, now, app.rules.cooldown),
            ),
            nonresponses=nonresponses,
            said="pages are kept and its note is not written",
            stored=stored,
            only_seen=not silent,
        )


def _unnoted(app: App) -> list[str]:
    """By their files: of a topic whose first page is kept, the store knows nothing before its note is due."""
    return [topic.slug for topic in app.topics()[0] if next(iter(app.store.unnoted(topic.slug)), None) is not None]

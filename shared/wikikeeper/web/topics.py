"""Topics: when each was looked at and comes next, what waits, what it yields; the gate and the model beside them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from fastapi import APIRouter, Request

from wikikeeper.models import Condition, Cycle, CycleState, ResultState, Run, Topic, TopicState
from wikikeeper.policy import schedule
from wikikeeper.policy.run_filter import RunFilter
from wikikeeper.web.render import Html, page
from wikikeeper.web.site import Site
from wikikeeper.workflows.context import read_topics

NEWEST_CALLS = 200
"""Calls that a topic's yield is taken of: what it yields now, not since it was made."""
NEWEST_SIGHTINGS = 60
"""Changes of the model that are drawn: those of some weeks, where it sleeps between cycles."""
TONES = {Condition.HEALTHY: "healthy", Condition.WAKING: "skipped", Condition.LOADING: "skipped"}
"""How a condition is drawn; any other as what needs a person. A model that sleeps between cycles wakes and loads."""
OPEN = frozenset({ResultState.WAITING, ResultState.JUDGING, ResultState.PARKED})


@dataclass(frozen=True, slots=True)
class Yield:
    """What the newest calls of a topic brought."""

    calls: int
    kept: int
    seconds: float

    @property
    def kept_per_call(self) -> float | None:
        return self.kept / self.calls if self.calls else None

    @property
    def seconds_per_kept(self) -> float | None:
        """Of the model, for each page that a note has: what the GPU is paid for."""
        return self.seconds / self.kept if self.kept else None


@dataclass(frozen=True, slots=True)
class Row:
    topic: Topic
    state: TopicState
    next_run: datetime | None
    ended: bool
    last_cycle: Cycle | None
    counts: Counter[ResultState]
    gain: Yield

    @property
    def skipped(self) -> str | None:
        """Why its last cycle did not run to its end."""
        cycle = self.last_cycle
        if cycle is None or cycle.state not in (CycleState.SKIPPED, CycleState.STOPPED, CycleState.EXPIRED):
            return None
        return f"{cycle.state.value}: {cycle.reason or 'no reason is known'}"


def router(site: Site) -> APIRouter:
    routes = APIRouter(tags=["topics"])

    @routes.get("/topics", summary="Topics, the gate and the model")
    def topics(request: Request) -> Html:
        read, faults = read_topics(site.wiki)
        now = site.clock.now()
        return page(
            request,
            "topics.html",
            rows=[_row(site, topic, now) for topic in read],
            faults=faults,
            permits=site.store.permits(now),
            demands=site.store.demands(now),
            limit=site.gate_limit,
            seen=list(islice(site.store.model_history(), NEWEST_SIGHTINGS)),
            tones=TONES,
        )

    return routes


def gain(runs: Iterable[Run]) -> Yield:
    calls = kept = 0
    seconds = 0.0
    for run in runs:
        calls += 1
        kept += run.kept is True
        seconds += run.seconds or 0.0
    return Yield(calls=calls, kept=kept, seconds=seconds)


def _row(site: Site, topic: Topic, now: datetime) -> Row:
    ended = schedule.ended(topic.until, topic.zone, now)
    newest = site.store.run_page(RunFilter(topic=topic.slug), after=None, most=NEWEST_CALLS, most_read=NEWEST_CALLS)
    last = site.store.cycle_page(topic.slug, after=None, most=1).cycles
    return Row(
        topic=topic,
        state=site.store.topic(topic.slug),
        next_run=None if topic.cron is None or ended else schedule.next_run(topic.cron, topic.zone, now),
        ended=ended,
        last_cycle=last[0] if last else None,
        counts=Counter(result.state for result in site.store.results(topic=topic.slug, states=OPEN)),
        gain=gain(newest.runs),
    )

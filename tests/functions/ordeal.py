"""What containers that die are put through, and what must hold at the end of it: nothing lost, nothing done twice."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from tests.functions.mortal import Deaths
from tests.functions.stack import Stack
from tests.functions.twice_queue import MovableClock, TwiceQueue
from tests.workflows import world

from wikikeeper.fakes import ListedSearch, ListedSource
from wikikeeper.models import CycleState, Found, Origin, ReapStale, Result, ResultState, StartCycle

RESULTS = int(os.environ.get("WIKIKEEPER_RESULTS", "60"))
"""`make test-lambda` takes 500."""
TOPICS = ("postgres", "sqlite", "mysql", "duckdb")
"""Several, since the first note of a topic is opened and made only once."""
EACH = RESULTS // len(TOPICS)
CAP = EACH // 3
"""Each tick brings a part of the results, so that notes are written more than once."""
LIMIT = 32
"""Of the gate: a container that dies keeps its slots until their lease ends, and waiting for that is another test's."""
SWEEP = timedelta(minutes=5)
TICK_EVERY = 3
"""Sweeps from one tick to the next."""
MOST_SWEEPS = 60
MOST_TOPICS = 12
WORKER_DIES = "judge_result keeper.judge after"
TOPIC = "---\ntitle: Postgres releases\nlinks: [https://example.org/0]\n---\nWhat is new.\n"
DULL = 5
"""Every so manieth page is not worth keeping."""
RULES = replace(world.RULES, cycle_cap=CAP, patience=timedelta(seconds=0.5), recovery_limit=20)
"""Here containers die far more often than any page can be at fault for: to give up on one is another test's."""
ENDED = {ResultState.KEPT, ResultState.DISCARDED}


def pages(results: int = EACH) -> Mapping[str, str]:
    return {
        f"https://example.org/{n}": f"Page {n} is {'dull' if n % DULL == DULL - 1 else 'news'}.\n\nMore of {n}."
        for n in range(results)
    }


def search(results: int = EACH) -> ListedSearch:
    found = [Found(url=url, title=url[-3:], origin=Origin.SEARCH) for url in pages(results)]
    return ListedSearch(ListedSource("search", found))


class Ordeal(Protocol):
    """The stack, and what was seen of all its containers together."""

    topics: list[str]
    """Those that it goes through: at first `TOPICS`."""

    @property
    def deaths(self) -> Deaths: ...

    @property
    def stack(self) -> Stack: ...

    @property
    def clock(self) -> MovableClock: ...

    @property
    def queue(self) -> TwiceQueue: ...

    @property
    def verdicts(self) -> Counter[str]:
        """How often each result was given one."""
        ...

    @property
    def begun(self) -> set[str]:
        """Ids of the runs that there must be."""
        ...


def go_through(ordeal: Ordeal, planned: Iterable[str]) -> None:
    """Until containers died at all points that are `planned`.

    Which invocation is to die where, is known before it is known what it finds: so it may be that every first note was
    begun by one that was to die later on, or every claim taken back by such a one. Then there is a topic more, and a worker
    that dies in it.
    """
    _until_done(ordeal)
    for number in range(len(ordeal.topics), MOST_TOPICS):
        if not did_not_die(ordeal.deaths, planned):
            return
        ordeal.topics.append(f"more-{number}")
        ordeal.deaths.planned.setdefault(WORKER_DIES, 1)
        _until_done(ordeal)
    missed = did_not_die(ordeal.deaths, planned)
    assert not missed, f"no container came to {sorted(missed)}"


def _until_done(ordeal: Ordeal) -> None:
    """Ticks and sweeps, and all that follows from them, until everything is discarded, or kept and noted."""
    store, queue, topics = ordeal.stack.app().store, ordeal.queue, ordeal.topics
    for topic in topics:
        ordeal.stack.write(f"topics/{topic}.md", TOPIC)
    results: list[Result] = []
    for sweep in range(MOST_SWEEPS):
        if sweep % TICK_EVERY == 0:
            for topic in topics:
                queue.put(StartCycle(topic=topic, tick=f"tick-{ordeal.clock.now():%Y%m%dT%H%M}"))
        queue.run()
        queue.put(ReapStale())
        queue.run()
        results = list(store.results())
        if len(results) == EACH * len(topics) and all(r.state is ResultState.DISCARDED or r.noted for r in results):
            return
        ordeal.clock.advance(SWEEP)
    raise AssertionError(f"not done after {MOST_SWEEPS} sweeps: {Counter(result.state for result in results)}")


def nothing_is_lost_and_nothing_is_done_twice(ordeal: Ordeal) -> None:
    """Asserts it of an ordeal that was gone through."""
    store, queue = ordeal.stack.app().store, ordeal.queue
    results = list(store.results())
    kept = {result.id for result in results if result.state is ResultState.KEPT}
    assert {result.state for result in results} == ENDED
    assert len(kept) == (EACH - EACH // DULL) * len(ordeal.topics)
    assert queue.dead == []
    # A verdict may be stored by a container that dies before it hears so: never twice, though.
    assert max(ordeal.verdicts.values()) == 1
    notes = ordeal.stack.notes()
    assert len(notes) == len(ordeal.topics)
    entries = re.findall(r"<!-- result: (\w+) -->", "".join(note.decode() for note in notes.values()))
    assert Counter(entries) == Counter(kept)
    runs = list(store.runs())
    answered = Counter(run.subject for run in runs if run.outcome == "answered")
    assert max(answered.values()) == 1
    assert ordeal.begun <= {run.id for run in runs}
    cycles = list(store.cycles())
    # Each counted call has its run; who dies while it is counted leaves a run that says so all the same.
    assert len(runs) >= sum(cycle.calls for cycle in cycles)
    stopped = {cycle.reason for cycle in cycles if cycle.state is CycleState.STOPPED}
    assert stopped <= {"its topic was searched since"}
    ended = {CycleState.DONE, CycleState.DRAINING, CycleState.EXPIRED, CycleState.STOPPED}
    assert {cycle.state for cycle in cycles} <= ended
    assert queue.deliveries >= 2 * queue.sent


def did_not_die(deaths: Deaths, planned: Iterable[str]) -> set[str]:
    return set(planned) - set(deaths.happened)

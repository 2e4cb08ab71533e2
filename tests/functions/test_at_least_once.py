"""Every message delivered twice, in any order, the second while the first runs; each function killed at named points.

What must hold: nothing is lost, nothing noted twice, nothing judged twice, no message ends among the dead letters that did
nothing wrong.
"""

import io
import os
import random
import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from functions.judge_result import handler as judge_handler
from functions.reap_stale import handler as reap_handler
from functions.schedule_cycle import handler as schedule_handler
from functions.write_note import handler as note_handler
from tests.adapters.aws.schema import make_bucket, make_table
from tests.functions.mortal import Container, Deaths, TwiceQueue
from tests.functions.stack import HANDLERS, Stack
from tests.workflows.world import RULES

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import DynamoGate
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.adapters.aws.json_log import JsonLog
from wikikeeper.fakes import (
    ListedSearch,
    ListedSource,
    PageShelf,
    PlainExtractor,
    ScriptedDecider,
    ScriptedKeeper,
    SettableClock,
    judgement,
)
from wikikeeper.handling import Cloud
from wikikeeper.models import Found, Judgement, Origin, ReapStale, Result, ResultState, StartCycle
from wikikeeper.policy.identity import run_id

RESULTS = int(os.environ.get("WIKIKEEPER_RESULTS", "60"))
"""`make test-lambda` takes 500."""
LIMIT = 32
"""Of the gate: a container that dies keeps its slots until their lease ends, and waiting for that is another test's."""
SWEEP = timedelta(minutes=5)
TICK_EVERY = 3
"""Sweeps from one tick to the next. Each tick brings a part of the results, so that notes are written more than once."""
CAP = RESULTS // 4
MOST_SWEEPS = 400
TOPIC = "---\ntitle: Postgres releases\nlinks: [https://example.org/0]\n---\nWhat is new.\n"
ENDED = {ResultState.KEPT, ResultState.DISCARDED}

DEATHS = {
    # schedule-cycle: a cycle that was opened and left, results that were put and not sent, messages sent and not known
    "schedule_cycle store.start_cycle after": 1,
    "schedule_cycle store.add_result after": 20,
    "schedule_cycle store.send_result after": 25,
    "schedule_cycle store.drain_cycle before": 1,
    "schedule_cycle store.drain_cycle after": 1,
    "schedule_cycle sender.send before": 3,
    "schedule_cycle sender.send after": 4,
    "schedule_cycle store.end_cycle after": 1,
    # judge-result, in the order of its writes
    "judge_result store.claim after": 5,
    "judge_result fetcher.fetch after": 7,
    "judge_result store.claim_text after": 9,
    "judge_result gate.acquire after": 8,
    "judge_result store.begin_call before": 6,
    "judge_result store.begin_call after": 9,
    "judge_result keeper.judge after": 10,
    "judge_result store.put_page after": 4,
    "judge_result store.put_run before": 8,
    "judge_result store.put_run after": 11,
    "judge_result store.finish before": 9,
    "judge_result store.finish after": 12,
    "judge_result store.set_note_due after": 1,
    "judge_result sender.send before": 14,
    # write-note
    "write_note store.clear_note_due after": 1,
    "write_note store.open_note after": 1,
    "write_note wiki.create before": 1,
    "write_note wiki.create after": 1,
    "write_note store.start_note after": 1,
    "write_note store.mark_noted before": 1,
    "write_note store.mark_noted after": 1,
    "write_note wiki.replace before": 1,
    "write_note wiki.replace after": 1,
    # reap-stale
    "reap_stale store.free after": 2,
    "reap_stale store.put_run after": 1,
    "reap_stale sender.send before": 3,
    "reap_stale sender.send after": 5,
}
"""Where a container dies, and at which call."""


def script(title: str, paragraphs: Sequence[str]) -> Judgement:
    return judgement(useful=0.1 if "dull" in paragraphs[0] else 0.9)


class World:
    """The stack with scripted pages and model, and what was seen of all containers together."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self.stack = stack
        self.clock = SettableClock()
        self.deaths = Deaths(dict(DEATHS))
        self.verdicts: Counter[str] = Counter()
        self.begun: set[str] = set()
        """Ids of the runs that there must be."""
        self._lock = threading.Lock()
        pages = {
            f"https://example.org/{n}": f"Page {n} is {'dull' if n % 5 == 0 else 'news'}.\n\nMore of {n}."
            for n in range(RESULTS)
        }
        self._shelf = PageShelf(pages)
        found = [Found(url=url, title=url[-3:], origin=Origin.SEARCH) for url in pages]
        self._search = ListedSearch(ListedSource("search", found))
        self._keeper = ScriptedKeeper(script)
        self.log = io.StringIO()
        containers = {function: partial(self._container, function) for function in HANDLERS}
        self.queue = TwiceQueue(self.clock, random.Random(seed), containers)
        stack.write("topics/postgres.md", TOPIC)

    def _container(self, function: str) -> Container:
        real = self.stack.app()
        table = Table(self.stack.clients.dynamodb, self.stack.table)
        app = replace(
            real,
            search=self._search,
            fetcher=self._shelf,
            extractor=PlainExtractor(),
            keeper=self._keeper,
            decider=ScriptedDecider(),
            gate=DynamoGate(table, LIMIT, self.clock.now),
            clock=self.clock,
            reporter=JsonLog(self.log),
            rules=replace(RULES, cycle_cap=CAP, patience=timedelta(seconds=0.5)),
        )
        return Container(Cloud(function, app, self.queue, self), self.deaths, self._seen)

    def put(self, body: str) -> None:
        raise AssertionError(f"unreadable: {body}")

    def _seen(self, call: str, args: Sequence[Any], answer: Any) -> None:  # noqa: ANN401 - of any port
        with self._lock:
            if call == "store.finish" and answer:
                self.verdicts[args[0].result.id] += 1
            if call == "store.begin_call" and answer is not None:
                self.begun.add(run_id(answer.result.id, answer.fence))

    def own(self, _: str) -> Cloud:
        """What a handler is given: that of the container that it runs in."""
        container: Container = self.queue.current.container
        return container.cloud


def _run(world: World) -> None:
    """Ticks and sweeps, and all that follows from them, until everything is discarded, or kept and noted."""
    store = world.stack.app().store
    results: list[Result] = []
    for sweep in range(MOST_SWEEPS):
        if sweep % TICK_EVERY == 0:
            world.queue.put(StartCycle(topic="postgres", tick=f"tick-{sweep // TICK_EVERY}"))
        world.queue.run()
        world.queue.put(ReapStale())
        world.queue.run()
        results = list(store.results())
        if len(results) == RESULTS and all(r.state is ResultState.DISCARDED or r.noted for r in results):
            return
        world.clock.advance(SWEEP)
    raise AssertionError(f"not done after {MOST_SWEEPS} sweeps: {Counter(result.state for result in results)}")


@pytest.mark.parametrize("seed", [1])
def test_nothing_is_lost_and_nothing_is_done_twice(roto: Clients, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    stack = Stack(roto, make_table(roto.dynamodb).name, make_bucket(roto), queues={}, dead={})
    world = World(stack, seed)
    for handler in (schedule_handler, judge_handler, note_handler, reap_handler):
        monkeypatch.setattr(handler, "cloud", world.own)
    store = stack.app().store

    _run(world)

    results = list(store.results())
    kept = {result.id for result in results if result.state is ResultState.KEPT}
    assert {result.state for result in results} == ENDED
    assert len(kept) == RESULTS - len(range(0, RESULTS, 5))
    assert not world.queue.dead
    # A verdict may be stored by a container that dies before it hears so: never twice, though.
    assert max(world.verdicts.values()) == 1
    entries = re.findall(r"<!-- result: (\w+) -->", "".join(note.decode() for note in stack.notes().values()))
    assert Counter(entries) == Counter(kept)
    runs = list(store.runs())
    answered = Counter(run.subject for run in runs if run.outcome == "answered")
    assert max(answered.values()) == 1
    assert world.begun <= {run.id for run in runs}
    assert world.queue.deliveries >= 2 * world.queue.sent
    assert set(DEATHS) - set(world.deaths.happened) == set()

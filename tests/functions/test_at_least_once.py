"""Every message delivered twice, in any order, the second while the first runs; each function killed at named points.

What must hold: nothing is lost, nothing noted twice, nothing judged twice, no message ends among the dead letters that did
nothing wrong. Once in this process, where any call of a port can be the last; and once with processes that are killed.
"""

import io
import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from functions.judge_result import handler as judge_handler
from functions.reap_stale import handler as reap_handler
from functions.schedule_cycle import handler as schedule_handler
from functions.write_note import handler as note_handler
from tests.adapters.aws.schema import make_bucket, make_table
from tests.functions import ordeal
from tests.functions.mortal import DEATHS, Deaths, MortalContainer
from tests.functions.processes import PROCESS_DEATHS, MortalProcesses
from tests.functions.stack import HANDLERS, Stack
from tests.functions.twice_queue import TwiceQueue

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import DynamoGate
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.adapters.aws.json_log import JsonLog
from wikikeeper.fakes import PageShelf, PlainExtractor, ScriptedDecider, ScriptedKeeper, SettableClock, judgement
from wikikeeper.handling import Cloud
from wikikeeper.models import Judgement
from wikikeeper.policy.identity import run_id


def script(title: str, paragraphs: Sequence[str]) -> Judgement:
    return judgement(useful=0.1 if "dull" in paragraphs[0] else 0.9)


class World:
    """The stack with scripted pages and model, its containers in this process."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self.stack = stack
        self.topics = list(ordeal.TOPICS)
        self.clock = SettableClock()
        self.deaths = Deaths(dict(DEATHS))
        self.verdicts: Counter[str] = Counter()
        self.begun: set[str] = set()
        self._lock = threading.Lock()
        self._shelf = PageShelf(ordeal.pages())
        self._search = ordeal.search()
        self._keeper = ScriptedKeeper(script)
        self.log = io.StringIO()
        containers = {function: partial(self._container, function) for function in HANDLERS}
        self.queue = TwiceQueue(self.clock, random.Random(seed), containers)

    def _container(self, function: str) -> MortalContainer:
        real = self.stack.app()
        table = Table(self.stack.clients.dynamodb, self.stack.table)
        app = replace(
            real,
            search=self._search,
            fetcher=self._shelf,
            extractor=PlainExtractor(),
            keeper=self._keeper,
            decider=ScriptedDecider(),
            gate=DynamoGate(table, ordeal.LIMIT, self.clock.now),
            clock=self.clock,
            reporter=JsonLog(self.log),
            rules=ordeal.RULES,
        )
        return MortalContainer(Cloud(function, app, self.queue, self), self.deaths, self._seen)

    def put(self, body: str) -> None:
        raise AssertionError(f"unreadable: {body}")

    def _seen(self, call: str, args: Sequence[Any], answer: Any) -> None:  # noqa: ANN401 - of any port
        with self._lock:
            if call == "store.finish" and answer:
                self.verdicts[args[0].result.id] += 1
            if call == "store.begin_call" and answer is not None:
                self.begun.add(run_id(answer.result.id, answer.fence))


def own(_: str) -> Cloud:
    """What a handler is given: that of the container that it runs in."""
    found: Cloud = MortalContainer.current.cloud
    return found


@pytest.fixture
def stack(roto: Clients) -> Stack:
    return Stack(roto, make_table(roto.dynamodb).name, make_bucket(roto), queues={}, dead={})


@pytest.mark.parametrize("seed", [1])
def test_nothing_is_lost_and_nothing_is_done_twice(stack: Stack, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    world = World(stack, seed)
    for handler in (schedule_handler, judge_handler, note_handler, reap_handler):
        monkeypatch.setattr(handler, "cloud", own)

    ordeal.go_through(world, DEATHS)

    ordeal.nothing_is_lost_and_nothing_is_done_twice(world)


def test_processes_that_are_killed_lose_nothing_and_do_nothing_twice(stack: Stack, tmp_path: Path) -> None:
    with MortalProcesses(stack, tmp_path, random.Random(1)) as world:
        ordeal.go_through(world, PROCESS_DEATHS)

        ordeal.nothing_is_lost_and_nothing_is_done_twice(world)
        # Those that died between the count and the call are runs without a call.
        assert world.server.calls <= len(list(stack.app().store.runs()))

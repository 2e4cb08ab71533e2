"""Containers that are processes, as the test sees them: it invokes them, carries what they send, and they can be killed."""

import itertools
import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.functions import container
from tests.functions.container import Halt, Setup, SharedClock
from tests.functions.mortal import DEATHS, Deaths
from tests.functions.ordeal import EACH, TOPICS
from tests.functions.stack import HANDLERS, Stack
from tests.functions.twice_queue import Killed, TwiceQueue
from tests.system.decision_server import Answer as PageAnswer
from tests.system.decision_server import DecisionServer

from wikikeeper.handling import Answer, Event
from wikikeeper.models import Send

STARTED = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
PROCESS_DEATHS = DEATHS | {"schedule_cycle queue.send after": 3, "reap_stale queue.send after": 1}
"""Also between two messages of one answer."""
ANSWER_SECONDS = 60
"""Then a process that neither answers nor dies is a fault."""
STOP_SECONDS = 5

# Processes are copies of one that has everything imported, and no threads: made in milliseconds.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.functions.container"])


class Stopped(BaseException):
    """The container stands still at the point that it was to stop at."""


class ProcessContainer:
    """One process. `heard` is told what it says on the way."""

    def __init__(self, setup: Setup, heard: Callable[[str, Any], None]) -> None:
        self.dead = False
        self.log = Path(setup.log)
        self._heard = heard
        self._pipe, theirs = _processes.Pipe()
        self._process = _processes.Process(target=container.run, args=(theirs, setup), daemon=True)
        self._process.start()
        theirs.close()

    def invoke(self, event: Event, halt: Halt | None = None) -> Answer:
        """Raises Killed and Stopped where it comes to `halt`."""
        self._pipe.send((event, halt))
        return self._answer(may_die=halt is not None and halt.how == "kill")

    def go_on(self) -> Answer:
        """After it stopped."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGCONT)
        return self._answer(may_die=False)

    def _until_it_stands_still(self) -> None:
        status = Path(f"/proc/{self._process.pid}/status")
        deadline = time.monotonic() + ANSWER_SECONDS
        while "\nState:\tT" not in status.read_text(encoding="ascii"):
            if time.monotonic() > deadline:
                raise TimeoutError("the container says that it stops, and runs on")
            time.sleep(0.001)

    def end(self) -> None:
        self._process.kill()
        self._process.join(STOP_SECONDS)
        self._process.close()
        self._pipe.close()

    def _answer(self, *, may_die: bool) -> Answer:
        while True:
            if not self._pipe.poll(ANSWER_SECONDS):
                raise TimeoutError("the container neither answers nor dies")
            try:
                what, about = self._pipe.recv()
            except (EOFError, OSError):
                self.dead = True
                self._process.join(STOP_SECONDS)
                if may_die and self._process.exitcode == -signal.SIGKILL:
                    raise Killed from None
                raise RuntimeError(f"the container ended with {self._process.exitcode}") from None
            if what == "answered":
                answer: Answer = about
                return answer
            if what == "stopped":
                # It says so before it is: what went on until then would be no freeze, and a SIGCONT without effect.
                self._until_it_stands_still()
                raise Stopped(about)
            self._heard(what, about)


class Processes:
    """The stack, a model server that counts its calls, and containers as processes, all ended after a `with` block."""

    def __init__(self, stack: Stack, folder: Path, results: int = EACH) -> None:
        self.stack = stack
        self.clock = SharedClock(RawValue("d", STARTED.timestamp()))
        self.server = DecisionServer({"is dull": PageAnswer(useful=0.1)})
        self.verdicts: Counter[str] = Counter()
        self.begun: set[str] = set()
        self.sent: list[Send] = []
        self._results = results
        self._folder = folder
        self._made: list[ProcessContainer] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for made in self._made:
            made.end()
        self.server.__exit__(kind, error, at)

    def container(self, function: str) -> ProcessContainer:
        own = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        settings = self.stack.environment() | {"WIKIKEEPER_LLAMA__BASE_URL": self.server.url}
        with self._lock:
            log = self._folder / f"{function}-{next(self._numbers)}.log"
            made = ProcessContainer(Setup(function, own | settings, self.clock, str(log), self._results), self.heard)
            self._made.append(made)
        return made

    def heard(self, what: str, about: Any) -> None:  # noqa: ANN401 - by what it is
        if what == "sent":
            self.carry(about)
            return
        with self._lock:
            if what == "verdict":
                self.verdicts[about] += 1
            else:
                self.begun.add(about)

    def carry(self, send: Send) -> None:
        self.sent.append(send)


class MortalProcesses(Processes):
    """With a queue whose containers die at all of `DEATHS`."""

    def __init__(self, stack: Stack, folder: Path, rng: random.Random) -> None:
        super().__init__(stack, folder)
        self.topics = list(TOPICS)
        self.deaths = Deaths(dict(PROCESS_DEATHS))
        self.queue = TwiceQueue(self.clock, rng, {function: partial(Mortal, self, function) for function in HANDLERS})

    def carry(self, send: Send) -> None:
        self.queue.send([send])


class Mortal:
    """A container of the queue's: each of its invocations may be the one that ends it."""

    def __init__(self, world: MortalProcesses, function: str) -> None:
        self._inner = world.container(function)
        self._deaths = world.deaths
        self._function = function

    @property
    def dead(self) -> bool:
        return self._inner.dead

    def invoke(self, event: Event, *, spared: bool) -> Answer:
        halt = None if spared else self._next()
        try:
            answer = self._inner.invoke(event, halt)
        except Killed:
            assert halt is not None
            with self._deaths.lock:
                self._deaths.happened[halt.point] += 1
            raise
        if halt is not None:  # not reached: at the first call then, some other time
            with self._deaths.lock:
                self._deaths.planned[halt.point] = 1
        return answer

    def _next(self) -> Halt | None:
        with self._deaths.lock:
            mine = [point for point in self._deaths.planned if point.startswith(f"{self._function} ")]
            return Halt(mine[0], self._deaths.planned.pop(mine[0])) if mine else None

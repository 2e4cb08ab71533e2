"""A container as a process of its own: the handlers over the stores and the model server on loopback, until it is killed.

    the test                    this process
    invoke(event, halt) ──▶  handler ── each call of a port: is it the one to halt at? SIGKILL, or SIGSTOP
       queue ◀── sent ──────────┤       what followed is sent to the test, which is the queue
             ◀── answered ──────┘

Real are the handlers, the adapters of the stores, the gate and the client of the model server. Pages and search are
lists, and the clock is the test's.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_double
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Literal, NamedTuple

from functions.judge_result import handler as judge_handler
from functions.reap_stale import handler as reap_handler
from functions.schedule_cycle import handler as schedule_handler
from functions.write_note import handler as note_handler
from tests.functions import ordeal
from tests.functions.mortal import watched
from tests.functions.stack import HANDLERS, Context

# Those that functions load when they start are loaded before they are copied.
import wikikeeper.adapters.llama.decide
import wikikeeper.adapters.web.extract
import wikikeeper.adapters.web.fetch
import wikikeeper.adapters.web.sources
import wikikeeper.keeper  # noqa: F401
from wikikeeper import cloud_app, handling
from wikikeeper.adapters.aws.dynamodb_gate import DynamoGate
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.fakes import PageShelf, PlainExtractor
from wikikeeper.handling import Cloud
from wikikeeper.models import Send
from wikikeeper.policy.identity import run_id


class SharedClock:
    """One time for all processes; it stands still until the test moves it."""

    def __init__(self, seconds: c_double) -> None:
        self._seconds = seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._seconds.value, UTC)

    def advance(self, by: timedelta) -> None:
        self._seconds.value += by.total_seconds()


@dataclass(frozen=True)
class Setup:
    function: str
    environment: Mapping[str, str]
    clock: SharedClock
    log: str
    results: int
    """How many the search finds."""


class Halt(NamedTuple):
    """Where to stop in an invocation, and how: for good, or until SIGCONT."""

    point: str
    """`function port.method before|after`."""
    call: int = 1
    """The how manieth of this point."""
    how: Literal["kill", "stop"] = "kill"


def run(pipe: Connection, setup: Setup) -> None:
    """Serve invocations until the pipe closes."""
    with open(setup.log, "a", buffering=1, encoding="utf-8") as log:  # noqa: PTH123 - line by line
        sys.stdout = log
        os.environ.update(setup.environment)
        _Container(pipe, setup).serve()


class _Container:
    def __init__(self, pipe: Connection, setup: Setup) -> None:
        self._pipe = pipe
        self._function = setup.function
        self._halt: Halt | None = None
        self._calls = 0
        self._lock = threading.Lock()
        self._speaking = threading.Lock()
        own = handling.cloud(setup.function)
        table = Table(cloud_app._clients().dynamodb, cloud_app.settings().aws.table)
        app = replace(
            own.app,
            search=ordeal.search(setup.results),
            fetcher=PageShelf(ordeal.pages(setup.results)),
            extractor=PlainExtractor(),
            gate=DynamoGate(table, ordeal.LIMIT, setup.clock.now),
            clock=setup.clock,
            rules=ordeal.RULES,
        )
        cloud = watched(Cloud(own.function, app, self, own.dead_letters), self)
        for handler in (schedule_handler, judge_handler, note_handler, reap_handler):
            handler.cloud = lambda _: cloud  # type: ignore[attr-defined]  # a name that it imports

    def serve(self) -> None:
        while True:
            try:
                event, self._halt = self._pipe.recv()
            except EOFError:
                return
            self._calls = 0
            self._say("answered", HANDLERS[self._function](event, Context()))

    def send(self, sends: Sequence[Send]) -> None:
        """One after the other, so that it can be killed between two."""
        for send in sends:
            self.call("queue", "send", partial(self._say, "sent"), send)

    def call(self, port: str, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        point = f"{self._function} {port}.{name}"
        self._halt_at(f"{point} before")
        answer = method(*args, **kwargs)
        if (port, name) == ("store", "finish") and answer:
            self._say("verdict", args[0].result.id)
        if (port, name) == ("store", "begin_call") and answer is not None:
            self._say("begun", run_id(answer.result.id, answer.fence))
        self._halt_at(f"{point} after")
        return answer

    def _halt_at(self, point: str) -> None:
        with self._lock:
            halt = self._halt
            if halt is None or halt.point != point:
                return
            self._calls += 1
            if self._calls < halt.call:
                return
            self._halt = None
        if halt.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        self._say("stopped", point)
        # To this thread: sent to the process, another thread may take it, and this one goes past the point meanwhile.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    def _say(self, what: str, about: object) -> None:
        with self._speaking:
            self._pipe.send((what, about))

"""One process of a chaos run: the real workflows, stores and adapters, struck at the points that it is ordered to.

It does one thing at a time: a command is sent to it, and what follows from the command is sent back. Everything that
strikes it is its own doing, at an exact point: so what it wrote into the journal is true.
"""

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any, Literal
from unittest.mock import patch

from bench.chaos_parts.plan import CALL_SECONDS, CAP, DEADLINE, LEASE, LIMIT, Order, Point, Run

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.app import open_app
from wikikeeper.dispatch import dispatch
from wikikeeper.fakes import PlainExtractor
from wikikeeper.models import Claim, Command, JudgeResult, ResultState, Send, WriteNote
from wikikeeper.parts import ModelServer
from wikikeeper.settings import GateSettings, KeeperSettings, Research, Settings
from wikikeeper.workflows.context import App

PATIENCE = 0.4
"""Seconds for a permit: with a call's deadline they fit into a lease."""
SILENCE = 10 * LEASE
"""Of a draining cycle, until its commands are taken for lost: longer than a command is in the queue."""
NOTE_DELAY = timedelta(seconds=2)
MOST_ATTEMPTS = 20
"""No page may be parked for what the server does to it here: only silence parks."""
HELD_SECONDS = 0.6
"""How long a successor waits before its verdict for the worker that it succeeds: well within its lease."""
IDLE_LOOK = 2.0
"""Seconds between looks whether the parent is still there."""


@dataclass(frozen=True)
class Task:
    command: Command | None
    """None: look around."""
    order: Order | None = None


@dataclass(frozen=True)
class Done:
    sends: tuple[Send, ...]
    obeyed: bool
    """The order was carried out; it is none's any more."""
    error: str | None = None
    seen: "Seen | None" = None


@dataclass(frozen=True)
class Paused:
    """The worker stands still at a point: stopped, or waiting for `go`."""

    order: Order


@dataclass(frozen=True)
class Seen:
    """What a look around found."""

    waiting: Mapping[str, int]
    """Results that wait, by topic."""
    unfinished: int
    """Results that are judged just now, kept ones without a note, cycles that run."""
    settled: int
    """Results with a verdict or parked, and notes' entries: goes up as long as there is progress."""


GO: Literal["go"] = "go"


def serve(run: Run, connection: Connection, others: list[Connection]) -> None:
    """The life of a worker, until it is told to end, its parent is gone, or it is struck."""
    for other in others:
        other.close()
    parent = os.getppid()
    with opened(run) as app, _Worker(run, app, connection).watching() as worker:
        while os.getppid() == parent:
            if not connection.poll(IDLE_LOOK):
                continue
            task = connection.recv()
            if task is None:
                return
            if task != GO:  # one that came too late
                connection.send(worker.work(task))


@contextmanager
def opened(run: Run) -> Iterator[App]:
    """The App of one machine with short leases. Pages are plain text, read without the extractor's child process."""
    settings = Settings(
        gate=GateSettings(limit=LIMIT, patience=PATIENCE, max_wait=PATIENCE / 2),
        keeper=KeeperSettings(timeout=DEADLINE, connect_timeout=DEADLINE),
        research=Research(cycle_cap=CAP, max_attempts=MOST_ATTEMPTS, note_delay=NOTE_DELAY.total_seconds()),
    )
    with open_app(run.wiki, settings, ModelServer(run.base_url, "decider"), Silent()) as app:
        short = replace(
            app.rules,
            judge_lease=LEASE,
            call_lease=LEASE,
            permit_lease=LEASE,
            cycle_lease=timedelta(minutes=1),
            silence_after=SILENCE,
        )
        assert isinstance(app.store, SqliteRunStore)
        yield replace(app, store=_store(run, app.store.database), extractor=PlainExtractor(), rules=short)


class Silent:
    def event(self, name: str, **fields: object) -> None:
        """Nothing: what happened is read from the store."""


# -- builds that are broken on purpose


class Fenceless(SqliteRunStore):
    """A verdict is taken from whoever brings it while somebody is judging."""

    def finish(self, claim: Claim, state: ResultState, at: datetime, **values: Any) -> bool:  # noqa: ANN401 - as it is
        now = self.result(claim.result.id)
        return super().finish(claim.model_copy(update={"fence": now.fence}) if now else claim, state, at, **values)


class CountsLate(SqliteRunStore):
    """Non-responses are saved when the recovery call has come back: one that kills its worker never does."""

    def free(self, result: str, *values: Any, **named: Any) -> Any:  # noqa: ANN401 - as it is
        freed = super().free(result, *values, **named)
        if freed:
            self.database.change("UPDATE results SET nonresponses = nonresponses - 1 WHERE id = ?", (result,))
        return freed

    def finish(self, claim: Claim, state: ResultState, at: datetime, **values: Any) -> bool:  # noqa: ANN401 - as it is
        self.database.change("UPDATE results SET nonresponses = nonresponses + 1 WHERE id = ?", (claim.result.id,))
        return super().finish(claim, state, at, **values)


def _store(run: Run, database: Database) -> SqliteRunStore:
    builds: dict[str | None, type[SqliteRunStore]] = {"fence": Fenceless, "counter": CountsLate}
    return builds.get(run.broken, SqliteRunStore)(database)


# -- being struck


class Watched:
    """A port of which some methods tell when they are about to be called, and when they were."""

    def __init__(self, port: object, **hooks: Callable[..., None]) -> None:
        """`before_<method>()`, `ended_<method>()` in any case, `after_<method>(answer, *arguments)` if nothing was raised."""
        self._port, self._hooks = port, hooks

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it stands for any port
        found = getattr(self._port, name)
        before, ended, after = (self._hooks.get(f"{when}_{name}") for when in ("before", "ended", "after"))
        if before is None and ended is None and after is None:
            return found

        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - and for any of its methods
            if before is not None:
                before()
            try:
                answer = found(*arguments, **named)
            finally:
                if ended is not None:
                    ended()
            if after is not None:
                after(answer, *arguments)
            return answer

        return call


class _Worker:
    def __init__(self, run: Run, app: App, connection: Connection) -> None:
        self._run, self._connection = run, connection
        self._task = Task(None)
        self._order: Order | None = None
        self._writing = self._kept = False
        self._journal = os.open(run.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._really_fsync = os.fsync
        self._killer: threading.Timer | None = None
        parts: dict[str, Any] = {
            "store": Watched(
                app.store,
                after_claim=self._claimed,
                after_begin_call=self._begun,
                after_put_run=self._recorded,
                after_finish=self._finished,
                before_finish=lambda: self._at(Point.RECORDED, hold=True),
                after_set_note_due=self._due,
                after_clear_note_due=self._noting,
                after_free=lambda freed, *_: self._at(Point.FREED) if freed else None,
                after_give_up=lambda given_up, *_: self._at(Point.GIVEN_UP) if given_up else None,
                after_escalate=lambda *_: self._at(Point.ESCALATED),
            ),
            "fetcher": Watched(app.fetcher, after_fetch=lambda *_: self._at(Point.FETCHED)),
            "keeper": Watched(
                app.keeper,
                before_judge=self._calling,
                ended_judge=self._called,
                after_judge=lambda *_: self._at(Point.CALLED),
            ),
            "wiki": Watched(
                app.wiki,
                before_create=self._write,
                before_replace=self._write,
                after_create=self._written,
                after_replace=self._written,
            ),
        }
        self.app = replace(app, reporter=self, **parts)

    @contextmanager
    def watching(self) -> Iterator["_Worker"]:
        with patch.object(os, "fsync", self._fsync):
            yield self

    def work(self, task: Task) -> Done:
        self._task, self._order, self._writing, self._kept = task, task.order, False, False
        if task.command is None:
            return Done((), obeyed=False, seen=look(self.app.store, self._run))
        sends: tuple[Send, ...] = ()
        error = None
        try:
            sends = tuple(dispatch(task.command, self.app))
        except Exception as raised:  # noqa: BLE001 - the boundary of the host: one command's fault must not end the others
            error = f"{task.command.kind}: {type(raised).__name__}: {raised}"
        if self._kept:  # the permit is back, and nothing was sent yet
            self._at(Point.DUE)
        return Done(sends, obeyed=task.order is not None and self._order is None, error=error)

    def event(self, name: str, **fields: object) -> None:
        """The reporter: what a person is told is written down."""
        if name == "escalated":
            self._note_down("told", fields["escalation"])
            self._at(Point.TOLD)

    def _at(self, point: Point, *, hold: bool = False) -> None:
        order = self._order
        if order is None or order.at != point or (order.do == "hold") != hold:
            return
        self._order = None
        match order.do:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                self._connection.send(Paused(order))
                os.kill(os.getpid(), signal.SIGSTOP)
            case "hold":
                self._connection.send(Paused(order))
                if self._connection.poll(HELD_SECONDS):
                    self._connection.recv()

    def _note_down(self, *words: object) -> None:
        """One short line: appended whole, also by several processes."""
        os.write(self._journal, (" ".join(map(str, words)) + "\n").encode())

    def _claimed(self, claim: Claim | None, *_: object) -> None:
        if claim is not None:
            self._at(Point.CLAIMED)

    def _begun(self, claim: Claim | None, *_: object) -> None:
        if claim is None or not isinstance(self._task.command, JudgeResult):
            return
        self._note_down("call", claim.result.id, self._task.command.cycle, claim.fence)
        self._at(Point.COUNTED)

    def _calling(self) -> None:
        order = self._order
        if order is not None and order.at is Point.CALLING:
            self._killer = threading.Timer(CALL_SECONDS / 2, os.kill, (os.getpid(), signal.SIGKILL))
            self._killer.start()

    def _called(self) -> None:
        if self._killer is not None:  # the call ended first: refused at once, or the machine was too busy
            os.kill(os.getpid(), signal.SIGKILL)

    def _recorded(self, *_: object) -> None:
        self._at(Point.RECORDED if isinstance(self._task.command, JudgeResult) else Point.LOST_RECORDED)

    def _finished(self, finished: bool, claim: Claim, state: ResultState, *_: object) -> None:  # noqa: FBT001 - an answer
        self._note_down("verdict" if finished else "refused", claim.result.id, claim.fence, state)
        if finished:
            self._at(Point.FINISHED)

    def _due(self, *_: object) -> None:
        self._kept = True

    def _noting(self, *_: object) -> None:
        if isinstance(self._task.command, WriteNote):
            self._at(Point.NOTING)

    def _write(self) -> None:
        self._writing = True

    def _written(self, *_: object) -> None:
        self._writing = False
        self._at(Point.UNMARKED)

    def _fsync(self, descriptor: int) -> None:
        """The first file that is flushed inside a note's write is the note, before it has its name."""
        if self._writing and stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._writing = False
            if self._order is not None and self._order.at is Point.TORN:
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            self._really_fsync(descriptor)
            self._at(Point.TORN)
            self._at(Point.UNNAMED)
        else:
            self._really_fsync(descriptor)


def look(store: Any, run: Run) -> Seen:  # noqa: ANN401 - watched or not
    """Counted by the database: to read ten thousand results once a second would be the most work of all."""
    read = store.database.read
    waiting = read("SELECT topic, count(*) AS n FROM results WHERE state = 'waiting' GROUP BY topic")
    row = read(
        """SELECT (SELECT count(*) FROM results WHERE state = 'judging')
            + (SELECT count(*) FROM results WHERE state = 'kept' AND noted IS NULL)
            + (SELECT count(*) FROM cycles WHERE state IN ('open', 'draining')) AS unfinished,
            (SELECT count(*) FROM results WHERE state NOT IN ('waiting', 'judging'))
            + (SELECT count(*) FROM results WHERE noted IS NOT NULL) AS settled,
            (SELECT count(*) FROM results) AS known"""
    )[0]
    missing = run.results - row["known"]
    return Seen({r["topic"]: r["n"] for r in waiting}, row["unfinished"] + missing, row["settled"])

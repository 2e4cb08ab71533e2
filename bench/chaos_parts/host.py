"""The parent of a chaos run: it carries commands between forked workers, and loses those that a killed one had.

    ready, later ──▶ an idle judge ──▶ what follows from it ──▶ ready, later
                       └ killed: its command is gone with it; another judge is forked in its place
    every half lease ──▶ ReapStale to a reaper, now and then to both at once; one is killed now and then
    every second ──▶ a look around: topics with something waiting and no command of theirs on its way get their next tick

It has no threads and opens nothing of the run's: a fork would inherit it.
"""

import heapq
import itertools
import multiprocessing
import os
import random
import signal
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Literal

from bench.chaos_parts.plan import CALL_SECONDS, LEASE, LIMIT, STOPPED, Order, Page, Plan, Point, Run
from bench.chaos_parts.worker import GO, HELD_SECONDS, Done, Paused, Seen, Task, serve

from wikikeeper.models import Command, JudgeResult, ReapStale, Send, StartCycle, WriteNote

SWEEP_SECONDS = LEASE.total_seconds() / 2
LOOK_SECONDS = 1.0
TICK_SECONDS = 3.0
"""Between two ticks of a topic, at least."""
STALLED_SECONDS = 12 * LEASE.total_seconds()
"""With nothing in the queue and nothing new settled for so long, nothing will come any more."""
REDELIVERED = 0.02
"""Share of commands that are delivered again while they are worked on, as queues do that promise at least once."""
UNMET_SECONDS = 8 * LEASE.total_seconds()
"""How long a stopped worker waits for its successor, beyond its time."""
SLOWEST = 20
"""Times the bare calls that a run may take before it is ended."""
END_SECONDS = 60

Role = Literal["judge", "reaper", "eye"]
REAPERS = 2
AT_ONCE, STRIKE = 0.5, 0.2
"""Shares of sweeps that both reapers do at once, and in which a reaper is to be killed as long as any is."""


@dataclass
class Worker:
    role: Role
    process: ForkProcess
    connection: Connection
    task: Task | None = None
    paused: "Pause | None" = None


@dataclass
class Pause:
    """A worker that stands still, and until when at most."""

    order: Order
    until: float
    result: str | None
    met: bool
    """It waits for its successor to stand before its verdict."""


@dataclass
class Ran:
    """What came of a run, as its parent saw it."""

    seconds: float = 0.0
    settled: bool = False
    kills: Counter[Point] = field(default_factory=Counter)
    planted_kills: Counter[str] = field(default_factory=Counter)
    """By result."""
    stops: Counter[Point] = field(default_factory=Counter)
    struck: set[str] = field(default_factory=set)
    """Results whose worker was killed or stopped."""
    late_holders: list[str] = field(default_factory=list)
    """Results whose worker was stopped just before its call, permit in hand, and went on."""
    met: int = 0
    """Stopped workers that went on while their successor stood before its verdict."""
    sweeps: int = 0
    double_sweeps: int = 0
    ticks: int = 0
    redelivered: int = 0
    errors: list[str] = field(default_factory=list)
    unstruck: int = 0
    """Orders that nobody came by for."""


class Host:
    """Runs everything once."""

    def __init__(self, run: Run, made: Sequence[Page], plan: Plan) -> None:
        self._run, self._plan = run, plan
        self._rng = random.Random(f"{run.seed}-host")
        self._topics = deque(dict.fromkeys(page.topic for page in made))
        self._workers: dict[Connection, Worker] = {}
        self._ready: deque[JudgeResult] = deque()
        self._first: deque[Command] = deque()
        """All others: they have queues of their own in the cloud, and are not behind a thousand pages."""
        self._later: list[tuple[float, int, Command]] = []
        self._order = itertools.count()
        self._started: dict[str, float] = {}
        self._held: dict[str, float] = {}
        """Results whose next command waits until their stopped worker may go on."""
        self._spared: set[str] = set()
        """Topics whose note was struck just now: once more and more would be a silence for a person to see."""
        self._spare: deque[Order] = deque()
        """Orders whose result did not come to their point."""
        self.ran = Ran()

    def go(self) -> Ran:
        began = time.monotonic()
        ends = began + SLOWEST * self._run.results * CALL_SECONDS / LIMIT + END_SECONDS
        roles: list[tuple[Role, int]] = [("judge", self._run.processes), ("reaper", REAPERS), ("eye", 1)]
        try:
            for role, number in roles:
                for _ in range(number):
                    self._fork(role)
            self.ran.settled = self._carry(ends)
            self.ran.seconds = time.monotonic() - began
        finally:
            for worker in list(self._workers.values()):
                worker.process.kill()
                worker.process.join()
        self.ran.unstruck = len(self._plan.judging) + len(self._spare) + sum(map(len, self._plan.noting.values()))
        return self.ran

    def _carry(self, ends: float) -> bool:
        """Until everything is settled; False: it will not be."""
        sweep = look = time.monotonic()
        best, progressed = -1, sweep
        while (now := time.monotonic()) < ends:
            if now >= sweep:
                sweep = now + SWEEP_SECONDS
                self._sweep()
            if now >= look:
                look = now + LOOK_SECONDS
                if (eye := self._idle("eye")) is not None:
                    self._give(eye, Task(None))
            self._wake(now)
            self._start_topics()
            self._hand_out(now)
            for connection in wait(list(self._workers), timeout=self._pause(now, sweep, look)):
                assert isinstance(connection, Connection)
                seen = self._hear(self._workers[connection])
                if seen is None:
                    continue
                if seen.settled > best or self._ready:
                    best, progressed = seen.settled, now
                if now - progressed > STALLED_SECONDS:
                    return False
                if self._all_done(seen):
                    return True
                self._tick(seen, now)
        return False

    # -- commands

    def _accept(self, sends: Iterable[Send]) -> None:
        now = time.monotonic()
        for send in sends:
            if isinstance(send.command, WriteNote) and self._run.broken == "note":
                continue
            due = now + send.after.total_seconds()
            if isinstance(send.command, JudgeResult):
                due = max(due, self._held.get(send.command.result, due))
            if due <= now:
                self._queue(send.command)
            else:
                heapq.heappush(self._later, (due, next(self._order), send.command))

    def _queue(self, command: Command) -> None:
        if isinstance(command, JudgeResult):
            self._ready.append(command)
        else:
            self._first.append(command)

    def _start_topics(self) -> None:
        """One topic after the other comes due, so that work goes on and queues stay short."""
        starting = any(isinstance(command, StartCycle) for command in self._commands())
        if self._topics and not starting and len(self._ready) < 2 * self._run.processes:
            self._start(self._topics.popleft())

    def _start(self, topic: str) -> None:
        self.ran.ticks += 1
        self._started[topic] = time.monotonic()
        self._first.append(StartCycle(topic=topic, tick=f"chaos-{self.ran.ticks:06}"))

    def _tick(self, seen: Seen, now: float) -> None:
        busy = {command.topic for command in self._commands() if isinstance(command, JudgeResult | StartCycle)}
        for topic in sorted(seen.waiting.keys() - busy):
            if topic in self._started and now - self._started[topic] >= TICK_SECONDS:
                self._start(topic)

    def _commands(self) -> list[Command]:
        """Every one on its way, but for those of workers that stand still."""
        tasks = [w.task for w in self._workers.values() if w.paused is None and w.task is not None]
        return [
            *self._first,
            *self._ready,
            *(entry[2] for entry in self._later),
            *(t.command for t in tasks if t.command),
        ]

    def _all_done(self, seen: Seen) -> bool:
        still = any(worker.paused for worker in self._workers.values())
        left = [command for command in self._commands() if not isinstance(command, ReapStale)]
        return not (seen.waiting or seen.unfinished or self._topics or still or left)

    def _hand_out(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            self._queue(heapq.heappop(self._later)[2])
        while (self._first or self._ready) and (judge := self._idle("judge")) is not None:
            command = (self._first or self._ready).popleft()
            self._give(judge, Task(command, self._ordered(command)))
            if self._run.disturbed and self._rng.random() < REDELIVERED:
                self.ran.redelivered += 1
                self._first.append(command)

    def _ordered(self, command: Command) -> Order | None:
        """What is to strike whoever carries out this command. It stays until it has."""
        match command:
            case JudgeResult(result=result):
                if result in self._held:
                    return Order("hold", Point.RECORDED)
                if (planted := self._planted(command)) is not None:
                    return planted
                if result in self._plan.judging:
                    return self._plan.judging.pop(result)
                if self._spare and result not in self.ran.struck:
                    return self._spare.popleft()
            case WriteNote(topic=topic) if topic in self._spared:
                self._spared.remove(topic)
            case WriteNote(topic=topic) if self._plan.noting.get(topic):
                return self._plan.noting[topic].pop()
        return None

    def _planted(self, command: Command) -> Order | None:
        point = self._plan.planted.get(command.result) if isinstance(command, JudgeResult) else None
        return Order("kill", point) if point is not None else None

    def _back(self, task: Task) -> None:
        """An order that did not strike: the point was not reached, since the work was done or took another way."""
        order, command = task.order, task.command
        if order is None or order.do == "hold":
            return
        if isinstance(command, WriteNote):
            self._plan.noting[command.topic].append(order)
        elif isinstance(command, ReapStale):
            self._plan.reaping.append(order)
        elif isinstance(command, JudgeResult) and command.result not in self._plan.planted:
            if order.do == "stop":
                self._plan.judging.setdefault(command.result, order)
            else:
                self._spare.append(order)

    # -- workers

    def _fork(self, role: Role) -> None:
        here, there = multiprocessing.Pipe()
        others = [here, *self._workers]
        process = multiprocessing.get_context("fork").Process(
            target=serve, args=(self._run, there, others), daemon=True
        )
        process.start()
        there.close()
        self._workers[here] = Worker(role, process, here)

    def _idle(self, role: Role) -> Worker | None:
        return next((w for w in self._workers.values() if w.role == role and w.task is None), None)

    def _give(self, worker: Worker, task: Task) -> None:
        worker.task = task
        with suppress(BrokenPipeError):  # it is dead: that is heard of next, with what it died of
            worker.connection.send(task)

    def _sweep(self) -> None:
        at_once = REAPERS if self._rng.random() < AT_ONCE else 1
        reapers = [w for w in self._workers.values() if w.role == "reaper" and w.task is None][:at_once]
        self.ran.sweeps += len(reapers)
        self.ran.double_sweeps += len(reapers) == REAPERS
        for reaper in reapers:
            strike = self._plan.reaping and self._rng.random() < STRIKE
            self._give(reaper, Task(ReapStale(), self._plan.reaping.pop(0) if strike else None))

    def _hear(self, worker: Worker) -> Seen | None:
        try:
            said = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            self._died(worker)
            return None
        if isinstance(said, Paused):
            self._paused(worker, said.order)
            return None
        assert isinstance(said, Done)
        task, worker.task = worker.task, None
        if worker.paused is not None:
            self._released(worker.paused)
            worker.paused = None
        if said.error is not None:
            self.ran.errors.append(said.error)
        if task is not None and not said.obeyed:
            self._back(task)
        self._accept(said.sends)
        return said.seen

    def _died(self, worker: Worker) -> None:
        worker.process.join()
        code, task = worker.process.exitcode, worker.task
        del self._workers[worker.connection]
        worker.connection.close()
        if code != -signal.SIGKILL or task is None or task.order is None or task.order.do != "kill":
            raise RuntimeError(f"a {worker.role} ended with {code} at {task}, which nobody ordered")
        self._count_kill(task.command, task.order)
        self._fork(worker.role)

    def _count_kill(self, command: Command | None, order: Order) -> None:
        self.ran.kills[order.at] += 1
        if isinstance(command, JudgeResult):
            self.ran.struck.add(command.result)
            if command.result in self._plan.planted:
                self.ran.planted_kills[command.result] += 1
        elif isinstance(command, WriteNote):
            self._spared.add(command.topic)

    # -- workers that stand still

    def _paused(self, worker: Worker, order: Order) -> None:
        assert worker.task is not None
        assert isinstance(worker.task.command, JudgeResult)
        now, result = time.monotonic(), worker.task.command.result
        if order.do == "hold":
            worker.paused = Pause(order, now + HELD_SECONDS, result, met=False)
            for stopped in self._stopped(result):
                self.ran.met += 1
                self._continue(stopped)
            return
        self.ran.stops[order.at] += 1
        self.ran.struck.add(result)
        if order.at is Point.COUNTED:
            self.ran.late_holders.append(result)
        over = now + STOPPED.total_seconds()
        met = result in self._plan.met
        if met:
            self._held[result] = over
        worker.paused = Pause(order, over + (UNMET_SECONDS if met else 0), result, met)

    def _stopped(self, result: str) -> list[Worker]:
        return [
            w
            for w in self._workers.values()
            if w.paused is not None and w.paused.order.do == "stop" and w.paused.result == result
        ]

    def _continue(self, worker: Worker) -> None:
        assert worker.paused is not None
        assert worker.process.pid is not None
        worker.paused.until = time.monotonic() + 0.1  # and again, should it not have stood still yet
        os.kill(worker.process.pid, signal.SIGCONT)

    def _released(self, pause: Pause) -> None:
        """A stopped worker has said its late word: its successor may go on."""
        if pause.order.do != "stop" or pause.result is None:
            return
        self._held.pop(pause.result, None)
        for worker in self._workers.values():
            if worker.paused is not None and worker.paused.order.do == "hold" and worker.paused.result == pause.result:
                worker.connection.send(GO)

    def _wake(self, now: float) -> None:
        for worker in self._workers.values():
            if worker.paused is not None and worker.paused.order.do == "stop" and now >= worker.paused.until:
                self._continue(worker)

    def _pause(self, now: float, *others: float) -> float:
        due = [*others, *(entry[0] for entry in self._later[:1])]
        due += [w.paused.until for w in self._workers.values() if w.paused is not None and w.paused.order.do == "stop"]
        return max(min(due) - now, 0.001)

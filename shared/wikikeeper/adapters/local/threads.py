"""The host of one machine: a thread pool that carries commands from one workflow to the next until nothing is left."""

import heapq
import itertools
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta

from wikikeeper.models import Command, Send
from wikikeeper.ports import Reporter

Handle = Callable[[Command], Sequence[Send]]
_Worker = tuple[threading.Thread, threading.Event]

LOOK = 0.5
"""Seconds between looks for Ctrl-C while waiting for threads: not every system interrupts a wait without an end."""


class ThreadHost:
    """Runs commands on a bounded number of threads: in the order in which they came, delayed ones when their time has
    come.

    A workflow that raises loses nothing, since state is the truth: its command is dropped, the error is reported and
    kept in `errors`, and the other commands go on.
    """

    def __init__(
        self,
        handle: Handle,
        reporter: Reporter,
        *,
        workers: int,
        hurry: Callable[[Command], bool] = lambda _: False,
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        """`handle` and `reporter` are used by all threads at once. `hurry` says which delayed commands need not wait
        once nothing else is left to do. `stopping` is called when it is stopped, so that who only waits may end early.
        """
        self._handle = handle
        self._reporter = reporter
        self._workers = workers
        self._hurry = hurry
        self._tell_stopping = stopping
        self._ready: deque[Command] = deque()
        self._later: list[tuple[float, int, Command]] = []
        self._order = itertools.count()
        self._running = 0
        self._stopping = False
        self._changed = threading.Condition()
        self.errors: list[Exception] = []

    def run(self, sends: Sequence[Send]) -> None:
        """Work until no command is left, running or delayed; then it may be called again, by one caller at a time.

        Ctrl-C lets running commands end and drops the rest, which the next run finds in the state; a second one does
        not wait for them.
        """
        with self._changed:
            self._stopping = False
            self._accept(sends)
        # Known before they are started: Ctrl-C may come between a start and what it returns.
        workers = [self._worker(number) for number in range(self._workers)]
        try:
            for thread, _ in workers:
                thread.start()
            _wait_for(workers)
        except BaseException:  # Ctrl-C, or no thread to be had: what was started must not go on behind the caller
            self.stop()
            # One that has not come to itself by now finds nothing to do.
            _wait_for([worker for worker in workers if worker[0].ident is not None])
            raise

    def add(self, sends: Sequence[Send]) -> None:
        """More to do while `run` works; before, it begins with it. Dropped once it is stopping, like what is sent then."""
        with self._changed:
            self._accept(sends)
            self._changed.notify_all()

    def stop(self) -> None:
        """Start no further command; what is running ends, and what it sends is dropped."""
        with self._changed:
            self._stopping = True
            self._ready.clear()
            self._later.clear()
            self._changed.notify_all()
        self._tell_stopping()

    def _accept(self, sends: Sequence[Send]) -> None:
        if self._stopping:
            return
        now = time.monotonic()
        for send in sends:
            if send.after <= timedelta():
                self._ready.append(send.command)
            else:
                due = now + send.after.total_seconds()
                heapq.heappush(self._later, (due, next(self._order), send.command))

    def _next(self) -> Command | None:
        """The next command, waiting for it; None when nothing is left that could bring one."""
        with self._changed:
            while True:
                # Before what is ready: a long queue must not make a minute of half an hour.
                if (command := self._due()) is None and self._ready:
                    command = self._ready.popleft()
                if command is None and self._running == 0:
                    if not self._later:
                        self._changed.notify_all()
                        return None
                    command = self._hurried()
                if command is not None:
                    self._running += 1
                    return command
                self._changed.wait(self._later[0][0] - time.monotonic() if self._later else None)

    def _due(self) -> Command | None:
        if self._later and self._later[0][0] <= time.monotonic():
            return heapq.heappop(self._later)[2]
        return None

    def _hurried(self) -> Command | None:
        """Of those that need not wait, the one that is due first."""
        for entry in sorted(self._later):
            if self._hurry(entry[2]):
                self._later.remove(entry)
                heapq.heapify(self._later)
                return entry[2]
        return None

    def _worker(self, number: int) -> _Worker:
        """One to be started; the event says that it has ended.

        Not by joining it: up to Python 3.12 a join that Ctrl-C interrupts takes the thread for ended.
        """
        ended = threading.Event()

        def work() -> None:
            try:
                self._work()
            finally:
                ended.set()

        # A daemon: a program that was interrupted twice must end.
        return threading.Thread(target=work, name=f"worker-{number}", daemon=True), ended

    def _work(self) -> None:
        while (command := self._next()) is not None:
            sends: Sequence[Send] = ()
            try:
                sends = self._handle(command)
            except Exception as error:  # noqa: BLE001 - the boundary of the host: one command's fault must not end the others
                self._failed(command, error)
            finally:
                with self._changed:
                    self._running -= 1
                    self._accept(sends)
                    self._changed.notify_all()

    def _failed(self, command: Command, error: Exception) -> None:
        self.errors.append(error)
        try:
            self._reporter.event(
                "command_failed",
                command=command.kind,
                error=f"{type(error).__name__}: {error}",
                trace="".join(traceback.format_exception(error)),
            )
        except Exception as unheard:  # noqa: BLE001 - a closed terminal, for one: nobody to tell, but the work goes on
            self.errors.append(unheard)


def _wait_for(workers: Sequence[_Worker]) -> None:
    for _, ended in workers:
        while not ended.wait(LOOK):
            pass

"""What the parts of the gate's contract share: short calls, and callers that wait on threads of their own."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Protocol

from wikikeeper.adapters.gate_line import GateLine
from wikikeeper.adapters.gate_slots import Pace
from wikikeeper.models import Lane, Permit, Wait
from wikikeeper.ports import Gate

TTL = timedelta(seconds=60)
AT_ONCE = timedelta()
LONG = timedelta(seconds=30)
"""A patience that no passing test uses up."""
HASTE = Pace(first=0.005, next=0.01, others=0.02, demand_after=0, demand_again=0.02, demand_lasts=15, view_lasts=0)
"""Looks and refreshes as often as a test can wish."""
SOON = 10
"""Seconds in which everything happens that a passing test waits for."""


class OpenGate(Protocol):
    def __call__(
        self,
        limit: int,
        now: Callable[[], datetime],
        *,
        calls_per_permit: int = ...,
        max_wait: timedelta = ...,
    ) -> GateLine: ...


def taken(gate: Gate, holder: str = "a", ttl: timedelta = TTL, patience: timedelta = AT_ONCE) -> Permit:
    permit = gate.acquire(Lane.KEEPER, holder, ttl, patience)
    assert isinstance(permit, Permit)
    return permit


def refused(gate: Gate, patience: timedelta = AT_ONCE) -> Wait:
    wait = gate.acquire(Lane.KEEPER, "refused", TTL, patience)
    assert isinstance(wait, Wait)
    return wait


class Queue:
    """Callers of one process. Each holds what it got until the test gives it back."""

    def __init__(self, gate: GateLine) -> None:
        self.gate = gate
        self.got: list[Permit] = []
        self._next = 0
        self._changed = threading.Condition()

    def wait(self, lane: Lane, ttl: timedelta) -> None:
        answer = self.gate.acquire(lane, "waiting", ttl, LONG)
        assert isinstance(answer, Permit)
        with self._changed:
            self.got.append(answer)
            self._changed.notify_all()

    def served(self) -> Permit:
        """The permit of the next one that is let in."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.got) > self._next, SOON), "nobody was let in"
            self._next += 1
            return self.got[self._next - 1]


@contextmanager
def waiting(gate: GateLine, *lanes: Lane, ttl: timedelta = TTL) -> Iterator[Queue]:
    """So many callers in line, in this order, and known to other processes. At the end all are let in and out."""
    queue = Queue(gate)
    with ThreadPoolExecutor(len(lanes)) as pool:
        callers = []
        for number, lane in enumerate(lanes, start=len(gate._here.line) + 1):
            callers.append(pool.submit(queue.wait, lane, ttl))
            soon(lambda number=number: len(gate._here.line) == number)  # type: ignore[misc]
        soon(lambda: {lane for _, lane in demands(gate)} >= set(lanes))
        yield queue
        while not all(caller.done() for caller in callers):
            for permit in list(queue.got):
                gate.release(permit)
            time.sleep(0.001)
        for permit in queue.got:
            gate.release(permit)
        for caller in callers:
            caller.result()


def demands(gate: GateLine) -> set[tuple[str, Lane]]:
    """All that are in the store, with whose they are."""
    return {(demand.who, demand.lane) for demand in gate._slots.look("nobody").demands}


def soon(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)

"""Containers that die at named points.

One of this process dies by an exception that nothing catches, and from then on every one of its ports raises it too: so
nothing that runs in it afterwards, on other threads or in `finally`, reaches a store. What it leaves behind is exactly
what it had written before. Those that are processes, and are killed, are in `processes.py`.
"""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tests.functions.stack import HANDLERS, Context
from tests.functions.twice_queue import Killed

from wikikeeper.handling import Answer, Cloud, Event

PORTS = ("store", "wiki", "gate", "keeper", "fetcher")

DEATHS = {
    # schedule-cycle: a cycle that was opened and left, results that were put and not sent, messages sent and not known
    "schedule_cycle store.start_cycle after": 1,
    "schedule_cycle store.add_results after": 1,
    "schedule_cycle store.send_result after": 10,
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
    "judge_result keeper.judge before": 5,
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


@dataclass
class Deaths:
    """Where containers are still to die: `function port.method before|after` -> at which call from now on."""

    planned: dict[str, int]
    happened: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self, point: str) -> bool:
        with self.lock:
            if point not in self.planned:
                return False
            self.planned[point] -= 1
            if self.planned[point] > 0:
                return False
            del self.planned[point]
            self.happened[point] += 1
            return True


class Watched(Protocol):
    """What stands around the calls of ports."""

    def call(self, port: str, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...  # noqa: ANN401


class WatchedPort:
    def __init__(self, watched: Watched, port: str, inner: object) -> None:
        self._watched, self._port, self._inner = watched, port, inner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it stands for any port
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._watched.call(self._port, name, found, *args, **kwargs)


def watched(own: Cloud, by: Watched) -> Cloud:
    """The same, with its ports watched."""
    ports: dict[str, Any] = {port: WatchedPort(by, port, getattr(own.app, port)) for port in PORTS}
    sender: Any = WatchedPort(by, "sender", own.sender)
    return Cloud(own.function, replace(own.app, **ports), sender, own.dead_letters)


class MortalContainer:
    """One container of a function, in this process: an App whose ports die with it."""

    current = threading.local()
    """`current.cloud`: what the handler that runs on this thread is to be given."""

    def __init__(self, own: Cloud, deaths: Deaths, seen: Callable[[str, Sequence[Any], Any], None]) -> None:
        self.dead = False
        self._spared = False
        self._function = own.function
        self._deaths = deaths
        self._seen = seen
        self._cloud = watched(own, self)

    def invoke(self, event: Event, *, spared: bool) -> Answer:
        self._spared = spared
        self.current.cloud = self._cloud
        answer: Answer = HANDLERS[self._function](event, Context())
        return answer

    def call(self, port: str, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        self._check()
        point = f"{self._function} {port}.{name}"
        self._die_at(f"{point} before")
        answer = method(*args, **kwargs)
        self._check()  # it died meanwhile: the write may have happened, and nobody here will know
        self._seen(f"{port}.{name}", args, answer)
        self._die_at(f"{point} after")
        return answer

    def _check(self) -> None:
        if self.dead:
            raise Killed(self._function)

    def _die_at(self, point: str) -> None:
        if not self._spared and self._deaths.now(point):
            self.dead = True
            raise Killed(point)

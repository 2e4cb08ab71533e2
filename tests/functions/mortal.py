"""Containers that die at named points, and a queue that delivers everything twice: the worst that AWS promises.

A container dies by an exception that nothing catches, and from then on every one of its ports raises it too: so nothing
that runs in it afterwards, on other threads or in `finally`, reaches a store. What a killed process leaves behind is
exactly what it had written before.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from tests.functions.stack import BATCHES, HANDLERS, RECEIPTS, Context, _record

from wikikeeper.adapters.aws.sqs_sender import QUEUES
from wikikeeper.fakes import SettableClock
from wikikeeper.handling import Answer, Cloud
from wikikeeper.models import COMMAND, Command, Send

SIZES = {**BATCHES, "write_note": 1}
"""Of batches; SQS fills none that it has no messages for. Notes one by one, since a whole batch dies together."""
FUNCTION_OF = {"schedule": "schedule_cycle", "judge": "judge_result", "note": "write_note", "reap": "reap_stale"}
PORTS = ("store", "wiki", "gate", "keeper", "fetcher")
VISIBILITY = timedelta(hours=6)
"""Until a message that was not deleted comes again. Longer than in the template: what a death left behind is then found by
the reaper, never mended by the same message."""


MOST_DEATHS = 2


class Killed(BaseException):
    """The container is no more."""


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


class Container:
    """One container of a function: an App whose ports die with it."""

    def __init__(self, own: Cloud, deaths: Deaths, seen: Callable[[str, Sequence[Any], Any], None]) -> None:
        self.dead = False
        self.spared = False
        """One of its messages has died often enough: once more, and the queue would rightly take it for the cause."""
        self.function = own.function
        self._deaths = deaths
        self._seen = seen
        ports: dict[str, Any] = {port: _Port(self, port, getattr(own.app, port)) for port in PORTS}
        sender: Any = _Port(self, "sender", own.sender)
        self.cloud = Cloud(own.function, replace(own.app, **ports), sender, own.dead_letters)

    def call(self, port: str, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        self._check()
        point = f"{self.function} {port}.{name}"
        self._die_at(f"{point} before")
        answer = method(*args, **kwargs)
        self._check()  # it died meanwhile: the write may have happened, and nobody here will know
        self._seen(f"{port}.{name}", args, answer)
        self._die_at(f"{point} after")
        return answer

    def _check(self) -> None:
        if self.dead:
            raise Killed(self.function)

    def _die_at(self, point: str) -> None:
        if not self.spared and self._deaths.now(point):
            self.dead = True
            raise Killed(point)


class _Port:
    def __init__(self, container: Container, port: str, inner: object) -> None:
        self._container, self._port, self._inner = container, port, inner

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it stands for any port
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._container.call(self._port, name, found, *args, **kwargs)


@dataclass(eq=False)
class Message:
    body: str
    function: str
    due: datetime
    number: int
    receipts: int = 0
    deleted: bool = False
    deaths: int = 0


class TwiceQueue:
    """SQS at its worst, in a time of its own: each message comes twice, in any order, the second while the first runs."""

    def __init__(
        self, clock: SettableClock, rng: random.Random, containers: Mapping[str, Callable[[], Container]]
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._new = containers
        self._idle: dict[str, list[Container]] = {function: [] for function in containers}
        self._waiting: list[Message] = []
        self._late: list[Message] = []
        """Second deliveries that come after the first is done."""
        self._lock = threading.Lock()
        self.current = threading.local()
        self.dead: list[Message] = []
        self.deliveries = 0
        self.sent = 0

    def send(self, sends: Sequence[Send]) -> None:
        for send in sends:
            self.put(send.command, send.after)

    def put(self, command: Command, after: timedelta = timedelta()) -> None:
        with self._lock:
            self.sent += 1
            function = FUNCTION_OF[QUEUES[command.kind]]
            body = COMMAND.dump_json(command).decode()
            self._waiting.append(Message(body, function, self._clock.now() + after, self.sent))

    def run(self) -> None:
        """Until nothing is left; where everything waits for later, later comes."""
        while True:
            batch = self._batch()
            if batch:
                self._deliver_twice(batch)
            elif self._late:
                self._invoke([self._late.pop(self._rng.randrange(len(self._late)))])
            elif self._waiting:
                self._clock.advance(min(message.due for message in self._waiting) - self._clock.now())
            else:
                return

    def _batch(self) -> list[Message]:
        with self._lock:
            ready = [message for message in self._waiting if message.due <= self._clock.now()]
            if not ready:
                return []
            function = self._rng.choice(ready).function
            mine = [message for message in ready if message.function == function]
            batch = self._rng.sample(mine, min(SIZES[function], len(mine)))
            self._waiting = [message for message in self._waiting if message not in batch]
            return batch

    def _deliver_twice(self, batch: list[Message]) -> None:
        late = [message for message in batch if self._rng.random() < 0.3]
        second = [message for message in batch if message not in late]
        self._rng.shuffle(second)
        self._late += late
        meanwhile = threading.Thread(target=self._invoke, args=(second,))
        meanwhile.start()
        self._invoke(batch)
        meanwhile.join()
        for message in batch:
            if message.deleted:
                continue
            if message.receipts >= RECEIPTS:
                self.dead.append(message)
            else:
                message.due = self._clock.now() + VISIBILITY
                self._waiting.append(message)

    def _invoke(self, messages: list[Message]) -> None:
        if not messages:
            return
        function = messages[0].function
        with self._lock:
            self.deliveries += len(messages)
            container = self._idle[function].pop() if self._idle[function] else None
            for message in messages:
                message.receipts += 1
        container = container or self._new[function]()
        self.current.container = container
        container.spared = any(message.deaths == MOST_DEATHS for message in messages)
        records = [_record(str(message.number), message.body) for message in messages]
        try:
            answer: Answer = HANDLERS[function]({"Records": records}, Context())
        except Killed:
            for message in messages:
                message.deaths += 1
            return
        finally:
            if not container.dead:
                with self._lock:
                    self._idle[function].append(container)
        failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
        for message in messages:
            message.deleted = message.deleted or str(message.number) not in failed

"""A queue that delivers everything twice, in any order, the second while the first runs: the worst that SQS promises."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from tests.functions.stack import record
from tests.functions.template import DELIVERIES

from wikikeeper.adapters.aws.sqs_sender import QUEUES
from wikikeeper.handling import Answer, Event
from wikikeeper.models import COMMAND, Command, Send

BATCHES = {function: delivery.batch for function, delivery in DELIVERIES.items()} | {"write_note": 1}
"""Notes one by one, since a whole batch dies together."""
FUNCTION_OF = {"schedule": "schedule_cycle", "judge": "judge_result", "note": "write_note", "reap": "reap_stale"}
MOST_DEATHS = 2
"""Of one message: once more, and the queue would rightly take it for the cause."""


class Killed(BaseException):
    """The container is no more."""


class Container(Protocol):
    """One container of a function."""

    @property
    def dead(self) -> bool: ...

    def invoke(self, event: Event, *, spared: bool) -> Answer:
        """Raises Killed, but not where it is to be spared."""
        ...


class MovableClock(Protocol):
    def now(self) -> datetime: ...

    def advance(self, by: timedelta) -> None: ...


@dataclass(eq=False)
class Message:
    body: str
    function: str
    due: datetime
    number: int
    receipts: int = 0
    deleted: bool = False
    deaths: int = 0
    """Those that may yet come in a running invocation included."""


class TwiceQueue:
    """Of all functions, in a time of its own."""

    def __init__(
        self, clock: MovableClock, rng: random.Random, containers: Mapping[str, Callable[[], Container]]
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._new = containers
        self._idle: dict[str, list[Container]] = {function: [] for function in containers}
        self._waiting: list[Message] = []
        self._late: list[Message] = []
        """Second deliveries that come after the first is done."""
        self._lock = threading.Lock()
        self._faults: list[Exception] = []
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
            if self._faults:
                raise self._faults[0]

    def _batch(self) -> list[Message]:
        with self._lock:
            ready = [message for message in self._waiting if message.due <= self._clock.now()]
            if not ready:
                return []
            function = self._rng.choice(ready).function
            mine = [message for message in ready if message.function == function]
            batch = self._rng.sample(mine, min(BATCHES[function], len(mine)))
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
            delivery = DELIVERIES[message.function]
            if message.deleted:
                continue
            if message.receipts >= delivery.receipts:
                self.dead.append(message)
            else:
                message.due = self._clock.now() + delivery.visibility
                self._waiting.append(message)

    def _invoke(self, messages: list[Message]) -> None:
        if not messages:
            return
        function = messages[0].function
        with self._lock:
            self.deliveries += len(messages)
            container = self._idle[function].pop() if self._idle[function] else None
            spared = any(message.deaths >= MOST_DEATHS for message in messages)
            for message in messages:
                message.receipts += 1
                message.deaths += not spared
        event = {"Records": [record(str(message.number), message.body) for message in messages]}
        try:
            container = container or self._new[function]()
            answer = container.invoke(event, spared=spared)
        except Killed:
            return
        except Exception as error:  # noqa: BLE001 - it may be on a thread: `run` raises it
            self._faults.append(error)
            return
        failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
        with self._lock:
            if not container.dead:
                self._idle[function].append(container)
            for message in messages:
                message.deaths -= not spared
                message.deleted = message.deleted or str(message.number) not in failed

"""What each of the cloud's functions does with an event: read its commands, run their workflow, send what follows, report.

 a batch ─▶ each message: read ─▶ workflow ─▶ send ─▶ done, and SQS deletes it
                            │        │          └ not sent: failed, as below; what was not sent is found in the state
                            │        └ it raised: this message alone is reported as failed, and comes again when its
                            │          visibility ends; after three times it is among the dead letters
                            └ cannot be read: put among the dead letters at once, since no later try will read it

What only has to wait is never a failure: workflows answer with a command for later. So receipts count crashes.

Metrics and log lines are Powertools'. Its batches are not used: to load them would add a fifth to a cold start
(docs/performance.md), and what they would do here is to collect the ids of messages that failed.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol, TypedDict

from wikikeeper import cold_start  # isort: skip  # before all that is large

from aws_lambda_powertools.metrics import EphemeralMetrics
from pydantic import ValidationError

from wikikeeper.cloud_app import cloud_app, dead_letters, sender
from wikikeeper.faults import described
from wikikeeper.models import COMMAND, Lane, Permit, ReapStale, Send, Value, Wait
from wikikeeper.ports import Gate, Reporter
from wikikeeper.workflows.context import App

Event = Mapping[str, Any]
Workflow = Callable[..., Sequence[Send]]
"""Takes a command of the kinds that belong to it, and the App."""

GB_SECOND, REQUEST = 0.0000166667, 0.0000002
"""Dollars that Lambda takes on x86-64 in us-east-1 (November 2026). On arm64 a fifth less: the estimate is an upper one."""
IDS = ("topic", "result", "cycle")


class Context(Protocol):
    """What is used of Lambda's."""

    @property
    def aws_request_id(self) -> str: ...


class Failed(TypedDict):
    itemIdentifier: str


class Answer(TypedDict):
    """What SQS's event source reads: all other messages of the batch are done."""

    batchItemFailures: list[Failed]


class Sender(Protocol):
    def send(self, sends: Sequence[Send]) -> None: ...


class DeadLetters(Protocol):
    def put(self, body: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Cloud:
    """What a function has to work with."""

    function: str
    app: App
    sender: Sender
    dead_letters: DeadLetters


def cloud(function: str) -> Cloud:
    """That of this container, made at the first call. Raises Unusable for settings that are missing or wrong."""
    own = Cloud(function, cloud_app(function), sender(), dead_letters(function))
    cold_start.loaded()
    return own


def batch(
    event: Event,
    context: Context,
    own: Cloud,
    workflow: Workflow,
    *kinds: type[Value],
    threads: int = 1,
) -> Answer:
    """Work on the messages of a batch, up to `threads` at once. `kinds` of commands are those that belong here.

    Raises KeyError for an event that is no batch.
    """
    records: Sequence[Event] = event["Records"]
    if not records:
        return {"batchItemFailures": []}
    with invocation(own, context) as (app, meter):

        def done(record: Event) -> bool:
            command = _read(record, kinds)
            if command is None:
                return _put_aside(record, own, meter)
            return _worked(command, own, app, meter, workflow)

        with ThreadPoolExecutor(min(threads, len(records))) as pool:
            finished = list(pool.map(done, records))
    return {
        "batchItemFailures": [
            {"itemIdentifier": record["messageId"]} for record, fine in zip(records, finished, strict=True) if not fine
        ]
    }


@contextmanager
def invocation(own: Cloud, context: Context) -> Iterator[tuple[App, "Meter"]]:
    """The App with its reports and permits measured; at the end the metrics are written, also after a fault."""
    meter = Meter(own.app.reporter, own.function, context.aws_request_id)
    try:
        yield replace(own.app, reporter=meter, gate=TimedGate(own.app.gate, meter)), meter
    finally:
        meter.write()


def _read(record: Event, kinds: tuple[type[Value], ...]) -> Value | None:
    try:
        command = COMMAND.validate_json(record["body"])
    except ValidationError:
        return None
    if isinstance(command, ReapStale) and command.alone:
        return None  # only who holds the lock of one machine may say so: here it would free the permits of live workers
    return command if isinstance(command, kinds) else None


def _put_aside(record: Event, own: Cloud, meter: "Meter") -> bool:
    meter.event("command_unreadable", message_id=record["messageId"])
    try:
        own.dead_letters.put(record["body"])
    except Exception as error:  # noqa: BLE001 - the boundary of the function: the queue's own count brings it there, later
        meter.event("command_failed", message_id=record["messageId"], **described(error))
        return False
    return True


def _worked(command: Value, own: Cloud, app: App, meter: "Meter", workflow: Workflow) -> bool:
    about = {"command": getattr(command, "kind", None)} | {
        name: getattr(command, name) for name in IDS if hasattr(command, name)
    }
    began = time.monotonic()
    try:
        sends = workflow(command, app)
        own.sender.send(sends)
    except Exception as error:  # noqa: BLE001 - the boundary of the function: one command's fault must not fail the others
        meter.event("command_failed", **about, **described(error))
        return False
    meter.event("command_done", **about, sent=len(sends), seconds=round(time.monotonic() - began, 3))
    return True


COUNTED = {
    "result_parked": "parked",
    "result_discarded": "discarded",
    "result_folded": "folded",
    "result_failed": "failed",
    "command_failed": "commands_failed",
    "command_unreadable": "commands_unreadable",
}
"""Event -> metric."""


class Meter:
    """Passes reports on, and collects what an invocation comes to. Threads may share one."""

    def __init__(self, inner: Reporter, function: str, request: str) -> None:
        self._inner = inner
        self._function = function
        self._request = request
        self._began = time.monotonic()
        self._measured: list[tuple[str, str, float]] = []
        """Name, unit, value. Powertools gets them at the end: it would write when a name has a hundred, amid other lines."""

    def event(self, name: str, **fields: object) -> None:
        counted = ("kept" if fields["kept"] else "discarded") if name == "result_judged" else COUNTED.get(name)
        if counted is not None:
            self._measured.append((counted, "Count", 1))
        if name == "model_called" and isinstance(seconds := fields.get("seconds"), int | float):
            self.took("model_seconds", seconds)
        self._inner.event(name, request=self._request, **fields)

    def took(self, name: str, seconds: float) -> None:
        self._measured.append((name, "Seconds", round(seconds, 3)))

    def write(self) -> None:
        """In CloudWatch's embedded metric format, as lines in the log; no request to anybody."""
        if (memory := os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")) is not None:
            seconds = time.monotonic() - self._began
            estimate = round(int(memory) / 1024 * seconds * GB_SECOND + REQUEST, 9)
            self._measured.append(("cost_estimate", "None", estimate))
        metrics = EphemeralMetrics(namespace=os.environ.get("METRICS_NAMESPACE", "wikikeeper"))
        metrics.add_dimension("function", self._function)
        metrics.add_metadata("request", self._request)
        for name, unit, value in self._measured:
            metrics.add_metric(name, unit, value)
        if metrics.metric_set:
            metrics.flush_metrics()


@dataclass(frozen=True, slots=True)
class TimedGate:
    """A gate whose waits are measured, those that ended without a permit as well."""

    inner: Gate
    meter: Meter

    def acquire(self, lane: Lane, holder: str, ttl: timedelta, patience: timedelta) -> Permit | Wait:
        began = time.monotonic()
        try:
            return self.inner.acquire(lane, holder, ttl, patience)
        finally:
            self.meter.took("gate_wait", time.monotonic() - began)

    def renew(self, permit: Permit, ttl: timedelta) -> Permit | None:
        return self.inner.renew(permit, ttl)

    def left(self, permit: Permit) -> timedelta:
        return self.inner.left(permit)

    def release(self, permit: Permit) -> bool:
        return self.inner.release(permit)

    def free_all(self) -> None:
        self.inner.free_all()

    def turn_away(self) -> None:
        self.inner.turn_away()

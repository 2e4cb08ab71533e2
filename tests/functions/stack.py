"""What the template makes, made on a loopback server; and SQS's part of it: messages taken from queues to functions."""

import itertools
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from functions.judge_result import handler as judge_result
from functions.reap_stale import handler as reap_stale
from functions.schedule_cycle import handler as schedule_cycle
from functions.write_note import handler as write_note
from tests.adapters.aws.schema import make_bucket, make_queue, make_table
from tests.functions.template import DELIVERIES

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.json_log import JsonLog
from wikikeeper.cloud_app import build
from wikikeeper.handling import Answer, Event
from wikikeeper.settings import Settings
from wikikeeper.workflows.context import App

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageTypeDef

REGION, ACCOUNT = "us-east-1", "123456789012"
QUEUES: Mapping[str, str] = {
    "judge": "judge_result",  # first: verdicts before the note that gathers them
    "schedule": "schedule_cycle",
    "note": "write_note",
    "reap": "reap_stale",
}
BATCHES: Mapping[str, int] = {function: delivery.batch for function, delivery in DELIVERIES.items()}
POLL = 0.1
"""Seconds between looks for messages whose delay is over."""


@dataclass
class Context:
    """Lambda's, as far as it is used."""

    aws_request_id: str = "request-1"


class Apart(Clients):
    """Of several servers: each service of another."""

    def __init__(self, *, dynamodb: Clients, s3: Clients, sqs: Clients) -> None:
        super().__init__()
        self._of = {"dynamodb": dynamodb, "s3": s3, "sqs": sqs}

    def _made(self, service: str) -> object:
        return getattr(self._of[service], service)


@dataclass(frozen=True)
class Stack:
    """Names and addresses of what was made."""

    clients: Clients
    table: str
    bucket: str
    queues: Mapping[str, str]
    dead: Mapping[str, str]
    settings: dict[str, str] = field(default_factory=dict)
    """More of the functions' environment, as `research__note_delay`."""

    def environment(self) -> dict[str, str]:
        clients: list[Any] = [self.clients.dynamodb, self.clients.s3, self.clients.sqs]
        addresses = {client.meta.service_model.service_name: client.meta.endpoint_url for client in clients}
        if len(set(addresses.values())) > 1:  # botocore's own way to say so
            found = {f"AWS_ENDPOINT_URL_{service}".upper(): address for service, address in addresses.items()}
            return found | self._settings()
        return {"WIKIKEEPER_AWS__ENDPOINT_URL": addresses["dynamodb"]} | self._settings()

    def _settings(self) -> dict[str, str]:
        own = {
            "aws__table": self.table,
            "aws__bucket": self.bucket,
            **{f"aws__{name}_queue": url for name, url in self.queues.items()},
            "llama__base_url": "http://127.0.0.1:9",
            **self.settings,
        }
        return {f"WIKIKEEPER_{name}".upper(): value for name, value in own.items()}

    def app(self, function: str = "reap_stale") -> App:
        """An App over these stores, to look into them."""
        aws = {"table": self.table, "bucket": self.bucket, "endpoint_url": self.clients.dynamodb.meta.endpoint_url}
        return build(function, Settings.model_validate({"aws": aws}), JsonLog(), self.clients)

    def write(self, key: str, text: str) -> None:
        """As a person does, past all conditions."""
        self.clients.s3.put_object(Bucket=self.bucket, Key=f"wiki/{key}", Body=text.encode())

    def notes(self) -> dict[str, bytes]:
        wiki = self.app().wiki
        return {key: found.data for key in wiki.keys("inbox/") if (found := wiki.read(key))}

    def send(self, queue: str, body: str) -> None:
        self.clients.sqs.send_message(QueueUrl=self.queues[queue], MessageBody=body)

    def dead_letters(self) -> dict[str, list[str]]:
        """Bodies, by queue, of those that have any."""
        taken = {
            name: self.clients.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
            for name, url in self.dead.items()
        }
        return {name: [message["Body"] for message in messages] for name, messages in taken.items() if messages}


def make_stack(clients: Clients, **settings: str) -> Stack:
    dead = {name: make_queue(clients.sqs) for name in QUEUES}
    queues = {name: make_queue(clients.sqs) for name in QUEUES}
    for name, function in QUEUES.items():
        arn = clients.sqs.get_queue_attributes(QueueUrl=dead[name], AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": str(DELIVERIES[function].receipts)})
        clients.sqs.set_queue_attributes(
            QueueUrl=queues[name], Attributes={"RedrivePolicy": policy, "VisibilityTimeout": "60"}
        )
    return Stack(clients, make_table(clients.dynamodb).name, make_bucket(clients), queues, dead, settings)


def sqs_event(*bodies: str) -> Event:
    """Messages as Lambda gets them."""
    return {"Records": [record(f"message-{number}", body) for number, body in enumerate(bodies)]}


def record(message: str, body: str, queue: str = "queue", receipts: int = 1) -> dict[str, Any]:
    return {
        "messageId": message,
        "receiptHandle": f"AQEB{message}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": str(receipts),
            "SentTimestamp": "1780000000000",
            "SenderId": "AROAEXAMPLE:wikikeeper-schedule-cycle",
            "ApproximateFirstReceiveTimestamp": "1780000000001",
        },
        "messageAttributes": {},
        "md5OfBody": "0" * 32,
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{queue}",
        "awsRegion": REGION,
    }


Invoke = Callable[[str, Event], Answer]
HANDLERS: Mapping[str, Callable[[Event, Context], Answer]] = {
    "schedule_cycle": schedule_cycle.handler,
    "judge_result": judge_result.handler,
    "write_note": write_note.handler,
    "reap_stale": reap_stale.handler,
}
_requests = itertools.count(1)


def in_process(function: str, event: Event) -> Answer:
    """The handler in this process; events and answers pass through JSON, as on Lambda."""
    answer: Answer = json.loads(
        json.dumps(HANDLERS[function](json.loads(json.dumps(event)), Context(f"request-{next(_requests)}")))
    )
    return answer


class Pump:
    """Takes messages from the queues to the functions, in batches, and deletes those that did not fail."""

    def __init__(self, stack: Stack, invoke: Invoke, batches: Mapping[str, int] = BATCHES) -> None:
        self._stack = stack
        self._invoke = invoke
        self._batches = batches
        self.delivered: list[tuple[str, str]] = []
        """Function and body."""
        self.failed: list[str] = []

    def until_idle(self, seconds: float = 60) -> None:
        """Until no queue has a message, delayed ones included. Raises TimeoutError."""
        last = time.monotonic() + seconds
        while any(self._left(queue) for queue in QUEUES):
            if time.monotonic() > last:
                raise TimeoutError(f"messages are left: { {queue: self._left(queue) for queue in QUEUES} }")
            if not any(self._move(queue) for queue in QUEUES):
                time.sleep(POLL)

    def _move(self, queue: str) -> bool:
        """One batch, if there is a message."""
        sqs, url, function = self._stack.clients.sqs, self._stack.queues[queue], QUEUES[queue]
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=self._batches[function], AttributeNames=["ApproximateReceiveCount"]
        )
        messages: Iterable[MessageTypeDef] = answer.get("Messages", [])
        records = [
            record(m["MessageId"], m["Body"], url.rpartition("/")[2], int(m["Attributes"]["ApproximateReceiveCount"]))
            for m in messages
        ]
        if not records:
            return False
        self.delivered += [(function, record["body"]) for record in records]
        failed = {item["itemIdentifier"] for item in self._invoke(function, {"Records": records})["batchItemFailures"]}
        self.failed += [message["Body"] for message in messages if message["MessageId"] in failed]
        for message in messages:
            if message["MessageId"] not in failed:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return True

    def _left(self, queue: str) -> int:
        there = self._stack.clients.sqs.get_queue_attributes(
            QueueUrl=self._stack.queues[queue], AttributeNames=["All"]
        )["Attributes"]
        return int(there["ApproximateNumberOfMessages"]) + int(there["ApproximateNumberOfMessagesDelayed"])

"""Sending commands: to the right queue, in batches, later where asked, and again where a queue did not take them."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.adapters.aws.schema import make_queue

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.sqs_sender import LONGEST_DELAY, TRIES, SqsSender
from wikikeeper.errors import NotSent, Unusable
from wikikeeper.models import COMMAND, CloseCycle, Command, JudgeResult, ReapStale, Send, StartCycle, WriteNote

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

COMMANDS: dict[str, list[Command]] = {
    "schedule": [StartCycle(topic="t", tick="2026-03-01T12:00Z", missed=2), CloseCycle(cycle="t#1")],
    "judge": [JudgeResult(topic="t", result="r", cycle="t#1")],
    "note": [WriteNote(topic="t")],
    "reap": [ReapStale()],
}


class FlakyQueue:
    """Takes a message when it comes for the time that `takes` says; None: refuses it for good."""

    def __init__(self, takes: dict[str, int | None]) -> None:
        self.takes = takes
        self.batches: list[list[str]] = []
        self.delays: dict[str, int] = {}
        self.taken: list[str] = []

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        topics = {entry["Id"]: COMMAND.validate_json(entry["MessageBody"]).topic for entry in Entries}  # type: ignore[union-attr]
        self.batches.append(list(topics.values()))
        self.delays |= {topics[entry["Id"]]: entry["DelaySeconds"] for entry in Entries}
        failed = []
        for number, topic in topics.items():
            when = self.takes.get(topic, 1)
            if when is not None and sum(topic in batch for batch in self.batches) >= when:
                self.taken.append(topic)
            else:
                code = "InvalidMessageContents" if when is None else "InternalError"
                failed.append({"Id": number, "Code": code, "SenderFault": when is None})
        return {"Failed": failed} if failed else {}


def sender(queue: FlakyQueue, pauses: list[float] | None = None) -> SqsSender:
    return SqsSender(cast("SQSClient", queue), {"note": "url"}, sleep=(pauses if pauses is not None else []).append)


def notes(*topics: str, after: float = 0) -> list[Send]:
    return [Send(command=WriteNote(topic=topic), after=timedelta(seconds=after)) for topic in topics]


def test_each_command_reaches_the_queue_of_its_function(moto: Clients) -> None:
    urls = {name: make_queue(moto.sqs) for name in COMMANDS}
    sends = [Send(command=command) for commands in COMMANDS.values() for command in commands]
    SqsSender(lambda: moto.sqs, urls).send(sends)  # type: ignore[arg-type]  # names of queues as plain texts

    for name, commands in COMMANDS.items():
        messages = moto.sqs.receive_message(QueueUrl=urls[name], MaxNumberOfMessages=10).get("Messages", [])
        found = [COMMAND.validate_json(message["Body"]) for message in messages]
        assert sorted(found, key=repr) == sorted(commands, key=repr)


def test_many_commands_go_in_batches_of_ten() -> None:
    queue = FlakyQueue({})
    sender(queue).send(notes(*map(str, range(23))))

    assert [len(batch) for batch in queue.batches] == [10, 10, 3]
    assert queue.taken == [str(number) for number in range(23)]


def test_nothing_to_send_asks_for_no_client() -> None:
    def none() -> "SQSClient":
        raise AssertionError

    SqsSender(none, {}).send([])


@pytest.mark.parametrize(("after", "delay"), [(0, 0), (0.2, 1), (30, 30), (900, 900), (86_400, LONGEST_DELAY), (-5, 0)])
def test_a_command_is_delayed_as_long_as_the_queue_can(after: float, delay: int) -> None:
    queue = FlakyQueue({})
    sender(queue).send(notes("a", after=after))

    assert queue.delays == {"a": delay}


def test_only_what_was_not_taken_is_sent_again() -> None:
    queue, pauses = FlakyQueue({"b": 3, "c": 2}), list[float]()
    sender(queue, pauses).send(notes("a", "b", "c"))

    assert queue.batches == [["a", "b", "c"], ["b", "c"], ["b"]]
    assert sorted(queue.taken) == ["a", "b", "c"]
    assert len(pauses) == 2
    assert all(0 < pause < 1 for pause in pauses)


def test_what_a_queue_never_takes_is_said_after_everything_else_was_sent() -> None:
    queue = FlakyQueue({"bad": None, "never": TRIES + 1})
    with pytest.raises(NotSent) as caught:
        sender(queue).send(notes("bad", "never", *map(str, range(20))))

    assert (caught.value.count, caught.value.cause) == (2, "InternalError, InvalidMessageContents")
    assert len(queue.taken) == 20
    assert sum("bad" in batch for batch in queue.batches) == 1
    assert sum("never" in batch for batch in queue.batches) == TRIES


def test_a_queue_that_is_not_set_is_named() -> None:
    with pytest.raises(Unusable, match=r"aws\.reap_queue"):
        sender(FlakyQueue({})).send([Send(command=ReapStale())])


def test_a_queue_that_is_not_there_is_a_fault_of_the_settings(moto: Clients) -> None:
    gone = make_queue(moto.sqs) + "-gone"

    with pytest.raises(Unusable, match="no such queue"):
        SqsSender(moto.sqs, {"note": gone}).send(notes("a"))

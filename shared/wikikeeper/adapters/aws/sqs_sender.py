"""Sends what workflows return: each command to the queue of the function that handles it.

A message is the command as JSON: ids, never a page. Queues deliver at least once, so sending twice does no harm.
"""

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from wikikeeper.adapters.aws.clients import explaining
from wikikeeper.errors import NotSent, Unusable
from wikikeeper.models import COMMAND, Send

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

Queue = Literal["schedule", "judge", "note", "reap"]
QUEUES: Mapping[str, Queue] = {
    "start_cycle": "schedule",
    "close_cycle": "schedule",
    "judge_result": "judge",
    "write_note": "note",
    "reap_stale": "reap",
}
"""Which queue takes which kind of command: the one of the function that handles it."""

BATCH = 10
"""Most messages that SQS takes at once."""
LONGEST_DELAY = 900
"""Seconds, SQS's own limit. What should come later comes then: the item's `not_before` decides, and the tick finds it."""
TRIES = 5
"""Of messages that the queue did not take for a reason of its own; with the pauses some two seconds."""
PAUSE = 0.1
"""Seconds before the next; doubled each time."""


class SqsSender:
    """Puts commands on queues. Threads may share one."""

    def __init__(
        self,
        client: "SQSClient | Callable[[], SQSClient]",
        queues: Mapping[Queue, str],
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`client` may be a function, called for the first message: many invocations send none. `queues`: their URLs."""
        self._client = client
        self._queues = queues
        self._sleep = sleep

    def send(self, sends: Sequence[Send]) -> None:
        """Send all of them, in batches for each queue.

        Raises NotSent when a queue took some not at all, after the others were sent; Unusable for one without a URL.
        """
        by_queue: defaultdict[Queue, list[Send]] = defaultdict(list)
        for send in sends:
            by_queue[QUEUES[send.command.kind]].append(send)
        for queue in by_queue:
            if queue not in self._queues:
                raise Unusable(f"no queue to send to: set aws.{queue}_queue")
        failed: list[str] = []
        for queue, of_queue in by_queue.items():
            for start in range(0, len(of_queue), BATCH):
                failed += self._send(self._queues[queue], of_queue[start : start + BATCH])
        if failed:
            raise NotSent(len(failed), ", ".join(sorted(set(failed))))

    def _send(self, url: str, sends: Sequence[Send]) -> list[str]:
        """Returns the causes of those that were not taken in the end."""
        left = [_entry(number, send) for number, send in enumerate(sends)]
        refused: list[str] = []
        again: list[str] = []
        for tries in range(TRIES):
            if tries:
                self._sleep(PAUSE * 2 ** (tries - 1) * random.uniform(0.5, 1))  # noqa: S311 - no secret
            with explaining(f"queue {url}"):
                answer = self._sqs.send_message_batch(QueueUrl=url, Entries=left)
            failures = {failure["Id"]: failure for failure in answer.get("Failed", ())}
            # What is said to be our own fault stays so.
            refused += [failure["Code"] for failure in failures.values() if failure["SenderFault"]]
            left = [entry for entry in left if entry["Id"] in failures and not failures[entry["Id"]]["SenderFault"]]
            again = [failures[entry["Id"]]["Code"] for entry in left]
            if not left:
                break
        return refused + again

    @property
    def _sqs(self) -> "SQSClient":
        return self._client() if callable(self._client) else self._client


def queues(urls: Iterable[tuple[Queue, str | None]]) -> dict[Queue, str]:
    """Those that are set."""
    return {queue: url for queue, url in urls if url is not None}


def _entry(number: int, send: Send) -> "SendMessageBatchRequestEntryTypeDef":
    # Rounded up: a command that comes a moment too early only comes again.
    delay = min(math.ceil(send.after.total_seconds()), LONGEST_DELAY)
    return {
        "Id": str(number),
        "MessageBody": COMMAND.dump_json(send.command).decode(),
        "DelaySeconds": max(delay, 0),
    }

"""Puts a message that cannot be read among the dead letters of its queue, without waiting for three receipts."""

import json
from typing import TYPE_CHECKING

from wikikeeper.adapters.aws.clients import explaining
from wikikeeper.errors import Unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_sqs import SQSClient


class DeadLetters:
    """Those of one queue, as its own redrive policy names them: nothing else has to be set."""

    def __init__(self, client: "Callable[[], SQSClient]", queue: str | None) -> None:
        """`client` is called for the first message: hardly any invocation has one. `queue`: the URL of the queue itself."""
        self._client = client
        self._queue = queue

    def put(self, body: str) -> None:
        """Raises Unusable where there is no such queue; what botocore raises when it is not to be had."""
        url = self._url()
        with explaining(f"queue {url}"):
            self._client().send_message(QueueUrl=url, MessageBody=body)

    def _url(self) -> str:
        if self._queue is None:
            raise Unusable("no queue that messages could come from: set aws.*_queue")
        with explaining(f"queue {self._queue}"):
            answer = self._client().get_queue_attributes(QueueUrl=self._queue, AttributeNames=["RedrivePolicy"])
        policy = answer.get("Attributes", {}).get("RedrivePolicy")
        if policy is None:
            raise Unusable(f"queue {self._queue}: it has no dead-letter queue")
        # SQS demands that both are of one account and region: only the name differs.
        name = json.loads(policy)["deadLetterTargetArn"].rpartition(":")[2]
        return f"{self._queue.rpartition('/')[0]}/{name}"

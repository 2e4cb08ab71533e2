"""Clients of AWS, made once for each container: with timeouts, few retries, and faults of the set-up said in one line.

They come from botocore, not boto3: the same clients, without the transfer manager and the resource layer that nothing
here uses and that make up half of boto3's time to import.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, cast

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError, NoCredentialsError, NoRegionError

from wikikeeper.errors import Unusable

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

CONNECT_SECONDS = 2
"""Inside a region a connection takes milliseconds; one that takes longer is better tried again."""
READ_SECONDS = 8
"""Single items and small files answer in tens of milliseconds. With four tries it stays far under any lease."""
TRIES = 4
"""The first and three more, with botocore's own jittered backoff: rides out throttling, not an outage."""
CONNECTIONS = 16
"""A batch of ten results on ten threads, and some to spare."""

_MENDED_BY_A_PERSON = {
    "AccessDenied": "the function's policy does not allow it",
    "AccessDeniedException": "the function's policy does not allow it",
    "NoSuchBucket": "there is no such bucket: check aws.bucket",
    "ResourceNotFoundException": "there is no such table: check aws.table",
    "AWS.SimpleQueueService.NonExistentQueue": "there is no such queue: check aws.*_queue",
    "QueueDoesNotExist": "there is no such queue: check aws.*_queue",
}


class Clients:
    """One botocore session and the clients that were asked for. Threads may share it, and each client."""

    def __init__(self, endpoint_url: str | None = None) -> None:
        """`endpoint_url` replaces all three services, for servers that speak their protocols."""
        self._endpoint_url = endpoint_url
        self._session = botocore.session.get_session()
        self._making = threading.Lock()

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        return cast("DynamoDBClient", self._made("dynamodb"))

    @cached_property
    def s3(self) -> "S3Client":
        return cast("S3Client", self._made("s3"))

    @cached_property
    def sqs(self) -> "SQSClient":
        return cast("SQSClient", self._made("sqs"))

    def _made(self, service: str) -> object:
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": TRIES},
            max_pool_connections=CONNECTIONS,
            # Addresses of other servers have no names for buckets in front of them.
            s3={"addressing_style": "auto" if self._endpoint_url is None else "path"},
        )
        with self._making:  # a session makes one client at a time
            try:
                return self._session.create_client(service, endpoint_url=self._endpoint_url, config=config)
            except NoRegionError:
                raise Unusable("AWS: no region is set: set AWS_DEFAULT_REGION") from None


@contextmanager
def explaining(what: str) -> Iterator[None]:
    """Turn what only a person can mend into Unusable, in one line; everything else stays as botocore raised it."""
    try:
        yield
    except ClientError as error:
        mend = _MENDED_BY_A_PERSON.get(code(error))
        if mend is None:
            raise
        raise Unusable(f"{what}: {mend}") from error
    except NoCredentialsError as error:
        raise Unusable(f"{what}: AWS credentials were not found") from error


def code(error: ClientError) -> str:
    """The service's own name of an error, or its HTTP status where a bare status was all there was."""
    return error.response.get("Error", {}).get("Code", "")


def retried(error: ClientError) -> bool:
    """Whether an earlier try of the same request may have succeeded without our hearing of it."""
    return error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0

"""The wiki in an S3 bucket: conditional writes on objects that people and other functions write at the same time.

What S3 answers to a condition, and what it means here:

 412 PreconditionFailed           somebody else wrote it (If-Match), or it exists (If-None-Match): WikiConflict
 404 NoSuchKey to If-Match        it is gone: WikiConflict
 409 ConditionalRequestConflict   another write of this very key is under way: nobody has won yet, so it is tried again

A request that is sent again after a lost answer may find its own work; then what lies there says so.

 move    read the version ─▶ put at the target if nothing is there ─▶ delete the source if it is that version still
                                       │ a crash here leaves both       └ it changed meanwhile: the target goes again
                                       └ the same move again finds where its target came from, and only deletes
"""

import hashlib
import random
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import ClientError

from wikikeeper.adapters import wiki_keys
from wikikeeper.adapters.aws.clients import code, explaining, retried
from wikikeeper.errors import WikiConflict
from wikikeeper.ports import Document

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

T = TypeVar("T")

PREFIX = "wiki/"
CONFLICT_TRIES = 5
"""Of a write that another write of the same key got in the way of; with the pauses some two seconds."""
CONFLICT_PAUSE = 0.1
"""Seconds before the next; doubled each time. A small object is written in less."""

_GONE = frozenset({"NoSuchKey", "404"})
_LOST = _GONE | {"PreconditionFailed", "412"}
"""An answer without a body, as to HEAD, has only its status."""
_MOVED_FROM = "moved-from"


class S3Wiki:
    """`Wiki` in a bucket, below a prefix. Threads may share one.

    A name is one sequence of characters: keys are written in NFC, and what a person uploaded in another Unicode form, or
    under a name that no wiki can have, is passed over.
    """

    def __init__(
        self,
        client: "S3Client",
        bucket: str,
        prefix: str = PREFIX,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`prefix` is empty or ends in a slash."""
        self._client = client
        self._bucket = bucket
        self._prefix = prefix
        self._sleep = sleep

    def read(self, key: str) -> Document | None:
        key = wiki_keys.readable(key)
        with self._explaining():
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + key)
            except ClientError as error:
                if code(error) not in _GONE:
                    raise
                return None
            return Document(key=key, data=answer["Body"].read(), etag=answer["ETag"])

    def create(self, key: str, data: bytes) -> str:
        return self._create(wiki_keys.writable(key), data)

    def replace(self, key: str, data: bytes, etag: str) -> str:
        key = wiki_keys.readable(key)

        def put() -> str:
            return self._client.put_object(
                Bucket=self._bucket, Key=self._prefix + key, Body=data, IfMatch=etag, ContentType=_type(key)
            )["ETag"]

        try:
            return self._settled(key, put)
        except ClientError as error:
            if code(error) not in _LOST:
                raise
            return self._ours_after_all(error, key, data)

    def move(self, source: str, target: str, etag: str) -> None:
        source, target = wiki_keys.readable(source), wiki_keys.writable(target)
        document = self.read(source)
        if document is None or document.etag != etag:
            raise WikiConflict(source)
        origin = _origin(source, etag)
        try:
            copy = self._create(target, document.data, origin)
        except WikiConflict:
            copy = self._half_moved(target, origin)
        try:
            self._delete(source, etag)
        except WikiConflict:
            # Only what we put there: somebody may have written on in it.
            self._delete(target, copy, must=False)
            raise

    def keys(self, prefix: str) -> Iterator[str]:
        """In the order of their UTF-8 bytes, which is S3's own."""
        below = wiki_keys.folder(prefix) + "/"
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix + below)
        with self._explaining():
            for page in pages:
                for found in page.get("Contents", ()):
                    key = found["Key"].removeprefix(self._prefix)
                    if unicodedata.is_normalized("NFC", key) and wiki_keys.is_readable(key):
                        yield key

    # -- writing

    def _create(self, key: str, data: bytes, origin: str | None = None) -> str:
        def put() -> str:
            return self._client.put_object(
                Bucket=self._bucket,
                Key=self._prefix + key,
                Body=data,
                IfNoneMatch="*",
                ContentType=_type(key),
                Metadata={} if origin is None else {_MOVED_FROM: origin},
            )["ETag"]

        try:
            return self._settled(key, put)
        except ClientError as error:
            if code(error) not in _LOST:
                raise
            return self._ours_after_all(error, key, data)

    def _delete(self, key: str, etag: str, *, must: bool = True) -> None:
        """Delete exactly this version. Raises WikiConflict for another, if it `must` be gone afterwards."""

        def delete() -> None:
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + key, IfMatch=etag)

        try:
            self._settled(key, delete)
        except ClientError as error:
            if code(error) not in _LOST:
                raise
            # Sent twice and gone now: that was most likely the first of the two. Taking it for somebody else's work would
            # delete the copy as well, and with it the file.
            if must and not (retried(error) and self.read(key) is None):
                raise WikiConflict(key) from error

    def _half_moved(self, target: str, origin: str) -> str:
        """The etag of a target that an earlier try of the same move made. Raises WikiConflict for any other."""
        with self._explaining():
            try:
                there = self._client.head_object(Bucket=self._bucket, Key=self._prefix + target)
            except ClientError as error:
                if code(error) not in _LOST:
                    raise
                raise WikiConflict(target) from error
        if there["Metadata"].get(_MOVED_FROM) != origin:
            raise WikiConflict(target)
        return there["ETag"]

    def _settled(self, key: str, write: Callable[[], T]) -> T:
        """Write until there is an answer: raises WikiConflict when other writes of the key keep getting in the way."""
        with self._explaining():
            for tries in range(CONFLICT_TRIES):
                if tries:
                    self._sleep(CONFLICT_PAUSE * 2 ** (tries - 1) * random.uniform(0.5, 1))  # noqa: S311 - no secret
                try:
                    return write()
                except ClientError as error:
                    if code(error) not in {"ConditionalRequestConflict", "409"}:
                        raise
        raise WikiConflict(key)

    def _ours_after_all(self, error: ClientError, key: str, data: bytes) -> str:
        """The etag of what we wrote, if a request was sent twice and the first one did it. Raises WikiConflict."""
        there = self.read(key) if retried(error) else None
        if there is None or there.data != data:
            raise WikiConflict(key) from error
        return there.etag

    def _explaining(self) -> AbstractContextManager[None]:
        return explaining(f"bucket {self._bucket}")


def _origin(source: str, etag: str) -> str:
    """Names a version of a key in the few characters that a header may have."""
    return hashlib.sha256(f"{etag} {source}".encode()).hexdigest()


def _type(key: str) -> str:
    return "text/markdown; charset=utf-8" if key.endswith(".md") else "application/octet-stream"

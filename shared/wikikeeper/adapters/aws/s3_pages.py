"""The texts of kept pages in S3: what `verify` checks quotes against.

Not in the table: a text of 8,000 characters takes four write units or one PUT, which cost about the same in the end,
but keeping it for a year costs ten times as much there, and every write counts against the table's throughput. The
bucket's lifecycle rule deletes a page a year after it was last written.
"""

import json
import re
import zlib
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from wikikeeper.adapters.aws.clients import code, explaining
from wikikeeper.models import StoredPage

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PREFIX = "pages/"
_SAFE = re.compile(r"[0-9A-Za-z_-]{1,128}")


class S3Pages:
    """Pages by the hash of their text."""

    def __init__(self, client: "S3Client", bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, page: StoredPage) -> None:
        """A text that is here already keeps its paragraphs, which quotes point into, and is kept for longer."""
        text = json.dumps({"stored": page.stored.isoformat(), "paragraphs": page.paragraphs}, ensure_ascii=False)
        key = _key(page.text_hash)
        with explaining(f"bucket {self._bucket}"):
            try:
                self._client.put_object(
                    Bucket=self._bucket, Key=key, Body=zlib.compress(text.encode()), IfNoneMatch="*"
                )
            except ClientError as error:
                # 409: somebody else puts the very same text just now.
                if code(error) == "ConditionalRequestConflict":
                    return
                if code(error) != "PreconditionFailed":
                    raise
                self._again(key)

    def get(self, text_hash: str) -> StoredPage | None:
        with explaining(f"bucket {self._bucket}"):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=_key(text_hash))
            except ClientError as error:
                if code(error) != "NoSuchKey":
                    raise
                return None
            stored = json.loads(zlib.decompress(answer["Body"].read()))
        return StoredPage(
            text_hash=text_hash,
            paragraphs=tuple(stored["paragraphs"]),
            stored=datetime.fromisoformat(stored["stored"]),
        )

    def _again(self, key: str) -> None:
        # A copy onto itself begins its time anew; S3 demands that something changes, so its metadata is "replaced".
        self._client.copy_object(
            Bucket=self._bucket,
            Key=key,
            CopySource={"Bucket": self._bucket, "Key": key},
            MetadataDirective="REPLACE",
        )


def _key(text_hash: str) -> str:
    if not _SAFE.fullmatch(text_hash):
        raise ValueError("not the hash of a text")
    return PREFIX + text_hash

"""Is this delivery from whom it says it is? Signatures of the three kinds of hooks, checked on the bytes as they came.

    Standard Webhooks   HMAC-SHA256 over id.timestamp.body, base64, several signatures apart by spaces
    GitHub              HMAC-SHA256 over the body alone, hex: no timestamp, so a repeat is known by the body
    Slack               HMAC-SHA256 over v0:timestamp:body, hex

Nothing is parsed before it is verified, least of all the body. Each rule answers None, or the fault, which names no
secret and repeats nothing of what was sent. Several keys are accepted at once, so that a secret can be changed without
losing a delivery; all are tried, whichever fits, and each is compared in constant time.

Stricter than senders need, where leniency would let one signature stand for two deliveries: signatures are compared as
text, since base64 has several spellings of the same bytes, and an id has no full stop, since that is what parts it from
the timestamp. The `standardwebhooks` library reads the clock itself and raises by accident on what is malformed; the
tests hold these rules to its answers.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

MOST_SIGNATURES = 16
"""Of one delivery. A sender has one for each of its keys; more would only make us work."""
LONGEST_HEADER = 4096
"""Characters. A dozen signatures are a quarter of it."""
FEWEST_KEY_BYTES = 24
"""What Standard Webhooks asks for; as many random bytes cannot be guessed."""
KEY_PREFIX = "whsec_"

_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_ID = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,256}")
"""Printable ASCII without spaces and full stops."""


class Fault(StrEnum):
    """Why a delivery is not believed."""

    MISSING = "missing"
    """A header is not there."""
    MALFORMED = "malformed"
    """A header is not in its form."""
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    MISMATCH = "mismatch"
    """No signature fits the body with any key."""


def standard_key(secret: str) -> bytes:
    """The key that a Standard Webhooks secret spells: base64, with or without `whsec_` and padding.

    Raises ValueError, without the secret, for one that spells none or a short one.
    """
    text = secret.strip().removeprefix(KEY_PREFIX).rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):  # ValueError: not ASCII
        raise ValueError(f"is not base64, with or without {KEY_PREFIX} before it") from None
    if len(key) < FEWEST_KEY_BYTES:
        raise ValueError(f"is shorter than {FEWEST_KEY_BYTES} bytes: make one with `openssl rand -base64 32`")
    return key


def standard_fault(
    body: bytes,
    *,
    delivery: str | None,
    timestamp: str | None,
    signatures: str | None,
    keys: Sequence[bytes],
    now: datetime,
    tolerance: timedelta,
) -> Fault | None:
    """Of a delivery by Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`."""
    if not (delivery and timestamp and signatures):
        return Fault.MISSING
    if not _ID.fullmatch(delivery) or len(signatures) > LONGEST_HEADER:
        return Fault.MALFORMED
    if (fault := _age_fault(timestamp, now, tolerance)) is not None:
        return fault
    given = signatures.split(" ")
    if len(given) > MOST_SIGNATURES or not any(signature.startswith("v1,") for signature in given):
        return Fault.MALFORMED
    signed = f"{delivery}.{timestamp}.".encode() + body
    expected = [b"v1," + base64.b64encode(_hmac(key, signed)) for key in keys]
    return None if _any_equal(expected, given) else Fault.MISMATCH


def github_fault(body: bytes, *, signature: str | None, keys: Sequence[bytes]) -> Fault | None:
    """Of a delivery by GitHub: `X-Hub-Signature-256`. The older `X-Hub-Signature`, by SHA-1, is not accepted."""
    if not signature:
        return Fault.MISSING
    if not re.fullmatch(r"sha256=[0-9a-f]{64}", signature):
        return Fault.MALFORMED
    expected = [b"sha256=" + _hmac(key, body).hex().encode() for key in keys]
    return None if _any_equal(expected, [signature]) else Fault.MISMATCH


def slack_fault(
    body: bytes,
    *,
    timestamp: str | None,
    signature: str | None,
    keys: Sequence[bytes],
    now: datetime,
    tolerance: timedelta,
) -> Fault | None:
    """Of a request by Slack: `X-Slack-Request-Timestamp`, `X-Slack-Signature`."""
    if not (timestamp and signature):
        return Fault.MISSING
    if (fault := _age_fault(timestamp, now, tolerance)) is not None:
        return fault
    if not re.fullmatch(r"v0=[0-9a-f]{64}", signature):
        return Fault.MALFORMED
    signed = f"v0:{timestamp}:".encode() + body
    expected = [b"v0=" + _hmac(key, signed).hex().encode() for key in keys]
    return None if _any_equal(expected, [signature]) else Fault.MISMATCH


def body_key(body: bytes) -> str:
    """What a delivery without an id of its own is known by."""
    return hashlib.sha256(body).hexdigest()


def _age_fault(timestamp: str, now: datetime, tolerance: timedelta) -> Fault | None:
    if not _TIMESTAMP.fullmatch(timestamp):
        return Fault.MALFORMED
    age = now.timestamp() - int(timestamp)
    if abs(age) <= tolerance.total_seconds():
        return None
    return Fault.TOO_OLD if age > 0 else Fault.TOO_NEW


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def _any_equal(expected: Sequence[bytes], given: Sequence[str]) -> bool:
    # All are compared, in a list and not one by one, so that the time says nothing of which key it was.
    sent = [text.encode("utf-8", "surrogateescape") for text in given]
    return any([hmac.compare_digest(one, other) for one in expected for other in sent])  # noqa: C419

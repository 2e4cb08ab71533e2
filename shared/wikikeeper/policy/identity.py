"""Names that are the same for the same thing: ids by hash, so that a repeat finds what the first time wrote."""

import hashlib
from datetime import UTC, datetime


def digest(*parts: str) -> str:
    """A SHA-256 over parts that cannot run into each other."""
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")).hexdigest()


def result_id(topic: str, canonical: str, revision: int) -> str:
    return digest("result", topic, canonical, str(revision))[:24]


def run_id(result: str, fence: int) -> str:
    """One call of one claim: a late worker and its successor never write the same run."""
    return f"{result}-{fence}"


def cycle_id(topic: str, tick: str) -> str:
    return f"{topic}#{tick}"


def brief_hash(title: str, brief: str) -> str:
    return digest("brief", title, brief)[:16]


def manual_tick(now: datetime) -> str:
    """A tick that a person caused. Microseconds keep two runs of one second apart."""
    return f"{MANUAL}{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


MANUAL = "manual-"

"""What stands before every hook: so many bytes, in so much time, so many at once, and once verified so many a minute.

Nothing here knows what a delivery says. A stranger who sends what cannot be verified costs one bounded body and one hash,
and never takes from what verified senders may send.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta

from fastapi import Request

from wikikeeper.errors import WikikeeperError

BODY_SECONDS = 5.0
"""For a whole body: senders send theirs in one go, and wait no longer than this for an answer themselves."""
MOST_AT_ONCE = 16
"""Bodies that are read at once: with the most bytes that a setting allows for each, 80 MB."""
MINUTE = 60.0


class HookRefused(WikikeeperError):
    """A delivery gets no effect and this answer."""

    def __init__(self, status: int, cause: str, said: str, after: timedelta | None = None) -> None:
        super().__init__(f"{status} {cause}: {said}")
        self.status = status
        self.cause = cause
        """Short and stable, for logs."""
        self.said = said
        """For the sender: what was wrong and what to do, and nothing that was sent."""
        self.after = after
        """When asking again may help."""


class Door:
    """Reads bodies within bounds. Used by one event loop."""

    def __init__(self, max_bytes: int, *, seconds: float = BODY_SECONDS, most_at_once: int = MOST_AT_ONCE) -> None:
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._places = most_at_once

    async def read(self, request: Request) -> bytes:
        """The body as it came. Raises HookRefused: 408, 413, 503 or, when the sender hung up, 400."""
        promised = request.headers.get("content-length", "")
        if promised.isascii() and promised.isdigit() and (len(promised) > 15 or int(promised) > self._max_bytes):
            raise self._too_large()
        if self._places == 0:
            raise HookRefused(503, "busy", "too many deliveries at once: send it again", timedelta(seconds=1))
        self._places -= 1
        try:
            async with asyncio.timeout(self._seconds):
                return await self._bounded(request)
        except TimeoutError:
            raise HookRefused(408, "slow", f"the body did not come within {self._seconds:g} s") from None
        finally:
            self._places += 1

    async def _bounded(self, request: Request) -> bytes:
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > self._max_bytes:
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> HookRefused:
        return HookRefused(413, "too_large", f"the body is larger than {self._max_bytes} bytes (hooks.max_bytes)")


class Allowance:
    """So many a minute, unused ones saved up to one minute's. Used by one event loop."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._now = now
        self._left = float(per_minute)
        self._seen = now()

    def take(self) -> None:
        """Raises HookRefused (429) when there is none left."""
        now = self._now()
        gained = (now - self._seen) * self._per_minute / MINUTE
        self._left, self._seen = min(self._left + gained, float(self._per_minute)), now
        if self._left < 1:
            wait = timedelta(seconds=(1 - self._left) * MINUTE / self._per_minute)
            raise HookRefused(429, "too_many", f"more than {self._per_minute} a minute (hooks.per_minute)", wait)
        self._left -= 1


def header(request: Request, name: str) -> str | None:
    """A header that came exactly once; of two nobody could say which was signed."""
    values = request.headers.getlist(name)
    return values[0] if len(values) == 1 else None

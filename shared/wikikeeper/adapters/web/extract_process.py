"""The child process as its parent sees it: started, handed a page, killed when time is up."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

import wikikeeper
from wikikeeper.adapters.web import extract_frames as frames

_START_SECONDS = 60
"""For loading the parsers: about one second, many more on a cold disk or a busy machine."""
_PAGES_PER_CHILD = 1000
"""Then a fresh one starts: whatever parsers leak ends there."""
_PASSED_ON = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "TMPDIR")
"""Of the environment, what a Python needs to start. Keys and tokens stay with the parent."""


class ChildLost(Exception):
    """The child was killed or ended by itself."""


class Child:
    """One running child. Used by one thread at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        process = subprocess.Popen(  # noqa: S603 - our own module, no shell, nothing of a page in it
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # parsers complain about every page
            env=_environment(),
            # Ctrl-C reaches the whole group of the terminal: the page in hand would count as too much for it.
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        self._process, self._jobs, self._replies = process, process.stdin, process.stdout
        self._pages = 0

    @property
    def is_worn(self) -> bool:
        return self._pages >= _PAGES_PER_CHILD

    def wait_until_ready(self) -> None:
        """Raises ChildLost if it does not start."""
        self._within(_START_SECONDS, lambda: frames.receive(self._replies, len(frames.READY)))

    def ask(self, job: frames.Job, body: bytes, seconds: float) -> frames.Reply:
        """Hand over a page and wait for what came out of it.

        Raises ChildLost; the child is then of no more use.
        """
        self._pages += 1
        payload = self._within(seconds, lambda: self._exchange(job, body))
        try:
            return frames.Reply.model_validate_json(payload)
        except ValidationError as error:
            raise ChildLost("what it sent is no reply") from error

    def _exchange(self, job: frames.Job, body: bytes) -> bytes:
        frames.send(self._jobs, job.model_dump_json().encode())
        frames.send(self._jobs, body)
        return frames.receive(self._replies, frames.LONGEST_REPLY)

    def _within(self, seconds: float, work: Callable[[], bytes]) -> bytes:
        late = threading.Event()

        def expire() -> None:
            # Killing the child is what ends a read or a write that waits for it, on every system.
            late.set()
            self._process.kill()

        watchdog = threading.Timer(seconds, expire)
        watchdog.start()
        try:
            payload = work()
        except (OSError, frames.BrokenFrame) as error:
            raise ChildLost("time is up" if late.is_set() else f"it ended: {error}") from error
        finally:
            watchdog.cancel()
            watchdog.join()  # so that it can't kill a child that is at its next page already
        if late.is_set():
            raise ChildLost("time is up")
        return payload

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._replies.close()
        # A body that was only half written to a dead child can't be flushed any more.
        with contextlib.suppress(OSError):
            self._jobs.close()


def end_all(children: list[Child]) -> None:
    """End and forget them."""
    while children:
        children.pop().end()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": str(Path(wikikeeper.__file__).parents[1]), "PYTHONUTF8": "1"}

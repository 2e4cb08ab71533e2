"""One real run that kills itself at a named step.

Real stores, fetching, extraction and note writing; only the Keeper is scripted, and writes every call it answers to the
file `calls`, so that what was really asked is known whatever the store remembers. `step` is `port.method:before|after:n`, the
n-th call of a port's method, or `none`.
"""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console

from wikikeeper.app import open_app
from wikikeeper.cli.cycles import run_cycles
from wikikeeper.cli.summary import RunReporter
from wikikeeper.fakes import ScriptedDecider, ScriptedKeeper, judgement
from wikikeeper.models import Judgement
from wikikeeper.parts import ModelServer
from wikikeeper.settings import Settings

LEASE = timedelta(seconds=1.5)


class Killing:
    """A port of which one method, called for the n-th time, is the last thing that this process does."""

    def __init__(self, port: object, method: str, when: str, n: int) -> None:
        self._port, self._method, self._when, self._left = port, method, when, n
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it stands for any port
        found = getattr(self._port, name)
        return self._counted(found) if name == self._method else found

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - and for any of its methods
            with self._lock:
                self._left -= 1
                last = self._left == 0
            if last and self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            result = method(*args, **kwargs)
            if last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call


def main(wiki: Path, calls: Path, step: str) -> int:
    reporter = RunReporter(Console(stderr=True))

    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        with calls.open("a") as log:  # one short line: appended whole, also by several processes
            log.write(f"{paragraphs[0]}\n")
        return judgement(useful=0.1 if "not useful" in paragraphs[0] else 0.9)

    server = ModelServer("http://127.0.0.1:9", "scripted")
    with open_app(wiki, Settings(), server, reporter) as real:
        short = replace(
            real.rules,
            judge_lease=LEASE,
            call_lease=LEASE,
            call_deadline=LEASE / 2,
            cycle_lease=LEASE,
            permit_lease=LEASE,
            note_delay=LEASE,
        )
        app = replace(real, decider=ScriptedDecider(), keeper=ScriptedKeeper(script), rules=short)
        if step != "none":
            point, when, n = step.split(":")
            port, method = point.split(".")
            parts: dict[str, Any] = {port: Killing(getattr(app, port), method, when, int(n))}
            app = replace(app, **parts)
        return run_cycles(app, reporter, [], workers=4, due=False, as_json=True)

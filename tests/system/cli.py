"""The command line as a person uses it: `wikikeeper` in a process of its own, which cannot leave this machine."""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SEARCHED = os.pathsep.join((str(Path(__file__).parent / "offline"), str(ROOT / "shared")))
FORKS = str(Path(__file__).parent / "forks.py")
SCREEN = {"NO_COLOR": "1", "COLUMNS": "120"}
"""Wide enough that no line of a table is folded."""
MOST_SECONDS = 180
"""A command takes one or two; a machine that is busy with something else takes its time."""


@dataclass(frozen=True)
class Said:
    """What a command came to."""

    code: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 - whatever the command printed
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def error(self) -> str:
        """The one line that an error is."""
        (line,) = self.err.splitlines()
        return line


class Cli:
    """`wikikeeper` for one wiki, with settings from the environment and nothing else of the surroundings."""

    def __init__(self, wiki: Path, *, instead: Path | None = None, **settings: str) -> None:
        """Settings as `research__keep_threshold="0.7"`. `instead`: a folder of modules that take the place of others."""
        self.wiki = wiki
        self.settings = settings
        self._searched = SEARCHED if instead is None else f"{instead}{os.pathsep}{SEARCHED}"

    def __call__(self, *arguments: str, **settings: str) -> Said:
        """Run a command to its end, in a fork of a process that has loaded the command line already."""
        return _checked(_forks().run(arguments, self.environment(**settings), self.wiki.parent), arguments)

    def afresh(self, *arguments: str, **settings: str) -> Said:
        """Run a command to its end, in a process that loads everything itself."""
        with self.started(*arguments, **settings) as process:
            out, err = process.communicate(timeout=MOST_SECONDS)
        return _checked(Said(process.returncode, out.decode(), err.decode()), arguments)

    @contextmanager
    def started(self, *arguments: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
        """A command that runs; it does not outlive the block."""
        with subprocess.Popen(
            self.command(*arguments),
            env=self.environment(**settings),
            cwd=self.wiki.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C of a terminal reaches a whole group: this one
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def command(self, *arguments: str) -> Sequence[str]:
        return (sys.executable, "-m", "wikikeeper", *arguments)

    def environment(self, **settings: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("WIKIKEEPER_")}
        ours = {f"WIKIKEEPER_{name.upper()}": value for name, value in (self.settings | settings).items()}
        return kept | SCREEN | {"WIKIKEEPER_WIKI": str(self.wiki), "PYTHONPATH": self._searched} | ours


class _Forks:
    """The process of forks.py."""

    def __init__(self) -> None:
        environment = {**os.environ, **SCREEN, "PYTHONPATH": SEARCHED}
        self._process = subprocess.Popen(
            (sys.executable, FORKS), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._files = tempfile.TemporaryDirectory()
        atexit.register(self._close)

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> Said:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        out, err = (Path(self._files.name) / name for name in ("out", "err"))
        command = {
            "arguments": arguments,
            "environment": environment,
            "folder": str(folder),
            "out": str(out),
            "err": str(err),
        }
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        return Said(code, out.read_text(), err.read_text())

    def _close(self) -> None:
        with self._process:
            pass  # its standard input ends, and so does it
        self._files.cleanup()


@cache
def _forks() -> _Forks:
    return _Forks()


def _checked(said: Said, arguments: Sequence[str]) -> Said:
    """A trace is a failure of the test unless it was asked for."""
    assert "--debug" in arguments or "Traceback" not in said.err, said.err
    return said


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C, as a terminal sends it."""
    os.killpg(process.pid, signal.SIGINT)


def files(wiki: Path) -> dict[str, bytes]:
    """Every file of a wiki that is a person's to read, by its path; not the machine's memory."""
    return {
        str(path.relative_to(wiki)): path.read_bytes()
        for path in sorted(wiki.rglob("*"))
        if path.is_file() and ".wikikeeper" not in path.parts
    }

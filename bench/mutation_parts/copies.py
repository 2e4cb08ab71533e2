"""Copies of the project in a temporary folder, which mutants are written into: the work tree is left alone."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from bench.mutation_parts.host import KILLED, PASSED
from bench.mutation_parts.statements import Edit

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
"""What tests may take that don't end by themselves, beside three times what they take without a mutant."""
ENVIRONMENT = {"CI": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""The same examples each time, and no plugins that these tests don't use."""


def copied(to: Path) -> Path:
    for name in ("shared", "tests", "bench"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", to)
    return to


class Copy:
    """One copy, and the process that tries mutants in it."""

    def __init__(self, folder: Path, steps: int) -> None:
        self.folder = copied(folder)
        path = os.pathsep.join((str(folder / "shared"), str(folder)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.mutation_parts.host"],
            cwd=folder,
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path, "WIKIKEEPER_STEPS": str(steps)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tried(self, file: str, text: str, tests: Sequence[str], seconds: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"file": file, "text": text, "tests": list(tests), "seconds": seconds}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process that tries mutants in {self.folder} ended")
        return dict(json.loads(answer))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=120)


@contextmanager
def copies(folder: Path, jobs: int, steps: int) -> Iterator[list[Copy]]:
    made: list[Copy] = []
    try:
        for number in range(jobs):
            made.append(Copy(folder / str(number), steps))  # noqa: PERF401 - those that were made are closed
        yield made
    finally:
        for copy in made:
            copy.close()


def survivors(
    file: str, edits: Sequence[Edit], tests: Sequence[str], made: Sequence[Copy], told: Callable[[str], None]
) -> list[str]:
    """Of these mutants of a file, described. Raises RuntimeError where the tests fail without one."""
    source = (made[0].folder / file).read_text()
    clean = made[0].tried(file, source, tests, 20 * SECONDS)
    if clean["ended"] != PASSED:
        said = (made[0].folder / "last-run.txt").read_text()[-2000:]
        raise RuntimeError(
            f"{file}: without a mutant its tests end with {clean['ended']}, so they show nothing:\n{said}"
        )
    patience = SECONDS + 3 * clean["seconds"]
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in made:
        free.put(copy)

    def lives(edit: Edit) -> bool:
        copy = free.get()
        try:
            ended = copy.tried(file, edit.applied(source), tests, patience)["ended"]
        finally:
            free.put(copy)
        if ended not in {PASSED, *KILLED}:
            raise RuntimeError(f"{edit.described(source)}: ended with {ended}")
        if ended == PASSED:
            told(f"survived: {edit.described(source)}")
        return bool(ended == PASSED)

    with ThreadPoolExecutor(len(made)) as pool:
        lived = list(pool.map(lives, edits))
    return [edit.described(source) for edit, alive in zip(edits, lived, strict=True) if alive]

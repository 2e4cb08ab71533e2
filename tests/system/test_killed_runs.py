"""`kill -9` at each named step of a cycle, then another run: nothing is lost, judged or noted twice."""

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.system import killed_run

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.models import CycleState, ResultState
from wikikeeper.policy.notes import entries

MOST_SECONDS = 60
USEFUL, USELESS = 5, 2

TOPIC = """---
title: Quillstore
folder: pages
---
What is new in Quillstore.
"""

STEPS = {
    "cycle started": "store.start_cycle:after:1",
    "found, nothing stored": "store.add_results:before:1",
    "stored and on its way, not draining": "store.add_results:after:1",
    "nothing said of what was found": "store.drain_cycle:before:1",
    "draining, nothing judged": "store.drain_cycle:after:1",
    "claimed": "store.claim:after:2",
    "fetched": "fetcher.fetch:after:2",
    "extracted": "extractor.extract:after:2",
    "text claimed": "store.claim_text:after:2",
    "permit taken": "gate.acquire:after:2",
    "call counted, not made": "store.begin_call:after:2",
    "called, no run record": "keeper.judge:after:2",
    "page stored, no run record": "store.put_page:after:2",
    "run record, no verdict": "store.put_run:after:2",
    "verdict refused its write": "store.finish:before:2",
    "verdict, permit held": "store.finish:after:2",
    "permit given back": "gate.release:after:2",
    "verdict, note not due": "store.set_note_due:before:1",
    "verdict, note due": "store.set_note_due:after:1",
    "note due cleared": "store.clear_note_due:after:1",
    "note opened": "store.open_note:after:1",
    "note about to be written": "wiki.create:before:1",
    "note written, not marked": "wiki.create:after:1",
    "note started, not marked": "store.start_note:after:1",
    "note marked": "store.mark_noted:after:1",
    "cycle not closed": "store.end_cycle:before:1",
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_a_run_killed_at_a_step_is_finished_by_the_next(tmp_path: Path, step: str) -> None:
    wiki, calls = _wiki(tmp_path), tmp_path / "calls"

    code, said = _run(wiki, calls, step)
    assert code == -signal.SIGKILL, f"{step} was never reached: {said}"
    asked_before = _asked(calls)
    code, said = _run(wiki, calls, "none")

    assert code == 0, said
    with _store(wiki) as store:
        results = list(store.results())
        assert Counter(result.state for result in results) == {
            ResultState.KEPT: USEFUL,
            ResultState.DISCARDED: USELESS,
        }
        runs = list(store.runs())
        calls_counted = sum(cycle.calls for cycle in store.cycles())
        assert calls_counted == len(runs), "every counted call has its run"
        answered = [run for run in runs if run.outcome == "answered"]
        assert Counter(run.subject for run in answered) == dict.fromkeys((r.id for r in results), 1), "one answer each"
        lost = [run for run in runs if run.outcome == "lost"]
        # Only a call whose run record was never written can have been asked for again.
        assert sum(_asked(calls).values()) <= len(results) + len(lost)
        assert all(times == 1 for times in asked_before.values())
        assert not list(store.cycles(states=frozenset({CycleState.OPEN, CycleState.DRAINING})))
        noted = _noted(wiki)
        assert noted == dict.fromkeys((r.id for r in results if r.state is ResultState.KEPT), 1), "noted once each"


def test_a_second_run_asks_nothing_and_changes_no_byte_of_the_wiki(tmp_path: Path) -> None:
    wiki, calls = _wiki(tmp_path), tmp_path / "calls"
    assert _run(wiki, calls, "none")[0] == 0
    before, asked = _files(wiki), _asked(calls)

    assert _run(wiki, calls, "none")[0] == 0

    assert _files(wiki) == before
    assert _asked(calls) == asked


def test_a_machine_without_network_for_one_cycle_loses_nothing(tmp_path: Path) -> None:
    """Every page is out of reach once; afterwards everything still waits, and the next cycle judges it."""
    wiki, calls = _wiki(tmp_path), tmp_path / "calls"
    (wiki / "topics" / "web.md").write_text(
        "---\ntitle: Web\nlinks: [https://nowhere.invalid/a, https://nowhere.invalid/b]\n---\nAnything.\n"
    )
    (wiki / "topics" / "quillstore.md").unlink()

    for _ in range(4):
        assert _run(wiki, calls, "none")[0] == 0

    with _store(wiki) as store:
        found = [(r.state, r.attempts, {f.cause for f in r.failures}) for r in store.results()]
        assert found == [(ResultState.WAITING, 0, {"dns"})] * 2
    assert _asked(calls) == {}


def _wiki(folder: Path) -> Path:
    wiki = folder / "wiki"
    (wiki / "topics").mkdir(parents=True)
    (wiki / "pages").mkdir()
    (wiki / "topics" / "quillstore.md").write_text(TOPIC)
    for n in range(USEFUL + USELESS):
        about = "a useful text" if n < USEFUL else "not useful"
        text = f"Page {n} is {about}. " + f"It says more about matter number {n}, in whole sentences. " * 6
        (wiki / "pages" / f"{n}.md").write_text(f"{text}\n\nA second paragraph of page {n}, for good measure.\n")
    return wiki


def _run(wiki: Path, calls: Path, step: str) -> tuple[int, str]:
    """A run in a forked process: what it ended with (-9 when it was killed), and what it said."""
    said = calls.with_suffix(".stderr")
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = 70
        try:
            with said.open("w") as log, Path(os.devnull).open("w") as nothing:
                os.dup2(log.fileno(), 2)
                os.dup2(nothing.fileno(), 1)
                code = killed_run.main(wiki, calls, step)
        finally:
            os._exit(code)  # nothing of the test runner may run in here
    deadline = time.monotonic() + MOST_SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), said.read_text()
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    pytest.fail(f"the run at {step} did not end within {MOST_SECONDS} s: {said.read_text()}")


def _asked(calls: Path) -> Counter[str]:
    return Counter(calls.read_text().splitlines() if calls.exists() else [])


@contextmanager
def _store(wiki: Path) -> Iterator[SqliteRunStore]:
    database = Database(wiki / ".wikikeeper" / "state.sqlite")
    try:
        yield SqliteRunStore(database)
    finally:
        database.close()


def _noted(wiki: Path) -> Counter[str]:
    return Counter(entry.result for note in wiki.glob("inbox/*/*.md") for entry in entries(note.read_bytes()))


def _files(wiki: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(wiki)): path.read_bytes()
        for path in sorted(wiki.rglob("*"))
        if path.is_file() and ".wikikeeper" not in path.parts
    }

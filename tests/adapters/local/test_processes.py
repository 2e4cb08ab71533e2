"""Two processes on one file: one winner of each race, never more permits than the limit."""

import itertools
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

from tests.adapters.contracts.samples import stored_cycle
from tests.adapters.local.processes import ITEMS, THREADS, pass_gate, race

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore

T = TypeVar("T")
PROCESSES = 2


def in_two_processes(work: Callable[..., T], *arguments: object) -> list[T]:
    """Run it in two at once; its last argument is the barrier to start by."""
    # Spawned, not forked: the test's own process has threads.
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        start = manager.Barrier(PROCESSES)
        answers = [pool.submit(work, *arguments, start) for _ in range(PROCESSES)]
        return [answer.result(timeout=60) for answer in answers]


def test_of_processes_that_race_from_the_first_start_one_wins_and_the_cap_holds(tmp_path: Path) -> None:
    cap = ITEMS // 2
    path = tmp_path / "wiki" / ".wikikeeper" / "state.db"
    one, other = in_two_processes(race, path, cap)
    store = SqliteRunStore(Database(path))

    for contest in ("add", "claim", "note", "tick"):
        assert sorted(one[contest] + other[contest]) == list(range(ITEMS)), contest
    # The owner is told that it owns as often as it asks; who else was told so would show here.
    assert sorted(one["text"] + other["text"]) == list(range(ITEMS))
    assert len(one["call"]) + len(other["call"]) == cap == stored_cycle(store).calls
    assert (
        sum(store.database.read("SELECT call_fence FROM results")[item][0] is not None for item in range(ITEMS)) == cap
    )
    store.close()


def test_processes_never_hold_more_permits_than_the_limit(tmp_path: Path) -> None:
    limit, rounds = 2, 15
    log = tmp_path / "log"
    passed = in_two_processes(pass_gate, tmp_path / "state.db", log, limit, rounds)
    inside = list(itertools.accumulate(1 if line == "+" else -1 for line in log.read_text().split()))

    assert sum(passed) == PROCESSES * THREADS * rounds
    assert max(inside) <= limit
    assert inside[-1] == 0

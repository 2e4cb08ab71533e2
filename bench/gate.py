"""What the gate costs of the slots' time, and whether lanes and fairness hold: SQLite, real processes, calls that sleep.

    python bench/gate.py [--json] [--call-ms 400] [--limit 4] [--seconds 10]

Prints:

    overhead_ratio_1             share of the slots' time in which no call was made, though callers waited all the time:
                                 one process with eight threads
    overhead_ratio_8             the same with eight processes of two threads each
    keeper_overtakes             with one slot, a call of the Keeper, asked for last and in a process of its own, came
                                 before every call of the lane `pleb` that waited, each time of ten
    longest_wait_of_each_lane_s  seconds, with as many Keeper calls waiting all the time as there are slots and more, and
                                 two callers of each other lane in processes of their own
    max_wait_s                   `gate.max_wait` there: who has waited so long goes before the Keeper
    max_concurrency              most calls at once, of all runs; never more than the limit

The slots' time is the limit times what passes between the first start of a call and the last end while all still wait:
time of taking and giving back permits, of threads and processes waking up, and of looking for a free slot. Exits with 1
when there were more calls at once than the limit. Takes about a minute; needs a POSIX system.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "shared")]  # what lies here is measured, whatever is installed

from wikikeeper.adapters.local.gate import SqliteGate, SqliteSlots
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.models import Lane, Permit

TTL = timedelta(seconds=60)
PATIENCE = timedelta(seconds=60)
START_SECONDS = 60
"""Allowed for starting processes on a loaded machine."""
TRIALS, PLEBS, OVERTAKEN_CALL = 10, 2, 0.2
FAIR_CALL_MS, FAIR_WAIT, FAIR_SECONDS = 100.0, 2.0, 14.0
"""Seven times the wait: enough for each lane to be late again and again."""

Call = tuple[str, float, float, float]
"""Lane, and when it was asked for, begun and ended, by the machine's monotonic clock, which all processes share."""


@dataclass(frozen=True)
class Work:
    """What one process does."""

    lane: Lane
    threads: int
    call: float
    seconds: float
    limit: int
    max_wait: float = 60
    most: int = sys.maxsize
    """Calls of each thread."""


def callers(path: Path, work: Work, ready: Any, go: Any, out: Any) -> None:  # noqa: ANN401 - of multiprocessing
    database = Database(path)
    gate = SqliteGate(database, work.limit, max_wait=timedelta(seconds=work.max_wait))
    calls: list[Call] = []
    ready.release()
    go.wait(START_SECONDS)
    end = time.monotonic() + work.seconds

    def caller(_: int) -> None:
        for _ in range(work.most):
            if time.monotonic() >= end:
                return
            calls.append(one_call(gate, work.lane, work.call))

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(work.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    database.close()
    out.put(calls)


def run(crowd: Sequence[Work], between: Callable[[Path], None] = lambda _: None) -> list[Call]:
    """All calls of the crowd, each of it a process, begun together. `between` runs while they do."""
    context = multiprocessing.get_context("fork")
    out, ready, go = context.Queue(), context.Semaphore(0), context.Event()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.sqlite"
        Database(path).close()
        processes = [context.Process(target=callers, args=(path, work, ready, go, out)) for work in crowd]
        for process in processes:
            process.start()
        for _ in processes:
            assert ready.acquire(timeout=START_SECONDS)
        go.set()
        between(path)
        calls = [call for _ in processes for call in out.get(timeout=START_SECONDS + 60)]
        for process in processes:
            process.join()
    return calls


def concurrency(calls: Sequence[Call]) -> int:
    moments = sorted([(begun, 1) for _, _, begun, _ in calls] + [(ended, -1) for _, _, _, ended in calls])
    return max(accumulate(step for _, step in moments))


def overhead(calls: Sequence[Call], limit: int) -> float:
    """The share of the slots' time without a call, from the first start until the first caller stopped asking."""
    first = min(begun for _, _, begun, _ in calls)
    last = max(asked for _, asked, _, _ in calls)  # until then there was always one more who waited
    busy = sum(min(ended, last) - begun for _, _, begun, ended in calls if begun < last)
    return 1 - busy / (limit * (last - first))


def overtakes() -> bool:
    """Each time: one slot, and callers of two processes in it and waiting for it; then a Keeper asks in a third."""
    fine = True
    for _ in range(TRIALS):
        keeper: list[Call] = []

        def ask(path: Path, keeper: list[Call] = keeper) -> None:
            database = Database(path)
            slots = SqliteSlots(database)
            end = time.monotonic() + START_SECONDS
            while not (view := slots.look("bench")).live or len({demand.who for demand in view.demands}) < PLEBS:
                if time.monotonic() > end:
                    sys.exit("nobody waits for a slot")
                time.sleep(0.005)
            keeper.append(one_call(SqliteGate(database, 1), Lane.KEEPER, OVERTAKEN_CALL))
            database.close()

        calls = run([Work(Lane.PLEB, 2, OVERTAKEN_CALL, START_SECONDS, 1, most=1)] * PLEBS, ask)
        waiting = [begun for _, asked, begun, _ in calls if asked < keeper[0][1] < begun]
        fine = fine and len(waiting) > 1 and keeper[0][2] < min(waiting) and concurrency([*calls, *keeper]) == 1
    return fine


def one_call(gate: SqliteGate, lane: Lane, seconds: float) -> Call:
    asked = time.monotonic()
    permit = gate.acquire(lane, "bench", TTL, PATIENCE)
    assert isinstance(permit, Permit)
    begun = time.monotonic()
    time.sleep(seconds)
    ended = time.monotonic()
    gate.release(permit)
    return lane.value, asked, begun, ended


def fairness(limit: int) -> list[Call]:
    """As many Keeper calls as there are slots, twice over, and two of each other lane."""
    call = FAIR_CALL_MS / 1000
    keepers = [Work(Lane.KEEPER, limit, call, FAIR_SECONDS, limit, FAIR_WAIT)] * 2
    others = [Work(lane, 2, call, FAIR_SECONDS, limit, FAIR_WAIT) for lane in Lane if lane is not Lane.KEEPER]
    return run([*keepers, *others])


def longest_waits(calls: Sequence[Call]) -> Iterator[tuple[str, float]]:
    for lane in Lane:
        yield lane.value, round(max(begun - asked for name, asked, begun, _ in calls if name == lane), 2)


def measure(call_ms: float, limit: int, seconds: float) -> dict[str, Any]:
    call = call_ms / 1000
    alone = run([Work(Lane.KEEPER, 8, call, seconds, limit)])
    together = run([Work(Lane.KEEPER, 2, call, seconds, limit)] * 8)
    fine = overtakes()
    crowded = fairness(limit)
    most = max(concurrency(calls) for calls in (alone, together, crowded))
    return {
        "overhead_ratio_1": round(overhead(alone, limit), 4),
        "overhead_ratio_8": round(overhead(together, limit), 4),
        "keeper_overtakes": fine,
        "longest_wait_of_each_lane_s": dict(longest_waits(crowded)),
        "max_wait_s": FAIR_WAIT,
        "max_concurrency": most,
        "limit": limit,
        "calls": {"one_process": len(alone), "eight_processes": len(together), "crowd": len(crowded)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    parser.add_argument("--call-ms", type=float, default=400, help="what a call takes (default 400)")
    parser.add_argument("--limit", type=int, default=4, help="permits at once (default 4)")
    parser.add_argument("--seconds", type=float, default=10, help="of each overhead run (default 10)")
    options = parser.parse_args()
    figures = measure(options.call_ms, options.limit, options.seconds)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:28} {figure}")
    if figures["max_concurrency"] > options.limit:
        sys.exit(f"{figures['max_concurrency']} calls at once, and the limit is {options.limit}")


if __name__ == "__main__":
    main()

"""Nothing is lost and nothing done twice: real processes, killed and frozen at named points over a server that fails.

    python bench/chaos.py [--json] [--results 10000] [--processes 8] [--seed 1] [--broken fence|counter|note]
                           [--disturbed-only]

The same work is done twice, first undisturbed. In the disturbed run 5 % of the results meet a `kill -9` of the worker
that has them, others a SIGSTOP for three leases; 1 % are planted: they kill every worker that touches them. The server
says 503 to 10 % of the calls, resets 5 % and never answers 1 %. Two reapers sweep, at times at once, and are killed as
well. A killed worker's commands are gone. Calls take 100 ms, their deadline is 1 s, leases are 1.5 s.

    results, lost            without a verdict, or kept and in no note, or planted and not parked
    duplicate_verdicts       more than one of a result, or one of a worker that no longer held the claim
    duplicate_notes          entries that stand twice, topics with two notes
    torn_notes               that are not byte for byte what their entries come to
    limit, max_concurrency   of calls at the server, as it counted them
    resumed_holders          frozen just before their call, permit in hand: each may be one more at the server, once
    cap_exceeded             cycles with more calls than their cap
    calls_per_result         of results that no worker was killed or frozen over
    planted, escalated_planted, escalated_other    with exactly one escalation; with any at all
    time_ratio, seconds      disturbed by undisturbed; of the disturbed run

Exits with 1 and the reasons, under `wrong`, where a promise is broken; `time_ratio` only counts where the undisturbed
run takes a minute: in less, the leases that have to run out at the end weigh too much. `--broken` runs a build with a
fault, which has to fail: verdicts taken without looking at the fence; non-responses saved after the recovery call;
WriteNote lost for ever. Needs a POSIX system.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "shared")]  # what lies here is measured, whatever is installed

from bench.chaos_parts.check import Left, check, described
from bench.chaos_parts.host import Host
from bench.chaos_parts.plan import LIMIT, Broken, Run, pages, plan, write_wiki
from bench.chaos_parts.server import ask_counted, chaos_server

MOST_RATIO, MOST_SECONDS = 2.0, 600
SHORTEST_SECONDS = 60
"""Of the undisturbed run, for its time to be compared."""


def run_once(folder: Path, *, results: int, processes: int, seed: int, disturbed: bool, broken: Broken | None) -> Left:
    with chaos_server(LIMIT, seed if disturbed else None) as base_url:
        run = Run(folder, results, processes, seed, disturbed, broken, base_url)
        made = pages(results)
        write_wiki(run.wiki, made)
        orders = plan(run, made)
        planted = frozenset(orders.planted)
        ran = Host(run, made, orders).go()
        return check(run, made, planted, ran, ask_counted(base_url))


def measure(*, results: int, processes: int, seed: int, broken: Broken | None, compared: bool = True) -> dict[str, Any]:
    """Both runs; the figures of the disturbed one by their names, and under `wrong` each promise that is broken.

    Not `compared`: the disturbed one alone.
    """
    with tempfile.TemporaryDirectory(prefix="wikikeeper-chaos-") as folder:
        ran = {
            disturbed: run_once(
                Path(folder) / ("disturbed" if disturbed else "undisturbed"),
                results=results,
                processes=processes,
                seed=seed,
                disturbed=disturbed,
                broken=broken if disturbed else None,
            )
            for disturbed in ((False, True) if compared else (True,))
        }
    figures, wrong = ran[True].figures, list(ran[True].wrong)
    undisturbed = ratio = None
    if compared:
        wrong = [*(f"undisturbed: {why}" for why in ran[False].wrong), *wrong]
        undisturbed = ran[False].figures["seconds"]
        ratio = round(figures["seconds"] / undisturbed, 2)
        if ratio > MOST_RATIO and undisturbed >= SHORTEST_SECONDS:
            wrong.append(f"time_ratio: {ratio}, {MOST_RATIO} allowed")
    if figures["seconds"] > MOST_SECONDS:
        wrong.append(f"seconds: {figures['seconds']}, {MOST_SECONDS} allowed")
    return figures | {
        "time_ratio": ratio,
        "undisturbed_seconds": undisturbed,
        "seed": seed,
        "processes": processes,
        "broken": broken,
        "wrong": wrong,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Kills and freezes workers at named points, and looks what is left.")
    parser.add_argument("--results", type=int, default=10_000, help="pages to be judged")
    parser.add_argument("--processes", type=int, default=8, help="workers that carry out commands")
    parser.add_argument("--seed", type=int, default=1, help="of everything that goes wrong")
    parser.add_argument("--broken", choices=get_args(Broken), help="a build with a fault, which has to fail")
    parser.add_argument(
        "--disturbed-only", action="store_true", help="without the undisturbed run, and so without ratio"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    figures = measure(
        results=given.results,
        processes=given.processes,
        seed=given.seed,
        broken=given.broken,
        compared=not given.disturbed_only,
    )
    print(json.dumps(figures) if given.json else "\n".join(described(figures)))
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

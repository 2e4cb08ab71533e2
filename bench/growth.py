"""How a cycle grows with its results: seconds, memory and size of the store, from 200 to 20,000.

    python bench/growth.py [--json] [--plot docs/growth.svg] [--results 200 2000 20000]

Each size is the wiki of bench/cycle.py, run once by the real command line against the fake server: calls of 400 ms for the
smallest, so that the model is what bounds it, and of 10 ms for the larger ones, so that our own side is. Then it is run once
more, which finds nothing new. For each size:

    seconds          of the whole process, start-up included
    own_cpu_ms       CPU time of the process and its children by results
    memory_mb        most resident memory of its largest process
    store_kb         of the store's file by results
    store_mb         of the store's file
    again_seconds    of the second run
    again_memory_mb

Exits with 1 when a result was not judged exactly once, or a second run called.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import log10
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "shared")]  # what lies here is measured, whatever is installed

from bench.cycle import ask_stats, fake_server, write_wiki

SLOTS, AHEAD = 4, 8
SMALL_CALL_MS, CALL_MS = 400.0, 10.0
SLOWEST_PAGE = 0.5
"""Seconds of our own for one page before a run is ended: ten times what it takes."""
START_SECONDS = 120


@dataclass(frozen=True)
class Size:
    """What one size came to."""

    results: int
    call_ms: float
    judged: int
    calls: int
    seconds: float
    own_cpu_ms: float
    memory_mb: float
    store_mb: float
    store_kb: float
    again_seconds: float
    again_memory_mb: float
    again_calls: int


@dataclass(frozen=True)
class Ran:
    judged: int
    seconds: float
    cpu_seconds: float
    memory_mb: float


def run(root: Path, base_url: str, cap: int, timeout: float) -> Ran:
    own = {name: value for name, value in os.environ.items() if not name.startswith("WIKIKEEPER_")}
    settings = {
        "WIKIKEEPER_LLAMA__BASE_URL": base_url,
        "WIKIKEEPER_GATE__LIMIT": str(SLOTS),
        "WIKIKEEPER_HOST__PAGES_AHEAD": str(AHEAD),
        "WIKIKEEPER_RESEARCH__CYCLE_CAP": str(cap),
        "PYTHONPATH": str(ROOT / "shared"),
    }
    code = "from wikikeeper.cli import main; main()"
    said = root.with_suffix(".json")
    began = time.monotonic()
    with said.open("wb") as out:
        command = [sys.executable, "-P", "-c", code, "run", "--wiki", str(root), "--json"]
        process = subprocess.Popen(command, env=own | settings, stdout=out)
        while True:
            # wait4 tells what this process and its own children used, and nobody else's.
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() - began > timeout:
                process.kill()
                sys.exit(f"a run of {cap} results did not end within {timeout:.0f} s")
            time.sleep(0.02)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"wikikeeper run ended with {process.returncode}: {said.read_text()}")
    cycles = json.loads(said.read_text())["cycles"]
    judged = sum(cycle["kept"] + sum(cycle["discarded"].values()) for cycle in cycles)
    return Ran(judged, time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def measure(results: int, call_ms: float) -> Size:
    timeout = results * (call_ms / 1000 / SLOTS + SLOWEST_PAGE) + START_SECONDS
    with (
        tempfile.TemporaryDirectory(prefix="wikikeeper-bench-") as folder,
        fake_server(SLOTS, call_ms, 3 * timeout) as base,
    ):
        root = Path(folder) / "wiki"
        root.mkdir()
        write_wiki(root, results)
        first = run(root, base, results, timeout)
        calls = ask_stats(base)["calls"]
        store = sum(file.stat().st_size for file in (root / ".wikikeeper").glob("state.sqlite*"))
        again = run(root, base, results, timeout)
        return Size(
            results=results,
            call_ms=call_ms,
            judged=first.judged,
            calls=calls,
            seconds=round(first.seconds, 1),
            own_cpu_ms=round(first.cpu_seconds * 1000 / results, 1),
            memory_mb=round(first.memory_mb, 1),
            store_mb=round(store / 1e6, 2),
            store_kb=round(store / 1000 / results, 2),
            again_seconds=round(again.seconds, 1),
            again_memory_mb=round(again.memory_mb, 1),
            again_calls=ask_stats(base)["calls"] - calls,
        )


def plot(sizes: Sequence[Size]) -> str:
    """Seconds, memory and store against results, each by its own at the smallest size, on logarithmic axes, as SVG."""
    width, height, left, bottom = 640, 360, 60, 50
    series = {
        "seconds": [size.seconds / sizes[0].seconds for size in sizes],
        "CPU seconds": [size.own_cpu_ms * size.results / (sizes[0].own_cpu_ms * sizes[0].results) for size in sizes],
        "memory": [size.memory_mb / sizes[0].memory_mb for size in sizes],
        "store": [size.store_mb / sizes[0].store_mb for size in sizes],
        "results": [size.results / sizes[0].results for size in sizes],
    }
    colours = ("#0b6e99", "#6f4e9c", "#b4541a", "#2d7d46", "#999999")
    low = min(0.0, *(log10(value) for values in series.values() for value in values))
    high = max(1.0, *(log10(value) for values in series.values() for value in values))
    first, last = log10(sizes[0].results), log10(sizes[-1].results)

    def place(results: int, value: float) -> tuple[float, float]:
        x = left + (log10(results) - first) / ((last - first) or 1) * (width - left - 130)
        y = height - bottom - (log10(value) - low) / (high - low) * (height - bottom - 20)
        return round(x, 1), round(y, 1)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        "<title>Growth of a cycle, by its own at the smallest size</title>",
    ]
    for power in range(int(high) + 1):
        x, y = place(sizes[0].results, 10.0**power)
        lines.append(f'<line x1="{left}" y1="{y}" x2="{width - 130}" y2="{y}" stroke="#dddddd"/>')
        lines.append(f'<text x="{x - 8}" y="{y + 4}" text-anchor="end">{10**power}×</text>')
    for size in sizes:
        x, _ = place(size.results, 1)
        lines.append(f'<text x="{x}" y="{height - 22}" text-anchor="middle">{size.results:,}</text>')
    lines.append(f'<text x="{(left + width - 130) / 2}" y="{height - 4}" text-anchor="middle">results</text>')
    for (name, values), colour in zip(series.items(), colours, strict=True):
        points = " ".join(
            "{},{}".format(*place(size.results, value)) for size, value in zip(sizes, values, strict=True)
        )
        dash = ' stroke-dasharray="4 4"' if name == "results" else ""
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
    # Names beside the ends of their lines, from the top, none over another.
    taken = -100.0
    ends = sorted(
        (place(sizes[-1].results, values[-1])[1], name, colour)
        for (name, values), colour in zip(series.items(), colours, strict=True)
    )
    for end, name, colour in ends:
        taken = max(end + 4, taken + 15)
        lines.append(f'<text x="{width - 122}" y="{taken:.1f}" fill="{colour}">{name}</text>')
    return "\n".join([*lines, "</svg>\n"])


def main() -> int:
    parser = argparse.ArgumentParser(description="How a cycle grows with its results.")
    parser.add_argument("--results", type=int, nargs="+", default=[200, 2000, 20000], help="sizes, smallest first")
    parser.add_argument("--plot", type=Path, help="write the picture here, as SVG")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    sizes = [measure(results, SMALL_CALL_MS if results == given.results[0] else CALL_MS) for results in given.results]
    if given.plot is not None:
        given.plot.write_text(plot(sizes), encoding="utf-8")
    wrong = [
        f"{size.results} pages, {size.judged} judged, {size.calls} calls, then {size.again_calls}"
        for size in sizes
        if not size.judged == size.calls == size.results or size.again_calls
    ]
    if given.json:
        print(json.dumps({"sizes": [asdict(size) for size in sizes], "wrong": wrong}))
    else:
        for name in asdict(sizes[0]):
            print(f"{name:<16}" + "".join(f"{getattr(size, name):>12,}" for size in sizes))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

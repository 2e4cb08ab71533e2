"""How busy a cycle keeps the model server, and what it costs of our own: the real command line over generated pages.

    python bench/cycle.py [--json] [--results 200] [--call-ms 400] [--slots 4] [--ahead 8] [--repeat-check]

Writes a wiki with one topic and a folder of saved pages (30 to 100 kB, the same ones every time) to a temporary folder,
starts the fake System One server beside it, runs `wikikeeper run` on it as a process of its own, and prints:

    busy_ratio             time that the server's slots were in use, of all their time from first to last call
    max_concurrency        most calls at the server at once, those counted that found every slot taken
    whole_cycle_ratio      seconds of the whole process, from start to exit, by the seconds of the bare calls
    own_cpu_ms_per_result  CPU time (user and system) of that process and its children for one judged result
    results                judged results

Exits with 1 when something is wrong that no slow machine explains: a result without exactly one call, more calls at
once than there are slots, or calls in the second run of --repeat-check. Needs a POSIX system.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SEED = 8
SMALLEST, LARGEST = 30_000, 98_000
"""Bytes of a page: what most articles have with their navigation, scripts and comments."""
SLOWEST = 10
"""Times the bare calls that a run may take before it is ended: on a loaded machine, a cycle is slow, not stuck."""
START_SECONDS = 60
"""Allowed for starting a process on a loaded machine."""

TOPIC = """---
title: Lockkeeper releases and field reports
folder: pages
language: en
---

We run Lockkeeper, the storage engine, in our tram ticket machines and plan the next upgrade.

I want to know what changes from release to release: new features, bugs that lose data and how they were mended, and how
recovery, compaction and memory behave on small devices, with figures. Reports by people who upgraded help most.
"""

SUBJECTS, VERBS, OBJECTS, ENDINGS = (
    " ".join(phrases.split("\n")).split(" | ")
    for phrases in (
        """the storage engine | a fleet of ticket machines | the write-ahead log | our test bench | the new allocator
| the project | a small device with little memory | the recovery step | every background thread | the release candidate
| the old index format | one operator | the maintenance window | a cold start | the checkpoint file | the upgrade guide
| the compaction scheduler | a damaged page""",
        """needs | loses | rewrites | keeps | measures | skips | holds back | replays | compares | shortens | doubles
| mends | reports | hides | survives | delays | replaces | warns about | refuses | restores""",
        """the last few records | half of the free memory | a checksum for each block | the order of concurrent writes
| power cuts during a flush | the time until the first answer | every second snapshot | a table of forty thousand rows
| the limits that the vendor states | old sessions | the queue of pending merges | the cost of a full scan
| a lock that nobody owns | the settings from last winter""",
        """which nobody had expected | as the figures below show | after {n} days of uptime | on {n} of 500 machines
| in under {n} milliseconds | until version 4.{n} came out | when the disk is {n} percent full
| although the manual says otherwise | once a night | by a factor of {n} | so we rolled it back on all but {n} devices""",
    )
)
NAMES = (
    "Overview Pricing Docs Blog Community Events Careers Status Security Partners Support Changelog Forum About".split()
)
ARTICLES = (
    ('<main class="layout"><article class="post">', "</article></main>"),
    ('<div id="wrapper"><div class="post-content entry">', "</div></div>"),
    ('<div class="container"><div class="row"><section id="content">', "</section></div></div>"),
    ("<main role='main'><div class='article-body'><div>", "</div></div></main>"),
)
"""How sites of different kinds mark their main text."""


def page(number: int) -> str:
    """A saved page that no other repeats: an article among navigation, scripts, related links and comments."""
    rng = random.Random(f"{SEED}-{number}")
    size = rng.randint(SMALLEST, LARGEST)
    title = _sentence(rng)[:-1]
    opening, closing = rng.choice(ARTICLES)
    links = "".join(_link(rng) for _ in range(rng.randint(20, 60)))
    before = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="description" content="{_sentence(rng)}">\n<style>{_style(rng)}</style></head>\n'
        f'<body class="page-{number}"><header><nav class="menu"><ul>{links}</ul></nav></header>\n{opening}<h1>{title}</h1>\n'
    )
    # A third of the bytes at most, as on real pages: the rest is what surrounds a text.
    text = _filled(rng, size * rng.uniform(0.2, 0.34), (_block,))
    after = (
        f"<footer>{''.join(_link(rng) for _ in range(30))}<p>Imprint, privacy, contact</p></footer>\n</body></html>\n"
    )
    around = _filled(rng, size - len(before) - len(text) - len(after), (_card, _comment, _script))
    return f'{before}{text}{closing}\n<aside class="more">{around}</aside>\n{after}'


def _filled(rng: random.Random, size: float, makers: Sequence[Callable[[random.Random], str]]) -> str:
    """Pieces until there are about so many characters, not more than the last piece over them."""
    pieces: list[str] = []
    while size > 0:
        pieces.append(rng.choice(makers)(rng))
        size -= len(pieces[-1])
    return "".join(pieces)


def _sentence(rng: random.Random) -> str:
    words = " ".join(rng.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, ENDINGS))
    return words.replace("{n}", str(rng.randint(2, 480))).capitalize() + "."


def _block(rng: random.Random) -> str:
    said = " ".join(_sentence(rng) for _ in range(rng.randint(3, 7)))
    match rng.randint(0, 9):
        case 0:
            return f"<h2>{_sentence(rng)[:-1]}</h2>\n<p>{said}</p>\n"
        case 1:
            items = "".join(f"<li>{_sentence(rng)}</li>" for _ in range(rng.randint(3, 6)))
            return f"<p>{said}</p>\n<ul>{items}</ul>\n"
        case 2:
            return f'<p>{said} See <a href="/notes/{rng.randint(1, 999)}">the <em>notes</em></a>.</p>\n'
        case 3:
            return f"<pre><code>lockctl set cache={rng.randint(1, 64)}M --verify</code></pre>\n<p>{said}</p>\n"
        case _:
            return f"<p>{said}</p>\n"


def _link(rng: random.Random) -> str:
    name = rng.choice(NAMES)
    return f'<li class="menu-item"><a href="/{name.lower()}/{rng.randint(1, 9999)}">{name}</a></li>'


def _card(rng: random.Random) -> str:
    icon = " ".join(f"L{rng.randint(0, 64)} {rng.randint(0, 64)}" for _ in range(20))
    return (
        f'<div class="card card--{rng.randint(1, 9)}"><svg viewBox="0 0 64 64"><path d="M0 0 {icon}"/></svg>'
        f'<a class="card__link" href="/a/{rng.randint(1, 99999)}"><span>{_sentence(rng)}</span></a></div>\n'
    )


def _comment(rng: random.Random) -> str:
    return (
        f'<div class="comment" id="c{rng.randint(1, 99999)}"><a class="author" href="/u/{rng.randint(1, 999)}">reader '
        f"{rng.randint(1, 999)}</a><time>{rng.randint(1, 28)} May</time><p>{_sentence(rng)} {_sentence(rng)}</p></div>\n"
    )


def _script(rng: random.Random) -> str:
    values = ",".join(f'"k{rng.randint(1, 9999)}":{rng.random():.6f}' for _ in range(60))
    return f"<script>window.__state=window.__state||[];window.__state.push({{{values}}});</script>\n"


def _style(rng: random.Random) -> str:
    return "".join(
        f".card--{n}{{margin:{rng.randint(0, 40)}px;color:#{rng.randint(0, 0xFFFFFF):06x}}}" for n in range(60)
    )


def write_wiki(root: Path, results: int) -> None:
    """One topic whose folder holds as many pages as results are wanted."""
    (root / "topics").mkdir()
    (root / "pages").mkdir()
    (root / "topics" / "lockkeeper.md").write_text(TOPIC, encoding="utf-8")
    for number in range(results):
        (root / "pages" / f"page-{number:04}.html").write_text(page(number), encoding="utf-8")


@contextmanager
def fake_server(slots: int, call_ms: float, seconds: float) -> Iterator[str]:
    """The base URL of a fake server in a process of its own, ended afterwards."""
    command = [
        sys.executable,
        str(HERE / "fake_server.py"),
        f"--slots={slots}",
        f"--call-ms={call_ms}",
        f"--seconds={seconds}",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["base_url"]
        finally:
            process.communicate()  # closes its standard input: it ends


def ask_stats(base_url: str) -> dict[str, Any]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # past any proxy of the surroundings
    with direct.open(f"{base_url}/stats", timeout=START_SECONDS) as reply:
        stats: dict[str, Any] = json.load(reply)
    return stats


@dataclass(frozen=True)
class Ran:
    """One `wikikeeper run --json`."""

    said: dict[str, Any]
    seconds: float
    cpu_seconds: float


def run(root: Path, base_url: str, *, slots: int, ahead: int, cap: int, timeout: float) -> Ran:
    """Run a cycle of every topic, with no settings but these."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WIKIKEEPER_")}
    settings = {
        "WIKIKEEPER_LLAMA__BASE_URL": base_url,
        "WIKIKEEPER_GATE__LIMIT": str(slots),
        "WIKIKEEPER_HOST__PAGES_AHEAD": str(ahead),
        "WIKIKEEPER_RESEARCH__CYCLE_CAP": str(cap),
        "PYTHONPATH": str(HERE.parent / "shared"),  # what lies beside this script is measured, whatever is installed
    }
    command = [
        sys.executable,
        "-P",
        "-c",
        "from wikikeeper.cli import main; main()",
        "run",
        "--wiki",
        str(root),
        "--json",
    ]
    cpu, began = _cpu_of_ended_children(), time.monotonic()
    ran = subprocess.run(command, env=own | settings, stdout=subprocess.PIPE, timeout=timeout, check=False)
    seconds = time.monotonic() - began
    if ran.returncode != 0:
        sys.exit(f"wikikeeper run ended with {ran.returncode}: {ran.stdout.decode()}")
    return Ran(json.loads(ran.stdout), seconds, _cpu_of_ended_children() - cpu)


def _cpu_of_ended_children() -> float:
    """The fake server is not among them while it runs. Their own children are, once they waited for them."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(*, results: int, call_ms: float, slots: int, ahead: int, repeat_check: bool) -> dict[str, Any]:
    """Run it all; the figures by their names, and under `wrong` what no slow machine explains."""
    bare = results * call_ms / 1000 / slots
    timeout = bare * SLOWEST + START_SECONDS
    with (
        tempfile.TemporaryDirectory(prefix="wikikeeper-bench-") as folder,
        fake_server(slots, call_ms, 3 * timeout) as base,
    ):
        root = Path(folder)
        write_wiki(root, results)
        load = os.getloadavg()[0]
        first = run(root, base, slots=slots, ahead=ahead, cap=results, timeout=timeout)
        stats = ask_stats(base)
        (cycle,) = first.said["cycles"]
        judged = cycle["kept"] + sum(cycle["discarded"].values())
        span = (stats["last_end"] or 0) - (stats["first_start"] or 0)
        figures: dict[str, Any] = {
            "busy_ratio": round(stats["busy_seconds"] / (slots * span), 4) if span else 0.0,
            "max_concurrency": stats["max_concurrency"],
            "whole_cycle_ratio": round(first.seconds / bare, 3),
            "own_cpu_ms_per_result": round(first.cpu_seconds * 1000 / max(judged, 1), 1),
            "results": judged,
            "calls": stats["calls"],
            "kept": cycle["kept"],
            "seconds": round(first.seconds, 2),
            "bare_seconds": round(bare, 2),
            "call_span_seconds": round(span, 2),
            "load_before": round(load, 2),
        }
        wrong = []
        if not judged == stats["calls"] == results:
            wrong.append(f"{results} pages, {judged} judged, {stats['calls']} calls")
        if stats["max_concurrency"] > slots:
            wrong.append(f"{stats['max_concurrency']} calls at once, {stats['over_limit']} times over the limit")
        if repeat_check:
            again = run(root, base, slots=slots, ahead=ahead, cap=results, timeout=timeout)
            figures["repeat_calls"] = ask_stats(base)["calls"] - stats["calls"]
            figures["repeat_seconds"] = round(again.seconds, 2)
            if figures["repeat_calls"]:
                wrong.append(f"{figures['repeat_calls']} calls in the second run")
    return figures | {"wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description="How busy a cycle keeps the model server.")
    parser.add_argument("--results", type=int, default=200, help="pages in the folder of the topic")
    parser.add_argument("--call-ms", type=float, default=400, help="milliseconds that the fake server takes for a call")
    parser.add_argument("--slots", type=int, default=4, help="of the fake server, and the gate's limit")
    parser.add_argument("--ahead", type=int, default=8, help="pages ready ahead of the model")
    parser.add_argument("--repeat-check", action="store_true", help="run again afterwards: nothing may be called")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    figures = measure(
        results=given.results,
        call_ms=given.call_ms,
        slots=given.slots,
        ahead=given.ahead,
        repeat_check=given.repeat_check,
    )
    if given.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            shown = "; ".join(figure) or "nothing" if isinstance(figure, list) else figure
            print(f"{name:<22} {shown}")
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())

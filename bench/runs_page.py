"""How quickly the Runs page answers over a large store, and whether its memory stays flat.

    python bench/runs_page.py --json

A server of its own on loopback (uvicorn, as `wikikeeper serve` uses it) over a SQLite store that is filled first:

    first_byte_ms      newest page of runs, from the request to the first byte of the answer; median of 50
    empty_page_ms      the same page without a run on it, in turn with the above
    last_page_ms       the oldest page of runs, by its cursor
    rare_filter_ms     a filter that no run matches: one request reads a bounded number of runs and says how far it got
    pages              pages that were walked through, newest to oldest, each run seen once
    memory_growth_mb   what the server's resident memory grew by meanwhile, after the first hundred pages
"""

import argparse
import html
import http.client
import json
import multiprocessing
import re
import socket
import statistics
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "shared")]

import uvicorn

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_rows import insert, run_row
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.fakes import RecordingReporter, SettableClock, judgement
from wikikeeper.models import Findings, Kind, Quote, Run, Thresholds, Trigger, Verdict
from wikikeeper.policy.web_access import Access
from wikikeeper.serving import listening
from wikikeeper.settings import Web
from wikikeeper.web.app import create_app
from wikikeeper.web.site import Site

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
THRESHOLDS = Thresholds(keep=0.6, injection=0.5)
TIMES = 50
WARM = 100
"""Pages before memory is first read: what is loaded once is no growth."""
KINDS = [kind for kind in Kind if kind is not Kind.OPINION]
"""No run is an opinion: that is the rare filter."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), arguments.runs)
    print(json.dumps(found) if arguments.json else "\n".join(f"{name:18} {value}" for name, value in found.items()))


def measure(root: Path, runs: int) -> dict[str, float]:
    fill(root, runs)
    with listening(Web(port=0)) as listener:
        server = multiprocessing.get_context("fork").Process(target=serve, args=(root, listener), daemon=True)
        server.start()
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", listener.getsockname()[1], timeout=60)) as connection:
                return ask(connection, server.pid or 0)
        finally:
            server.terminate()
            server.join(10)


def fill(root: Path, runs: int) -> None:
    database = Database(root / ".wikikeeper" / "state.sqlite")
    for begin in range(0, runs, 1000):
        rows = [
            run_row(a_run(number), BEGAN + timedelta(days=3650)) for number in range(begin, min(begin + 1000, runs))
        ]
        database.write(lambda connection, rows=rows: connection.executemany(insert("runs", rows[0]), rows) and None)  # type: ignore[misc]
    database.close()


def a_run(number: int) -> Run:
    """As large as runs of real pages are: about two kB."""
    kept = number % 3 == 0
    answer = judgement(
        useful=0.9 if kept else 0.2, kind=KINDS[number % len(KINDS)], quotes=dict.fromkeys(range(10), 0.1)
    )
    quotes = tuple(
        Quote(
            text=f"What page {number} says in its paragraph {n}, at some length. " * 4,
            paragraph=n,
            start=0,
            end=9,
            text_hash="5f" * 32,
        )
        for n in range(3 if kept else 0)
    )
    verdict = Verdict(
        kept=kept, reason=None if kept else "not_useful", judgement=answer, injection=answer.injection, kind=answer.kind,
        quotes=quotes, findings=Findings(concealed=number % 7), text_hash="5f" * 32, model_asked="decider",
        model="decider-1", question_version="triage-1", brief_hash="b" * 16, option_order=tuple(range(10)), thresholds=THRESHOLDS,
    )  # fmt: skip
    return Run(
        id=f"{number:024x}-2", trigger=Trigger.TRIAGE, topic=f"topic-{number % 20}", subject=f"{number:024x}",
        title=f"A page about something, number {number}", url=f"https://example.org/pages/{number}",
        cycle="topic#2026-01-01T00:00Z", started=BEGAN + timedelta(seconds=30 * number), seconds=0.4, gate_wait=0.01,
        outcome="answered", model_asked="decider", model="decider-1", question_version="triage-1", judgement=answer,
        verdict=verdict, kept=kept, kind=answer.kind, input_tokens=1500, attempts=1,
    )  # fmt: skip


def serve(root: Path, listener: socket.socket) -> None:
    site = Site(
        store=SqliteRunStore(Database(root / ".wikikeeper" / "state.sqlite")),
        wiki=FolderWiki(root),
        clock=SettableClock(),
        reporter=RecordingReporter(),
        access=Access(),
        thresholds=THRESHOLDS,
        gate_limit=2,
    )
    config = uvicorn.Config(create_app(site), log_level="warning", access_log=False, lifespan="off", ws="none")
    uvicorn.Server(config).run(sockets=[listener])


def ask(connection: http.client.HTTPConnection, server: int) -> dict[str, float]:
    for path in ("/runs", "/runs?topic=nobody") * 5:
        get(connection, path)
    first, empty = [], []
    for _ in range(TIMES):
        first.append(get(connection, "/runs")[0])
        empty.append(get(connection, "/runs?topic=nobody")[0])
    rare = [get(connection, "/runs?kind=opinion") for _ in range(10)]
    assert "Searched back to" in rare[0][1]

    path, pages, seen, before = "/runs", 0, 0, 0.0
    last = "/runs"
    while path:
        _, text = get(connection, path)
        seen += text.count('<article class="card"')
        pages += 1
        if pages == WARM:
            before = resident(server)
        found = re.search(r'href="(/runs\?[^"]*before=[^"]*)" rel="next"', text)
        path, last = (html.unescape(found[1]) if found else ""), path
    after = resident(server)
    return {
        "runs": seen,
        "first_byte_ms": round(statistics.median(first) * 1000, 1),
        "empty_page_ms": round(statistics.median(empty) * 1000, 1),
        "last_page_ms": round(statistics.median(get(connection, last)[0] for _ in range(10)) * 1000, 1),
        "rare_filter_ms": round(statistics.median(seconds for seconds, _ in rare) * 1000, 1),
        "pages": pages,
        "memory_growth_mb": round(after - before, 2) if before else 0.0,
    }


def get(connection: http.client.HTTPConnection, path: str) -> tuple[float, str]:
    """Seconds to the first byte, and the page."""
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    beginning = answer.read(1)
    seconds = time.perf_counter() - began
    assert answer.status == 200, answer.status
    return seconds, (beginning + answer.read()).decode()


def resident(process: int) -> float:
    """Resident memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    main()

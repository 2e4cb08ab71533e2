"""Real pages through the command line: served on loopback with their headers, as the links of one topic.

    python bench/real_pages.py DIR [--bundled] [--json]

DIR is as for bench/extraction.py. Prints per page what became of it, its paragraphs and the verdict, and how the stored
paragraphs compare with the truth: the same figures as bench/extraction.py, but of what a whole `wikikeeper run` kept.
Without --bundled a server without a model answers and everything is kept, so that every text that was extracted is
stored; with it the bundled judge decides, and only the pages that it keeps are compared. A page that is folded counts with
the text that it repeats.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "shared")]  # what lies here is measured, whatever is installed

from bench.cycle import fake_server
from bench.extraction import Page, load, measure

from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.models import Result

BRIEF = "Anything at all: this topic measures how pages are read."
KEEP_ALL = {"WIKIKEEPER_RESEARCH__KEEP_THRESHOLD": "0", "WIKIKEEPER_RESEARCH__INJECTION_THRESHOLD": "1"}
SECONDS = 600
"""For the whole run; the bundled judge takes a few seconds a page."""


@dataclass(frozen=True)
class Outcome:
    """What became of one page."""

    name: str
    state: str
    reason: str
    paragraphs: int
    useful: float | None

    def line(self) -> str:
        useful = "" if self.useful is None else f"{self.useful:.2f}"
        return f"{self.name[:60]:60} {self.state:10} {self.paragraphs:>4} {useful:>5}  {self.reason}"


@contextmanager
def served(pages: list[Page]) -> Iterator[int]:
    """The pages at `/<number>`, each with the charset that its server declared. Yields the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages[int(self.path.strip("/"))]
            charset = f"; charset={page.charset}" if page.charset else ""
            self.send_response(200)
            self.send_header("Content-Type", f"text/html{charset}")
            self.send_header("Content-Length", str(len(page.body)))
            self.end_headers()
            self.wfile.write(page.body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 64  # as many as are fetched at once, and more than the default of five

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def run(pages: list[Page], wiki: Path, judge_url: str | None) -> tuple[dict[str, Any], str]:
    """One cycle over the pages as links of a topic; what it printed as JSON, and what it said on the side."""
    (wiki / "topics").mkdir()
    with served(pages) as port:
        links = json.dumps([f"http://127.0.0.1:{port}/{number}" for number in range(len(pages))])
        (wiki / "topics" / "pages.md").write_text(f"---\ntitle: Real pages\nlinks: {links}\n---\n{BRIEF}\n")
        settings = {
            "WIKIKEEPER_FETCH__ALLOW_ORIGINS": json.dumps([f"127.0.0.1:{port}"]),
            "WIKIKEEPER_KEEPER__MAX_CHARS": "100000",
        }
        if judge_url:
            settings |= {"WIKIKEEPER_LLAMA__BASE_URL": judge_url} | KEEP_ALL
        ran = subprocess.run(
            [sys.executable, "-m", "wikikeeper", "run", "--wiki", str(wiki), "--json"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=os.environ | settings | {"PYTHONPATH": str(ROOT / "shared")},
        )
    if ran.returncode:
        raise SystemExit(f"the run ended with {ran.returncode}: {ran.stderr}")
    printed: dict[str, Any] = json.loads(ran.stdout)
    return printed, ran.stderr


def outcomes(pages: list[Page], wiki: Path) -> tuple[list[Outcome], dict[bytes, str]]:
    """What the run store says of each page, and the stored text by the page's body."""
    database = Database(wiki / ".wikikeeper" / "state.sqlite")
    try:
        store = SqliteRunStore(database)
        by_number = {int(result.url.rpartition("/")[2]): result for result in store.results(topic="pages")}
        found, texts = [], {}
        for number, page in enumerate(pages):
            result = by_number[number]
            paragraphs = _paragraphs(store, result)
            texts[page.body] = "\n".join(paragraphs)
            found.append(_outcome(page, result, len(paragraphs)))
        return found, texts
    finally:
        database.close()


def _paragraphs(store: SqliteRunStore, result: Result) -> tuple[str, ...]:
    stored = store.page(result.text_hash) if result.text_hash else None
    return stored.paragraphs if stored else ()


def _outcome(page: Page, result: Result, paragraphs: int) -> Outcome:
    verdict = result.verdict
    judgement = verdict.judgement if verdict else None
    reason = (verdict.reason if verdict else None) or ""
    return Outcome(page.name, result.state.value, reason, paragraphs, judgement.useful if judgement else None)


def report(folder: Path, *, bundled: bool) -> dict[str, Any]:
    """Run everything; the figures, the outcomes and what the run printed."""
    pages = list(load(folder))
    with tempfile.TemporaryDirectory() as scratch:
        wiki = Path(scratch)
        if bundled:
            printed, said = run(pages, wiki, None)
        else:
            with fake_server(4, 1, SECONDS) as judge_url:
                printed, said = run(pages, wiki, judge_url)
        found, texts = outcomes(pages, wiki)
    compared = [page for page in pages if texts[page.body]] if bundled else pages
    figures = measure(compared, lambda body, _: texts[body]).figures()
    return {
        "pages": len(pages),
        "compared": len(compared),
        "f1": figures["f1"],
        "must": figures["must"],
        "must_not": figures["must_not"],
        "seconds": printed["seconds"],
        "errors": printed["errors"],
        "said": said,
        "outcomes": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--bundled", action="store_true", help="let the bundled judge answer")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    made = report(options.folder, bundled=options.bundled)
    found: list[Outcome] = made.pop("outcomes")
    if options.json:
        print(json.dumps(made | {"outcomes": [vars(outcome) for outcome in found]}))
        return
    for outcome in found:
        print(outcome.line())
    print("  ".join(f"{name} {made[name]}" for name in ("pages", "compared", "f1", "must", "must_not", "seconds")))


if __name__ == "__main__":
    main()

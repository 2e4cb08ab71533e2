"""Chromium before `wikikeeper serve`, over a wiki whose store real cycles have filled."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.system.cli import ROOT, SEARCHED

from wikikeeper.app import open_store
from wikikeeper.models import (
    Alert,
    Condition,
    Escalation,
    Failure,
    FailureKind,
    ModelSighting,
    Origin,
    Result,
    ResultState,
    Silence,
)
from wikikeeper.policy.identity import manual_tick

CHROMIUM = os.environ.get("WIKIKEEPER_CHROMIUM") or shutil.which("chromium")
# As root there is no sandbox to be had; the rest keeps a browser from asking its maker for anything.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
MOST_SECONDS = 180
"""For the cycles and for starting to serve: twelve pages take ten seconds of an idle machine."""


def environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WIKIKEEPER_")}
    return {**kept, "PYTHONPATH": SEARCHED, "NO_COLOR": "1"}


@pytest.fixture(scope="session")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, judged by the bundled judge; and what only a bad day brings, put into its store."""
    folder = tmp_path_factory.mktemp("browser") / "wiki"
    done = subprocess.run(
        [sys.executable, "-m", "wikikeeper", "try", str(folder)],
        env=environment(), cwd=ROOT, capture_output=True, text=True, timeout=MOST_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    bad_day(folder)
    return folder


def bad_day(folder: Path) -> None:
    (folder / "topics" / "broken.md").write_text("---\ntitle: Broken\nschedule: never\n---\nWhat?\n")
    now = datetime.now(UTC)
    with open_store(folder) as store:
        store.raise_alert(Alert(subject="model:decider", cause="unreachable", detail="Start the server.", raised=now))
        store.saw_model(
            ModelSighting(
                model="decider", condition=Condition.UNREACHABLE, cause="unreachable", detail="no route", since=now
            )
        )
        store.escalate(
            Escalation(
                id="note:heronbase:1", subject="note:heronbase", topic="heronbase", raised=now,
                detail="pages are kept and its note is not written; sent again 3 times. Look whether the wiki can be written",
            )
        )  # fmt: skip
        store.count_silence(Silence(subject="note:heronbase", nonresponses=3, since=now, counted=now), instead_of=None)
        cycle = next(iter(store.cycles()))
        again = cycle.model_copy(
            update={"id": f"heronbase#{manual_tick(now)}", "tick": manual_tick(now), "state": "skipped", "started": now,
                    "ended": now, "found": 0, "new": 0, "sent": 0, "calls": 0, "reason": "unreachable: connection refused"}
        )  # fmt: skip
        store.start_cycle(again)
        parked = Result(
            id="f" * 24, topic="heronbase", url="https://example.org/parked", canonical="https://example.org/parked",
            revision=1, title="A page that would not load", origin=Origin.LINK, found=now,
        )  # fmt: skip
        store.add_results(None, [parked])
        store.send_result("f" * 24, again.id, instead_of=None)
        claim = store.claim("f" * 24, again.id, now, now)
        assert claim is not None
        failure = Failure(at=now, cycle=again.id, kind=FailureKind.FETCH, cause="http_503", detail="busy")
        store.put_back(claim, stay_in_cycle=False, failure=failure)
        assert store.settle("f" * 24, again.id, attempts=3, state=ResultState.PARKED, verdict=None, at=now)


@pytest.fixture(scope="session")
def served(wiki: Path) -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "wikikeeper", "serve", "--wiki", str(wiki), "--port", "0"],
        env=environment(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert found is not None, said + (server.stderr.read() if server.stderr else "")
            yield found[0]
        finally:
            server.send_signal(signal.SIGTERM)
            _, log = server.communicate(timeout=MOST_SECONDS)
    assert server.returncode == 0, log
    assert "command_failed" not in log, log


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("needs Debian's package chromium: `make test-browser` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """A person with a browser: where they are, and all that the browser complained of or asked of anybody else."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.context = context
        self.base = base
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith(self.base):
            self.strangers.append(url)

    def go(self, path: str) -> Page:
        answer = self.page.goto(self.base + path)
        assert answer is not None
        assert answer.ok, answer.status
        return self.page


@pytest.fixture(params=[(1280, "light"), (390, "dark")], ids=["desktop", "phone"])
def visit(request: pytest.FixtureRequest, chromium: Browser, served: str) -> Iterator[Visit]:
    width, scheme = request.param
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    visiting = Visit(context, served)
    yield visiting
    context.close()
    assert visiting.complaints == []
    assert visiting.strangers == []

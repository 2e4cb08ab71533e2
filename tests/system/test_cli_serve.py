"""`wikikeeper serve` as a person and a service manager use it, and `label` and `calibrate` on what it shows."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.adapters.contracts.samples import a_run
from tests.system.cli import ROOT, SEARCHED, Cli
from tests.system.decision_server import DecisionServer
from tests.web.test_other_pages import judged

from wikikeeper.app import open_store
from wikikeeper.models import Should

MOST_SECONDS = 60
TOPIC = """---
title: Herons
folder: pages
schedule: {cron: "* * * * *", zone: UTC}
---
All about herons.
"""


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    (tmp_path / "topics").mkdir()
    (tmp_path / "pages").mkdir()
    (tmp_path / "topics" / "herons.md").write_text(TOPIC)
    (tmp_path / "pages" / "one.txt").write_text("Herons nest in colonies, high up in old trees near water.\n" * 5)
    return tmp_path


@contextmanager
def serving(
    wiki: Path, *arguments: str, **settings: str
) -> Iterator[tuple[subprocess.Popen[str], http.client.HTTPConnection]]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("WIKIKEEPER_")}
    own = {f"WIKIKEEPER_{name.upper()}": value for name, value in settings.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "wikikeeper", "serve", "--wiki", str(wiki), "--port", "0", *arguments],
        env={**inherited, **own, "PYTHONPATH": SEARCHED, "NO_COLOR": "1"}, cwd=ROOT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            assert found is not None, process.communicate(timeout=MOST_SECONDS)
            with closing(http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=MOST_SECONDS)) as connection:
                yield process, connection
        finally:
            if process.poll() is None:
                process.kill()


def status(connection: http.client.HTTPConnection, path: str, **headers: str) -> int:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_pages_and_ends_in_order(wiki: Path, how: signal.Signals) -> None:
    with DecisionServer() as server, serving(wiki, llama__base_url=server.url) as (process, connection):
        assert status(connection, "/runs") == 200
        assert status(connection, "/runs", Host="evil.example") == 421
        assert status(connection, "/hooks/cycle") == 405
        process.send_signal(how)
        _, log = process.communicate(timeout=MOST_SECONDS)

    assert process.returncode == 0, log
    assert "stopping" in log
    assert log.splitlines()[-1].endswith("stopped")


def test_a_topic_that_is_due_runs_while_the_pages_are_served(wiki: Path) -> None:
    with open_store(wiki) as store:
        store.checked("herons", datetime.now(UTC) - timedelta(minutes=5), ran=False)
    with DecisionServer() as server, serving(wiki, llama__base_url=server.url) as (process, connection):
        assert status(connection, "/runs") == 200
        assert process.stderr is not None
        for line in process.stderr:
            assert "failed" not in line
            if "result_judged" in line:
                break
        assert status(connection, "/runs?topic=herons") == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=MOST_SECONDS)

    with open_store(wiki) as store:
        assert [run.topic for run in store.runs()] == ["herons"]


def test_it_refuses_to_be_open_to_other_machines(wiki: Path) -> None:
    said = Cli(wiki)("serve", "--host", "0.0.0.0", "--port", "0")

    assert said.code == 2
    assert "web.token" in said.error
    assert "127.0.0.1" in said.error


def test_a_port_that_is_taken_is_named(wiki: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = Cli(wiki)("serve", "--port", str(port))

    assert said.code == 2
    assert str(port) in said.error
    assert "--port" in said.error


# -- labels


@pytest.fixture
def judged_wiki(wiki: Path) -> Path:
    with open_store(wiki) as store:
        for number in range(40):
            store.put_run(judged(number, number / 40, kept=number >= 24))
    return wiki


def test_a_sample_is_printed_filled_in_and_stored(judged_wiki: Path) -> None:
    cli = Cli(judged_wiki)
    drawn = cli("label", "--sample", "30", "--json").json()
    assert len(drawn) == 30
    assert {"verdict", "useful", "kept"} & {key for entry in drawn for key in entry} == set()
    for entry in drawn:
        entry["should"] = "kept" if int(entry["run"][1:5]) >= 20 else "discarded"
    file = judged_wiki / "labels.json"
    file.write_text(json.dumps(drawn))

    assert cli("calibrate").code == 1
    assert "30 labelled" in cli("label", "--from", str(file)).out
    with open_store(judged_wiki) as store:
        assert all(label.drawn for label in store.labels())
        assert {label.should for label in store.labels()} == set(Should)

    picture = judged_wiki / "curve.svg"
    said = cli("calibrate", "--svg", str(picture))
    assert said.code == 0
    assert re.search(r"^keep threshold: 0\.(4[5-9]|5\d) \(0\.\d\d to 0\.\d\d\), in use 0\.6$", said.out, re.MULTILINE)
    assert "each stands for" in said.out
    assert picture.read_text().startswith("<svg ")
    assert cli("calibrate", "--json").json()["cannot_say"] is None


def test_without_a_terminal_labelling_says_what_to_do_instead(judged_wiki: Path) -> None:
    said = Cli(judged_wiki)("label")

    assert said.code == 2
    assert "--json" in said.error
    assert "--from" in said.error


@pytest.mark.parametrize("content", ["{", "[{}]", '[{"run": "nobody"}]', '[{"run": "r0001-2", "should": "maybe"}]'])
def test_a_file_of_labels_that_cannot_be_used_changes_nothing(judged_wiki: Path, content: str) -> None:
    file = judged_wiki / "labels.json"
    file.write_text(content)

    said = Cli(judged_wiki)("label", "--from", str(file))
    assert said.code == 2
    assert "labels.json" in said.error
    with open_store(judged_wiki) as store:
        assert list(store.labels()) == []


def test_runs_without_a_verdict_are_never_drawn(wiki: Path) -> None:
    with open_store(wiki) as store:
        store.put_run(a_run(outcome="failed", verdict=None, judgement=None))

    assert Cli(wiki)("label", "--json").json() == []

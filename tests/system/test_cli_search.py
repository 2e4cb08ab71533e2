"""A search engine that is out is a named problem of the cycle and never "no results". One topic asks for each answer."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.web.servers import StubWeb, reply
from tests.system.cli import MOST_SECONDS, Cli, Said
from tests.system.decision_server import DecisionServer

DATA = Path(os.environ.get("WIKIKEEPER_DATA", Path(__file__).parents[3] / "shared" / "data")) / "02_searxng"
JSON = "application/json"
FORBIDDEN = b"<!doctype html>\n<title>403 Forbidden</title>\n<h1>Forbidden</h1>\n"
SILENT = {"results": [], "unresponsive_engines": [["brave", "timeout"], ["google", "Suspended: CAPTCHA"]]}
ROW = {"url": "https://quillstore.example/news", "title": "News"}


@pytest.fixture
def server() -> Iterator[DecisionServer]:
    with DecisionServer() as server:
        yield server


def test_each_answer_of_the_search_engine_has_its_state_and_an_outage_needs_a_person(
    tmp_path: Path, server: DecisionServer
) -> None:
    answers = {
        "forbidden": reply(FORBIDDEN, status=403),
        "limited": reply(b"Too Many Requests", "Retry-After: 30", status=429, content_type="text/plain"),
        "silent": reply(json.dumps(SILENT).encode(), content_type=JSON),
        "html": reply(b"<!doctype html><title>A portal</title>"),
        "nothing": reply(b'{"results": [], "unresponsive_engines": []}', content_type=JSON),
        "degraded": reply(json.dumps(SILENT | {"results": [ROW]}).encode(), content_type=JSON),
        "good": reply(json.dumps({"results": [ROW]}).encode(), content_type=JSON),
    }

    said, hits = _run(tmp_path, server, answers)

    assert said.code == 1
    assert hits == len(answers)
    assert _states(said) == {
        "forbidden": "search_outage:json_disabled",
        "limited": "search_outage:rate_limited",
        "silent": "search_outage:engines_unresponsive",
        "html": "search_outage:not_json",
        "nothing": "",
        "degraded": "1 found, engines without an answer",
        "good": "1 found",
    }
    assert "problem forbidden: search_outage:json_disabled: search 'forbidden': " in said.err
    assert "add `json` under `search.formats`" in said.err


def test_a_search_that_worked_needs_nobody_and_one_that_is_not_set_up_says_so(
    tmp_path: Path, server: DecisionServer
) -> None:
    good = {"good": reply(b'{"results": [], "unresponsive_engines": []}', content_type=JSON)}

    assert _run(tmp_path, server, good)[0].code == 0
    said = Cli(tmp_path / "wiki", llama__base_url=server.url)("run")

    assert said.code == 1
    assert "search_outage:not_configured" in said.out
    assert "no searxng.url is set" in said.err


def test_no_command_of_these_tests_can_leave_this_machine(tmp_path: Path) -> None:
    """The two addresses are ones that nobody has."""
    connect = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    look_up = "import socket; socket.getaddrinfo('nobody.example', 80)"
    for attempt in (connect, look_up):
        ended = subprocess.run(
            [sys.executable, "-c", attempt],
            env=Cli(tmp_path).environment(),
            capture_output=True,
            check=False,
            timeout=MOST_SECONDS,
        )
        assert b"no network in tests: " in ended.stderr


CAPTURED = {
    "config": "search_outage:bad_reply",
    "healthz": "search_outage:not_json",
    "search_bad_pageno": "search_outage:bad_request",
    "search_bad_timerange": "search_outage:bad_request",
    "search_csv": "search_outage:not_json",
    "search_empty_results": "search_outage:engines_unresponsive",
    "search_html_only_page": "search_outage:not_json",
    "search_json_not_enabled_403": "search_outage:json_disabled",
    "search_no_q": "search_outage:bad_request",
    "search_pageno2": "search_outage:engines_unresponsive",
    "search_rss": "search_outage:not_json",
    "search_single_engine_bang": "7 found, engines without an answer",
    "search_suspended_second_call": "7 found, engines without an answer",
    "search_unknown_category": "7 found, engines without an answer",
    "search_unknown_format": "search_outage:not_json",
    "search_unknown_language": "7 found, engines without an answer",
}
"""Captured from a running server, to what a cycle makes of it."""

EDGES = (
    "search_outage:engines_unresponsive",
    "search_outage:engines_unresponsive",
    "search_outage:rate_limited",
    "search_outage:rate_limited",
    "search_outage:json_disabled",
    "search_outage:not_json",
    "search_outage:bad_reply",
    "1 found, engines without an answer",
    "1 found",
)
"""From public reports, in the order of their file."""


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no captured answers of SearXNG in {DATA} (WIKIKEEPER_DATA)")
def test_each_captured_answer_and_each_edge_has_its_state(tmp_path: Path, server: DecisionServer) -> None:
    edges = json.loads((DATA / "edge_responses.json").read_text())
    answers = {name.replace("_", "-"): _captured(name) for name in CAPTURED}
    answers |= {f"edge-{number}": _edge(edge) for number, edge in enumerate(edges)}

    said, hits = _run(tmp_path, server, answers)

    assert (said.code, hits) == (1, len(answers))
    expected = {name.replace("_", "-"): state for name, state in CAPTURED.items()}
    expected |= {f"edge-{number}": state for number, state in enumerate(EDGES)}
    assert _states(said) == expected
    (ok,) = [cycle for cycle in said.json()["cycles"] if cycle["topic"] == "edge-8"]
    assert ok["state"] == "done"


def _run(folder: Path, server: DecisionServer, answers: Mapping[str, bytes]) -> tuple[Said, int]:
    """A cycle of one topic for each answer; what was said, and how often the search engine was asked."""
    wiki = folder / "wiki"
    (wiki / "topics").mkdir(parents=True)
    with StubWeb() as web:
        for name, answer in answers.items():
            web.on(f"127.0.0.1:{web.port}/search?q={name}&format=json", answer)
            (wiki / "topics" / f"{name}.md").write_text(f"---\ntitle: {name}\nqueries: [{name}]\n---\nNews.\n")
        cli = Cli(wiki, llama__base_url=server.url, searxng__url=f"http://127.0.0.1:{web.port}")
        said = cli("run", "--json")
        assert server.calls == 0, "nothing could be fetched, so nothing was asked"
        return said, len(web.requests)


def _states(said: Said) -> dict[str, str]:
    return {cycle["topic"]: _state(cycle) for cycle in said.json()["cycles"]}


def _state(cycle: Mapping[str, Any]) -> str:
    """What was found, and each problem without its details."""
    assert cycle["state"] == "done"
    problems = [problem.partition(": ")[0] for problem in cycle["problems"]]
    return ", ".join([f"{cycle['found']} found"] * bool(cycle["found"]) + problems)


def _captured(name: str) -> bytes:
    status, *headers = (DATA / "captured" / f"{name}.headers").read_text().splitlines()
    kind = next(line.partition(": ")[2] for line in headers if line.startswith("Content-Type: "))
    body = (DATA / "captured" / f"{name}.body").read_bytes()
    return reply(body, status=int(status.split()[1]), content_type=kind)


def _edge(edge: Mapping[str, Any]) -> bytes:
    body = edge.get("raw_body") or edge["body"]
    content = body if isinstance(body, str) else json.dumps(body)
    return reply(content.encode(), status=edge["status"], content_type=edge.get("content_type", JSON))

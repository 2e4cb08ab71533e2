"""A model server that cannot be used: nothing is searched or asked, the cause is said, a person is told once."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.adapters.web.servers import StubWeb, reply
from tests.system.cli import Cli
from tests.system.decision_server import DecisionServer, Refusal, listing

SEARCH = "/search?q=quillstore&format=json"
CHAT = listing({"id": "chatty", "architecture": {"output_modalities": ["text"]}})
ROUTER = listing({"id": "other", "status": {"value": "loaded"}}, {"id": "third", "status": {"value": "unloaded"}})
LOADED = "Quillstore 3.1 writes its log in pages that are sealed before the commit is acknowledged."


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    wiki = tmp_path / "wiki"
    (wiki / "topics").mkdir(parents=True)
    (wiki / "pages").mkdir()
    (wiki / "pages" / "one.txt").write_text(LOADED)
    (wiki / "topics" / "quillstore.md").write_text(
        "---\ntitle: Quillstore\nqueries: [quillstore]\nfolder: pages\n---\nNews of Quillstore.\n"
    )
    return wiki


@pytest.fixture
def searxng() -> Iterator[StubWeb]:
    with StubWeb() as web:
        web.on(f"127.0.0.1:{web.port}{SEARCH}", reply(b'{"results": []}', content_type="application/json"))
        yield web


@pytest.fixture
def server() -> Iterator[DecisionServer]:
    with DecisionServer() as server:
        yield server


@pytest.mark.parametrize(
    ("models", "cause", "mending"),
    [
        (None, "unreachable", "start it or correct base_url"),
        ((401, b"{}"), "unauthorized", "set api_key"),
        ((200, CHAT), "wrong_kind", "set model to one that is"),
        ((200, ROUTER), "model_missing", "set model to one it has"),
    ],
)
def test_the_cycle_is_skipped_with_the_cause_and_a_person_is_told_once(
    wiki: Path, searxng: StubWeb, server: DecisionServer, models: tuple[int, bytes] | None, cause: str, mending: str
) -> None:
    if models is not None:
        server.models = models
    cli = Cli(
        wiki,
        llama__base_url=server.url if models is not None else f"http://127.0.0.1:{_closed_port()}",
        searxng__url=f"http://127.0.0.1:{searxng.port}",
    )

    first, second = cli("run", "--json"), cli("run")

    assert (first.code, second.code) == (1, 1)
    (cycle,) = first.json()["cycles"]
    assert (cycle["state"], cycle["reason"].partition(":")[0]) == ("skipped", cause)
    assert (cycle["found"], cycle["waiting"], cycle["calls"]) == (0, 0, 0)
    assert f"skipped quillstore: {cause}" in first.err
    (told,) = [line for line in first.err.splitlines() if line.startswith("attention ")]
    assert told.startswith(f"attention {cause}: ")
    assert mending in told
    assert second.err.splitlines() == [f"skipped quillstore: {cause}"]
    assert " skipped " in second.out
    assert searxng.requests == []
    assert server.calls == 0


def test_a_person_is_told_again_when_it_was_well_in_between(
    wiki: Path, searxng: StubWeb, server: DecisionServer
) -> None:
    cli = Cli(wiki, llama__base_url=server.url, searxng__url=f"http://127.0.0.1:{searxng.port}")
    well = server.models
    server.models = (401, b"{}")
    told = cli("run").err
    (kept,) = [line for line in cli("doctor").lines if "unauthorized since" in line]
    assert kept.startswith("note  model:decider")

    server.models = well
    ran = cli("run", "--json")
    server.models = (401, b"{}")

    assert ran.code == 0
    assert len(searxng.requests) == 2, "by doctor and by the run"
    assert "attention unauthorized" in cli("run").err
    assert "attention unauthorized" in told


@pytest.mark.parametrize(
    ("refusal", "cause"),
    [
        (Refusal(501, b'{"error": {"code": 501, "message": "not a decision model", "type": "not_supported_error"}}'), "wrong_kind"),
        (Refusal(400, b'{"error": {"code": 400, "message": "model \'decider\' not found"}}'), "model_missing"),
    ],
)  # fmt: skip
def test_an_error_that_no_page_can_help_stops_the_cycle_and_everything_waits(
    wiki: Path, server: DecisionServer, refusal: Refusal, cause: str
) -> None:
    (wiki / "topics" / "quillstore.md").write_text("---\ntitle: Quillstore\nfolder: pages\n---\nNews.\n")
    for n in range(4):
        (wiki / "pages" / f"{n}.txt").write_text(f"{LOADED} This is page number {n} of those that wait.")
    cli = Cli(wiki, llama__base_url=server.url, gate__limit="1", host__pages_ahead="0")
    server.refusal = refusal
    stopped = cli("run", "--json")
    asked = server.calls

    server.refusal = None
    resumed = cli("run", "--json")

    (cycle,) = stopped.json()["cycles"]
    assert stopped.code == 1
    assert (cycle["state"], cycle["reason"].partition(":")[0], cycle["waiting"]) == ("stopped", cause, 5)
    assert f"attention {cause}: " in stopped.err
    assert asked == 1
    (cycle,) = resumed.json()["cycles"]
    assert resumed.code == 0
    assert (cycle["state"], cycle["kept"], cycle["waiting"], cycle["parked"]) == ("done", 5, 0, 0)
    outcomes = [json.loads(line)["outcome"] for line in cli("runs", "--json").lines]
    assert sorted(outcomes) == ["answered"] * 5 + ["failed"]


def test_calls_that_are_never_answered_are_told_by_cause_and_need_a_person(wiki: Path, server: DecisionServer) -> None:
    (wiki / "topics" / "quillstore.md").write_text("---\ntitle: Quillstore\nfolder: pages\n---\nNews.\n")
    (wiki / "pages" / "two.txt").write_text(f"{LOADED} This is another page.")
    cli = Cli(wiki, llama__base_url=server.url)
    server.refusal = Refusal(200, b"<h1>Welcome</h1>")

    as_json, as_text = cli("run", "--json"), cli("run")

    (cycle,) = as_json.json()["cycles"]
    assert (as_json.code, as_text.code) == (1, 1)
    assert (cycle["state"], cycle["reason"]) == ("done", "no_answer:malformed:not_json")
    assert (cycle["failed"], cycle["waiting"]) == ({"malformed:not_json": 2}, 2)
    assert "quillstore: done: no_answer:malformed:not_json" in as_text.lines
    assert "quillstore: failed 2 malformed:not_json (they wait for the next cycle)" in as_text.lines


def test_why_a_cycle_was_skipped_or_stopped_stands_below_the_table(wiki: Path, server: DecisionServer) -> None:
    (wiki / "topics" / "quillstore.md").write_text("---\ntitle: Quillstore\nfolder: pages\n---\nNews.\n")
    cli = Cli(wiki, llama__base_url=server.url)
    server.refusal = Refusal(501)
    stopped = cli("run")
    server.models = (401, b"{}")
    skipped = cli("run")

    assert (stopped.code, skipped.code) == (1, 1)
    assert [line for line in stopped.lines if line.startswith("quillstore: stopped: wrong_kind: ")]
    assert [line for line in skipped.lines if line.startswith("quillstore: skipped: unauthorized: ")]


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])

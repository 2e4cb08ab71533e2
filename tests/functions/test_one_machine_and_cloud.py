"""The same topic and pages through the one-machine host and through the functions: nothing differs but ids and times."""

import re
from pathlib import Path
from typing import Any

from tests.functions.conftest import Deploy
from tests.functions.pages import linked, served
from tests.functions.stack import BATCHES, Pump, in_process
from tests.system import golden_wiki
from tests.system.cli import Cli
from tests.system.decision_server import DecisionServer

from wikikeeper.app import open_store
from wikikeeper.models import Run
from wikikeeper.models.commands import StartCycle
from wikikeeper.ports import RunStore

ONE_BY_ONE = {"gate__limit": "1", "host__pages_ahead": "0"}
"""The order of the verdicts, and so of the entries, is then the order in which pages are sent."""
OWN = {"id", "cycle", "started", "seconds", "gate_wait"}
"""Of a run: its id and its times."""


def runs(store: RunStore) -> list[dict[str, Any]]:
    return sorted((_told(run) for run in store.runs()), key=lambda run: str(run["subject"]))


def _told(run: Run) -> dict[str, Any]:
    return run.model_dump(exclude=OWN)


def verdicts(store: RunStore) -> dict[str, Any]:
    return {
        result.url: (result.state, result.verdict, result.title, result.text_hash, result.folded_into, result.attempts)
        for result in store.results()
    }


def test_the_verdicts_the_runs_and_the_bytes_of_the_note_are_the_same(tmp_path: Path, deploy: Deploy) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    pages = (wiki / "pages").rename(tmp_path / "pages")
    topic = wiki / "topics" / "quillstore.md"
    with served(pages) as origin, DecisionServer(golden_wiki.SCRIPT) as server:
        text = linked(topic.read_text(), pages, origin)
        topic.write_text(text)
        settings = {"llama__base_url": server.url, "fetch__allow_origins": origin, **ONE_BY_ONE}
        said = Cli(wiki, instead=None, **settings)("run", "--json")
        assert said.code == 0, said.err
        asked = server.pages()
        server.bodies.clear()

        deployed = deploy(**settings, research__note_delay="1")
        deployed.write("topics/quillstore.md", text)
        deployed.send("schedule", StartCycle(topic="quillstore", tick="2026-11-30T07:00Z").model_dump_json())
        pump = Pump(deployed, in_process, {**BATCHES, "judge_result": 1})
        pump.until_idle()
        deployed.send("reap", '{"kind": "reap_stale"}')
        pump.until_idle()

        assert pump.failed == []
        assert server.calls == 2 * golden_wiki.CALLS
        assert [without_boundary(page) for page in server.pages()] == [without_boundary(page) for page in asked]

    with open_store(wiki) as local:
        cloud = deployed.app().store
        assert verdicts(cloud) == verdicts(local)
        assert runs(cloud) == runs(local)
        assert [cycle.state for cycle in cloud.cycles()] == [cycle.state for cycle in local.cycles()] == ["done"]
    on_disk = {str(path.relative_to(wiki)): path.read_bytes() for path in wiki.glob("inbox/**/*.md")}
    assert len(on_disk) == 1
    assert deployed.notes() == on_disk


def without_boundary(page: str) -> str:
    """Around a page stands a boundary that only its installation knows."""
    return re.sub(r"[0-9a-f]{16,}", "", page)

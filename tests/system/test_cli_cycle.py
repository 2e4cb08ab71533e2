"""One whole cycle through the command line: what is printed, what is asked, and the note to the byte."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.system import golden_wiki
from tests.system.cli import MOST_SECONDS, Cli, files
from tests.system.decision_server import Answer, DecisionServer

from wikikeeper.models import Topic
from wikikeeper.policy.identity import result_id
from wikikeeper.policy.notes import note_key
from wikikeeper.policy.urls import folder_url

ONE_BY_ONE: dict[str, Any] = {"gate__limit": "1", "host__pages_ahead": "0"}
"""The order of the verdicts, and so of the entries, is then the order in which pages are sent."""
ZONE = ZoneInfo("Pacific/Auckland")
"""Of the topic: half a day ahead of most machines, so a date in another zone is seen."""


def test_a_cycle_writes_the_note_to_the_byte_and_the_next_one_asks_and_changes_nothing(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    before = files(wiki)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(wiki, llama__base_url=server.url, **ONE_BY_ONE)
        opened = datetime.now(ZONE)
        said = cli.afresh("run", "--json")

        assert (said.code, said.err) == (0, "")
        report = said.json()
        (cycle,) = report["cycles"]
        assert (report["faults"], report["errors"], report["another_run"]) == ([], [], False)
        assert 0 < cycle["model_seconds"] <= cycle["seconds"] <= report["seconds"]
        (key,) = cycle["notes"]
        ran = {name: cycle[name] for name in cycle if name not in ("cycle", "seconds", "model_seconds", "notes")}
        assert ran == {
            "topic": "quillstore",
            "state": "done",
            "reason": None,
            "ended": None,
            "earlier_run": False,
            "earlier": [],
            "problems": [],
            "cap_reached": False,
            "found": 9,
            "new": 9,
            "kept": len(golden_wiki.KEPT),
            "discarded": golden_wiki.DISCARDED,
            "folded": 1,
            "failed": {},
            "waiting": 0,
            "parked": 0,
            "calls": golden_wiki.CALLS,
        }
        assert server.calls == golden_wiki.CALLS

        days = {opened, datetime.now(ZONE)}  # midnight may pass in between
        assert key in {_expected_key(day) for day in days}
        made = files(wiki)
        note = made.pop(key)
        assert made == before, "nothing else in the wiki changes"
        assert note == _expected_note(key)

        after = files(wiki)
        again = cli("run", "--json")
        (cycle,) = again.json()["cycles"]
        assert again.code == 0
        assert (cycle["state"], cycle["found"], cycle["new"], cycle["calls"]) == ("done", 9, 0, 0)
        assert server.calls == golden_wiki.CALLS
        assert files(wiki) == after


def test_people_get_a_table_and_the_same_entries_however_many_pages_are_under_way(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    (wiki / "pages" / "02-print.html").unlink()  # which of the two prints came first would be left to chance
    with DecisionServer(golden_wiki.SCRIPT) as server:
        said = Cli(wiki, llama__base_url=server.url, gate__limit="2")("run")

        assert (said.code, said.err) == (0, "")
        assert server.calls == golden_wiki.CALLS
        assert server.most_at_once <= 2
    heads, _, row, *_ = [line.split() for line in said.lines if line.strip()]
    assert heads == "topic cycle kept discarded folded waiting parked seconds model s".split()
    assert row[:7] == ["quillstore", "done", "4", "4", "0", "0", "0"]
    assert all(re.fullmatch(r"\d+\.\d", seconds) for seconds in row[7:])
    (reasons,) = [line for line in said.lines if line.startswith("quillstore: discarded ")]
    assert sorted(reasons.removeprefix("quillstore: discarded ").split(", ")) == sorted(
        f"{number} {reason}" for reason, number in golden_wiki.DISCARDED.items()
    )
    (note,) = wiki.glob("inbox/awaiting/*.md")
    assert f"note: inbox/awaiting/{note.name}" in said.lines
    assert re.fullmatch(r"\d+\.\d s", said.lines[-1])
    assert sorted(_entries(note.read_bytes())) == sorted(_entries(_expected_note(note.name)))


def test_the_cap_counts_calls_and_the_rest_waits_for_the_next_cycle(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(wiki, llama__base_url=server.url, research__cycle_cap="5")
        first = cli("run")
        (second,) = cli("run", "--json").json()["cycles"]

        assert first.code == 0
        assert "cap_reached" in first.out
        assert not second["cap_reached"]
        assert second["waiting"] == 0
        assert server.calls == golden_wiki.CALLS
        assert len(set(server.pages())) == golden_wiki.CALLS, "no page was asked about twice"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_on_a_terminal_a_bar_shows_how_far_it_is_and_is_gone_afterwards(tmp_path: Path) -> None:
    shown = bytearray()
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(golden_wiki.copy_to(tmp_path), llama__base_url=server.url)
        terminal, other_end = os.openpty()
        with subprocess.Popen(
            cli.command("run"), env=cli.environment() | {"TERM": "xterm"}, stdout=subprocess.PIPE, stderr=other_end
        ) as process:
            os.close(other_end)
            with suppress(OSError):  # how a terminal ends whose other end is closed
                while piece := os.read(terminal, 65_536):
                    shown += piece
            assert process.stdout is not None
            out = process.stdout.read().decode()
        os.close(terminal)

    assert process.returncode == 0
    assert " done " in out
    assert "judging" not in out
    text = shown.decode()
    assert re.search(r"judging.* \d/9 ", text)
    assert text.endswith("\x1b[2K"), "the line is cleared"


def test_a_second_run_on_the_same_wiki_is_refused_and_looking_is_not(tmp_path: Path) -> None:
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(golden_wiki.copy_to(tmp_path), llama__base_url=server.url)
        server.free.clear()
        with cli.started("run") as first:
            assert server.arrived.acquire(timeout=MOST_SECONDS)
            second, looked = cli("run"), cli("topics")
            due, due_json = cli("run", "--due"), cli("run", "--due", "--json")
            server.free.set()
            _, err = first.communicate(timeout=MOST_SECONDS)

        assert (second.code, second.out) == (2, "")
        assert f"process {first.pid}" in second.error
        assert looked.code == 0
        assert (due.code, due.out, due.err) == (0, "another run is working; nothing to do\n", ""), "a timer comes again"
        nothing = {"cycles": [], "faults": [], "escalated": [], "errors": [], "seconds": 0.0, "another_run": True}
        assert (due_json.code, due_json.json(), due_json.err) == (0, nothing, "")
        assert (first.returncode, err) == (0, b"")
        assert server.calls == golden_wiki.CALLS
        assert cli("run").code == 0, "afterwards the wiki is free again"


def test_a_new_page_joins_the_open_note_below_what_a_person_wrote(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    late = wiki / "pages" / "09-roadmap.md"
    shutil.move(late, tmp_path)
    with DecisionServer({**golden_wiki.SCRIPT, "Quillstore 3.1 is out today": Answer(0.1)}) as server:
        cli = Cli(wiki, llama__base_url=server.url, **ONE_BY_ONE)
        cli("run")
        (note,) = wiki.glob("inbox/awaiting/*.md")
        note.write_text(note.read_text().replace("sources: 2", "sources: 2\nmood: curious") + "\nMy own line.\n")
        before = note.read_text()
        shutil.move(tmp_path / late.name, late)
        cli("run")

    assert list(wiki.glob("inbox/awaiting/*.md")) == [note]
    head, tail = note.read_text()[: len(before)], note.read_text()[len(before) :]
    assert head == before.replace("sources: 2", "sources: 3")
    assert tail.startswith("\n## Roadmap - what comes after 3.1\n")


def _first_kept() -> str:
    """The one whose id names the note: of the kept pages, the first that the source listed."""
    return result_id("quillstore", folder_url(PurePosixPath("pages", golden_wiki.KEPT[0])), 1)


def _expected_key(opened: datetime) -> str:
    topic = Topic(slug="quillstore", title="Quillstore", brief="", zone=ZONE.key)
    return note_key(topic, opened, _first_kept())


def _entries(note: bytes) -> list[bytes]:
    return [part.strip() for part in re.split(rb"^(?=## )", note, flags=re.MULTILINE)[1:]]


def _expected_note(key: str) -> bytes:
    day = Path(key).name[: len("2026-01-01")]
    return (golden_wiki.GOLDEN / "note.md").read_bytes().replace(b"OPENED", day.encode())

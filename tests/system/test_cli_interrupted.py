"""Ctrl-C: what runs is brought to its end, what waits is taken up by the next run."""

import json
import shutil
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.system import golden_wiki
from tests.system.cli import Cli, interrupt
from tests.system.decision_server import DecisionServer, Refusal

from wikikeeper.app import open_store
from wikikeeper.models import Cycle, CycleState
from wikikeeper.policy.notes import entries

AT_ONCE = 2
MOST_SECONDS = 30
SOON = 20
"""Seconds: many times what it takes, and a small part of what the lease of a permit would."""


@pytest.mark.parametrize("pages_ahead", [0, 8])
def test_ctrl_c_lets_calls_end_and_the_next_run_does_the_rest(tmp_path: Path, pages_ahead: int) -> None:
    """Pages that wait for the gate are no calls yet."""
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(wiki, llama__base_url=server.url, gate__limit=str(AT_ONCE), host__pages_ahead=str(pages_ahead))
        server.free.clear()
        with cli.started("run") as process:
            _await_calls(server, AT_ONCE)
            interrupt(process)
            time.sleep(0.3)  # for the signal to be seen before the calls end
            server.free.set()
            out, err = process.communicate(timeout=MOST_SECONDS)

        assert (process.returncode, out) == (130, b"")
        assert err.decode().splitlines() == ["interrupted: what waits is taken up by the next run"]
        assert server.calls == AT_ONCE
        assert Counter(run["outcome"] for run in _runs(cli)) == {"answered": AT_ONCE}

        (cycle,) = cli("run", "--json").json()["cycles"]

        assert (cycle["state"], cycle["waiting"]) == ("done", 0)
        assert server.calls == golden_wiki.CALLS
        assert len(set(server.pages())) == golden_wiki.CALLS, "no page was asked about twice"
    (note,) = wiki.glob("inbox/awaiting/*.md")
    assert len(entries(note.read_bytes())) == len(golden_wiki.KEPT)


def test_what_an_earlier_run_left_is_shown_by_the_run_that_does_it_although_no_topic_is_due(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(wiki, llama__base_url=server.url, gate__limit=str(AT_ONCE), host__pages_ahead="0")
        _interrupt_a_run(cli, server, AT_ONCE)
        other = Cli(Path(shutil.copytree(wiki, tmp_path / "other" / "wiki")), llama__base_url=server.url)
        as_text = other("run", "--due")
        said = cli("run", "--due", "--json")
        again = cli("run", "--due")

    (row,) = said.json()["cycles"]
    assert (said.code, row["topic"], row["cycle"], row["state"]) == (0, "quillstore", None, None)
    assert row["earlier_run"]
    assert [(cycle["state"], cycle["reason"]) for cycle in row["earlier"]] == [("done", None)]
    assert (row["calls"], row["waiting"]) == (golden_wiki.CALLS - AT_ONCE, 0)
    (note,) = wiki.glob("inbox/awaiting/*.md")
    assert row["notes"] == [f"inbox/awaiting/{note.name}"]
    assert as_text.code == 0
    assert ["quillstore", "earlier", "run"] in [line.split()[:3] for line in as_text.lines]
    assert [line for line in as_text.lines if line.startswith("note: inbox/awaiting/")]
    assert (again.code, again.out) == (0, "No topic is due.\n")


def test_an_earlier_run_whose_calls_all_fail_needs_a_person_whatever_the_new_cycle_comes_to(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(wiki, llama__base_url=server.url, gate__limit="1", host__pages_ahead="0")
        server.refusal = Refusal(501)
        _interrupt_a_run(cli, server, 1, times=2)
        said = cli("run", "--due", "--json")

    (row,) = said.json()["cycles"]
    assert (said.code, row["earlier_run"]) == (1, True)
    assert [cycle["state"] for cycle in row["earlier"]] == ["stopped"]


def test_a_tick_that_is_sent_once_more_is_a_cycle_of_the_run_that_runs_it(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    now = datetime.now(UTC)
    with open_store(wiki) as store:  # as a run leaves it that dies while it searches
        left = Cycle(
            id="quillstore#2026-01-01T00:00Z",
            topic="quillstore",
            tick="2026-01-01T00:00Z",
            state=CycleState.OPEN,
            started=now,
            lease_until=now + timedelta(minutes=5),
            cap=50,
        )
        assert store.start_cycle(left)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        said = Cli(wiki, llama__base_url=server.url)("run", "--due", "--json")

    (row,) = said.json()["cycles"]
    assert (said.code, row["cycle"], row["state"], row["earlier"]) == (0, left.id, "done", [])
    assert (row["calls"], row["new"]) == (golden_wiki.CALLS, 9)


def test_a_second_ctrl_c_does_not_wait_and_the_next_run_takes_back_what_was_held(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        # One permit, and the run that was interrupted holds it.
        cli = Cli(wiki, llama__base_url=server.url, gate__limit="1", host__pages_ahead="0")
        server.free.clear()
        with cli.started("run") as process:
            _await_calls(server, 1)
            for _ in range(2):
                interrupt(process)
                time.sleep(0.3)
            began = time.monotonic()
            process.communicate(timeout=MOST_SECONDS)
        assert process.returncode == 130
        assert time.monotonic() - began < SOON
        server.free.set()

        began = time.monotonic()
        said = cli("run")

        assert said.code == 0
        assert said.err == "quillstore: took back a result whose worker went silent\n"
        assert time.monotonic() - began < SOON, "it waited for the lease of a permit that nobody holds"
        assert Counter(run["outcome"] for run in _runs(cli)) == {"answered": golden_wiki.CALLS, "lost": 1}
        assert server.calls == golden_wiki.CALLS + 1, "only the call whose answer nobody had is made again"


def test_ctrl_c_while_the_model_loads_leaves_nothing_behind(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(wiki, llama__base_url=server.url)
        healthy, server.models = server.models, (503, b"{}")
        with cli.started("run") as process:
            assert process.stderr is not None
            assert (
                process.stderr.readline() == b"quillstore: the model is loading; it was woken, next look in a minute\n"
            )
            interrupt(process)
            process.communicate(timeout=MOST_SECONDS)
        assert process.returncode == 130
        server.models = healthy

        (cycle,) = cli("run", "--json").json()["cycles"]

        assert (cycle["state"], cycle["new"], cycle["waiting"]) == ("done", 9, 0)


def _interrupt_a_run(cli: Cli, server: DecisionServer, calls: int, *, times: int = 1) -> None:
    """Ctrl-C when so many calls are held; twice does not wait for them."""
    server.free.clear()
    with cli.started("run") as process:
        _await_calls(server, calls)
        for _ in range(times):
            interrupt(process)
            time.sleep(0.3)  # for the signal to be seen before the calls end
        server.free.set()
        process.communicate(timeout=MOST_SECONDS)
    assert process.returncode == 130


def _await_calls(server: DecisionServer, number: int) -> None:
    for _ in range(number):
        assert server.arrived.acquire(timeout=MOST_SECONDS)


def _runs(cli: Cli) -> list[dict[str, object]]:
    return [json.loads(line) for line in cli("runs", "--json").lines]

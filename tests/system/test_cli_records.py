"""Looking at what was done: runs, show, what-if, verify; being done with a note; bringing parked pages back."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system import golden_wiki
from tests.system.cli import Cli, files
from tests.system.decision_server import MODEL, Answer, DecisionServer, Refusal

from wikikeeper.policy.notes import entries


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wiki after one cycle. Its server is gone: nothing that is tried on it needs one."""
    wiki = golden_wiki.copy_to(tmp_path_factory.mktemp("judged"))
    with DecisionServer(golden_wiki.SCRIPT) as server:
        said = Cli(wiki, llama__base_url=server.url, gate__limit="1", host__pages_ahead="0")("run")
    assert said.code == 0, said.err
    return wiki


@pytest.fixture
def wiki(judged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged, tmp_path / "wiki"))


@pytest.fixture
def cli(wiki: Path) -> Cli:
    return Cli(wiki, llama__base_url="http://127.0.0.1:9")


@pytest.fixture
def server() -> Iterator[DecisionServer]:
    with DecisionServer() as server:
        yield server


def test_every_call_is_on_record_with_everything_that_led_to_its_verdict(wiki: Path, cli: Cli) -> None:
    before = files(wiki)
    runs = _runs(cli)
    assert len(runs) == golden_wiki.CALLS
    assert [run["started"] for run in runs] == sorted((run["started"] for run in runs), reverse=True)
    for run in runs:
        assert (run["trigger"], run["outcome"], run["model_asked"], run["model"]) == (
            "Triage",
            "answered",
            "decider",
            MODEL,
        )
        assert (run["input_tokens"], run["tool_calls"], run["question_version"][:7]) == (100, [], "triage-")
    hidden = next(run for run in runs if run["url"] == "file:///pages/05-hidden.html")

    lines = cli("runs", "--outcome", "discarded", "--topic", "quillstore").lines
    assert len(lines) == 2 * 3, "two lines each; what could not be read was no call"
    assert {line.split()[-1] for line in lines[::2]} == {"injection", "not_useful"}
    assert len(cli("runs", "--limit", "2", "--outcome", "kept").lines) == 2 * 2

    shown = cli("show", hidden["id"][:8])
    assert shown.code == 0
    said = {line.split()[0]: line.split(maxsplit=1)[1] for line in shown.lines}
    assert said["page"] == "Running Quillstore on small machines"
    assert said["verdict"] == "discarded: injection"
    assert said["useful"] == "0.880 (kept from 0.6)"
    assert said["injection"] == "1.000 (discarded from 0.5; model: 0.030)"
    assert said["kind"].startswith("opinion 1.00")
    assert "concealed_address: Note to AI assistants" in said["findings"]
    assert cli("show", hidden["id"], "--json").json() == hidden
    for wrong, reason in (("nope", "there is no run 'nope'"), ("", "more than one run begins with ''")):
        refused = cli("show", wrong)
        assert (refused.code, refused.out) == (2, "")
        assert reason in refused.error
    assert files(wiki) == before


def test_other_thresholds_say_what_would_flip_without_a_call(wiki: Path, cli: Cli) -> None:
    stricter = cli("what-if", "--keep", "0.85", "--json").json()
    assert (stricter["model"], stricter["compared"], stricter["left_out"]) == (MODEL, golden_wiki.CALLS, 0)
    assert (stricter["kept_before"], stricter["kept_after"]) == (4, 2)
    assert {(flip["url"][14:], flip["was"], flip["would_be"]) for flip in stricter["flips"]} == {
        ("03-thread.txt", "kept", "not_useful"),
        ("09-roadmap.md", "kept", "not_useful"),
    }
    looser = cli("what-if", "--injection", "0.95")
    assert "kept 4 -> 5" in looser.out
    assert "injection -> kept  useful 0.90 injection 0.93  Quillstore upgrade notes for machine readers" in looser.out
    assert cli("what-if", "--keep", "0.5").lines[-1] == "Nothing would flip."
    refused = cli("what-if")
    assert (refused.code, refused.error) == (2, "error: say what to try: --keep X, --injection Y or both")
    assert cli("what-if", "--keep", "1.5").code == 2


def test_a_quote_that_was_edited_in_the_note_is_caught_and_a_deleted_one_is_not(wiki: Path, cli: Cli) -> None:
    (note,) = wiki.glob("inbox/awaiting/*.md")
    good = cli("verify")
    assert (good.code, good.out) == (0, "6 quotes: 6 holds\n")

    text = note.read_text()
    changed = text.replace("in 17 of 80,000 cuts", "in 3 of 80,000 cuts")
    changed = re.sub(r"> Marit wrote.*\n", "", changed)
    assert changed.count("\n> ") == text.count("\n> ") - 1
    note.write_text(changed + "\n> A person's own words, below the last entry.\n\nAnd no quote.\n")
    edited = cli("verify")
    assert edited.code == 1
    assert "edited" in edited.out
    assert f"inbox/awaiting/{note.name}" in edited.out
    assert "> Quillstore 3.0 lost a page in 3 of 80,000 cuts" in edited.out
    standings = [check["standing"] for check in cli("verify", "--json").json()]
    assert sorted(standings) == ["edited", "edited", "holds", "holds", "holds", "holds"]


def test_a_page_that_changed_since_is_only_known_when_it_is_fetched_again(wiki: Path, cli: Cli) -> None:
    page = wiki / "pages" / "01-release.html"
    page.write_text(page.read_text().replace("needs no dump", "needs a dump").replace("months", "weeks"))
    (wiki / "pages" / "03-thread.txt").unlink()

    assert cli("verify").code == 0
    again = cli("verify", "--refetch")

    assert again.code == 1
    (line,) = [line for line in again.lines if line.startswith("not_on_page ")]
    assert "> Upgrading from 3.0 needs no dump" in again.lines[again.lines.index(line) + 1]
    assert again.lines[-1] == "6 quotes: 3 unreachable, 2 holds, 1 not_on_page"


def test_a_note_is_moved_once_and_what_is_found_then_opens_a_new_one(
    wiki: Path, cli: Cli, server: DecisionServer
) -> None:
    (note,) = wiki.glob("inbox/awaiting/*.md")
    content = note.read_bytes()
    refused = cli("done", "nope")
    assert refused.code == 2
    assert refused.error == f"error: there is no note inbox/awaiting/nope.md; awaiting: {note.name}"

    moved = cli("done", f"wiki/inbox/awaiting/{note.name}")
    again = cli("done", note.stem)

    done = wiki / "inbox" / "completed" / note.name
    assert (moved.code, moved.out) == (0, f"inbox/awaiting/{note.name} -> inbox/completed/{note.name}\n")
    assert (again.code, again.out) == (0, f"inbox/completed/{note.name} is completed already\n")
    assert not note.exists()
    assert done.read_bytes() == content
    assert cli("verify").code == 0, "completed notes are looked at too"

    (wiki / "pages" / "10-new.txt").write_text(
        "Quillstore 3.2 can resume a backup where it was cut off, says its list."
    )
    server.script = {"Quillstore 3.2": Answer(quotes=("Quillstore 3.2",))}
    ran = cli("run", "--json", llama__base_url=server.url)

    assert (ran.code, server.calls) == (0, 1)
    (fresh,) = wiki.glob("inbox/awaiting/*.md")
    assert fresh.name != note.name
    assert len(entries(fresh.read_bytes())) == 1
    assert done.read_bytes() == content
    assert cli("verify").out == "7 quotes: 7 holds\n"


def test_a_page_that_the_server_refuses_is_parked_listed_and_brought_back(
    wiki: Path, cli: Cli, server: DecisionServer
) -> None:
    page = wiki / "pages" / "10-long.txt"
    page.write_text("\n\n".join(f"Paragraph {n} of a page that is too long for the model at first." for n in range(9)))
    server.script = {"too long for the model": Refusal(413)}
    here = Cli(wiki, llama__base_url=server.url)

    refused = here("run", "--json")
    (cycle,) = refused.json()["cycles"]
    assert (refused.code, cycle["state"], cycle["parked"], cycle["waiting"]) == (0, "done", 1, 0)
    assert [text.count("Paragraph") for text in server.pages()] == [9, 4], "asked once more with half of it"
    assert (here("run").code, server.calls) == (0, 2), "a parked page is left alone"

    listed = here("retry")
    identity, topic, shown, *why = listed.lines[0].split()
    assert (topic, shown) == ("quillstore", "file:///pages/10-long.txt")
    assert "too_long" in " ".join(why)
    assert listed.lines[-1] == "1 parked: 'wikikeeper retry ID' brings one back"
    assert "parked 1" in here("topics").out
    assert "1 results: 'wikikeeper retry' lists them" in here("doctor").out

    assert here("retry", identity).out == "1 waiting again\n"
    wrong = here("retry", identity)
    assert (wrong.code, wrong.error) == (2, f"error: not parked: {identity}")
    server.script = {}
    (cycle,) = here("run", "--json").json()["cycles"]
    assert (cycle["kept"], cycle["waiting"]) == (1, 0)
    assert here("retry").out == "0 parked\n"
    assert [run["outcome"] for run in _runs(here)[:3]] == ["answered", "failed", "failed"]


def test_output_into_a_pipe_that_closes_is_no_error(cli: Cli) -> None:
    for arguments in (("runs", "--json"), ("runs",), ("topics",)):
        with cli.started(*arguments) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert (process.stderr.read(), process.wait()) == (b"", 0), arguments


def test_what_a_page_calls_itself_does_nothing_to_the_terminal(wiki: Path, server: DecisionServer) -> None:
    title = "[red]Sale[/] :warning: \x1b]0;owned\x1b\\\x1b[2J\x9b31m\u202e [/bold] end"
    text = f"# {title}\n\nQuillstore 3.3 is a version that nobody has announced, says {title} to everybody who asks.\n"
    (wiki / "pages" / "11-hostile.md").write_text(text)
    server.script = {"Quillstore 3.3": Answer(quotes=("Quillstore 3.3",))}
    cli = Cli(wiki, llama__base_url=server.url)

    assert cli("run").code == 0
    (run,) = [run for run in _runs(cli) if run["url"].endswith("hostile.md")]
    outputs = [cli("runs").out, cli("show", run["id"]).out, cli("what-if", "--keep", "1").out]

    for said in outputs:
        assert "[red]Sale[/] :warning:" in said
        assert "[/bold] end" in said
        assert not [char for char in said if char != "\n" and not char.isprintable()]


def _runs(cli: Cli) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli("runs", "--json").lines]

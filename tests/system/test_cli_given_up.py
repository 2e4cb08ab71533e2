"""What was given up, as a person finds it and brings it back: notes, pages given up twice, reapers that died."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.adapters.contracts.samples import a_cycle, a_failure, a_result
from tests.system import golden_wiki
from tests.system.cli import Cli
from tests.system.decision_server import DecisionServer

from wikikeeper.adapters.local.private_folder import PRIVATE_FOLDER
from wikikeeper.adapters.local.run_lock import run_lock
from wikikeeper.app import open_store
from wikikeeper.models import CycleState, Escalation, FailureKind, Result, Silence
from wikikeeper.workflows.given_up import bring_back_note

TOPIC = "quillstore"
NOTE = f"note:{TOPIC}"
NOBODY = "http://127.0.0.1:9"
"""Nothing listens there, so whoever asks a model says so."""


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A wiki whose pages are kept and whose note was given up, since a file stood where its folder belongs."""
    wiki = golden_wiki.copy_to(tmp_path)
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(wiki, llama__base_url=server.url, research__note_delay="0.01")
        (wiki / "inbox").write_text("in the way")
        assert cli("run").code == 1
        # As if it had been sent again three times, a while ago.
        with open_store(wiki) as store:
            before, silence = datetime.now(UTC) - timedelta(hours=1), store.silence(NOTE)
            sent_again = Silence(subject=NOTE, nonresponses=3, since=before, counted=before)
            assert store.count_silence(sent_again, instead_of=silence)
        assert "attention" in cli("reap").err
        yield cli


def mended(cli: Cli) -> Path:
    (cli.wiki / "inbox").unlink()
    return cli.wiki


def notes(wiki: Path) -> list[str]:
    return sorted(f"inbox/awaiting/{path.name}" for path in wiki.glob("inbox/awaiting/*.md"))


def test_a_note_that_was_given_up_is_listed_and_brought_back_by_hand(cli: Cli) -> None:
    assert cli("retry").lines == [
        f"{NOTE}  {TOPIC}  pages are kept and its note was given up",
        "0 parked, 1 notes given up: 'wikikeeper retry ID' brings one back",
    ]
    assert f"{NOTE}  given up at" in cli("doctor").out
    wiki = mended(cli)
    assert cli("reap").out == "Nothing was silent.\n", "the reaper is no person"
    assert notes(wiki) == []

    said = cli("retry", NOTE, llama__base_url=NOBODY)

    [note] = notes(wiki)
    assert (said.code, said.lines) == (0, [f"note: {note}"])
    assert cli("retry").lines == ["0 parked"]
    assert NOTE not in cli("doctor").out
    assert cli("reap", "--dry-run").lines[-1] == "nothing is silent"
    again = cli("retry", NOTE)
    assert (again.code, again.error) == (2, f"error: not given up: {NOTE}")


def test_all_of_a_topic_brings_its_note_back_too(cli: Cli) -> None:
    wiki = mended(cli)

    said = cli("retry", "--topic", TOPIC)

    assert (said.code, said.lines) == (0, [f"note: {note}" for note in notes(wiki)])
    assert len(notes(wiki)) == 1
    assert cli("retry", "--topic", TOPIC).lines == ["0 waiting again"]


def test_a_run_by_hand_writes_the_note_that_was_given_up(cli: Cli) -> None:
    wiki = mended(cli)

    said = cli("run")

    assert said.code == 0
    assert f"note: {notes(wiki)[0]}" in said.lines


@pytest.mark.parametrize("command", [("retry", NOTE), ("run",)])
def test_a_note_that_still_cannot_be_written_says_why_and_stays_given_up(cli: Cli, command: tuple[str, ...]) -> None:
    said = cli(*command)

    assert said.code != 0
    assert "a file stands where a folder is needed" in said.err
    assert "attention" not in said.err, "it was told"
    assert NOTE in cli("retry").out


QUIET = {("run", "--due"): "No topic is due.\n", ("reap",): "Nothing was silent.\n"}


@pytest.mark.parametrize("command", QUIET)
def test_what_is_left_to_a_person_starts_no_model(cli: Cli, command: tuple[str, ...]) -> None:
    assert not starts_a_model(cli, command)


def test_the_note_of_a_topic_that_is_gone_starts_no_model(cli: Cli) -> None:
    with open_store(cli.wiki) as store:
        assert bring_back_note(TOPIC, store)
    assert starts_a_model(cli, ("reap",))
    (cli.wiki / "topics" / f"{TOPIC}.md").unlink()

    assert not starts_a_model(cli, ("reap",))


def starts_a_model(cli: Cli, command: tuple[str, ...]) -> bool:
    """Whoever needs one takes the run lock first, and here it is taken."""
    with run_lock(cli.wiki / PRIVATE_FOLDER):
        said = cli(*command)
    return (said.code, said.out, said.err) != (0, QUIET[command], "")


def test_what_was_given_up_is_in_doctor_until_it_is_settled_and_once(tmp_path: Path) -> None:
    cli = Cli(golden_wiki.copy_to(tmp_path), llama__base_url=NOBODY)
    assert cli("reap").code == 0  # makes the store
    now = datetime.now(UTC)
    given_up(cli, now)
    with open_store(cli.wiki) as store:
        for number in range(2):
            at = now + timedelta(seconds=number)
            store.escalate(an_escalation(f"result:{PAGE.id}", number, at))
        for number in range(9):  # newer, of work that is gone: they take no place of what stands
            store.escalate(an_escalation(f"result:gone{number}", 0, now + timedelta(minutes=1)))

    lines = [line for line in cli("doctor").lines if "given up at" in line]
    assert len(lines) == 1
    assert lines[0].endswith("time 1")

    assert cli("retry", PAGE.id).code == 0
    assert "given up at" not in cli("doctor").out


def test_a_reaper_that_died_before_it_told_is_made_up_for_though_nothing_else_is_left(tmp_path: Path) -> None:
    with DecisionServer(golden_wiki.SCRIPT) as server:
        cli = Cli(golden_wiki.copy_to(tmp_path), llama__base_url=server.url)
        assert cli("reap").code == 0  # makes the store
        given_up(cli, datetime.now(UTC))
        with open_store(cli.wiki) as store:
            store.end_cycle(CYCLE, CycleState.STOPPED, datetime.now(UTC), only_from=frozenset({CycleState.OPEN}))

        said = cli("reap")

        assert (said.code, said.err.count("attention")) == (1, 1)
        assert f"wikikeeper retry {PAGE.id}" in " ".join(said.err.split())
        again = cli("reap")
        assert (again.code, again.err) == (0, "")


CYCLE = f"{TOPIC}#manual-1"
PAGE: Result = a_result(topic=TOPIC)


def an_escalation(subject: str, number: int, at: datetime) -> Escalation:
    identity = f"{subject}:{number}"
    return Escalation(id=identity, subject=subject, topic=TOPIC, detail=f"time {number}", raised=at, delivered=at)


def given_up(cli: Cli, now: datetime) -> None:
    """A page that was given up, of which nobody was told yet."""
    failure = a_failure(kind=FailureKind.SILENT, cause="silent", detail="silent again after 3 recoveries")
    with open_store(cli.wiki) as store:
        store.start_cycle(a_cycle(id=CYCLE, topic=TOPIC, tick="manual-1", started=now))
        store.add_results(CYCLE, [PAGE])
        store.send_result(PAGE.id, CYCLE, instead_of=None)
        claim = store.claim(PAGE.id, CYCLE, now, now)
        assert claim is not None
        assert store.give_up(PAGE.id, claim.fence, now, failure=failure)

"""Topic files through the command line: bad ones among good ones, deleted ones, ended ones, and those that are due."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.system.cli import Cli
from tests.system.decision_server import DecisionServer, Refusal

from wikikeeper.app import open_store

SENTENCE = "Quillstore writes its log in pages that are sealed before the commit is acknowledged, says page"


@pytest.fixture
def server() -> Iterator[DecisionServer]:
    with DecisionServer() as server:
        yield server


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    (tmp_path / "wiki" / "topics").mkdir(parents=True)
    return tmp_path / "wiki"


@pytest.fixture
def cli(wiki: Path, server: DecisionServer) -> Cli:
    return Cli(wiki, llama__base_url=server.url)


def test_a_bad_file_is_named_with_line_and_reason_and_stops_no_other(wiki: Path, cli: Cli) -> None:
    _topic(wiki, "good", "zone: Europe/Berlin", 'schedule: "0 7 * * *"')
    _topic(wiki, "other")
    bad = {
        "untitled.md": ("---\nfolder: pages\n---\nNews.\n", 1, "no title"),
        "cron.md": ("---\ntitle: C\nfolder: pages\nschedule: every day\n---\nNews.\n", 4, "a schedule has five fields"),
        "zone.md": (
            "---\ntitle: Z\nzone: Europe/Berlim\nfolder: pages\n---\nNews.\n",
            3,
            "did you mean Europe/Berlin?",
        ),
        "Good.md": ("---\ntitle: G\nfolder: pages\n---\nNews.\n", 1, "the same topic as topics/good.md"),
        # What rich would take for markup, and what it would stumble over.
        "marked.md": ("---\ntitle: M\nlinks: ['[/red] a']\n---\nNews.\n", 3, "'[/red] a' in `links` has a space in it"),
        "[b].md": ("---\nfolder: pages\n---\nNews.\n", 1, "no title"),
    }
    for name, (text, _, _) in bad.items():
        (wiki / "topics" / name).write_text(text)

    listed, ran, chosen, missing = cli("topics"), cli("run"), cli("run", "-t", "cron"), cli("run", "-t", "nope")

    assert (listed.code, ran.code) == (1, 1)
    for name, (_, line, reason) in bad.items():
        for said in (listed, ran):
            (told,) = [line for line in said.err.splitlines() if f"topics/{name}:" in line]
            assert f"topics/{name}:{line}: " in told
            assert reason in told
    assert [line.split()[0] for line in listed.lines if not line.startswith(" ")] == ["good", "other"]
    assert "last check never   last run never   next run 20" in listed.out
    assert "07:00 +0" in listed.out
    assert "next run by hand" in listed.out
    assert [line.split()[:3] for line in ran.lines if " done " in line] == [
        ["good", "done", "1"],
        ["other", "done", "1"],
    ]
    assert (chosen.code, chosen.out) == (2, "")
    assert chosen.error.startswith("error: topics/cron.md:4: a schedule has five fields")
    assert (missing.code, missing.error) == (2, "error: there is no topic 'nope'; topics here: good, other")


def test_only_the_chosen_topics_run(wiki: Path, cli: Cli, server: DecisionServer) -> None:
    for name in ("one", "two", "three"):
        _topic(wiki, name)

    said = cli("run", "--topic", "one", "-t", "three", "--json")

    assert [cycle["topic"] for cycle in said.json()["cycles"]] == ["one", "three"]
    assert server.calls == 2


def test_a_topic_whose_file_is_deleted_has_what_waits_of_it_withdrawn(
    wiki: Path, cli: Cli, server: DecisionServer
) -> None:
    _topic(wiki, "gone", pages=3)
    _topic(wiki, "kept")
    server.refusal = Refusal(501)
    cli("run", "-t", "gone")
    asked = server.calls
    server.refusal = None
    (wiki / "topics" / "gone.md").unlink()

    said = cli("run")

    assert said.code == 0
    assert "3 results withdrawn: their topics were deleted" in said.err
    assert server.calls == asked + 1, "only the topic that is left was asked about"
    assert "withdrawn" not in cli("run").err, "once"


def test_a_topic_ends_after_its_last_day_with_one_notice(wiki: Path, cli: Cli, server: DecisionServer) -> None:
    _topic(wiki, "over", "until: 2020-02-29", 'schedule: "0 7 * * *"')
    _topic(wiki, "lasting", "until: 2999-12-31")

    first, second, listed = cli("run"), cli("run", "--json"), cli("topics", "--json")

    assert (first.code, second.code, second.err) == (0, 0, "")
    assert first.err.splitlines() == ["over: ended, its last day was 2020-02-29"]
    assert server.calls == 1
    (over,) = [cycle for cycle in second.json()["cycles"] if cycle["topic"] == "over"]
    assert (over["state"], over["ended"], over["found"]) == (None, "2020-02-29", 0)
    assert ["over", "ended", "2020-02-29"] in [line.split()[:3] for line in first.lines]
    shown = {topic["topic"]: topic["next_run"] for topic in listed.json()["topics"]}
    assert shown == {"over": "ended 2020-02-29", "lasting": "by hand"}


def test_due_runs_what_is_due_once_and_says_what_was_missed(wiki: Path, cli: Cli, server: DecisionServer) -> None:
    _topic(wiki, "each-day", 'schedule: "0 7 * * *"')
    _topic(wiki, "leap-days", 'schedule: "0 0 29 2 *"')
    _topic(wiki, "by-hand")

    first = cli("run", "--due")
    assert (first.code, first.out) == (0, "No topic is due.\n"), "a topic that is seen first runs at its next tick"
    (wiki / "topics" / "each-day.md").rename(wiki / "topics" / "each-morning.md")
    with open_store(wiki) as store:  # as if it had been looked at then, and the machine been off since
        store.checked("each-morning", datetime.now(UTC) - timedelta(days=3), ran=False)
    second = cli("run", "--due", "--json")
    third = cli("run", "--due")

    (cycle,) = second.json()["cycles"]
    assert (cycle["topic"], cycle["state"], cycle["kept"]) == ("each-morning", "done", 1)
    assert cycle["problems"] == ["missed_ticks:2"]
    assert second.code == 0
    assert (third.code, third.out) == (0, "No topic is due.\n")
    assert server.calls == 1


def test_a_topic_that_nobody_has_heard_of_is_refused_and_one_whose_file_is_gone_or_bad_is_not(
    wiki: Path, cli: Cli
) -> None:
    for name in ("good", "gone"):
        _topic(wiki, name)
    cli("run")
    (wiki / "topics" / "gone.md").unlink()
    (wiki / "topics" / "bad.md").write_text("---\nfolder: pages\n---\nNews.\n")

    assert cli("run", "--due", "--topic", "typo").error == "error: there is no topic 'typo'; topics here: good"
    for command in (("runs",), ("what-if", "--keep", "0.7"), ("retry",)):
        said = cli(*command, "--topic", "typo")
        assert (said.code, said.out) == (2, ""), command
        assert said.error == "error: there is no topic 'typo'; topics here: good", command
        for known in ("good", "gone", "bad"):
            assert cli(*command, "--topic", known).code == 0, (command, known)


def test_a_wiki_without_topics_says_how_to_begin(wiki: Path, cli: Cli) -> None:
    for command in ("topics", "run"):
        said = cli(command)
        assert (said.code, said.out, said.err) == (0, "There is no topic yet: write topics/<name>.md.\n", "")


def _topic(wiki: Path, name: str, *lines: str, pages: int = 1) -> None:
    """A topic with saved pages of its own."""
    folder = wiki / "pages" / name
    folder.mkdir(parents=True)
    for number in range(pages):
        (folder / f"{number}.txt").write_text(f"{SENTENCE} {number} of {name}.")
    front = "\n".join([f"title: About {name}", f"folder: pages/{name}", *lines])
    (wiki / "topics" / f"{name}.md").write_text(f"---\n{front}\n---\nNews of Quillstore.\n")

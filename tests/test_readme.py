"""The README says what is: its commands exist, its examples work, its table is that of the settings, its links lead somewhere."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.readme_table import BEGIN, END
from typer.core import TyperGroup
from typer.exceptions import TyperException
from typer.main import get_command

from wikikeeper.cli.common import ATTENTION, INTERRUPTED, OK, UNUSABLE
from wikikeeper.cli.main import app
from wikikeeper.models import Topic
from wikikeeper.policy.topics import parse_topic
from wikikeeper.settings import CONFIG_FILE, load, markdown_table

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(wikikeeper [^`]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [text for kind, text in _BLOCK.findall(README) if kind == language]


def commands(text: str) -> Iterator[str]:
    """Every `wikikeeper ...` of a page, in its blocks and in its sentences, without comments and brackets."""
    for _, block in _BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("wikikeeper "):
                yield line.partition("#")[0].strip()
    yield from _INLINE.findall(_BLOCK.sub("", text))


def anchors(text: str) -> set[str]:
    """As GitHub makes them of headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text)}


def parsed(line: str) -> None:
    """Read a command line as the program would, without running anything. Raises what the program would say."""
    command, words = get_command(app), [word.strip("[]") for word in shlex.split(line)[1:]]
    while isinstance(command, TyperGroup):
        name, *words = words
        assert name in command.commands, f"there is no command {name}"
        command = command.commands[name]
    command.make_context(line, words)


ALL = [(page.name, line) for page in PAGES for line in dict.fromkeys(commands(page.read_text("utf-8")))]


@pytest.mark.parametrize(("page", "line"), ALL, ids=[f"{page}: {line}" for page, line in ALL])
def test_every_command_that_is_written_down_can_be_typed(page: str, line: str) -> None:
    parsed(line)


def test_commands_are_found_in_the_readme() -> None:
    """So that the test above cannot pass by reading nothing."""
    named = {line.split()[1] for line in commands(README)}

    assert named >= {"run", "topics", "runs", "show", "what-if", "done", "retry", "verify", "doctor"}


@pytest.mark.parametrize("line", ["wikikeeper rum", "wikikeeper run --topics x", "wikikeeper runs --outcome lovely"])
def test_a_command_that_cannot_be_typed_would_be_noticed(line: str) -> None:
    with pytest.raises((AssertionError, TyperException)):
        parsed(line)


def test_the_table_of_settings_is_made_from_the_settings() -> None:
    shown = README.partition(BEGIN)[2].partition(END)[0]

    assert shown == markdown_table(), "the settings have changed since the README was written: `make readme`"


def test_the_example_of_a_topic_is_one() -> None:
    [example] = blocks("markdown")

    assert isinstance(parse_topic("topics/quillstore.md", example.encode()), Topic)


def test_the_example_of_a_settings_file_is_one(tmp_path: Path) -> None:
    [example] = blocks("toml")
    (tmp_path / CONFIG_FILE).write_text(example, "utf-8")

    settings = load(tmp_path)

    assert settings.llama.model_fields_set == {"base_url", "model"}
    assert settings.searxng.url is not None


def test_the_variables_that_are_named_exist() -> None:
    known = {line.split("`")[3] for line in markdown_table().splitlines()[2:]}

    assert set(re.findall(r"WIKIKEEPER_\w+__\w+", README)) <= known


def test_the_exit_codes_are_those_of_the_program() -> None:
    [codes] = re.findall(r"^Exit codes: (.*?)\.\n\n", README, re.MULTILINE | re.DOTALL)

    assert re.findall(r"(?:^|; )(\d+) ", codes.replace("\n", " ")) == [
        str(c) for c in (OK, ATTENTION, UNUSABLE, INTERRUPTED)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_other_files_and_to_headings_lead_somewhere(page: Path) -> None:
    text = _BLOCK.sub("", page.read_text("utf-8"))

    for target in _LINK.findall(text):
        if re.match(r"https?://|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        assert there.exists(), f"{page.name} links to {target}, which is not there"
        assert not anchor or anchor in anchors(there.read_text("utf-8")), (
            f"{page.name} links to {target}: no such heading"
        )


def test_targets_of_make_that_are_named_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

    assert set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", README, re.MULTILINE))
    for pair in re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", README, re.MULTILINE):
        assert "".join(pair) in targets

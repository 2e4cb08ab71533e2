"""Research notes as files: written once, joined below, never overwritten."""

import re
import sqlite3
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from tests.workflows.world import World

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.fakes import ListedSource
from wikikeeper.models import Send, WriteNote
from wikikeeper.policy.notes import completed_key, entries
from wikikeeper.workflows.write_note import write_note

WRITE = WriteNote(topic="postgres")


def test_several_kept_results_make_one_note_with_their_quotes(world: World) -> None:
    world.pages(a="First fact.", b="Second fact.", c="Third fact.")

    world.cycle()

    [(key, note)] = world.notes().items()
    assert key.startswith("inbox/awaiting/2026-03-02-postgres-")
    front = yaml.safe_load(note.split("---\n")[1])
    assert front["type"] == "research-note"
    assert (front["topic"], front["sources"], front["keeper"], front["questions"]) == (
        "postgres",
        3,
        "scripted-1",
        "triage-1",
    )
    assert [note.count(f"> {fact} fact.") for fact in ("First", "Second", "Third")] == [1, 1, 1]


def test_writing_again_changes_no_byte(world: World) -> None:
    world.pages(a="First fact.", b="Second fact.")
    world.cycle()
    before = world.notes()

    world.run(Send(command=WRITE), Send(command=WRITE))
    world.cycle()

    assert world.notes() == before


def test_new_results_join_the_open_note_below_what_a_person_wrote(world: World) -> None:
    world.pages(a="First fact.")
    world.cycle()
    [key] = world.notes()
    path = world.root / key
    edited = path.read_text().replace("> First fact.", "> First fact.\n\nMy own remark, without a line end")
    path.write_text(edited.rstrip("\n"))

    world.pages(b="Second fact.")
    world.cycle()

    joined = world.notes()
    assert list(joined) == [key]
    mine = edited.rstrip("\n").replace("sources: 1", "sources: 2")
    assert joined[key].startswith(mine + "\n\n## B\n")
    assert "> Second fact." in joined[key]


def test_an_entry_that_a_person_deleted_is_not_written_again(world: World) -> None:
    world.pages(a="First fact.", b="Second fact.")
    world.cycle()
    [key] = world.notes()
    gone = world.result("a").id
    path = world.root / key
    head, *parts = path.read_text().split("\n## ")
    path.write_text(head + "".join(f"\n## {part}" for part in parts if gone not in part))

    world.pages(c="Third fact.")
    world.cycle()

    assert {entry.result for entry in entries(path.read_bytes())} == {world.result("b").id, world.result("c").id}
    assert "sources: 2" in path.read_text()


@pytest.mark.parametrize("how", ["completed", "deleted", "elsewhere"])
def test_after_a_note_was_moved_or_deleted_a_new_one_opens(world: World, how: str) -> None:
    world.pages(a="First fact.")
    world.cycle()
    [key] = world.notes()
    path = world.root / key
    if how == "completed":
        document = world.app.wiki.read(key)
        assert document is not None
        world.app.wiki.move(key, completed_key(key), document.etag)
    elif how == "elsewhere":
        path.rename(world.root / "elsewhere.md")
    else:
        path.unlink()

    world.pages(b="Second fact.")
    world.cycle()

    fresh = [k for k in world.notes() if k.startswith("inbox/awaiting/")]
    assert len(fresh) == 1
    assert fresh[0] != key
    assert {entry.result for entry in entries((world.root / fresh[0]).read_bytes())} == {world.result("b").id}


def test_a_note_that_was_written_but_not_marked_is_only_marked(world: World) -> None:
    """The writer died between the file and the marks: the entries are found in the file by their ids."""
    world.pages(a="First fact.")
    world.cycle()
    before = world.notes()
    _forget_marks(world)

    assert write_note(WRITE, world.app) == []

    assert world.notes() == before
    assert list(world.app.store.unnoted("postgres")) == []


def test_entries_of_a_note_that_moved_before_they_were_marked_are_not_written_twice(world: World) -> None:
    world.pages(a="First fact.", b="Second fact.")
    world.cycle()
    [key] = world.notes()
    moved = completed_key(key)
    (world.root / moved).parent.mkdir(parents=True)
    (world.root / key).rename(world.root / moved)
    _forget_marks(world)
    _forget_start(world)

    write_note(WRITE, world.app)

    assert list(world.notes()) == [moved]
    assert list(world.app.store.unnoted("postgres")) == []


def test_a_note_that_was_started_moved_and_not_marked_is_not_noted_again(world: World) -> None:
    """The writer died after it had started the note, and a person moved it before the next run."""
    world.pages(a="First fact.")
    world.cycle()
    [key] = world.notes()
    moved = completed_key(key)
    (world.root / moved).parent.mkdir(parents=True)
    (world.root / key).rename(world.root / moved)
    _forget_marks(world)

    write_note(WRITE, world.app)

    assert list(world.notes()) == [moved]
    assert list(world.app.store.unnoted("postgres")) == []


def test_two_writers_at_once_write_every_entry_once(world: World, tmp_path: Path) -> None:
    names = "abcdefghijklmnop"
    world.pages(**{name: f"Fact {name}." for name in names})
    world.cycle()
    [key] = world.notes()
    _forget_marks(world)
    (world.root / key).unlink()
    _forget_start(world)

    world.run(*(Send(command=WRITE) for _ in range(8)))

    ids = [entry.result for entry in entries((world.root / key).read_bytes())]
    assert len(ids) == len(set(ids)) == len(names)


def test_a_person_who_saves_while_we_write_loses_nothing(world: World) -> None:
    """The file changes between our reading and our writing: it is read again, and we add below."""
    world.pages(a="First fact.")
    world.cycle()
    [key] = world.notes()
    wiki = _EditedMeanwhile(world.root, key, b"\nSaved by a person.\n")

    world.app = replace(world.app, wiki=wiki)
    world.pages(b="Second fact.")
    world.cycle()

    text = (world.root / key).read_text()
    assert "Saved by a person." in text
    assert "> Second fact." in text
    assert wiki.edits == 1


def test_the_date_is_the_day_in_the_topics_zone(world: World) -> None:
    world.clock.advance(timedelta(hours=11, minutes=30))  # 23:30 UTC on the 2nd is 00:30 on the 3rd in Berlin
    world.pages(a="First fact.")

    world.cycle()

    [key] = world.notes()
    assert key.startswith("inbox/awaiting/2026-03-03-postgres-")


@pytest.mark.parametrize(
    "title",
    [
        'Release: 1.0 / "final" 🎉',
        "x" * 10_000,
        "\u202egnp.exe\u202c \u200f\u2067right to left\u2069",
        "# Heading ## [link](javascript:alert(1)) ![i](http://evil.example/?q) **bold** `code`",
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        "[[Private page]] #tag %%comment%% ==mark== $x$ ^block",
        "---\ntype: topic\n---\nbroken out",
        "<!-- result: 000000000000000000000000 -->",
        "\n> quote\n- list\n1. number\n    code\n***",
        "",
    ],
    ids=["punctuation", "long", "bidi", "markdown", "html", "wiki", "fence", "comment", "blocks", "empty"],
)
def test_a_hostile_title_ends_up_harmless_and_leaves_the_note_whole(world: World, title: str) -> None:
    world.pages(a="First fact.", b="Second fact.")
    first, *others = world.search.all[0].find()
    world.search.all = [ListedSource("s", [first.model_copy(update={"title": title}), *others])]

    world.cycle()

    [(key, note)] = world.notes().items()
    lines = note.splitlines()
    assert yaml.safe_load(note.split("---\n")[1])["sources"] == 2
    assert {entry.result for entry in entries((world.root / key).read_bytes())} == {
        world.result("a").id,
        world.result("b").id,
    }
    headings = [line for line in lines if line.startswith("#")]
    assert len(headings) == 3
    assert all(len(line) < 500 for line in lines)
    shown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(note.split("---\n", 2)[2])
    assert "\u202e" not in note
    assert "\u2067" not in note
    assert not re.search(r"<(script|img|table|code|pre|ul|ol|hr)", shown)
    assert all(target.startswith("https://example.org/") for target in re.findall(r'href="([^"]*)"', shown))
    assert "[[Private" not in note
    assert [a for a, b in pairwise(lines) if b.startswith("<!-- result:")] == headings[1:]


def _forget_marks(world: World) -> None:
    for result in list(world.app.store.results(topic="postgres")):
        _sql(world, "UPDATE results SET noted = NULL WHERE id = ?", result.id)


def _forget_start(world: World) -> None:
    _sql(world, "UPDATE topics SET open_note_started = 0 WHERE slug = ?", "postgres")


def _sql(world: World, statement: str, *values: str) -> None:

    with sqlite3.connect(world.root / ".wikikeeper" / "state.sqlite") as connection:
        connection.execute(statement, values)
    connection.close()


class _EditedMeanwhile(FolderWiki):
    """A person saves the note once, just before our first replace of it."""

    def __init__(self, root: Path, key: str, added: bytes) -> None:
        super().__init__(root)
        self._path, self._key, self._added = root / key, key, added
        self.edits = 0

    def replace(self, key: str, data: bytes, etag: str) -> str:
        if key == self._key and self.edits == 0:
            self.edits = 1
            self._path.write_bytes(self._path.read_bytes() + self._added)
        return super().replace(key, data, etag)

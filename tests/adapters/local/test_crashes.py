"""kill -9 at any moment: nothing that was acknowledged is lost, no file is torn."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.adapters.local.processes import whole_file

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore

REPOSITORY = Path(__file__).parents[3]
KILLS = 4


def killed_while(what: str, where: Path, luck: random.Random) -> list[int]:
    """Start the process, kill it some time after its first word, and return what it said was done."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.adapters.local.processes", what, str(where)],
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        env={"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'shared'}"},
    )
    assert child.stdout is not None
    with child, child.stdout:
        first = child.stdout.readline()
        time.sleep(luck.uniform(0, 0.15))
        child.kill()
        # A line that was cut off in the middle was not said.
        said = first + child.stdout.read()
    lines = said.split(b"\n")[:-1]
    assert lines, "the process did nothing"
    return [int(line) for line in lines]


@pytest.mark.parametrize("seed", range(KILLS))
def test_every_acknowledged_write_survives_the_process(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "state.db"
    acknowledged = killed_while("writes", path, random.Random(seed))
    store = SqliteRunStore(Database(path))

    assert {f"r{number:04}" for number in acknowledged} <= {result.id for result in store.results()}
    assert store.database.read("PRAGMA integrity_check")[0][0] == "ok"
    store.close()


@pytest.mark.parametrize("seed", range(KILLS))
def test_no_file_is_ever_torn_and_none_goes_back(tmp_path: Path, seed: int) -> None:
    acknowledged = killed_while("files", tmp_path, random.Random(seed))
    wiki = FolderWiki(tmp_path)

    for key in wiki.keys("notes/"):
        document = wiki.read(key)
        assert document is not None
        number = int(document.data[:8])
        assert document.data == whole_file(number)
        assert number >= max((said for said in acknowledged if f"notes/{said % 7}.md" == key), default=0)
    assert len(list(wiki.keys("notes/"))) >= min(7, len(acknowledged))
    for kept in (tmp_path / ".wikikeeper" / "replaced").rglob("*.md"):
        assert kept.read_bytes() == whole_file(int(kept.read_bytes()[:8]))


def test_what_a_killed_writer_left_behind_is_removed_by_the_next(tmp_path: Path) -> None:
    wiki = FolderWiki(tmp_path)
    wiki.create("notes/a.md", b"a")
    (tmp_path / "notes" / ".wikikeeper-0123456789abcdef").write_bytes(b"half a fi")
    assert list(wiki.keys("notes/")) == ["notes/a.md"]

    wiki.create("notes/b.md", b"b")
    assert sorted(path.name for path in (tmp_path / "notes").iterdir()) == ["a.md", "b.md"]

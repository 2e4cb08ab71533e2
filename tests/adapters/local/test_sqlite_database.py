"""The file under the run store: what is acknowledged is there, what goes wrong is said in one line."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from wikikeeper.adapters.local.sqlite_database import PAGE_ROWS, Database
from wikikeeper.adapters.local.sqlite_schema import MIGRATIONS
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.errors import Unusable
from wikikeeper.models import CycleState

NORMAL, FULL = 1, 2
"""What SQLite calls its levels of `synchronous`."""
ADD = "INSERT INTO topics (slug) VALUES (?)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "wiki" / ".wikikeeper" / "state.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    database = Database(path)
    yield database
    database.close()


def slugs(database: Database) -> list[str]:
    return [row["slug"] for row in database.read("SELECT slug FROM topics ORDER BY slug")]


def test_what_is_remembered_is_for_its_owner_alone(database: Database, path: Path) -> None:
    database.change(ADD, ("a",))

    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in path.parent.glob("state.db*")} == {
        "state.db": 0o600,
        "state.db-shm": 0o600,
        "state.db-wal": 0o600,
    }


def test_the_memory_stays_out_of_version_control(database: Database, path: Path) -> None:
    assert (path.parent / ".gitignore").read_text() == "*\n"


def test_a_commit_reaches_the_disk_before_it_is_acknowledged(database: Database) -> None:
    def settings(connection: sqlite3.Connection) -> list[object]:
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]

    assert database.write(settings) == ["wal", FULL]
    assert database.write(settings, durable=False) == ["wal", NORMAL]
    assert database.write(settings) == ["wal", FULL]


def test_what_is_committed_together_reaches_the_disk_if_any_of_it_must(database: Database) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        inside.set()
        go_on.wait(timeout=30)

    def level(connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA synchronous").fetchone()[0])

    with ThreadPoolExecutor(4) as pool:
        pool.submit(database.write, slow)
        assert inside.wait(timeout=30)
        levels = [pool.submit(database.write, level, durable=durable) for durable in (False, True, False)]
        while database._jobs.qsize() < 3:
            time.sleep(0.001)
        go_on.set()

        assert [answer.result() for answer in levels] == [FULL] * 3


def test_a_write_that_fails_takes_back_only_itself(database: Database) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(connection: sqlite3.Connection) -> None:
        inside.set()
        go_on.wait(timeout=30)

    def half(connection: sqlite3.Connection) -> None:
        connection.execute(ADD, ("half",))
        connection.execute(ADD, ("a",))

    with ThreadPoolExecutor(4) as pool:
        # While the first holds the writer the others gather, to be committed together.
        first = pool.submit(database.write, slow)
        assert inside.wait(timeout=30)
        good = [pool.submit(database.change, ADD, (slug,)) for slug in "ab"]
        while database._jobs.qsize() < 2:
            time.sleep(0.001)
        bad = pool.submit(database.write, half)
        while database._jobs.qsize() < 3:
            time.sleep(0.001)
        go_on.set()

        assert [answer.result() for answer in good] == [True, True]
        with pytest.raises(sqlite3.IntegrityError):
            bad.result()
        first.result()
    assert slugs(database) == ["a", "b"]


def test_an_error_in_a_write_is_raised_where_it_was_asked_for(database: Database) -> None:
    def faulty(connection: sqlite3.Connection) -> None:
        connection.execute(ADD, ("a",))
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        database.write(faulty)
    assert slugs(database) == []


def test_a_reader_sees_what_was_acknowledged_and_holds_nothing_back(database: Database) -> None:
    many = [(f"{number:04}",) for number in range(PAGE_ROWS + 1)]
    database.write(lambda connection: connection.executemany(ADD, many).rowcount)
    listing = database.listing("topics", order=("slug", "slug"))
    next(listing)
    database.change(ADD, ("9999",))

    # A checkpoint empties the log only when no reader holds a snapshot that needs it.
    other = sqlite3.connect(database.path)
    assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    other.close()
    assert [row["slug"] for row in listing][-1] == "9999"


def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(Unusable, match="cannot be written"):
        database.read("DELETE FROM topics RETURNING slug")


def test_closing_finishes_what_is_queued(path: Path) -> None:
    database = Database(path)
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(database.change, ADD, (f"{number:03}",)) for number in range(200)]
        answers[0].result()
        database.close()
        acknowledged = sum(answer.exception() is None for answer in answers)

    again = Database(path)
    assert len(slugs(again)) == acknowledged
    again.close()


def test_a_closed_database_says_so(path: Path) -> None:
    database = Database(path)
    database.close()
    database.close()

    with pytest.raises(RuntimeError, match="closed"):
        database.change(ADD, ("a",))
    with pytest.raises(RuntimeError, match="closed"):
        slugs(database)


def test_closing_leaves_one_file(path: Path) -> None:
    database = Database(path)
    database.change(ADD, ("a",))
    slugs(database)
    database.close()

    assert [file.name for file in path.parent.glob("state.db*")] == ["state.db"]


def test_a_fork_is_told_to_open_its_own(database: Database) -> None:
    child = os.fork()
    if child == 0:
        try:
            database.change(ADD, ("a",))
        except RuntimeError:
            os._exit(7)
        os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


# -- what a person can mend


def test_a_full_disk_is_said_and_what_was_acknowledged_stays(database: Database) -> None:
    database.change(ADD, ("before",))
    pages = database.write(lambda connection: int(connection.execute("PRAGMA page_count").fetchone()[0]))
    database.write(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone() and None)

    with pytest.raises(Unusable, match=r"state\.db: the disk is full"):
        database.change(ADD, ("x" * 1_000_000,))
    assert slugs(database) == ["before"]

    database.write(lambda connection: connection.execute("PRAGMA max_page_count = 100000").fetchone() and None)
    assert database.change(ADD, ("after",))


def test_a_file_that_another_process_holds_is_said_after_the_patience(path: Path) -> None:
    database = Database(path, patience=timedelta(milliseconds=50))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(Unusable, match=r"state\.db: another process holds it; stop that one"):
        database.change(ADD, ("a",))
    other.execute("ROLLBACK")
    other.close()
    assert database.change(ADD, ("a",))
    database.close()


def test_a_file_that_is_no_database_is_said(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"once upon a time " * 1000)

    with pytest.raises(Unusable, match=r"state\.db: it is not a database; put back a backup"):
        Database(path)
    assert path.read_bytes() == b"once upon a time " * 1000


def test_a_damaged_file_is_said(path: Path) -> None:
    database = Database(path)
    many = [(f"{number:03}" * 20,) for number in range(500)]
    database.write(lambda connection: connection.executemany(ADD, many).rowcount)
    database.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))

    with pytest.raises(Unusable, match=r"state\.db: it is (damaged|not a database)"):  # noqa: PT012 - at either
        damaged = Database(path)
        try:
            slugs(damaged)
        finally:
            damaged.close()


def test_a_folder_in_the_place_of_the_file_is_said(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(Unusable, match=r"state\.db cannot be opened: "):
        Database(path)


def test_a_place_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Unusable, match=r"file/\.wikikeeper cannot be made: "):
        Database(tmp_path / "file" / ".wikikeeper" / "state.db")


# -- versions


def test_a_file_of_a_newer_version_is_left_alone(path: Path) -> None:
    Database(path).close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()

    newest = len(MIGRATIONS)
    with pytest.raises(
        Unusable, match=rf"written by a newer wikikeeper \(schema {newest + 1}, this one knows {newest}\)"
    ):
        Database(path)


FIRST: dict[str, dict[str, str | int | bytes]] = {
    "topics": {"slug": "a", "last_check": 5, "open_note": "k", "open_note_started": 1, "note_due": 7},
    "cycles": {
        "id": "a#1", "topic": "a", "tick": "1", "state": "draining", "started": 1, "fence": 2, "problems": '["x"]',
        "found": 3, "new": 2, "sent": 2, "cap": 9, "calls": 1, "cap_reached": 0, "fetched": 1, "answered": 1, "refusals": 0,
    },
    "results": {
        "id": "r1", "topic": "a", "canonical": "https://example.org/", "revision": 1, "title": "größer",
        "about": '{"url":"https://example.org/","origin":"search"}', "found": 2, "state": "judging", "cycle": "a#1",
        "fence": 1, "lease_until": 9, "call_fence": 1, "nonresponses": 1, "attempts": 2, "failures": "[]",
    },
    "texts": {"topic": "a", "text_hash": "5f", "owner": "r1"},
    "pages": {"text_hash": "5f", "stored": 1, "paragraphs": b"\x00", "expires": 10},
    "runs": {"id": "r1-1", "topic": "a", "started": 1, "outcome": "lost", "body": "{}", "expires": 10},
    "alerts": {"subject": "model:d", "cause": "unreachable", "detail": "start it", "raised": 1},
    "slots": {"slot": 1, "fence": 7, "holder": "host:1", "lane": "keeper", "until": 9},
}  # fmt: skip
"""A row of each table of the first version."""


def rows_of(connection: sqlite3.Connection, table: str) -> list[dict[str, object]]:
    connection.row_factory = sqlite3.Row
    return [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]


@pytest.fixture
def old(path: Path) -> sqlite3.Connection:
    """A file as the first version left it."""
    path.parent.mkdir(parents=True)
    made = sqlite3.connect(path, isolation_level=None)
    for statement in MIGRATIONS[0]:
        made.execute(statement)
    made.execute("PRAGMA user_version = 1")
    for table, row in FIRST.items():
        names, places = ", ".join(row), ", ".join(f":{name}" for name in row)
        made.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", row)
    return made


def test_a_file_of_the_first_version_becomes_the_newest_and_loses_nothing(path: Path, old: sqlite3.Connection) -> None:
    made = {row["name"] for row in rows_of(old, "sqlite_schema") if row["type"] == "table"}
    assert made == set(FIRST), "each table of the first version has a row here"
    before = {table: rows_of(old, table) for table in FIRST}
    old.close()

    Database(path).close()

    migrated, fresh = sqlite3.connect(path), path.parent / "fresh.db"
    for table, [row] in before.items():
        [after] = rows_of(migrated, table)
        assert after.items() >= row.items()
        assert {after[name] for name in after.keys() - row.keys()} <= {None}, "what is new is not known"
    assert migrated.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    assert migrated.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    Database(fresh).close()
    new = sqlite3.connect(fresh)
    tables, fresh_tables = (
        {row["name"]: row["sql"] for row in rows_of(connection, "sqlite_schema")} for connection in (migrated, new)
    )
    assert tables == fresh_tables
    migrated.close()
    new.close()


def test_work_of_the_first_version_goes_on_in_the_newest(path: Path, old: sqlite3.Connection) -> None:
    """Claimed, called and silent then; freed, claimed and called now."""
    old.close()
    store = SqliteRunStore(Database(path))
    [result], [cycle] = store.results(), store.cycles()
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert (result.title, result.call_started, cycle.active) == ("größer", None, None)
    assert store.free("r1", 1, now, stay_in_cycle=True)
    claim = store.claim("r1", "a#1", now, now + timedelta(minutes=1))
    assert claim is not None
    assert store.begin_call(claim, "a#1", now, now + timedelta(minutes=1)) is not None
    store.close()


def test_a_search_that_expired_long_ago_is_not_begun_again_by_a_new_version(
    path: Path, old: sqlite3.Connection
) -> None:
    old.execute("UPDATE cycles SET state = 'expired', ended = 5, reason = 'its worker went silent', expires = 9")
    old.close()

    store = SqliteRunStore(Database(path))
    assert list(store.cycles(states=frozenset({CycleState.OPEN, CycleState.EXPIRED, CycleState.DRAINING}))) == []
    [cycle] = store.cycles()
    assert (cycle.state, cycle.reason) == (CycleState.STOPPED, "its worker went silent")
    assert not store.start_cycle(cycle.model_copy(update={"state": CycleState.OPEN}))
    store.close()


def test_opening_again_migrates_nothing(path: Path) -> None:
    Database(path).close()
    before = path.read_bytes()
    Database(path).close()

    assert path.read_bytes() == before


def test_several_first_starts_at_once_make_one_database(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        databases = list(pool.map(lambda _: Database(path), range(8)))

    assert [database.change(ADD, (f"{number}",)) for number, database in enumerate(databases)] == [True] * 8
    assert slugs(databases[0]) == [str(number) for number in range(8)]
    for database in databases:
        database.close()

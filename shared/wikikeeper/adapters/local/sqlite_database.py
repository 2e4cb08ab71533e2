"""One SQLite file: one writer thread with group commit, readers beside it, and errors that a person can act on.

 caller A ─ write(work) ─┐                    ┌─ savepoint, work A, release
 caller B ─ write(work) ─┼─▶ queue ─▶ writer ─┼─ savepoint, work B, release      one BEGIN IMMEDIATE … COMMIT,
 caller C ─ write(work) ─┘                    └─ savepoint, work C, release      one flush to disk, then all answers

A caller has its answer only after the commit, so a crash at any moment takes back no write that was acknowledged. A
write that fails takes only itself back. SQLite's own busy handler is unfair among threads (waits of a second were
measured); with one writer per process it only ever arbitrates between processes.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from wikikeeper.adapters.local.private_folder import private_folder
from wikikeeper.adapters.local.sqlite_schema import migrate
from wikikeeper.errors import Unusable

T = TypeVar("T")
SqlValue = str | int | float | bytes | None
Work = Callable[[sqlite3.Connection], T]

BUSY_PATIENCE = timedelta(seconds=30)
"""How long another process may hold the file. Our own transactions take milliseconds, a backup tool's take seconds."""
MOST_PER_COMMIT = 256
"""Writes that share one flush: far more than there are threads, and still some 30 ms for the one that waits longest."""
PAGE_ROWS = 200
"""Rows per read of a listing: a few hundred kB of results, and no read lasts long enough to hold back a checkpoint."""
WAL_RETRY = 0.02
"""Seconds between tries to switch a new file to WAL while another process is doing the same."""

_MENDING = {
    sqlite3.SQLITE_FULL: "the disk is full; make room and start again, nothing that was recorded is lost",
    sqlite3.SQLITE_BUSY: "another process holds it; stop that one (a backup, a database browser?) and start again",
    sqlite3.SQLITE_LOCKED: "another process holds it; stop that one (a backup, a database browser?) and start again",
    sqlite3.SQLITE_CORRUPT: "it is damaged; put back a backup, or move it away to start with an empty memory",
    sqlite3.SQLITE_NOTADB: "it is not a database; put back a backup, or move it away to start with an empty memory",
    sqlite3.SQLITE_READONLY: "it cannot be written; give yourself the right to write to it and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; give yourself the right to read and write it and its folder",
    sqlite3.SQLITE_PERM: "it cannot be opened; give yourself the right to read and write it and its folder",
    sqlite3.SQLITE_IOERR: "the disk does not answer as it should; check the disk and its free space",
    sqlite3.SQLITE_NOMEM: "there is no memory left; end other programs and start again",
}
_PRIMARY_CODE = 0xFF
"""The low byte of an extended SQLite code is the kind of error."""


@dataclass(frozen=True)
class _Job:
    work: Work[Any]
    answer: Future[Any]
    durable: bool


class Database:
    """An open database, safe for all threads of the process. Open it after a fork, never before.

    Raises Unusable, in one line with what to do, when the file cannot be opened, is damaged, locked by another process
    for longer than `patience`, out of disk, or written by a newer wikikeeper.
    """

    def __init__(self, path: Path, *, patience: timedelta = BUSY_PATIENCE) -> None:
        self.path = path.absolute()
        self._patience = patience
        self._process = os.getpid()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._readers: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self._flushing = True
        private_folder(self.path.parent)
        with self._explaining():
            self._writer = self._open_writer()
        # A daemon: a program that ends without close() must end. What is still queued then was never acknowledged.
        self._thread = threading.Thread(target=self._serve, name="wikikeeper-writer", daemon=True)
        self._thread.start()

    def write(self, work: Work[T], *, durable: bool = True) -> T:
        """Run `work` in a transaction of the writer and return what it returns, after the commit.

        `work` runs on the writer's thread: it should only execute statements. What it raises is raised here, and
        nothing of it is kept. Not `durable`: it survives the end of the process at any moment, but the last of it may
        be lost when the power fails. In return it does not wait for the disk.
        """
        answer: Future[T] = Future()
        with self._lock:
            self._check()
            self._jobs.put(_Job(work, answer, durable))
        return answer.result()

    def change(self, sql: str, values: Sequence[SqlValue] | dict[str, SqlValue] = (), *, durable: bool = True) -> bool:
        """One conditional statement. True if it changed a row."""
        return self.write(lambda connection: connection.execute(sql, values).rowcount > 0, durable=durable)

    def read(self, sql: str, values: Sequence[SqlValue] = ()) -> list[sqlite3.Row]:
        """All rows of a short query, from a snapshot that has every acknowledged write."""
        with self._explaining(), self._reader() as connection:
            rows: list[sqlite3.Row] = connection.execute(sql, values).fetchall()
            return rows

    def listing(
        self,
        table: str,
        *,
        where: Sequence[str] = (),
        values: Sequence[SqlValue] = (),
        order: tuple[str, str],
        newest_first: bool = False,
    ) -> Iterator[sqlite3.Row]:
        """Rows in the order of two columns that together are unique and never change, read in pages as they are needed.

        Between pages nothing is held open, so a slow consumer hinders nobody; it sees each row as its page found it.
        """
        comparison, direction = ("<", "DESC") if newest_first else (">", "ASC")
        first, second = order
        after: tuple[SqlValue, ...] = ()
        while True:
            conditions = [*where, f"({first}, {second}) {comparison} (?, ?)"] if after else list(where)
            clause = f"WHERE {' AND '.join(conditions)}" if conditions else ""
            ordered = f"ORDER BY {first} {direction}, {second} {direction} LIMIT {PAGE_ROWS}"
            sql = f"SELECT * FROM {table} {clause} {ordered}"  # noqa: S608 - names of ours, values are bound
            rows = self.read(sql, (*values, *after))
            yield from rows
            if len(rows) < PAGE_ROWS:
                return
            after = (rows[-1][first], rows[-1][second])

    def close(self) -> None:
        """Finish what is queued, then let go of the file. Closing twice is no error."""
        with self._lock:
            if self._closed:
                return
            self._check()
            self._closed = True
            self._jobs.put(None)
        self._thread.join()
        with self._lock:
            readers, self._readers = self._readers, []
        for connection in (*readers, self._writer):
            connection.close()

    # -- the writer's thread

    def _serve(self) -> None:
        open_for_work = True
        while open_for_work:
            batch = [self._jobs.get()]
            with suppress(Empty):
                while len(batch) < MOST_PER_COMMIT and batch[-1] is not None:
                    batch.append(self._jobs.get_nowait())
            open_for_work = batch[-1] is not None
            self._commit([job for job in batch if job is not None])

    def _commit(self, batch: list[_Job]) -> None:
        if not batch:
            return
        try:
            self._flush_commits(flush=any(job.durable for job in batch))
            self._writer.execute("BEGIN IMMEDIATE")
            outcomes = [self._attempt(job.work) for job in batch]
            self._writer.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - it belongs to the callers, who wait for ever if unanswered
            # A rollback that fails too leaves the transaction open: then the next BEGIN fails, and comes here again.
            with suppress(sqlite3.Error):
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
            outcomes = [(None, error)] * len(batch)
        for job, (value, failure) in zip(batch, outcomes, strict=True):
            if failure is None:
                job.answer.set_result(value)
            else:
                job.answer.set_exception(self._explained(failure))

    def _flush_commits(self, *, flush: bool) -> None:
        if flush == self._flushing:
            return
        # FULL: a commit is on the disk. NORMAL: it is with the system, and on the disk with the next FULL one or the
        # next checkpoint; the log is written in order, so no durable commit ever depends on one that is missing.
        self._writer.execute(f"PRAGMA synchronous = {'FULL' if flush else 'NORMAL'}")
        self._flushing = flush

    def _attempt(self, work: Work[Any]) -> tuple[Any, Exception | None]:
        self._writer.execute("SAVEPOINT job")
        try:
            value = work(self._writer)
        # Whatever it is, it is raised again in the caller's thread, where it belongs.
        except Exception as error:
            if not self._writer.in_transaction:
                raise  # SQLite gave up the whole transaction (a full disk does that): the batch fails as one.
            self._writer.execute("ROLLBACK TO job")
            self._writer.execute("RELEASE job")
            return None, error
        self._writer.execute("RELEASE job")
        return value, None

    # -- connections

    def _open_writer(self) -> sqlite3.Connection:
        # Made by us so that it is private from its first byte; SQLite gives the files beside it the same rights.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = self._connect("rw")
        try:
            self._use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            # On macOS a plain fsync stops at the disk's cache; elsewhere this does nothing.
            connection.execute("PRAGMA fullfsync = ON")
            migrate(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._patience.total_seconds(),
            isolation_level=None,  # transactions are begun and ended here, not by the driver's guess
            check_same_thread=False,  # a connection is with one thread at a time, but not always the same
        )
        connection.row_factory = sqlite3.Row
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        # The switch needs the file for itself and does not always wait for it, so two first starts can collide.
        last_try = time.monotonic() + self._patience.total_seconds()
        mode = None
        while mode is None:
            try:
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= last_try:
                    raise
                time.sleep(WAL_RETRY)
        if mode != "wal":
            raise Unusable(
                f"{self.path} is on a disk that cannot be shared safely (a network folder?); use a local one"
            )

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._check()
            connection = self._readers.pop() if self._readers else None
        if connection is None:
            connection = self._connect("ro")
        try:
            yield connection
        finally:
            with self._lock:
                kept = not self._closed
                if kept:
                    self._readers.append(connection)
            if not kept:
                connection.close()

    # -- errors

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(f"{self.path} was opened before a fork; open it in the process that uses it")
        if self._closed:
            raise RuntimeError(f"{self.path} is closed")

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            explained = self._explained(error)
            if explained is error:
                raise
            raise explained from error
        except OSError as error:
            raise Unusable(f"{self.path} cannot be opened: {os.strerror(error.errno or 0)}") from error

    def _explained(self, error: Exception) -> Exception:
        """What a person can mend becomes Unusable; a wrong statement of ours stays what it is."""
        code = getattr(error, "sqlite_errorcode", None)
        if not isinstance(error, sqlite3.Error) or code is None:
            return error
        mending = _MENDING.get(code & _PRIMARY_CODE)
        return error if mending is None else Unusable(f"{self.path}: {mending}")

"""What the tests run in processes of their own: to race with them, and to kill them."""

import itertools
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

from tests.adapters.contracts.samples import CYCLE, HASH, LEASE, NOW, TOPIC, a_cycle, a_result, add

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.gate import SqliteGate
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.models import Lane, Permit

THREADS = 4
ITEMS = 40


def race(path: Path, cap: int, start: Barrier) -> dict[str, list[int]]:
    """Try to win every race of the store on four threads. Returns which rounds were won."""
    start.wait(timeout=60)
    store = SqliteRunStore(Database(path))
    store.start_cycle(a_cycle(cap=cap))
    won: dict[str, list[int]] = {"claim": [], "call": [], "note": [], "text": [], "tick": [], "add": []}

    def compete(thread: int) -> None:
        for item in range(ITEMS):
            result = f"r{item:04}"
            if add(store, a_result(item)):
                won["add"].append(item)
            store.send_result(result, CYCLE, instead_of=None)
            claim = store.claim(result, CYCLE, NOW, NOW + LEASE)
            if claim is not None:
                won["claim"].append(item)
                if store.begin_call(claim, CYCLE, NOW, NOW + LEASE) is not None:
                    won["call"].append(item)
            if store.set_note_due(f"{TOPIC}-{item}", NOW):
                won["note"].append(item)
            me = f"{path}-{id(store)}-{thread}"
            if store.claim_text(TOPIC, f"{HASH}{item}", me) == me:
                won["text"].append(item)
            if store.start_cycle(a_cycle(id=f"c{item}")):
                won["tick"].append(item)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(compete, range(THREADS)))
    store.close()
    return won


def pass_gate(path: Path, log: Path, limit: int, rounds: int, start: Barrier) -> int:
    """Pass the gate on four threads, each of a lane of its own, writing a line at each entry and each exit. Returns how often it was passed."""
    start.wait(timeout=60)
    database = Database(path)
    gate = SqliteGate(database, limit, calls_per_permit=3)

    def work(thread: int) -> int:
        passed = 0
        for _ in range(rounds):
            permit = gate.acquire(list(Lane)[thread], f"t{thread}", timedelta(seconds=60), timedelta(seconds=60))
            if isinstance(permit, Permit):
                with log.open("ab", buffering=0) as lines:
                    lines.write(b"+\n")
                    lines.write(b"-\n")
                passed += gate.release(permit)
        return passed

    with ThreadPoolExecutor(THREADS) as pool:
        total = sum(pool.map(work, range(THREADS)))
    database.close()
    return total


def acknowledge_writes(path: Path) -> None:
    """Add results on several threads for ever, and print the number of each one that was acknowledged."""
    store = SqliteRunStore(Database(path))
    numbers = itertools.count()

    def adding(_: int) -> None:
        for number in numbers:
            if add(store, a_result(number)):
                os.write(sys.stdout.fileno(), b"%d\n" % number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(adding, range(THREADS)))


def acknowledge_files(root: Path) -> None:
    """Create and replace files for ever; print each version that was acknowledged."""
    wiki = FolderWiki(root)
    for number in itertools.count():
        key = f"notes/{number % 7}.md"
        there = wiki.read(key)
        data = whole_file(number)
        if there is None:
            wiki.create(key, data)
        else:
            wiki.replace(key, data, there.etag)
        os.write(sys.stdout.fileno(), b"%d\n" % number)


def whole_file(number: int) -> bytes:
    """A file that shows whether it is whole: its number at both ends, and a length that follows from it."""
    return b"%08d" % number + b"x" * (50_000 + number % 1000) + b"%08d" % number


if __name__ == "__main__":
    {"writes": acknowledge_writes, "files": acknowledge_files}[sys.argv[1]](Path(sys.argv[2]))

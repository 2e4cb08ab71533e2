"""Listings along the indexes: keys from the index, items from the table.

An index follows the table a moment later. So it only says what there is; in which state it is, is read consistently.
What this process added itself and the index does not show yet is put in where it belongs.
"""

import heapq
import itertools
import threading
from collections.abc import Iterator, Sequence

from wikikeeper.adapters.aws.dynamodb_items import OPEN_SHARDS, OPENED, at, open_partition, opened_key, result_key
from wikikeeper.adapters.aws.dynamodb_table import BATCH, Item, Key, Table
from wikikeeper.models import Result

Entry = tuple[str, Key]
"""Place in the order, and where the item lies."""

OPEN, LISTED = "open", "listed"
"""Names of the indexes and of their partition keys."""


def entries(
    table: Table,
    index: str,
    partition: str,
    *,
    keeping: str | None = None,
    values: dict[str, str] | None = None,
    newest_first: bool = False,
) -> Iterator[Entry]:
    """The keys of one partition of an index in order, read as they are needed."""
    found = table.query(
        f"#{index} = :partition",
        {"partition": partition, **(values or {})},
        index=index,
        keeping=keeping,
        newest_first=newest_first,
        page=BATCH,
    )
    return ((str(item["at"]), Key(str(item["pk"]), str(item["sk"]))) for item in found)


def items(table: Table, listed: Iterator[Entry]) -> Iterator[Item]:
    """The items themselves, as they are now; what is gone is left out."""
    while page := list(itertools.islice(listed, BATCH)):
        yield from table.read([key for _, key in page])


class OpenResults:
    """The results that are not done with, by topic, in the order in which they were found. Threads may share it."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._opened: set[str] = set()
        self._fresh: dict[str, set[Entry]] = {}

    def announce(self, topic: str) -> None:
        """Make sure that listings over all topics ask for this one. Before its first result is put."""
        with self._lock:
            if topic in self._opened:
                return
        if self._table.get(opened_key(topic)) is None:
            key = opened_key(topic)
            self._table.put_new({"pk": key.pk, "sk": key.sk})
        with self._lock:
            self._opened.add(topic)

    def added(self, result: Result) -> None:
        with self._lock:
            self._fresh.setdefault(result.topic, set()).add((at(result.found, result.id), result_key(result.id)))

    def listed(self, topic: str | None) -> Iterator[Item]:
        topics = [topic] if topic is not None else [str(item["sk"]) for item in self._announced()]
        return items(self._table, heapq.merge(*(self._of_topic(each) for each in topics)))

    def _announced(self) -> Iterator[Item]:
        return self._table.query("#pk = :opened", {"opened": OPENED})

    def _of_topic(self, topic: str) -> Iterator[Entry]:
        shards = [entries(self._table, OPEN, open_partition(topic, shard)) for shard in range(OPEN_SHARDS)]
        with self._lock:
            fresh = sorted(self._fresh.get(topic, ()))
        before: Entry | None = None
        for entry in heapq.merge(*shards, fresh):
            if entry == before:
                self._forget(topic, [entry])  # the index has caught up
            else:
                yield entry
            before = entry

    def done(self, result: Result) -> None:
        """It has left the index, or will: no need to remember that it entered."""
        with self._lock:
            if result.topic in self._fresh:
                self._forget_unlocked(result.topic, [(at(result.found, result.id), result_key(result.id))])

    def _forget(self, topic: str, known: Sequence[Entry]) -> None:
        with self._lock:
            self._forget_unlocked(topic, known)

    def _forget_unlocked(self, topic: str, known: Sequence[Entry]) -> None:
        self._fresh.get(topic, set()).difference_update(known)

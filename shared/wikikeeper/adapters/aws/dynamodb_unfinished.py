"""Which results are not done with: found without an index that every result would have to pay for.

Each result is named in a list before it is put, one item for all that a cycle found. A list is read consistently, so
nothing is hidden while an index catches up. What a cycle leaves unfinished, few if any, then gets an index entry.

    add: list ─ put, put, ... ─ look at the list again
                                    └ swept or gone (this process was frozen): gives its results `open` itself
    sweep: what is done with leaves its list; and once the cycle is over
           unfinished, without `open` ─▶ gets it, and the list stays (`since`)
           all have it, for longer than an index is late ─▶ the list is deleted
           named and not there ─▶ the list stays until nobody can live who would still put it

A crash between any two leaves a list that names more than is unfinished, never less. Which state a result is in, is read
from its item.
"""

import json
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from wikikeeper.adapters.aws.dynamodb_items import (
    BETWEEN,
    FOUND,
    OPENED,
    cycle_key,
    micros,
    moment,
    open_partition,
    opened_key,
    present,
    result_key,
    unpacked,
)
from wikikeeper.adapters.aws.dynamodb_listing import OPEN, entries, items
from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Scalar, Table
from wikikeeper.adapters.aws.packing import pack
from wikikeeper.models import UNFINISHED_CYCLES, CycleState, Result, ResultState

LISTED = 500
"""Most results that a list names: it is written as a whole, and 500 ids take 8 kB."""
LATE = timedelta(minutes=1)
"""Longer than an index is ever behind its table: that is mostly far less than a second."""
FROZEN = timedelta(hours=1)
"""Longer than a function can live, frozen or not: then nobody puts any more what a list names."""

_STATES: dict[str, Scalar] = {
    state.value: state for state in (ResultState.WAITING, ResultState.JUDGING, ResultState.PARKED, ResultState.KEPT)
}
_UNFINISHED = (
    "(#state IN (:waiting, :judging, :parked) OR (#state = :kept AND attribute_not_exists(#noted)))"
    " AND attribute_not_exists(#open)"
)


class Unfinished:
    """Results from before they are put until they are discarded, folded, withdrawn or noted. Threads may share it."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._opened: set[str] = set()

    # -- new ones

    def name(self, cycle: str | None, results: Sequence[Result]) -> list[Key]:
        """Put lists that name them. Before the first of them is put."""
        lists = []
        for topic in dict.fromkeys(result.topic for result in results):
            names = [result.id for result in results if result.topic == topic]
            for start in range(0, len(names), LISTED):
                key = _found_key(topic, secrets.token_hex(8))
                self._table.put_new(_found_item(key, cycle, names[start : start + LISTED]))
                lists.append(key)
        return lists

    def put(self, lists: Sequence[Key], results: Sequence[Result]) -> None:
        """They are there now. Lists that were not swept before this look are swept after it, and name them still."""
        if not results or all(found is not None and "since" not in found for found in map(self._table.get, lists)):
            return
        for result in results:
            self._open(result.topic, result.id)

    # -- reading

    def listed(self, topic: str | None) -> Iterator[Item]:
        """In the order in which they were found; some of them may be done with."""
        # Lists first: what has left its list by then is in the index.
        names = {name for found in self._lists(topic) for name in _named_in(found)}
        topics = [topic] if topic is not None else [str(item["sk"]) for item in self._announced()]
        for each in topics:
            names.update(key.sk for _, key in entries(self._table, OPEN, open_partition(each)))
        found = items(self._table, (result_key(name) for name in names))
        return iter(sorted(found, key=lambda item: str(item["at"])))

    def _lists(self, topic: str | None) -> Iterator[Item]:
        if topic is None:
            return self._table.query("#pk = :found", {"found": FOUND})
        of_topic = {"found": FOUND, "topic": _found_prefix(topic)}
        return self._table.query("#pk = :found AND begins_with(#sk, :topic)", of_topic)

    def _announced(self) -> Iterator[Item]:
        return self._table.query("#pk = :opened", {"opened": OPENED})

    # -- the sweep

    def sweep(self, now: datetime) -> None:
        """Shorten lists, and delete those that nothing needs any more. Two sweeps at once do no harm."""
        for found in self._lists(None):
            self._sweep(found, now)

    def _sweep(self, found: Item, now: datetime) -> None:
        key, names = Key(str(found["pk"]), str(found["sk"])), _named_in(found)
        there = {str(item["sk"]): item for item in items(self._table, map(result_key, names))}
        left = [name for name in names if name not in there or not _done(there[name])]
        changes: dict[str, Scalar | None] = {} if len(left) == len(names) else {"results": _packed_ids(left)}
        closed: list[Item] = []
        if not left:
            self._table.delete(key)
            return
        if self._over(found):
            closed = [there[name] for name in left if name in there and "open" not in there[name]]
            missing = any(name not in there for name in left)
            if closed or "since" not in found:
                changes["since"] = micros(now)
            elif now - moment(found["since"]) >= (FROZEN if missing else LATE):
                self._table.delete(key)
                return
        if changes:
            self._table.change(key, changes, "attribute_exists(#pk)")
        # After `since`: a crash in between makes the list stay for longer, not for less.
        for item in closed:
            self._open(str(item["topic"]), str(item["sk"]))

    def _over(self, found: Item) -> bool:
        if "cycle" not in found:
            return True
        cycle = self._table.get(cycle_key(str(found["cycle"])))
        return cycle is None or CycleState(str(cycle["state"])) not in UNFINISHED_CYCLES

    def _open(self, topic: str, result: str) -> None:
        self._announce(topic)
        self._table.change(result_key(result), {"open": open_partition(topic)}, _UNFINISHED, _STATES)

    def _announce(self, topic: str) -> None:
        """Make sure that listings over all topics ask for this one. Before the first of it is in the index."""
        with self._lock:
            if topic in self._opened:
                return
        key = opened_key(topic)
        if self._table.get(key) is None:
            self._table.put_new({"pk": key.pk, "sk": key.sk})
        with self._lock:
            self._opened.add(topic)


def _done(item: Item) -> bool:
    state = ResultState(str(item["state"]))
    return "noted" in item if state is ResultState.KEPT else state.value not in _STATES


def _found_key(topic: str, token: str) -> Key:
    """Of a list of results. The token is nobody else's."""
    return Key(FOUND, _found_prefix(topic) + token)


def _found_prefix(topic: str) -> str:
    return topic + BETWEEN


def _found_item(key: Key, cycle: str | None, results: Iterable[str]) -> Item:
    return present({"pk": key.pk, "sk": key.sk, "cycle": cycle, "results": _packed_ids(results)})


def _packed_ids(results: Iterable[str]) -> bytes:
    return pack(json.dumps(list(results)))


def _named_in(item: Item) -> list[str]:
    """The ids in a list."""
    return [str(name) for name in unpacked(item, "results")]

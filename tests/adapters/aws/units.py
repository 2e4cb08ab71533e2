"""What DynamoDB bills for a write, counted from the items before and after it.

A write costs one unit for each started kilobyte of the larger of the two, and each index one more for an entry that
comes, changes or goes: two when its key changes. Sizes are counted as DynamoDB documents them.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Plus, Scalar, Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")
KILOBYTE = 1024
INDEXES = {"open": (), "listed": ("topic",)}
"""Names, which are their partition keys', and what they project beside the keys."""


def size(item: Item) -> int:
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Scalar) -> int:
    match value:
        case bool():
            return 1
        case int():
            return len(str(abs(value))) // 2 + 2
        case str():
            return len(value.encode())
        case bytes():
            return len(value)


def units(before: Item | None, after: Item | None) -> dict[str, int]:
    """Write units by what is written: "item", and the names of indexes."""
    whole = max(size(item) for item in (before, after) if item is not None)
    counted = {"item": -(-whole // KILOBYTE)}
    for index, projected in INDEXES.items():
        old, new = _entry(before, index, projected), _entry(after, index, projected)
        if old != new:
            moved = old is not None and new is not None and (old["at"], old[index]) != (new["at"], new[index])
            counted[index] = 2 if moved else 1
    return counted


def _entry(item: Item | None, index: str, projected: tuple[str, ...]) -> Item | None:
    if item is None or index not in item:
        return None
    return {name: item[name] for name in ("pk", "sk", index, "at", *projected) if name in item}


class CountingTable(Table):
    """Counts the units of its writes, by the kind of item and what is written."""

    def __init__(self, client: "DynamoDBClient", name: str) -> None:
        super().__init__(client, name)
        self.written: Counter[tuple[str, str]] = Counter()
        self.sizes: Counter[str] = Counter()

    def put_new(self, item: Item) -> bool:
        return self._counted(Key(str(item["pk"]), str(item["sk"])), lambda: super(CountingTable, self).put_new(item))

    def change(
        self,
        key: Key,
        changes: Mapping[str, Scalar | Plus | None],
        when: str | None = None,
        values: Mapping[str, Scalar] | None = None,
        *,
        shown_by: str | None = None,
    ) -> Item | None:
        return self._counted(
            key, lambda: super(CountingTable, self).change(key, changes, when, values, shown_by=shown_by)
        )

    def delete(self, key: Key) -> None:
        self._counted(key, lambda: super(CountingTable, self).delete(key))

    def _counted(self, key: Key, write: Callable[[], T]) -> T:
        before = self.get(key)
        answer = write()
        after = self.get(key)
        kind = key.pk.partition("#")[0]
        for what, count in units(before, after).items() if before or after else ():
            self.written[kind, what] += count
        self.sizes[kind] = max(self.sizes[kind], size(after or {}))
        return answer

    def __str__(self) -> str:
        return json.dumps({f"{kind}.{what}": count for (kind, what), count in sorted(self.written.items())})

"""Listings along partitions: keys from an index and items from the table, or items at once.

An index follows the table a moment later. So it only says what there is; in which state it is, is read consistently.
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from wikikeeper.adapters.aws.dynamodb_table import BATCH, Item, Key, Table

Entry = tuple[str, Key]
"""Place in the order, and where the item lies."""

OPEN, LISTED = "open", "listed"
"""Names of the indexes and of their partition keys."""
PAGE = 25
"""Items of one partition that are read at a time where several are merged: people look at the first few."""


def entries(
    table: Table,
    index: str,
    partition: str,
    *,
    keeping: str | None = None,
    values: Mapping[str, str] | None = None,
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


def items(table: Table, keys: Iterable[Key]) -> Iterator[Item]:
    """The items themselves, as they are now; what is gone is left out."""
    asked = iter(keys)
    while page := list(itertools.islice(asked, BATCH)):
        yield from table.read(page)


def newest_first(
    table: Table,
    partitions: Sequence[str],
    *,
    within: tuple[str, str] | None = None,
    keeping: str | None = None,
    values: Mapping[str, str] | None = None,
    page: int = PAGE,
) -> Iterator[Item]:
    """The items of several partitions by their sort keys, backwards, read as they are needed.

    `within` are the least and the greatest of the sort keys.
    """
    where, bound = "#pk = :partition", dict(values or {})
    if within is not None:
        where += " AND #sk BETWEEN :least AND :greatest"
        bound["least"], bound["greatest"] = within
    found = (
        table.query(where, {"partition": partition, **bound}, keeping=keeping, newest_first=True, page=page)
        for partition in partitions
    )
    return heapq.merge(*found, key=lambda item: str(item["sk"]), reverse=True)

"""Which deliveries of hooks were worked on to the end: an item each, forgotten by its TTL."""

from datetime import datetime, timedelta

from wikikeeper.adapters.aws.dynamodb_items import micros
from wikikeeper.adapters.aws.dynamodb_table import Key, Table

REMEMBERED = timedelta(days=7)
"""Longer than any sender tries, and than a recorded delivery is believed."""


class DynamoDeliveries:
    """`Deliveries` in the table of the run store."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def begin(self, key: str, at: datetime) -> bool:
        place = _place(key)
        expires = int((at + REMEMBERED).timestamp())
        if self.table.put_new({"pk": place.pk, "sk": place.sk, "expires": expires}):
            return True
        known = self.table.get(place)
        return known is None or known.get("finished") is None

    def finish(self, key: str, at: datetime) -> None:
        self.table.change(
            _place(key), {"finished": micros(at)}, "attribute_exists(#pk) AND attribute_not_exists(#finished)"
        )


def _place(key: str) -> Key:
    return Key(f"delivery#{key}", "delivery")

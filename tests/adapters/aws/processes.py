"""Processes that die or freeze at one of their requests to the table."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

from wikikeeper.adapters.aws.dynamodb_table import Item, Key, Table

T = TypeVar("T")


class Killed(Exception):
    """The process is no more."""


class Fated(Table):
    """Lets so many requests through. Before the next one it stands still while `meanwhile` happens.

    Then it dies `before` that request is sent, or `after` it was carried out, or lives on.
    """

    def __init__(
        self,
        table: Table,
        requests: int,
        meanwhile: Callable[[], object] | None = None,
        *,
        dies: Literal["before", "after"] | None = None,
    ) -> None:
        super().__init__(table._client, table.name)
        self._left = requests
        self._meanwhile = meanwhile
        self._dies = dies

    def _request(self, send: Callable[[], T]) -> T:
        self._left -= 1
        if self._left == -1 and self._meanwhile is not None:
            self._meanwhile()
        if self._left >= 0 or self._dies is None:
            return send()
        if self._left == -1 and self._dies == "after":
            send()
        raise Killed

    def get(self, key: Key) -> Item | None:
        return self._request(lambda: super(Fated, self).get(key))

    def put_new(self, item: Item) -> bool:
        return self._request(lambda: super(Fated, self).put_new(item))

    def change(self, *given: Any, **more: Any) -> Item | None:  # noqa: ANN401 - the base's
        return self._request(lambda: super(Fated, self).change(*given, **more))

    def delete(self, key: Key) -> None:
        self._request(lambda: super(Fated, self).delete(key))

    def query(self, *given: Any, **more: Any) -> Iterator[Item]:  # noqa: ANN401 - the base's
        return iter(self._request(lambda: list(super(Fated, self).query(*given, **more))))


def mortal(table: Table, requests: int, *, last: bool) -> Fated:
    return Fated(table, requests, dies="after" if last else "before")


class LateIndex(Table):
    """Its indexes show nothing yet, as they may for a moment after a write."""

    late = True

    def query(self, *given: Any, **more: Any) -> Iterator[Item]:  # noqa: ANN401 - the base's
        return iter(()) if self.late and "index" in more else super().query(*given, **more)

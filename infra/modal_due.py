"""Commands for later on Modal, which has no delayed calls: they lie on a shelf, and the tick sends those that are due.

    workflow says "in 60 s" ── put on the shelf ── … ── a tick finds it due ── sent ── taken off the shelf
                                                                                 └ a crash before: sent again by the
                                                                                   next tick; commands are hints

A tick is a minute, so a command is up to a minute late.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import uuid4

from pydantic import ValidationError

from wikikeeper.models import COMMAND, Command, Send

Start = Callable[[Command], object]
"""Send a command to its function, without waiting for it."""


class Shelf(Protocol):
    """What is used of `modal.Dict`."""

    def put(self, key: str, value: str, /) -> object: ...

    def items(self) -> Iterable[tuple[str, str]]: ...

    def pop(self, key: str, default: str, /) -> object: ...


def carry(sends: Sequence[Send], start: Start, shelf: Shelf, now: datetime) -> None:
    """Send what is for now; put the rest on the shelf, each under a key of its own."""
    for send in sends:
        if send.after <= timedelta():
            start(send.command)
        else:
            shelf.put(f"{(now + send.after).isoformat()} {uuid4().hex}", COMMAND.dump_json(send.command).decode())


def send_due(start: Start, shelf: Shelf, now: datetime) -> list[str]:
    """Send what is due. Returns the keys of what could not be read, such as commands of an older version.

    Those are dropped: what they were about is still in the store, and is found there.
    """
    unreadable = []
    for key, value in sorted(shelf.items()):  # the first due first: a key begins with its time
        if datetime.fromisoformat(key.partition(" ")[0]) > now:
            continue
        try:
            command = COMMAND.validate_json(value)
        except ValidationError:
            unreadable.append(key)
        else:
            start(command)
        shelf.pop(key, "")
    return unreadable

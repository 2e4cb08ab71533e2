"""Commands: units of work, small enough for any queue. State is the truth, commands are hints."""

from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from wikikeeper.models.values import Value


class StartCycle(Value):
    """Search a topic for one tick and send what waits."""

    kind: Literal["start_cycle"] = "start_cycle"
    topic: str
    tick: str
    first_wake: datetime | None = None
    """When a sleeping model was first woken for this tick."""
    missed: int = 0
    """Ticks that passed unseen before this one."""


class CloseCycle(Value):
    """Close a draining cycle if nothing of it is unfinished."""

    kind: Literal["close_cycle"] = "close_cycle"
    cycle: str


class JudgeResult(Value):
    """Judge one waiting result on behalf of a cycle."""

    kind: Literal["judge_result"] = "judge_result"
    topic: str
    result: str
    cycle: str


class WriteNote(Value):
    """Bring a topic's open note up to date."""

    kind: Literal["write_note"] = "write_note"
    topic: str


class ReapStale(Value):
    """Find work that went silent and send it again."""

    kind: Literal["reap_stale"] = "reap_stale"
    alone: bool = False
    """No other worker of this store is alive, as the run lock of one machine proves: every lease is a dead one's, and
    every command on its way is lost. Nothing needs to be waited for."""


Command = Annotated[StartCycle | CloseCycle | JudgeResult | WriteNote | ReapStale, Field(discriminator="kind")]
COMMAND: TypeAdapter[Command] = TypeAdapter(Command)


class Send(Value):
    """A command for the host to carry on, now or later."""

    command: Command
    after: timedelta = timedelta()

"""Workers that die, and the sweeps that find their work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.workflows.world import World

from wikikeeper.models import Cycle, Escalation, JudgeResult, ReapStale, Send, StartCycle
from wikikeeper.policy.identity import cycle_id
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle

LEASE = timedelta(minutes=10)
SILENT_CYCLE = timedelta(minutes=16)
NOTE_LATE = timedelta(minutes=2)
TICK = StartCycle(topic="postgres", tick="t")


class Killed(BaseException):
    """The process is gone: nothing of ours runs any more."""


def killed(*_: object, **__: object) -> Any:  # noqa: ANN401 - stands for any function
    raise Killed


def sweep(world: World) -> list[Send]:
    return [send for send in reap_stale(ReapStale(), world.app) if send.command.kind != "close_cycle"]


def work_and_die(world: World, sends: list[Send], *, at: str = "judge") -> None:
    """Workers take the commands, and are killed by what they find."""
    for send in sends:
        if isinstance(send.command, JudgeResult):
            with killing(world, at), pytest.raises(Killed):
                judge_result(send.command, world.app)


def answer_and_die_at_the_limit(world: World) -> None:
    """A page that killed its workers has its answer recorded by the last of them, who dies before the verdict."""
    sends = started(world, a="One.")
    for _ in range(3):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)
    work_and_die(world, sends, at="finish")
    world.clock.advance(LEASE)


@contextmanager
def killing(world: World, at: str) -> Iterator[None]:
    target: object = world.app.keeper if at == "judge" else world.app.store
    was = getattr(target, at)
    setattr(target, at, killed)
    try:
        yield
    finally:
        setattr(target, at, was)


def just_before(world: World, method: str, meanwhile: Callable[[], object]) -> None:
    """Once, when this method of the store is called next, something else happens first."""
    store = world.app.store
    was = getattr(store, method)

    def overtaken(*given: object, **named: object) -> object:
        setattr(store, method, was)
        meanwhile()
        return was(*given, **named)

    setattr(store, method, overtaken)


def started(world: World, **pages: str | Exception) -> list[Send]:
    world.pages(**pages)
    return schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)


def cycle_of(world: World) -> Cycle:
    cycle = world.app.store.cycle(cycle_id("postgres", "t"))
    assert cycle is not None
    return cycle


def escalations(world: World) -> list[Escalation]:
    return list(world.app.store.escalations())


def told(world: World) -> list[str]:
    return [str(fields["escalation"]) for name, fields in world.reporter.events if name == "escalated"]


def begin(world: World, command: StartCycle = TICK) -> list[Send]:
    world.pages(a="One.")
    return schedule_cycle(command, world.app)


def die_while_searching(world: World, command: StartCycle = TICK) -> None:
    """A worker begins it, if it is to be begun, and is gone before it drains."""
    with killing(world, "drain_cycle"), suppress(Killed):
        begin(world, command)


def starts(sends: list[Send]) -> list[Send]:
    return [send for send in sends if isinstance(send.command, StartCycle)]

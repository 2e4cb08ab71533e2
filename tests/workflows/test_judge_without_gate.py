"""A gate that cannot be asked, or that is slow, says nothing of the page that waits for it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.workflows.world import RULES, World

from wikikeeper.adapters.local.gate import SqliteGate
from wikikeeper.errors import PageRefused, Unusable
from wikikeeper.fakes import judgement
from wikikeeper.models import (
    Claim,
    CycleState,
    FailureKind,
    Judgement,
    JudgeResult,
    Lane,
    Permit,
    ResultState,
    Send,
    StartCycle,
    Wait,
)
from wikikeeper.policy.identity import cycle_id
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.schedule_cycle import close, schedule_cycle

CLOCK = Unusable("the clock of this machine is 9.0 s ahead of the table's: set the clock")


class Throttled(Exception):
    pass


class FaultyGate(SqliteGate):
    """Does what it is told to do before it is asked, each time."""

    def __init__(self, world: World, first: Callable[[str], None]) -> None:
        super().__init__(world.database, 2, world.clock.now)
        self.first = first

    def acquire(self, lane: Lane, holder: str, ttl: timedelta, patience: timedelta) -> Permit | Wait:
        self.first("acquire")
        return super().acquire(lane, holder, ttl, patience)

    def renew(self, permit: Permit, ttl: timedelta) -> Permit | None:
        self.first("renew")
        return super().renew(permit, ttl)


def fails(fault: Exception, *operations: str) -> Callable[[str], None]:
    def first(operation: str) -> None:
        if operation in operations:
            raise fault

    return first


def runs(world: World, tick: str = "t") -> list[Exception]:
    return world.run(Send(command=StartCycle(topic="postgres", tick=tick)))


@pytest.mark.parametrize("fault", [Throttled(), Unusable("the clock of this machine is ahead")])
def test_a_page_is_never_parked_for_a_gate_that_one_machine_cannot_ask(world: World, fault: Exception) -> None:
    """Others of the same cycle are judged by machines that can."""
    cannot = replace(world.app, gate=FaultyGate(world, fails(fault, "acquire")))
    for number, other in enumerate("bcde"):
        world.pages(**{"a": "The page that meets the wrong machine.", other: f"A good page: {number}."})
        sends = schedule_cycle(StartCycle(topic="postgres", tick=f"t{number}"), world.app)
        judging = [send.command for send in sends if isinstance(send.command, JudgeResult)]
        for command in sorted(judging, key=lambda command: command.result == world.result("a").id):
            if command.result == world.result("a").id:
                with pytest.raises(type(fault)):
                    judge_result(command, cannot)
            else:
                judge_result(command, world.app)
        close(cycle_id("postgres", f"t{number}"), world.app)

    left = world.result("a")
    assert (left.state, left.attempts) == (ResultState.WAITING, 0)
    assert [failure.kind for failure in left.failures] == [FailureKind.SERVER] * 4
    assert len(world.runs()) == 4


def test_a_clock_that_the_gate_refuses_stops_the_cycle_and_says_what_to_do(world: World) -> None:
    world.app = replace(world.app, gate=FaultyGate(world, fails(CLOCK, "acquire")))
    world.pages(a="One text.", b="Another text.")

    runs(world)

    [cycle] = world.app.store.cycles()
    assert (cycle.state, cycle.reason, cycle.calls) == (CycleState.STOPPED, f"gate: {CLOCK}", 0)
    assert [(alert["cause"], alert["detail"]) for alert in world.reporter.of("alert")] == [("gate", str(CLOCK))]
    assert set(world.states().values()) == {ResultState.WAITING}
    assert {failure.detail for result in world.app.store.results() for failure in result.failures} <= {str(CLOCK)}


def test_a_cycle_of_which_no_page_came_to_the_gate_is_no_quiet_success(world: World) -> None:
    world.app = replace(world.app, gate=FaultyGate(world, fails(Throttled(), "acquire")))
    world.pages(a="One text.", b="Another text.")

    assert [type(error) for error in runs(world)] == [Throttled] * 2
    close(cycle_id("postgres", "t"), world.app)

    [cycle] = world.app.store.cycles()
    assert (cycle.state, cycle.reason, cycle.calls) == (CycleState.DONE, "no_answer:gate:Throttled", 0)
    assert len(world.reporter.of("alert")) == 1


# -- a permit that is over before its call


def slow_count(world: World, took: timedelta) -> None:
    """The store takes so long to count a call, by the clock that permits end by."""
    world.app = replace(world.app, gate=SqliteGate(world.database, 2, world.clock.now))
    begin_call = world.app.store.begin_call

    def slow(claim: Claim, cycle: str, now: datetime, until: datetime) -> Claim | None:
        begun = begin_call(claim, cycle, now, until)
        world.clock.advance(took)
        return begun

    object.__setattr__(world.app.store, "begin_call", slow)


def test_a_call_whose_count_outlasted_its_permit_is_not_made_and_has_its_run(world: World) -> None:
    world.pages(a="Some text.")
    slow_count(world, RULES.permit_lease)

    cycle = world.cycle()

    assert world.keeper.asked == []
    assert cycle.calls == 1
    [run] = world.runs()
    assert run.outcome == "failed"
    assert run.error is not None
    assert run.error.startswith("permit_over")
    left = world.result("a")
    assert (left.state, left.attempts, left.failures[-1].kind) == (ResultState.WAITING, 0, FailureKind.SERVER)


@pytest.mark.parametrize(
    ("took", "renewed"),
    [
        (RULES.permit_lease - RULES.call_deadline, []),
        (RULES.permit_lease - RULES.call_deadline + timedelta(microseconds=1), ["renew"]),
        (RULES.permit_lease - timedelta(microseconds=1), ["renew"]),
    ],
)
def test_a_permit_that_is_too_short_for_its_call_by_now_is_renewed(
    world: World, took: timedelta, renewed: list[str]
) -> None:
    asked: list[str] = []
    slow_count(world, took)
    world.app = replace(world.app, gate=FaultyGate(world, asked.append))
    world.pages(a="Some text.")

    world.cycle()

    assert world.states() == {"a": ResultState.KEPT}
    assert [operation for operation in asked if operation == "renew"] == renewed


def test_a_gate_that_fails_at_the_renewal_leaves_the_call_its_run_and_the_page_waiting(world: World) -> None:
    slow_count(world, RULES.permit_lease - timedelta(seconds=1))
    world.app = replace(world.app, gate=FaultyGate(world, fails(Throttled(), "renew")))
    world.pages(a="Some text.")

    assert [type(error) for error in runs(world)] == [Throttled]

    assert [(run.outcome, run.error) for run in world.runs()] == [("failed", "gate:Throttled")]
    assert [failure.kind for failure in world.result("a").failures] == [FailureKind.SERVER]


def test_half_a_page_is_not_asked_about_with_a_permit_that_is_over(world: World) -> None:
    def script(title: str, paragraphs: Sequence[str]) -> Judgement:
        if world.clock.now() == begun:
            world.clock.advance(RULES.permit_lease)
            raise PageRefused("too_long")
        return judgement()

    begun = world.clock.now()
    slow_count(world, timedelta())
    world.keeper.script = script
    world.pages(a="\n\n".join(f"Paragraph {number} of a long page." for number in range(12)))

    world.cycle()

    assert world.states() == {"a": ResultState.KEPT}
    assert [len(paragraphs) for _, paragraphs in world.keeper.asked] == [12, 12], (
        "with a new permit it is asked whole again"
    )

"""Ticks that come faster than a silence is told by: they take what waits along, and hide it from nobody."""

from datetime import timedelta

import pytest
from tests.workflows.reaping import escalations, told
from tests.workflows.world import TOPIC, World

from wikikeeper.models import CycleState, JudgeResult, ReapStale, ResultState, Send, StartCycle
from wikikeeper.policy.identity import cycle_id
from wikikeeper.workflows.given_up import standing
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle

MINUTE = timedelta(minutes=1)
SWEEP = 5
DAY = 24 * 60


def a_day_without_workers(world: World, every: int) -> int:
    """Ticks and sweeps go on, and nobody takes what they send. How often a sweep sent a page again."""
    sent = 0
    for minute in range(0, DAY, SWEEP):
        world.clock.advance(SWEEP * MINUTE)
        sends = list(reap_stale(ReapStale(), world.app))
        sent += sum(isinstance(send.command, JudgeResult) for send in sends)
        if minute % every == 0:
            sends.append(Send(command=StartCycle(topic="postgres", tick=f"t{minute:05}")))
        for send in sends:
            if send.command.kind in {"start_cycle", "close_cycle"}:
                schedule_cycle(send.command, world.app)
    return sent


@pytest.mark.parametrize("every", [15, 60, 90, DAY])
def test_a_silence_has_its_recoveries_and_is_told_once_however_often_ticks_come(world: World, every: int) -> None:
    world.pages(a="One.", b="Two.")

    sent = a_day_without_workers(world, every)

    assert sent == 2 * world.app.rules.recovery_limit
    [escalation] = escalations(world)
    assert escalation.subject == f"cycle:{cycle_id('postgres', 't00000')}"
    assert told(world) == [escalation.id]
    assert set(world.states().values()) == {ResultState.WAITING}


@pytest.mark.parametrize("every", [15, 60])
def test_once_a_call_was_made_a_later_silence_is_another_one(world: World, every: int) -> None:
    world.pages(a="One.", b="Two.")
    a_day_without_workers(world, every)
    running = next(iter(world.app.store.cycles(topic="postgres", states=frozenset({CycleState.DRAINING}))))
    judge_result(JudgeResult(topic="postgres", result=world.result("a").id, cycle=running.id), world.app)
    assert world.result("a").state is ResultState.KEPT
    world.app.store.clear_note_due("postgres")
    world.app.store.mark_noted([world.result("a").id], "note")

    for _ in range(2 * DAY // SWEEP):
        world.clock.advance(SWEEP * MINUTE)
        reap_stale(ReapStale(), world.app)

    assert [escalation.subject for escalation in escalations(world)] == [
        f"cycle:{running.id}",
        f"cycle:{cycle_id('postgres', 't00000')}",
    ]


def test_a_cycle_that_is_done_with_its_pages_is_no_part_of_a_silence_that_comes_later(world: World) -> None:
    world.pages(a="One.")
    world.cycle()
    world.clock.advance(timedelta(days=1))
    world.pages(b="Two.")
    schedule_cycle(StartCycle(topic="postgres", tick="later"), world.app)
    world.clock.advance(SWEEP * MINUTE)

    assert [send for send in reap_stale(ReapStale(), world.app) if isinstance(send.command, JudgeResult)] == []
    world.clock.advance(world.app.rules.silence_after)
    assert len([send for send in reap_stale(ReapStale(), world.app) if isinstance(send.command, JudgeResult)]) == 1
    assert world.app.store.silence(f"cycle:{cycle_id('postgres', 'later')}") is not None


def test_what_was_given_up_needs_a_person_until_somebody_takes_it_up_whatever_ticks_come(world: World) -> None:
    world.pages(a="One.", b="Two.")
    a_day_without_workers(world, 60)
    assert len(list(standing(world.app.store))) == 1
    running = next(iter(world.app.store.cycles(topic="postgres", states=frozenset({CycleState.DRAINING}))))

    judge_result(JudgeResult(topic="postgres", result=world.result("a").id, cycle=running.id), world.app)

    assert list(standing(world.app.store)) == []


def test_another_topics_cycles_are_no_part_of_a_silence(world: World) -> None:
    world.pages(a="One.")
    schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    world.clock.advance(MINUTE)
    world.topic("sqlite", TOPIC)
    schedule_cycle(StartCycle(topic="sqlite", tick="t"), world.app)
    world.app.store.end_cycle(
        cycle_id("postgres", "t"), CycleState.DONE, world.clock.now(), only_from=frozenset({CycleState.DRAINING})
    )
    world.clock.advance(world.app.rules.silence_after)

    reap_stale(ReapStale(), world.app)

    assert world.app.store.silence(f"cycle:{cycle_id('sqlite', 't')}") is not None

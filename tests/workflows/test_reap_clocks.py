"""What a clock wrote down that was once ahead: it hides no work, and costs no recovery."""

from datetime import timedelta
from itertools import pairwise

import pytest
from tests.workflows.reaping import SILENT_CYCLE, begin, escalations, started, sweep
from tests.workflows.world import World

from wikikeeper.models import JudgeResult, ModelState, ReapStale, StartCycle, WriteNote
from wikikeeper.policy.hooks import HOOK, asked_cycle
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import due, schedule_cycle, see_model

MINUTE = timedelta(minutes=1)
HOURS = timedelta(hours=2)
"""As where a machine takes its hardware clock for UTC."""
YEAR = timedelta(days=365)


def unnoted(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    judge_result(send.command, world.app)


@pytest.mark.parametrize("ahead", [HOURS, YEAR])
def test_a_note_that_a_clock_ahead_took_back_is_written_at_once(world: World, ahead: timedelta) -> None:
    unnoted(world)
    world.clock.advance(ahead)
    assert [send.command for send in sweep(world)] == [WriteNote(topic="postgres")]  # and it is lost
    world.clock.advance(-ahead)

    for _ in range(4):
        world.clock.advance(MINUTE)
        world.run(*sweep(world))

    assert len(world.notes()) == 1


@pytest.mark.parametrize("ahead", [HOURS, YEAR])
def test_a_note_that_a_clock_ahead_gave_up_cools_down_by_the_right_one(world: World, ahead: timedelta) -> None:
    unnoted(world)
    world.clock.advance(ahead)
    while not escalations(world):
        world.clock.advance(2 * MINUTE)
        sweep(world)
    world.clock.advance(-ahead)
    for _ in range(3):
        world.clock.advance(2 * MINUTE)
        sweep(world)
    world.clock.advance(ahead if ahead < world.app.rules.cooldown else timedelta())
    world.clock.advance(world.app.rules.cooldown)
    world.pages(b="Two.")

    world.cycle()

    assert len(world.notes()) == 1
    assert len(escalations(world)) == 1


def test_a_call_by_a_clock_ahead_sets_no_later_silence_of_its_cycle_back(world: World) -> None:
    one, _ = started(world, a="One.", b="Two.")
    world.clock.advance(YEAR)
    assert isinstance(one.command, JudgeResult)
    judge_result(one.command, world.app)
    world.clock.advance(-YEAR)
    world.app.store.clear_note_due("postgres")
    world.app.store.mark_noted([world.result("a").id], "note")

    sent = 0
    for _ in range(24):
        world.clock.advance(SILENT_CYCLE)
        sent += len(sweep(world))

    assert sent == world.app.rules.recovery_limit
    assert len(escalations(world)) == 1


def test_a_model_that_a_clock_ahead_saw_loading_explains_no_silence(world: World) -> None:
    world.clock.advance(YEAR)
    world.decider.now = ModelState(state="waking", cause="loading")
    see_model(world.app)
    world.clock.advance(-YEAR)
    world.decider.now = ModelState(state="healthy")
    started(world, a="One.")
    world.clock.advance(SILENT_CYCLE)

    assert len(sweep(world)) == 1


def test_a_hooks_cycle_that_a_clock_ahead_found_silent_has_all_its_recoveries(world: World) -> None:
    tick = f"{HOOK}x"
    now, lease = world.clock.now(), timedelta(minutes=12)
    assert world.app.store.start_cycle(asked_cycle("postgres", tick, now=now, lease=lease, cap=9))
    for _ in range(3):
        world.clock.advance(SILENT_CYCLE)
        assert len(sweep(world)) == 1
    world.clock.advance(-3 * SILENT_CYCLE)
    begin(world, StartCycle(topic="postgres", tick=tick))

    sent = []
    for _ in range(5):
        world.clock.advance(SILENT_CYCLE)
        sent.append(len(sweep(world)))

    assert sent == [1, 1, 1, 0, 0]


@pytest.mark.parametrize(("ran_before", "ticks"), [(True, 30), (False, 31)])
def test_a_topic_that_a_clock_ahead_checked_runs_each_of_its_ticks_once(
    world: World, ran_before: bool, ticks: int
) -> None:
    """One that never ran makes up for the tick of its last day."""
    due(world.app)
    if ran_before:
        world.cycle()
    world.clock.advance(YEAR)
    for send in due(world.app):
        assert isinstance(send.command, StartCycle)
        schedule_cycle(send.command, world.app)
    world.clock.advance(-YEAR)

    began = []
    for _ in range(30 * 24):
        world.clock.advance(timedelta(hours=1))
        for send in due(world.app):
            before = len(list(world.app.store.cycles()))
            assert isinstance(send.command, StartCycle)
            schedule_cycle(send.command, world.app)
            if len(list(world.app.store.cycles())) > before:
                began.append(world.clock.now())

    assert len(began) == ticks
    assert all(timedelta(hours=17) <= later - earlier <= timedelta(hours=25) for earlier, later in pairwise(began))


def test_a_sweep_of_one_who_is_alone_takes_a_note_back_that_a_clock_ahead_counted(world: World) -> None:
    unnoted(world)
    world.clock.advance(YEAR)
    sweep(world)
    world.clock.advance(-YEAR)

    world.run(*reap_stale(ReapStale(alone=True), world.app))

    assert len(world.notes()) == 1

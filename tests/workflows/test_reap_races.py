"""What happens between a look and what is done about it, and what clocks that were once wrong leave behind."""

from datetime import timedelta
from typing import Any

from tests.workflows.reaping import (
    LEASE,
    SILENT_CYCLE,
    answer_and_die_at_the_limit,
    cycle_of,
    escalations,
    just_before,
    started,
    sweep,
)
from tests.workflows.world import World

from wikikeeper.models import CycleState, JudgeResult, ResultState, Send, WriteNote
from wikikeeper.workflows.judge_result import judge_result

YEAR = timedelta(days=365)
SOON = timedelta(minutes=3)


def judged(world: World, send: Send) -> list[Send]:
    assert isinstance(send.command, JudgeResult)
    return judge_result(send.command, world.app)


def judged_by_a_clock_that_is_ahead(world: World, send: Send) -> None:
    world.clock.advance(YEAR)
    judged(world, send)
    world.clock.advance(-YEAR)


def notes_sent(world: World, sweeps: int) -> int:
    sent = 0
    for _ in range(sweeps):
        world.clock.advance(SOON)
        sent += sum(send.command == WriteNote(topic="postgres") for send in sweep(world))
    return sent


def test_a_page_whose_answer_is_recorded_is_not_given_up(world: World) -> None:
    answer_and_die_at_the_limit(world)

    world.run(*sweep(world))

    assert world.states() == {"a": ResultState.KEPT}
    assert escalations(world) == []
    assert sorted(run.outcome for run in world.runs()) == ["answered", "lost", "lost", "lost"]


def test_a_cycle_in_which_a_call_begins_at_the_last_moment_is_not_given_up(world: World) -> None:
    started(world, a="One.", b="Two.")
    for _ in range(3):
        world.clock.advance(SILENT_CYCLE)
        assert len(sweep(world)) == 2
    world.clock.advance(SILENT_CYCLE)
    store, now = world.app.store, world.clock.now()
    began: list[object] = []

    def a_worker_begins() -> None:
        claim = store.claim(world.result("a").id, cycle_of(world).id, now, now + LEASE)
        assert claim is not None
        began.append(store.begin_call(claim, cycle_of(world).id, now, now + LEASE))

    just_before(world, "model_history", a_worker_begins)

    sweep(world)

    assert len(began) == 1
    assert began != [None]
    assert cycle_of(world).state is CycleState.DRAINING
    assert escalations(world) == []


def test_a_note_that_was_given_up_is_recovered_again_after_a_new_page_was_kept(world: World) -> None:
    one, two = started(world, a="One.", b="Two.")
    judged(world, one)
    assert notes_sent(world, 4) == 3
    assert len(escalations(world)) == 1
    world.clock.advance(timedelta(days=2))  # a person has mended it

    [again] = judged(world, two)  # and this command is lost with its process

    assert again.command == WriteNote(topic="postgres")
    assert notes_sent(world, 3) >= 1


def test_a_note_that_a_clock_made_due_in_a_time_to_come_is_sent_all_the_same(world: World) -> None:
    one, two = started(world, a="One.", b="Two.")
    judged_by_a_clock_that_is_ahead(world, one)
    judged(world, two)

    assert notes_sent(world, 3) >= 1


def test_a_cycle_that_was_called_in_a_time_to_come_is_silent_all_the_same(world: World) -> None:
    one, _ = started(world, a="One.", b="Two.")
    judged_by_a_clock_that_is_ahead(world, one)
    assert cycle_of(world).active is not None

    world.clock.advance(SILENT_CYCLE)
    sent: list[Any] = [send.command for send in sweep(world) if isinstance(send.command, JudgeResult)]

    assert [command.result for command in sent] == [world.result("b").id]

"""Notes that are due and not written: sent again as often as the limit says, and told once."""

from datetime import timedelta

import pytest
from tests.workflows.reaping import Killed, escalations, killing, started, sweep, told
from tests.workflows.world import World

from wikikeeper.models import JudgeResult, ResultState, WriteNote
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.write_note import write_note

NOTE_LATE = timedelta(minutes=2)


def unnoted(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    judge_result(send.command, world.app)


def test_a_note_that_cannot_be_written_is_tried_three_times_and_told_once(world: World) -> None:
    unnoted(world)
    tried = 0
    for _ in range(12):
        world.clock.advance(NOTE_LATE)
        for send in sweep(world):
            assert isinstance(send.command, WriteNote)
            tried += 1
            with killing(world, "open_note"), pytest.raises(Killed):
                write_note(send.command, world.app)

    assert tried == 3
    [escalation] = escalations(world)
    assert escalation.subject == "note:postgres"
    assert told(world) == [escalation.id]
    assert world.states() == {"a": ResultState.KEPT}


def test_a_new_kept_page_writes_the_note_that_was_given_up(world: World) -> None:
    test_a_note_that_cannot_be_written_is_tried_three_times_and_told_once(world)
    world.pages(b="Two.")

    world.cycle()

    assert len(world.notes()) == 1
    silence = world.app.store.silence("note:postgres")
    assert silence is not None
    assert silence.nonresponses == 0


def test_a_note_that_is_being_written_is_no_silence(world: World) -> None:
    """Its writer has cleared what was due and is at it: the first sweep only sees that, the next one tells."""
    unnoted(world)
    world.app.store.clear_note_due("postgres")

    assert sweep(world) == []
    assert sweep(world) == []
    world.clock.advance(NOTE_LATE)
    assert [send.command for send in sweep(world)] == [WriteNote(topic="postgres")]

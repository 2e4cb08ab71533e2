"""What was given up, and how a person has it tried again."""

from datetime import timedelta

from tests.workflows.reaping import escalations, started, sweep, told
from tests.workflows.world import World

from wikikeeper.models import JudgeResult, Send, WriteNote
from wikikeeper.workflows.given_up import bring_back_note, standing, unwritten
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.write_note import write_note

NOTE_LATE = timedelta(minutes=2)


def unnoted(world: World) -> None:
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    judge_result(send.command, world.app)


def lost_notes(world: World) -> list[Send]:
    """What sweeps send until they send no more; nobody takes any of it."""
    sent = []
    for _ in range(12):
        world.clock.advance(NOTE_LATE)
        sent += sweep(world)
    return sent


def left(world: World, *, left: bool) -> list[str]:
    rules = world.app.rules
    return list(
        unwritten(
            ["postgres", "nobody"],
            world.app.store,
            left=left,
            limit=rules.recovery_limit,
            cooldown=rules.cooldown,
            now=world.clock.now(),
        )
    )


def test_a_note_is_the_sweeps_to_write_until_it_is_given_up_and_then_a_persons(world: World) -> None:
    assert (left(world, left=False), left(world, left=True)) == ([], []), "nothing is kept"
    unnoted(world)
    assert (left(world, left=False), left(world, left=True)) == (["postgres"], [])

    lost_notes(world)

    for _ in range(2):
        assert (left(world, left=False), left(world, left=True)) == ([], ["postgres"])
        world.clock.advance(world.app.rules.cooldown)
    write_note(WriteNote(topic="postgres"), world.app)
    assert (left(world, left=False), left(world, left=True)) == ([], [])


def test_a_note_that_was_brought_back_is_tried_in_its_cooldown_and_told_again_once_when_it_is_given_up_again(
    world: World,
) -> None:
    unnoted(world)
    assert len(lost_notes(world)) == 3
    assert not bring_back_note("nobody", world.app.store)

    assert bring_back_note("postgres", world.app.store)

    assert not bring_back_note("postgres", world.app.store), "once"
    assert list(standing(world.app.store)) == []
    assert left(world, left=False) == ["postgres"]
    assert [send.command for send in lost_notes(world)] == [WriteNote(topic="postgres")] * 3
    again, before = escalations(world)
    assert again.subject == before.subject == "note:postgres"
    assert told(world) == [before.id, again.id]
    assert list(standing(world.app.store)) == [again]


def test_a_note_that_was_written_needs_no_bringing_back(world: World) -> None:
    unnoted(world)
    lost_notes(world)
    write_note(WriteNote(topic="postgres"), world.app)

    assert not bring_back_note("postgres", world.app.store)
    assert list(standing(world.app.store)) == []
    assert len(world.notes()) == 1

"""Notes that are due and not written: sent again as often as the limit says, and told once."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.workflows.reaping import Killed, escalations, killing, started, sweep, told
from tests.workflows.world import TOPIC, World

from wikikeeper.models import JudgeResult, Origin, ReapStale, Result, ResultState, StartCycle, WriteNote
from wikikeeper.policy.hooks import PUSHED, asked_cycle
from wikikeeper.policy.identity import cycle_id
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle
from wikikeeper.workflows.write_note import write_note

NOTE_LATE = timedelta(minutes=2)
SCHEDULE = 'schedule: {cron: "0 7 * * *", zone: Europe/Berlin}\n'
URL = "https://example.org/a"


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


def keep_later(world: World, **pages: str) -> None:
    """One page more is kept, and the command that it sends for its note is lost."""
    world.pages(**pages)
    judging = [send.command for send in schedule_cycle(StartCycle(topic="postgres", tick="later"), world.app)]
    [command] = [command for command in judging if isinstance(command, JudgeResult)]
    judge_result(command, world.app)


def tries(world: World, days: int) -> int:
    """How often the sweeps of so many days send the note's command, and all of them in vain."""
    sent = 0
    for _ in range(days * 24):
        world.clock.advance(timedelta(hours=1))
        for send in sweep(world):
            assert isinstance(send.command, WriteNote)
            sent += 1
            with killing(world, "topic"), pytest.raises(Killed):
                write_note(send.command, world.app)
    return sent


def test_a_note_that_was_given_up_once_has_all_its_recoveries_the_next_time(world: World) -> None:
    test_a_new_kept_page_writes_the_note_that_was_given_up(world)
    world.clock.advance(timedelta(days=365))
    keep_later(world, c="Three.")

    assert tries(world, days=30) == 3
    assert len(escalations(world)) == 2
    assert len(told(world)) == 2


@pytest.mark.parametrize("gap", [1, 2, 3, 5])
def test_pages_that_are_kept_meanwhile_hide_no_note_that_cannot_be_written(world: World, gap: int) -> None:
    """In minutes; each of them sends the note's command, as long as none is on its way."""
    world.pages(**{f"p{number}": f"Page {number}." for number in range(90)})
    judging = schedule_cycle(StartCycle(topic="postgres", tick="t"), world.app)
    for minute in range(90):
        world.clock.advance(timedelta(minutes=1))
        sends = sweep(world)
        if minute % gap == 0:
            command = judging[minute // gap].command
            assert isinstance(command, JudgeResult)
            sends = judge_result(command, world.app) + sends
        for send in sends:
            if isinstance(send.command, WriteNote):
                with killing(world, "open_note"), pytest.raises(Killed):
                    write_note(send.command, world.app)

    assert [escalation.subject for escalation in escalations(world)] == ["note:postgres"]


def test_a_page_that_is_kept_after_the_cooldown_brings_a_note_back_that_was_given_up(world: World) -> None:
    test_a_note_that_cannot_be_written_is_tried_three_times_and_told_once(world)
    world.clock.advance(world.app.rules.cooldown)
    keep_later(world, b="Two.")

    assert tries(world, days=2) == 3
    assert len(escalations(world)) == 2


@pytest.mark.parametrize("alone", [False, True])
def test_the_first_kept_page_of_a_topic_that_nothing_else_is_known_of_gets_its_note(world: World, alone: bool) -> None:
    """A topic that is only pushed to; its first worker died between the verdict and what makes a note due."""
    world.topic(text=TOPIC.replace(SCHEDULE, ""))
    tick = f"{PUSHED}x"
    now = world.clock.now()
    assert world.app.store.start_cycle(asked_cycle("postgres", tick, now=now, lease=timedelta(minutes=12), cap=9))
    page = Result(id="r", topic="postgres", url=URL, canonical=URL, revision=1, origin=Origin.LINK, found=now)
    world.pages(a="One.")
    assert world.app.store.add_results(cycle_id("postgres", tick), [page])
    [send] = schedule_cycle(StartCycle(topic="postgres", tick=tick), world.app)
    assert isinstance(send.command, JudgeResult)
    with killing(world, "set_note_due"), pytest.raises(Killed):
        judge_result(send.command, world.app)
    assert list(world.app.store.topics()) == []

    for _ in range(4):
        world.clock.advance(NOTE_LATE)
        world.run(*reap_stale(ReapStale(alone=alone), world.app))

    assert len(world.notes()) == 1


def test_sweeps_at_once_do_not_give_up_a_note_whose_command_is_to_come_at_once(world: World) -> None:
    world.app = replace(world.app, rules=replace(world.app.rules, note_delay=timedelta(), recovery_limit=1))
    [send] = started(world, a="One.")
    assert isinstance(send.command, JudgeResult)
    [note] = judge_result(send.command, world.app)
    for _ in range(4):
        assert sweep(world) == []

    world.run(note)

    assert len(world.notes()) == 1
    assert escalations(world) == []

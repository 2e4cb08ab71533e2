from datetime import UTC, datetime, timedelta

import pytest

from infra import modal_due
from wikikeeper.models import Command, JudgeResult, Send, StartCycle, WriteNote

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOTE = WriteNote(topic="birds")
JUDGE = JudgeResult(topic="birds", result="r1", cycle="c1")
WAKING = StartCycle(topic="birds", tick="2026-03-01T12:00Z", first_wake=NOW)
MINUTE = timedelta(minutes=1)


class Memory(dict[str, str]):
    """`modal.Dict`, as far as it is used."""

    def put(self, key: str, value: str, /) -> None:
        self[key] = value


def test_what_is_for_now_is_sent_at_once_and_the_rest_put_aside() -> None:
    started: list[Command] = []
    shelf = Memory()

    modal_due.carry([Send(command=JUDGE), Send(command=NOTE, after=MINUTE)], started.append, shelf, NOW)

    assert started == [JUDGE]
    assert len(shelf) == 1


def test_a_tick_sends_what_is_due_the_first_first_and_leaves_the_rest() -> None:
    started: list[Command] = []
    shelf = Memory()
    sends = [
        Send(command=NOTE, after=2 * MINUTE),
        Send(command=WAKING, after=MINUTE),
        Send(command=JUDGE, after=9 * MINUTE),
    ]
    modal_due.carry(sends, started.append, shelf, NOW)

    assert modal_due.send_due(started.append, shelf, NOW + 2 * MINUTE) == []

    assert started == [WAKING, NOTE]
    assert len(shelf) == 1


def test_a_command_that_is_sent_is_sent_once() -> None:
    started: list[Command] = []
    shelf = Memory()
    modal_due.carry([Send(command=NOTE, after=MINUTE)], started.append, shelf, NOW)

    for minutes in (1, 2, 3):
        modal_due.send_due(started.append, shelf, NOW + minutes * MINUTE)

    assert started == [NOTE]


def test_the_same_command_put_aside_again_while_it_is_sent_is_not_lost() -> None:
    shelf = Memory()
    modal_due.carry([Send(command=WAKING, after=MINUTE)], lambda _: None, shelf, NOW)

    def still_waking(command: Command) -> None:
        modal_due.carry([Send(command=command, after=MINUTE)], lambda _: None, shelf, NOW + MINUTE)

    modal_due.send_due(still_waking, shelf, NOW + MINUTE)

    started: list[Command] = []
    modal_due.send_due(started.append, shelf, NOW + 2 * MINUTE)
    assert started == [WAKING]


def test_a_tick_that_dies_while_sending_loses_nothing() -> None:
    shelf = Memory()
    modal_due.carry([Send(command=JUDGE, after=MINUTE), Send(command=NOTE, after=MINUTE)], lambda _: None, shelf, NOW)

    def dies(_: Command) -> None:
        raise ConnectionError("no answer")

    with pytest.raises(ConnectionError):
        modal_due.send_due(dies, shelf, NOW + MINUTE)

    started: list[Command] = []
    modal_due.send_due(started.append, shelf, NOW + 2 * MINUTE)
    assert {command.kind for command in started} == {"judge_result", "write_note"}


def test_a_tick_beside_another_does_not_mind_what_the_other_took() -> None:
    shelf = Memory()
    modal_due.carry([Send(command=NOTE, after=MINUTE)], lambda _: None, shelf, NOW)

    modal_due.send_due(lambda _: shelf.clear(), shelf, NOW + MINUTE)

    assert shelf == {}


def test_a_command_of_another_version_is_dropped_and_told_and_stops_no_other() -> None:
    started: list[Command] = []
    shelf = Memory()
    shelf.put(f"{NOW.isoformat()} 1", '{"kind": "paint"}')
    shelf.put(f"{NOW.isoformat()} 2", NOTE.model_dump_json())

    assert modal_due.send_due(started.append, shelf, NOW) == [f"{NOW.isoformat()} 1"]

    assert started == [NOTE]
    assert shelf == {}

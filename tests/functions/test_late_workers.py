"""Workers that stand still until their lease is over, and then go on: whatever they write late is refused.

Each is a process of its own, stopped by SIGSTOP at a named point of an invocation and sent on by SIGCONT after its work
was given to another and done. Meanwhile the clock of all is moved past the lease.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.adapters.aws.schema import make_bucket, make_table
from tests.functions.container import Halt
from tests.functions.ordeal import TOPIC
from tests.functions.processes import ProcessContainer, Processes, Stopped
from tests.functions.stack import Stack, sqs_event

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.models import (
    COMMAND,
    Command,
    CycleState,
    JudgeResult,
    ReapStale,
    Result,
    ResultState,
    StartCycle,
    WriteNote,
)

LEASE_IS_OVER = timedelta(minutes=5)
"""Longer than any of the rules that these containers have."""
FUNCTION_OF = {
    "start_cycle": "schedule_cycle",
    "judge_result": "judge_result",
    "write_note": "write_note",
    "reap_stale": "reap_stale",
}


class Town:
    """One topic with one page, and a container of each function that is always well."""

    def __init__(self, processes: Processes, topic: str) -> None:
        self.processes = processes
        self.topic = topic
        self.store = processes.stack.app().store
        processes.stack.write(f"topics/{topic}.md", TOPIC)

    def do(self, command: Command) -> list[Command]:
        """By a container that is well; what follows from it."""
        return self.given(HEALTHY[self.processes, FUNCTION_OF[command.kind]], command)

    def given(self, container: ProcessContainer, command: Command, halt: Halt | None = None) -> list[Command]:
        before = len(self.processes.sent)
        answer = container.invoke(sqs_event(COMMAND.dump_json(command).decode()), halt)
        assert answer == {"batchItemFailures": []}
        return self.follows(before)

    def stopped(self, point: str, command: Command) -> ProcessContainer:
        """A container that stands still at this point of its work."""
        late = self.processes.container(FUNCTION_OF[command.kind])
        with pytest.raises(Stopped):
            self.given(late, command, Halt(f"{FUNCTION_OF[command.kind]} {point}", how="stop"))
        self.processes.clock.advance(LEASE_IS_OVER)
        return late

    def goes_on(self, late: ProcessContainer) -> list[Command]:
        """Late, yet acknowledged; what it sends."""
        before = len(self.processes.sent)
        assert late.go_on() == {"batchItemFailures": []}
        return self.follows(before)

    def follows(self, before: int) -> list[Command]:
        commands = [send.command for send in self.processes.sent[before:]]
        # A sweep looks at all topics; those of the other tests are theirs.
        return [command for command in commands if getattr(command, "topic", None) == self.topic]

    def judge(self) -> JudgeResult:
        (command,) = self.do(StartCycle(topic=self.topic, tick="t"))
        assert isinstance(command, JudgeResult)
        return command

    def result(self) -> Result:
        (result,) = self.store.results(topic=self.topic)
        return result

    def outcomes(self) -> list[str]:
        return sorted(run.outcome for run in self.store.runs(topic=self.topic))

    def entries(self) -> list[str]:
        notes = [note for key, note in self.processes.stack.notes().items() if self.topic in key]
        return re.findall(r"<!-- result: (\w+) -->", "".join(note.decode() for note in notes))


class _Healthy(dict[tuple[Processes, str], ProcessContainer]):
    def __missing__(self, key: tuple[Processes, str]) -> ProcessContainer:
        processes, function = key
        self[key] = processes.container(function)
        return self[key]


HEALTHY = _Healthy()
_numbers = itertools.count()


@pytest.fixture(scope="module")
def processes(roto: Clients, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    stack = Stack(roto, make_table(roto.dynamodb).name, make_bucket(roto), queues={}, dead={})
    with Processes(stack, tmp_path_factory.mktemp("containers"), results=1) as made:
        yield made
    HEALTHY.clear()


@pytest.fixture
def town(processes: Processes) -> Town:
    return Town(processes, f"topic-{next(_numbers)}")


def said(late: ProcessContainer) -> Counter[str]:
    """Events by name."""
    lines = [json.loads(line) for line in late.log.read_text().splitlines()]
    return Counter(str(line["event"]) for line in lines if "event" in line)


@pytest.mark.parametrize(
    ("point", "outcomes", "calls"),
    [
        ("store.claim after", ["answered"], 1),
        # Its permit is over: the call is not made, and what was counted has a run that says so.
        ("store.begin_call before", ["answered", "failed"], 1),
        ("store.begin_call after", ["answered", "superseded"], 1),
        ("keeper.judge after", ["answered", "superseded"], 2),
        # Its run is there: the next one has its verdict from it, and asks nobody.
        ("store.put_run after", ["answered"], 1),
        ("store.finish before", ["answered"], 1),
    ],
)
def test_a_late_verdict_is_refused_and_a_call_that_was_given_up_says_superseded(
    town: Town, point: str, outcomes: list[str], calls: int
) -> None:
    command, calls_before = town.judge(), town.processes.server.calls

    late = town.stopped(point, command)
    assert town.do(command) == [], "a claim that somebody holds is acknowledged"
    again = town.do(ReapStale())
    assert again == [command]
    noted = town.do(command)
    verdict = town.result()
    assert verdict.state is ResultState.KEPT
    assert noted == [WriteNote(topic=town.topic)]
    followed = town.goes_on(late)

    assert followed == []
    assert town.result() == verdict
    assert town.processes.verdicts[verdict.id] == 1
    assert town.outcomes() == outcomes
    assert town.processes.server.calls - calls_before == calls
    has_a_verdict = said(late)["model_called"] > 0 and not point.startswith("store.begin_call")
    assert said(late)["verdict_superseded"] == has_a_verdict


@pytest.mark.parametrize(
    "point", ["store.clear_note_due after", "store.open_note after", "wiki.create before", "wiki.create after"]
)
def test_a_late_writer_notes_nothing_twice(town: Town, point: str) -> None:
    (write,) = town.do(town.judge())

    late = town.stopped(point, write)
    town.do(write)
    town.goes_on(late)

    assert town.entries() == [town.result().id]
    assert town.result().noted is not None


def test_a_cycle_that_is_drained_late_sends_nothing(town: Town) -> None:
    start = StartCycle(topic=town.topic, tick="t")

    late = town.stopped("store.drain_cycle before", start)
    assert town.do(ReapStale()) == [start]
    (judge,) = town.do(start)

    assert town.goes_on(late) == []
    (cycle,) = town.store.cycles(topic=town.topic)
    assert (cycle.state, cycle.sent) == (CycleState.DRAINING, 1)
    assert town.do(judge) == [WriteNote(topic=town.topic)]


def test_a_late_reaper_frees_no_claim_of_those_that_came_after(town: Town) -> None:
    command = town.judge()
    judging = town.stopped("keeper.judge before", command)
    reaping = town.stopped("store.free before", ReapStale())

    assert town.do(ReapStale()) == [command]
    second = town.processes.container("judge_result")
    with pytest.raises(Stopped):
        town.given(second, command, Halt("judge_result keeper.judge before", how="stop"))

    assert town.goes_on(reaping) == []
    assert town.result().state is ResultState.JUDGING
    assert town.goes_on(second) == [WriteNote(topic=town.topic)]
    assert town.goes_on(judging) == []
    assert town.outcomes() == ["answered", "superseded"]

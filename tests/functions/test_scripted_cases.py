"""The scripted cases of the workflows once more: each command a message to a handler's batch, the stores those of the cloud.

The tests are those of tests/workflows, in a world of its own kind. `NOT_HERE` says which cannot come here, and why.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import pytest
from tests.adapters.aws.schema import make_bucket, make_table
from tests.functions.stack import Context, Stack, sqs_event
from tests.workflows import (
    test_judge_failures,
    test_judge_result,
    test_reap_searches,
    test_reap_stale,
    test_schedule_cycle,
    test_write_note,
)
from tests.workflows.world import TOPIC, World, open_world

from wikikeeper.adapters.aws.clients import Clients
from wikikeeper.adapters.aws.dynamodb_gate import DynamoGate
from wikikeeper.adapters.aws.dynamodb_table import Table
from wikikeeper.adapters.aws.sqs_sender import QUEUES
from wikikeeper.adapters.local.threads import ThreadHost
from wikikeeper.handling import Cloud, Workflow, batch
from wikikeeper.models import (
    COMMAND,
    CloseCycle,
    Command,
    Judgement,
    JudgeResult,
    ReapStale,
    ResultState,
    Send,
    StartCycle,
    Value,
    WriteNote,
)
from wikikeeper.workflows.judge_result import judge_result
from wikikeeper.workflows.reap_stale import reap_stale
from wikikeeper.workflows.schedule_cycle import schedule_cycle
from wikikeeper.workflows.write_note import write_note

FUNCTION_OF = {"schedule": "schedule_cycle", "judge": "judge_result", "note": "write_note", "reap": "reap_stale"}
NOT_HERE = {
    # What a person does in them is done to files of a folder.
    "test_a_topic_that_is_deleted_withdraws_its_unfinished_results",
    "test_a_topic_file_that_is_a_link_is_a_fault_and_withdraws_nothing",
    "test_new_results_join_the_open_note_below_what_a_person_wrote",
    "test_an_entry_that_a_person_deleted_is_not_written_again",
    "test_after_a_note_was_moved_or_deleted_a_new_one_opens",
    "test_a_person_who_saves_while_we_write_loses_nothing",
    # A writer's death is made by hand in SQLite; here writers die themselves (test_at_least_once).
    "test_a_note_that_was_written_but_not_marked_is_only_marked",
    "test_entries_of_a_note_that_moved_before_they_were_marked_are_not_written_twice",
    "test_a_note_that_was_started_moved_and_not_marked_is_not_noted_again",
    "test_two_writers_at_once_write_every_entry_once",
    # A handler lets no exception through. Its own form of this case is below.
    "test_a_fault_of_ours_leaves_the_result_waiting_with_its_call_accounted_for",
}
"""Cases that cannot go through handlers over a bucket."""
for module in (
    test_judge_failures,
    test_judge_result,
    test_reap_searches,
    test_reap_stale,
    test_schedule_cycle,
    test_write_note,
):
    globals().update(
        {name: case for name, case in vars(module).items() if name.startswith("test_") and name not in NOT_HERE}
    )


WORKFLOWS: Mapping[str, tuple[Workflow, tuple[type[Value], ...]]] = {
    "schedule_cycle": (schedule_cycle, (StartCycle, CloseCycle)),
    "judge_result": (judge_result, (JudgeResult,)),
    "write_note": (write_note, (WriteNote,)),
    "reap_stale": (reap_stale, (ReapStale,)),
}
"""As the handlers have them."""


class FailedMessage(Exception):
    """The handler reported it as failed."""


@dataclass
class Outbox:
    sent: list[Send] = field(default_factory=list)

    def send(self, sends: Sequence[Send]) -> None:
        self.sent += sends

    def put(self, body: str) -> None:
        raise AssertionError(f"unreadable: {body}")


@dataclass
class CloudWorld(World):
    """Its topics and notes lie in a bucket, its commands go through the handlers."""

    stack: Stack | None = None

    def topic(self, slug: str = "postgres", text: str = TOPIC) -> None:
        super().topic(slug, text)
        assert self.stack is not None
        self.stack.write(f"topics/{slug}.md", text)

    def run(self, *sends: Send) -> list[Exception]:
        host = ThreadHost(self._handled, self.reporter, workers=4, hurry=lambda command: command.kind != "start_cycle")
        host.run(sends)
        return host.errors

    def notes(self) -> dict[str, str]:
        assert self.stack is not None
        notes = self.stack.notes()
        for key, note in notes.items():  # and into the folder, as a person has them who syncs it
            (self.root / key).parent.mkdir(parents=True, exist_ok=True)
            (self.root / key).write_bytes(note)
        return {key: note.decode() for key, note in notes.items()}

    def _handled(self, command: Command) -> Sequence[Send]:
        function, outbox = FUNCTION_OF[QUEUES[command.kind]], Outbox()
        own = Cloud(function, self.app, outbox, outbox)
        workflow, kinds = WORKFLOWS[function]
        event = sqs_event(COMMAND.dump_json(command).decode())
        if batch(event, Context(), own, workflow, *kinds)["batchItemFailures"]:
            raise FailedMessage(function)
        return outbox.sent


@pytest.fixture
def world(tmp_path: Path, roto: Clients) -> Iterator[World]:
    stack = Stack(roto, make_table(roto.dynamodb).name, make_bucket(roto), queues={}, dead={})
    with open_world(tmp_path) as local:
        app = replace(
            local.app,
            store=stack.app().store,
            wiki=stack.app().wiki,
            gate=DynamoGate(Table(roto.dynamodb, stack.table), 2, local.clock.now),
        )
        parts = {part.name: getattr(local, part.name) for part in fields(local)}
        made = CloudWorld(**parts | {"app": app, "stack": stack})
        made.topic()
        yield made


def test_each_case_that_is_not_here_is_one_of_theirs() -> None:
    modules = (
        test_judge_failures,
        test_judge_result,
        test_reap_searches,
        test_reap_stale,
        test_schedule_cycle,
        test_write_note,
    )

    assert {name for module in modules for name in vars(module)} >= NOT_HERE


def test_a_fault_of_ours_fails_its_message_and_leaves_the_result_waiting_with_its_call_accounted_for(
    world: World,
) -> None:
    def broken(title: str, paragraphs: Sequence[str]) -> Judgement:
        raise ZeroDivisionError

    world.keeper.script = broken
    world.pages(a="The same text.", b="The same text.")

    errors = world.run(Send(command=StartCycle(topic="postgres", tick="t")))

    assert [type(error) for error in errors] == [FailedMessage]
    failed = [event for event in world.reporter.of("command_failed") if "where" in event]  # the host says it too
    assert [event["cause"] for event in failed] == ["ZeroDivisionError"]
    assert set(world.states().values()) == {ResultState.WAITING}
    assert [(run.outcome, run.error) for run in world.runs()] == [("failed", "internal:ZeroDivisionError")]

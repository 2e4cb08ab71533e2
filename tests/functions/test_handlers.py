"""What handlers do with events: read, work, send, and report what failed; and what they never say."""

import json
import multiprocessing
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.functions.conftest import Deploy
from tests.functions.pages import served
from tests.functions.stack import HANDLERS, QUEUES, Context, Stack, in_process, sqs_event
from tests.system.decision_server import Answer, DecisionServer, Refusal

from wikikeeper.errors import NotSent
from wikikeeper.handling import Answer as BatchAnswer
from wikikeeper.handling import Cloud, Event, batch
from wikikeeper.models import COMMAND, JudgeResult, ReapStale, ResultState, Send, StartCycle, WriteNote
from wikikeeper.workflows.context import App

ROOT = Path(__file__).parents[2]
EVERY_MINUTE = (
    "---\ntitle: A canary-title\nlinks: [{links}]\nschedule: {{cron: '* * * * *', zone: UTC}}\n---\nA canary-brief.\n"
)
OWN_COMMANDS = {
    "schedule_cycle": StartCycle(topic="none", tick="t").model_dump_json(),
    "judge_result": JudgeResult(topic="none", result="none", cycle="none").model_dump_json(),
    "write_note": WriteNote(topic="none").model_dump_json(),
    "reap_stale": ReapStale().model_dump_json(),
}


def failures(answer: BatchAnswer) -> list[str]:
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


def test_each_workflow_has_its_function_and_each_function_its_workflow() -> None:
    modules = {path.stem for path in (ROOT / "shared/wikikeeper/workflows").glob("*.py")} - {
        "__init__",
        "context",
        "given_up",
        "page_text",
        "permits",
        "silences",
    }
    # The pages work on no commands.
    folders = {path.parent.name for path in (ROOT / "functions").glob("*/handler.py")} - {"web"}

    assert modules == folders == set(HANDLERS)


@pytest.mark.parametrize("function", HANDLERS)
def test_a_handler_is_thin(function: str) -> None:
    assert len((ROOT / "functions" / function / "handler.py").read_text().splitlines()) <= 40


@pytest.mark.parametrize("function", HANDLERS)
def test_an_empty_batch_is_answered(deployed: Stack, function: str) -> None:
    assert in_process(function, {"Records": []}) == {"batchItemFailures": []}


@pytest.mark.parametrize("function", HANDLERS)
def test_a_command_whose_work_is_done_or_gone_is_acknowledged(deployed: Stack, function: str) -> None:
    assert in_process(function, sqs_event(OWN_COMMANDS[function])) == {"batchItemFailures": []}
    assert deployed.dead_letters() == {}


@pytest.mark.parametrize("function", HANDLERS)
@pytest.mark.parametrize("body", ["", "no json", '{"kind": "unheard"}', '{"kind": "judge_result"}', "another's"])
def test_what_cannot_be_read_is_a_dead_letter_at_once_and_the_rest_is_worked_on(
    deployed: Stack, function: str, body: str
) -> None:
    if body == "another's":
        body = OWN_COMMANDS["write_note" if function != "write_note" else "reap_stale"]
    body = body or " "  # SQS has no empty messages

    assert failures(in_process(function, sqs_event(body, OWN_COMMANDS[function]))) == []

    ((queue, bodies),) = deployed.dead_letters().items()
    assert QUEUES[queue] == function
    assert bodies == [body]


def test_where_no_dead_letter_queue_is_to_be_had_the_message_fails_and_the_queue_counts(
    deployed: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.clients.sqs.set_queue_attributes(QueueUrl=deployed.queues["judge"], Attributes={"RedrivePolicy": ""})

    assert failures(in_process("judge_result", sqs_event("no json"))) == ["message-0"]
    (line,) = [line for line in lines(capsys) if line.get("event") == "command_failed"]
    assert line["mend"].endswith("it has no dead-letter queue")


def test_a_tick_sends_a_start_for_each_topic_that_is_due(deployed: Stack) -> None:
    deployed.write("topics/due.md", EVERY_MINUTE.format(links="http://127.0.0.1:9/page"))
    store = deployed.app().store
    seen = deployed.app().clock.now() - timedelta(minutes=2)
    store.checked("due", seen, ran=False)
    deployed.write("topics/new.md", EVERY_MINUTE.format(links="http://127.0.0.1:9/page"))

    in_process("schedule_cycle", {"kind": "tick", "time": "2026-11-30T07:00:00Z"})

    sent = deployed.clients.sqs.receive_message(QueueUrl=deployed.queues["schedule"], MaxNumberOfMessages=10)
    commands = [COMMAND.validate_json(message["Body"]) for message in sent["Messages"]]
    assert [command.topic for command in commands if isinstance(command, StartCycle)] == ["due"]


def test_an_event_that_is_neither_a_batch_nor_a_tick_is_a_fault_of_the_invocation(deployed: Stack) -> None:
    with pytest.raises(KeyError):
        in_process("schedule_cycle", {"kind": "tock"})


# -- judging


@dataclass
class Pages:
    """A deployed stack that may fetch ten pages from a loopback server, and ask a scripted model about them."""

    stack: Stack
    origin: str
    server: DecisionServer

    def sent(self) -> list[str]:
        """The bodies of ten commands for the results of a cycle."""
        links = ", ".join(f"http://{self.origin}/{number}.txt" for number in range(10))
        self.stack.write("topics/t.md", EVERY_MINUTE.format(links=links))
        in_process("schedule_cycle", sqs_event(StartCycle(topic="t", tick="2026-11-30T07:00Z").model_dump_json()))
        taken = self.stack.clients.sqs.receive_message(QueueUrl=self.stack.queues["judge"], MaxNumberOfMessages=10)
        bodies = [message["Body"] for message in taken["Messages"]]
        assert len(bodies) == 10
        return bodies

    def states(self) -> set[ResultState]:
        return {result.state for result in self.stack.app().store.results()}


@pytest.fixture
def pages(deploy: Deploy, tmp_path: Path) -> Iterator[Pages]:
    for number in range(10):
        text = f"canary-page number {number} is long enough to be read as a text of its own.\n\n" * 3
        (tmp_path / f"{number}.txt").write_text(text)
    with served(tmp_path) as origin, DecisionServer() as server:
        stack = deploy(
            llama__base_url=server.url,
            llama__api_key="canary-key",
            fetch__allow_origins=origin,
            gate__limit="3",
            keeper__timeout="10",
        )
        yield Pages(stack, origin, server)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]


def test_ten_results_are_judged_side_by_side_in_one_invocation_without_named_semaphores(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise OSError(38, "Function not implemented")

    for name in ("Semaphore", "Lock", "Queue", "Pool"):
        monkeypatch.setattr(multiprocessing, name, absent)
    bodies = pages.sent()
    pages.server.free.clear()

    def free_when_three_are_there() -> None:
        for _ in range(3):
            pages.server.arrived.acquire(timeout=20)
        pages.server.free.set()

    freeing = threading.Thread(target=free_when_three_are_there)
    freeing.start()
    assert failures(in_process("judge_result", sqs_event(*bodies))) == []
    freeing.join()

    assert pages.states() == {ResultState.KEPT}
    assert pages.server.most_at_once == 3  # the gate's limit
    assert pages.server.calls == 10


def test_a_claim_that_another_worker_holds_is_acknowledged(pages: Pages) -> None:
    bodies = pages.sent()
    app = pages.stack.app()
    now = app.clock.now()
    for result in app.store.results():
        assert result.cycle is not None
        assert app.store.claim(result.id, result.cycle, now, now + timedelta(minutes=5)) is not None

    assert failures(in_process("judge_result", sqs_event(*bodies))) == []

    assert pages.states() == {ResultState.JUDGING}
    assert pages.server.calls == 0


def test_the_note_is_sent_for_once_and_later(pages: Pages) -> None:
    in_process("judge_result", sqs_event(*pages.sent()))

    queue = pages.stack.clients.sqs.get_queue_attributes(QueueUrl=pages.stack.queues["note"], AttributeNames=["All"])[
        "Attributes"
    ]
    assert (queue["ApproximateNumberOfMessages"], queue["ApproximateNumberOfMessagesDelayed"]) == ("0", "1")


def test_metrics_say_what_an_invocation_came_to(
    pages: Pages, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1024")
    monkeypatch.setenv("METRICS_NAMESPACE", "wk-production")
    bodies = pages.sent()
    pages.server.script = {"number 3": Answer(useful=0.1), "number 4": Refusal(500)}
    capsys.readouterr()

    in_process("judge_result", sqs_event(*bodies))

    (line,) = [line for line in lines(capsys) if "_aws" in line]
    (described,) = line["_aws"]["CloudWatchMetrics"]
    units = {metric["Name"]: metric["Unit"] for metric in described["Metrics"]}
    assert (described["Namespace"], described["Dimensions"], line["function"]) == (
        "wk-production", [["function"]], "judge_result",
    )  # fmt: skip
    assert units == {
        "kept": "Count", "discarded": "Count", "failed": "Count", "gate_wait": "Seconds", "model_seconds": "Seconds",
        "cost_estimate": "None",
    }  # fmt: skip
    assert set(units) <= set(line)
    assert (sum(line["kept"]), sum(line["discarded"]), sum(line["failed"])) == (8, 1, 1)
    assert len(line["gate_wait"]) == len(line["model_seconds"]) == 10
    assert 0 < line["cost_estimate"][0] < 0.01
    assert line["request"].startswith("request-")


def test_more_measurements_than_one_line_may_hold_are_written_in_several(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    """CloudWatch takes a hundred values of a metric in one line, and drops the line otherwise."""
    outbox = Outbox()
    own = Cloud("judge_result", stack.app(), outbox, outbox)  # type: ignore[arg-type]  # nothing unreadable comes

    def asks_often(command: WriteNote, app: App) -> list[Send]:
        for _ in range(25):
            app.reporter.event("model_called", seconds=0.25)
        return []

    batch(notes(*"abcdefghij"), Context(), own, asks_often, WriteNote, threads=10)

    written = [line for line in lines(capsys) if "_aws" in line]
    assert [len(line["model_seconds"]) for line in written] == [100, 100, 50]
    assert {(line["function"], line["request"]) for line in written} == {("judge_result", "request-1")}
    assert sum(sum(line["model_seconds"]) for line in written) == 62.5


def test_an_invocation_that_comes_to_nothing_writes_no_metrics(
    stack: Stack, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", raising=False)
    outbox = Outbox()
    own = Cloud("write_note", stack.app(), outbox, outbox)  # type: ignore[arg-type]  # nothing unreadable comes

    batch(notes("a"), Context(), own, lambda _, __: [], WriteNote)

    said = capfd.readouterr()
    assert "_aws" not in said.out
    assert said.err == ""


def test_lines_name_the_ids_and_never_a_secret_a_page_or_a_brief(
    pages: Pages, capfd: pytest.CaptureFixture[str]
) -> None:
    bodies = pages.sent()
    pages.server.script = {"number 3": Refusal(500), "number 4": Refusal(401, b'{"error": {"message": "canary-key"}}')}
    in_process("judge_result", sqs_event(*bodies))
    in_process("write_note", sqs_event('{"kind": "write_note", "topic": "t"}', '{"kind": "canary-body"}'))
    in_process("reap_stale", sqs_event('{"kind": "reap_stale"}'))

    said = capfd.readouterr()
    shown = [json.loads(line) for line in said.out.splitlines()]
    assert said.err == ""
    assert "canary" not in said.out
    runs = {run.id: run for run in pages.stack.app().store.runs()}
    called = [line for line in shown if line.get("event") == "model_called"]
    assert {line["run"] for line in called} == set(runs)
    for line in shown:
        if line.get("command") == "judge_result":
            assert {"topic", "result", "cycle", "request", "seconds"} <= line.keys()


# -- faults


class Breaking:
    """A workflow that fails for one topic, in words that quote a page."""

    def __call__(self, command: WriteNote, app: App) -> list[Send]:
        if command.topic == "bad":
            raise ValueError("canary: the words of a page")
        return [Send(command=command)]


@dataclass
class Outbox:
    sent: list[Send] = field(default_factory=list)
    full: bool = False

    def send(self, sends: Sequence[Send]) -> None:
        if self.full:
            raise NotSent(len(sends), "throttled")
        self.sent += sends


def notes(*topics: str) -> Event:
    return sqs_event(*(WriteNote(topic=topic).model_dump_json() for topic in topics))


@pytest.mark.parametrize("threads", [1, 10])
def test_one_commands_fault_fails_that_command_alone(
    stack: Stack, capsys: pytest.CaptureFixture[str], threads: int
) -> None:
    outbox = Outbox()
    own = Cloud("write_note", stack.app(), outbox, outbox)  # type: ignore[arg-type]  # nothing unreadable comes

    answer = batch(notes("a", "bad", "b"), Context(), own, Breaking(), WriteNote, threads=threads)

    assert failures(answer) == ["message-1"]
    assert sorted(send.command.topic for send in outbox.sent if isinstance(send.command, WriteNote)) == ["a", "b"]
    (line,) = [line for line in lines(capsys) if line.get("event") == "command_failed"]
    assert (line["topic"], line["cause"]) == ("bad", "ValueError")
    assert line["where"].endswith("__call__")
    assert "canary" not in json.dumps(line)


def test_what_could_not_be_sent_fails_its_command(stack: Stack) -> None:
    outbox = Outbox(full=True)
    own = Cloud("write_note", stack.app(), outbox, outbox)  # type: ignore[arg-type]  # nothing unreadable comes

    assert failures(batch(notes("a"), Context(), own, Breaking(), WriteNote)) == ["message-0"]

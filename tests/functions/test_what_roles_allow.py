"""What the functions really ask of AWS, held against what their roles allow: one cycle with everything that happens to it.

No server on loopback looks at policies, so without this a call that is not allowed would first be refused on AWS.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from functions.web import handler as web
from tests.adapters.contracts.samples import NOW, VERDICT, a_result, claimed
from tests.adapters.contracts.store_results import parked
from tests.functions.conftest import Deploy
from tests.functions.pages import linked, served
from tests.functions.requests import SETTINGS, TOKEN, Shown, cycle_hook, event, form, shown, slack_hook
from tests.functions.stack import QUEUES, Context, Pump, Stack, in_process
from tests.infra.conftest import template
from tests.infra.stack_parts import as_list, statements
from tests.system import golden_wiki
from tests.system.decision_server import DecisionServer, listing

from wikikeeper import cloud_app
from wikikeeper.handling import Answer, Event
from wikikeeper.models import Alert, ResultState, StartCycle

__all__ = ["template"]  # a fixture of the template's tests
ROLE_OF = {
    "schedule_cycle": "ScheduleCycleRole",
    "judge_result": "JudgeResultRole",
    "write_note": "WriteNoteRole",
    "reap_stale": "ReapStaleRole",
    "web": "WebRole",
}
ACTION_OF = {"HeadObject": "GetObject", "ListObjectsV2": "ListBucket", "SendMessageBatch": "SendMessage"}
"""Where a request has another name than what allows it."""
DELETED_BY = {"schedule_cycle": "alerts", "judge_result": "alerts", "reap_stale": "found"}
"""Function -> partition: nothing else is ever deleted."""
LAMBDAS_OWN = {"logs:CreateLogStream", "logs:PutLogEvents", "sqs:ReceiveMessage", "sqs:DeleteMessage"}
"""Asked for by the service in the function's name."""


@dataclass
class Recorder:
    """Stands where Lambda stands, and writes down what each function asks for."""

    stack: Stack
    function: str = ""
    asked: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: {function: set() for function in ROLE_OF})
    """Function -> action and on what, in the names of the template."""

    def invoke(self, function: str, event: Event) -> Answer:
        self.function = function
        return in_process(function, event)

    def open(self, request: Mapping[str, Any], *expected: int) -> Shown:
        """A page or hook, as the function behind the URL answers it."""
        self.function = "web"
        answer = shown(web.handler(request, Context()))
        assert answer.status in expected, answer.text
        return answer

    def listen(self) -> None:
        clients = cloud_app._clients()
        for client in (clients.dynamodb, clients.s3, clients.sqs):
            client.meta.events.register("provide-client-params.*.*", self._note)

    def _note(self, params: Mapping[str, Any], model: Any, **_: object) -> None:  # noqa: ANN401 - botocore's
        service = model.service_model.service_name
        action = f"{service}:{ACTION_OF.get(model.name, model.name)}"
        if action == "dynamodb:DeleteItem":
            assert params["Key"]["pk"]["S"] == DELETED_BY[self.function]
        for on in self._on(service, params):
            self.asked[self.function].add((action, on))

    def _on(self, service: str, params: Mapping[str, Any]) -> Iterator[str]:
        match service:
            case "dynamodb":
                yield f"Table/index/{params['IndexName']}" if "IndexName" in params else "Table"
            case "s3":
                yield f"Bucket/{params['Key']}" if "Key" in params else "Bucket"
            case _:
                urls = {url: f"{name.title()}Queue" for name, url in self.stack.queues.items()}
                dead = {url: f"{name.title()}DeadLetters" for name, url in self.stack.dead.items()}
                yield (urls | dead)[params["QueueUrl"]]


def asked(deploy: Deploy, folder: Path) -> dict[str, set[tuple[str, str]]]:
    """A cycle that is skipped, one that keeps and discards, a sweep, and for each function a message that it cannot read."""
    wiki = golden_wiki.copy_to(folder)
    pages = (wiki / "pages").rename(folder / "pages")
    with served(pages) as origin, DecisionServer(golden_wiki.SCRIPT) as server:
        stack = deploy(
            llama__base_url=server.url, fetch__allow_origins=origin, research__note_delay="0", gate__limit="1",
            **SETTINGS,
        )  # fmt: skip
        stack.write("topics/quillstore.md", linked((wiki / "topics" / "quillstore.md").read_text(), pages, origin))
        recorder = Recorder(stack)
        recorder.listen()
        pump = Pump(stack, recorder.invoke)
        recorder.invoke("schedule_cycle", {"kind": "tick"})

        well, server.models = server.models, (200, listing())
        _cycle(stack, pump, "2026-11-30T06:00Z")  # skipped, with an alert
        server.models = well
        _raise_alert_of_calls(stack)
        _cycle(stack, pump, "2026-11-30T07:00Z")  # every alert is over
        for queue in QUEUES:
            stack.send(queue, "unreadable")
        _forget_a_note(stack)
        stack.send("reap", '{"kind": "reap_stale"}')
        pump.until_idle()
    assert pump.failed == []
    assert len(stack.notes()) == 1, "the forgotten entry joins it"
    assert list(stack.app().store.alerts()) == []
    _read_everything(stack, recorder)
    return recorder.asked


def _read_everything(stack: Stack, recorder: Recorder) -> None:
    """Every page, everything that can be done on one, and every hook."""
    store = stack.app().store
    [key] = stack.notes()
    name = key.rpartition("/")[2]
    run = next(iter(store.runs()))
    cookies = recorder.open(form("/login", token=TOKEN), 303).cookies
    pages = ("topics", "cycles", "attention", "thresholds", "label", "calibrate", "notes", f"notes/awaiting/{name}")
    for path in ("runs", f"runs/{run.id}", *pages):
        recorder.open(event("GET", f"/{path}", cookies=cookies), 200)
    recorder.open(event("GET", "/runs", query="trigger=Triage&topic=quillstore", cookies=cookies), 200)
    recorder.open(form(f"/runs/{run.id}/label", cookies, should="kept"), 303)
    recorder.open(form("/label", cookies, run=run.id, should="discarded", seed="ab"), 303)
    stuck = parked(store, a_result(2, topic="quillstore"))
    recorder.open(form(f"/results/{stuck.id}/retry", cookies), 303)
    note = stack.app().wiki.read(key)
    assert note is not None
    recorder.open(form(f"/notes/awaiting/{name}/done", cookies, etag=note.etag), 303)
    recorder.open(cycle_hook({"kind": "result", "topic": "quillstore", "urls": ["https://example.org/new"]}), 202)
    recorder.open(slack_hook(REACTION), 202)


REACTION = {
    "type": "event_callback",
    "team_id": "T1",
    "event_id": "Ev1",
    "event": {
        "type": "reaction_added", "user": "U1", "reaction": "eyes", "event_ts": "1.2",
        "item": {"type": "message", "channel": "C1", "ts": "1.1"},
    },
}  # fmt: skip


def _cycle(stack: Stack, pump: Pump, tick: str) -> None:
    stack.send("schedule", StartCycle(topic="quillstore", tick=tick).model_dump_json())
    pump.until_idle()


def _forget_a_note(stack: Stack) -> None:
    """A page that is kept, and nobody wrote its note: whether its topic is still there is for the reaper to see."""
    store = stack.app("judge_result").store
    claim = claimed(store, a_result(topic="quillstore"))
    store.finish(claim, ResultState.KEPT, NOW, verdict=VERDICT)
    store.set_note_due("quillstore", NOW)


def _raise_alert_of_calls(stack: Stack) -> None:
    app = stack.app("judge_result")
    app.store.raise_alert(
        Alert(subject=f"calls:{app.decider.model}", cause="no_answer", detail="", raised=app.clock.now())
    )


def allows(template: dict[str, Any], function: str) -> Iterator[tuple[str, "re.Pattern[str]"]]:
    """Action and on what, for each line of a role."""
    for statement in statements(template, ROLE_OF[function]):
        for resource in as_list(statement["Resource"]):
            match resource:
                case {"Fn::GetAtt": [name, "Arn"]}:
                    on = re.escape(name)
                case {"Fn::Sub": text}:
                    on = re.escape(text.replace("${Table.Arn}", "Table").replace("${Bucket.Arn}", "Bucket"))
                case _:
                    raise AssertionError(resource)
            for action in as_list(statement["Action"]):
                yield action, re.compile(on.replace(r"\*", ".*"))


LISTED = ("s3:ListBucket", "Bucket")
"""A file that is gone, such as that of a deleted topic: without it S3 says that reading is forbidden, not that it is gone."""
SELDOM = {
    # A model that loads; and what Lambda itself sends for a tick that failed twice.
    "schedule_cycle": {("sqs:SendMessage", "ScheduleQueue"), ("sqs:SendMessage", "RuleDeadLetters")},
    # A text that is stored already is copied onto itself, to stay longer.
    "judge_result": {("s3:GetObject", "Bucket/pages/"), LISTED},
    "write_note": {LISTED},
    # A claim that is freed, its lost call, and a note that was forgotten.
    "reap_stale": {
        LISTED,
        ("dynamodb:GetItem", "Table"),
        ("dynamodb:PutItem", "Table"),
        ("dynamodb:UpdateItem", "Table"),
        ("sqs:SendMessage", "JudgeQueue"),
        ("sqs:SendMessage", "NoteQueue"),
    },
    # Somebody wrote in a note while it was being moved: the copy goes again.
    "web": {("s3:DeleteObject", "Bucket/wiki/inbox/completed/")},
}
"""Needed, and not seen in this cycle: Function -> action and on what."""


def test_functions_may_do_what_they_do_and_nothing_else(
    template: dict[str, Any], deploy: Deploy, tmp_path: Path
) -> None:
    refused: set[tuple[str, ...]] = set()
    unused: set[tuple[str, ...]] = set()
    for function, did in asked(deploy, tmp_path).items():
        allowed = list(allows(template, function))
        refused |= {
            (function, action, on)
            for action, on in did
            if not any(action == may and where.fullmatch(on) for may, where in allowed)
        }
        unused |= {
            (function, may, where.pattern)
            for may, where in allowed
            if may not in LAMBDAS_OWN
            and not any(action == may and where.fullmatch(on) for action, on in did | SELDOM[function])
        }

    assert refused == set()
    assert unused == set()

"""Escalations reach a person where a messenger is set up: at least once, whatever happens on the way."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import SecretStr
from tests.workflows.reaping import LEASE, Killed, escalations, killed, started, sweep, told, work_and_die
from tests.workflows.world import World

from wikikeeper.adapters.slack.messenger import SlackMessenger
from wikikeeper.errors import NotDelivered, Unusable
from wikikeeper.models import Escalation, JudgeResult, StartCycle
from wikikeeper.policy.silence import message
from wikikeeper.workflows.schedule_cycle import schedule_cycle

MINUTE = timedelta(minutes=1)


@dataclass
class Postman:
    """A messenger with a script: what each try raises, and then nothing."""

    script: list[Exception | type[BaseException] | None] = field(default_factory=list)
    tries: int = 0
    got: list[str] = field(default_factory=list)

    def send(self, text: str) -> None:
        self.tries += 1
        raised = self.script.pop(0) if self.script else None
        if raised is not None:
            raise raised
        self.got.append(text)


@pytest.fixture
def postman(world: World) -> Postman:
    made = Postman()
    world.app = replace(world.app, messenger=made)
    return made


def given_up(world: World, *names: str) -> None:
    """Pages that kill every worker, until the sweep that gives them up."""
    sends = started(world, **{name: f"Page {name}." for name in names})
    for _ in range(4):
        work_and_die(world, sends)
        world.clock.advance(LEASE)
        sends = sweep(world)


def undelivered(world: World) -> list[Escalation]:
    return list(world.app.store.escalations(undelivered=True))


def test_a_person_is_told_once_of_what_was_given_up(world: World, postman: Postman) -> None:
    given_up(world, "a")
    for _ in range(3):
        world.clock.advance(MINUTE)
        sweep(world)

    [escalation] = escalations(world)
    assert postman.got == [message(escalation)]
    assert told(world) == [escalation.id]
    assert escalation.delivered == escalation.raised


def test_what_is_sent_says_what_where_since_when_and_what_to_do(world: World, postman: Postman) -> None:
    given_up(world, "a")

    [text], [escalation] = postman.got, escalations(world)
    result = world.result("a")
    assert text.splitlines() == [
        "wikikeeper gave up on silent work of the topic postgres",
        (
            "whoever was judging this page was not heard of again; sent again 3 times. "
            f"Look at the log of that time, then 'wikikeeper retry {result.id}' tries it again"
        ),
        f"Given up since {escalation.raised:%Y-%m-%d %H:%M} UTC",
        f"Id: result:{result.id}:{result.fence}",
    ]


@pytest.mark.parametrize(
    ("failure", "cause"), [(NotDelivered("http_503"), "http_503"), (Unusable("slack.webhook_url: gone"), "unusable")]
)
def test_what_was_not_delivered_is_tried_at_each_sweep_until_it_is(
    world: World, postman: Postman, failure: Exception, cause: str
) -> None:
    postman.script = [failure, failure]
    given_up(world, "a")
    [escalation] = undelivered(world)
    assert told(world) == [escalation.id], "the log has it at once"
    for _ in range(4):
        world.clock.advance(MINUTE)
        sweep(world)

    assert postman.got == [message(escalation)]
    assert postman.tries == 3
    [delivered] = escalations(world)
    assert delivered.delivered == escalation.raised + 2 * MINUTE
    assert set(told(world)) == {escalation.id}, "one record, however often it is told"
    failed = world.reporter.of("escalation_not_delivered")
    assert [(each["escalation"], each["cause"]) for each in failed] == [(escalation.id, cause)] * 2


def test_what_only_a_person_can_mend_is_an_alert_until_it_is_mended(world: World, postman: Postman) -> None:
    postman.script = [Unusable("slack.webhook_url: make a new one")] * 2
    given_up(world, "a")
    sweep(world)

    [alert] = world.app.store.alerts()
    assert (alert.subject, alert.detail) == ("messenger", "slack.webhook_url: make a new one")
    assert len(world.reporter.of("alert")) == 1, "told once, not each minute"
    sweep(world)
    assert list(world.app.store.alerts()) == []


def test_a_messenger_that_is_out_costs_a_sweep_one_try(world: World, postman: Postman) -> None:
    postman.script = [NotDelivered("deadline")]
    given_up(world, "a", "b", "c")

    assert postman.tries == 1
    assert len(undelivered(world)) == 3
    assert len(told(world)) == 3
    sweep(world)
    assert sorted(postman.got) == sorted(map(message, escalations(world)))


def test_a_text_that_is_refused_holds_back_no_other(world: World, postman: Postman) -> None:
    postman.script = [Unusable("slack.webhook_url: this is a fault of wikikeeper")]
    given_up(world, "a", "b")

    assert len(postman.got) == 1
    [left] = undelivered(world)
    assert message(left) not in postman.got


def test_without_a_messenger_the_log_is_enough(world: World) -> None:
    given_up(world, "a")

    assert undelivered(world) == []
    assert len(told(world)) == 1


def test_one_that_dies_between_sending_and_remembering_sends_again(world: World, postman: Postman) -> None:
    delivered = world.app.store.escalation_delivered
    world.app.store.escalation_delivered = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        given_up(world, "a")
    world.app.store.escalation_delivered = delivered  # type: ignore[method-assign]
    assert len(postman.got) == 1

    # Started again, by whoever comes next.
    again = Postman()
    world.app = replace(world.app, messenger=again)
    for _ in range(3):
        sweep(world)
    assert again.got == postman.got
    assert len(escalations(world)) == 1


def test_one_that_dies_while_sending_is_made_up_for(world: World, postman: Postman) -> None:
    postman.script = [Killed]
    with pytest.raises(Killed):
        given_up(world, "a")
    assert len(undelivered(world)) == 1

    for _ in range(3):
        sweep(world)
    assert postman.got == [message(escalations(world)[0])]


# -- the real messenger


@contextmanager
def slack(statuses: list[int]) -> Iterator[tuple[SecretStr, list[str]]]:
    """Answers as Slack does, with these statuses and then 200. Gives its address and the texts that it took."""
    got: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"]
            status = statuses.pop(0) if statuses else 200
            if status == 200:
                got.append(text)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"ok" if status == 200 else b"no_service")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield SecretStr(f"http://127.0.0.1:{server.server_address[1]}/services/T0/B0/canary"), got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_slack_gets_it_after_an_outage_and_a_webhook_that_was_switched_off(world: World) -> None:
    with slack([503, 404]) as (address, got), closing(SlackMessenger(address)) as messenger:
        world.app = replace(world.app, messenger=messenger)
        given_up(world, "a")
        assert got == []
        for _ in range(4):
            sweep(world)

    [escalation] = escalations(world)
    assert got == [message(escalation)]
    causes = [each["cause"] for each in world.reporter.of("escalation_not_delivered")]
    assert causes == ["http_503", "unusable"]
    assert "canary" not in str(world.reporter.events)


def test_a_fault_in_telling_takes_nothing_with_it_that_was_taken_back(world: World, postman: Postman) -> None:
    """It is counted by then: were it not sent, a page whose one worker died would be given up untried."""
    given_up(world, "a")
    world.app.store.escalate(Escalation(id="x:1", subject="x", topic="postgres", detail="d", raised=world.clock.now()))
    world.pages(b="Page b.")
    sends = schedule_cycle(StartCycle(topic="postgres", tick="last"), world.app)
    work_and_die(world, sends)
    world.clock.advance(LEASE)
    postman.script = [RuntimeError("a fault of ours, which may quote a page")]

    [again] = sweep(world)

    assert isinstance(again.command, JudgeResult)
    assert again.command.result == world.result("b").id
    assert world.reporter.of("escalation_not_delivered")[-1] == {
        "escalation": "x:1",
        "cause": "internal:RuntimeError",
        "detail": "",
    }
    world.clock.advance(MINUTE)
    sweep(world)
    assert undelivered(world) == []


@pytest.mark.parametrize(
    ("fault", "cause", "detail"),
    [
        (NotDelivered("http_503", detail="it is down"), "http_503", "it is down"),
        (Unusable("slack.webhook_url: make a new one"), "unusable", "slack.webhook_url: make a new one"),
    ],
)
def test_what_kept_a_message_from_its_reader_is_said(
    world: World, postman: Postman, fault: Exception, cause: str, detail: str
) -> None:
    postman.script = [fault]

    given_up(world, "a")

    [escalation] = escalations(world)
    said = {"escalation": escalation.id, "cause": cause, "detail": detail}
    assert world.reporter.of("escalation_not_delivered") == [said]
    alerts = [{"subject": "messenger", "cause": cause, "detail": detail}] * isinstance(fault, Unusable)
    assert world.reporter.of("alert") == alerts
    assert [(alert.subject, alert.cause, alert.detail) for alert in world.app.store.alerts()] == [
        tuple(each.values()) for each in alerts
    ]

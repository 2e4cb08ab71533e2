"""Messages to Slack, against a server on loopback that answers as Slack's incoming webhooks do."""

import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from wikikeeper.adapters.slack.messenger import MEND, MOST_CHARACTERS, SlackMessenger, escaped
from wikikeeper.errors import NotDelivered, Unusable
from wikikeeper.ports import Messenger
from wikikeeper.settings import Settings

PATH = "/services/T000/B000/canary-9f31"


@dataclass
class FakeSlack:
    status: int = 200
    body: str = "ok"
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> SecretStr:
        return SecretStr(f"http://127.0.0.1:{self.port}{PATH}")


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    fake = FakeSlack()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            fake.got.append((self.path, json.loads(self.rfile.read(length))))
            self.send_response(fake.status)
            for name, value in fake.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(fake.body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def messenger(url: SecretStr, seconds: float = 5) -> Iterator[Messenger]:
    with closing(SlackMessenger(url, seconds=seconds)) as made:
        yield made


def failure(url: SecretStr, seconds: float = 5) -> NotDelivered | Unusable:
    with messenger(url, seconds) as slack, pytest.raises((NotDelivered, Unusable)) as raised:
        slack.send("text")
    assert isinstance(raised.value, NotDelivered | Unusable)
    shown = f"{raised.value} {raised.value!r} {raised.value.__cause__!r}"
    assert "canary" not in shown
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    return raised.value


def test_a_text_arrives_as_it_was_written(slack: FakeSlack) -> None:
    with messenger(slack.url) as to:
        to.send("größer & <!channel> \u202e *bold* 日本")

    assert slack.got == [(PATH, {"text": "größer &amp; &lt;!channel&gt; \u202e *bold* 日本"})]


@pytest.mark.parametrize("said", sorted(MEND))
def test_what_nobody_but_a_person_can_mend_says_what_to_do(slack: FakeSlack, said: str) -> None:
    slack.status, slack.body = 404, said

    error = failure(slack.url)

    assert isinstance(error, Unusable)
    assert str(error) == f"slack.webhook_url: {MEND[said]} ({said})"


@pytest.mark.parametrize(("status", "body"), [(400, "x" * 10_000), (403, PATH), (404, "<html>"), (302, ""), (204, "")])
def test_an_answer_that_is_not_slacks_asks_whether_the_address_is_right(
    slack: FakeSlack, status: int, body: str
) -> None:
    slack.status, slack.body = status, "" if status == 204 else body
    slack.headers = {"Location": "http://127.0.0.1:9/elsewhere"}

    error = failure(slack.url)

    assert isinstance(error, Unusable)
    assert f"HTTP {status}" in str(error)
    assert len(slack.got) == 1


@pytest.mark.parametrize(
    ("status", "header", "after"),
    [(429, "30", timedelta(seconds=30)), (429, None, None), (500, None, None), (503, "7", timedelta(seconds=7))],
)
def test_a_busy_slack_is_asked_again_when_it_says(
    slack: FakeSlack, status: int, header: str | None, after: timedelta | None
) -> None:
    slack.status, slack.headers = status, {} if header is None else {"Retry-After": header}

    error = failure(slack.url)

    assert isinstance(error, NotDelivered)
    assert (error.cause, error.after) == (f"http_{status}", after)


def test_an_unreachable_and_a_silent_slack_are_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        late = failure(SecretStr(f"http://127.0.0.1:{port}{PATH}"), seconds=0.1)
    gone = failure(SecretStr(f"http://127.0.0.1:{port}{PATH}"))

    assert isinstance(late, NotDelivered)
    assert isinstance(gone, NotDelivered)
    assert (late.cause, gone.cause) == ("deadline", "connect")


def test_the_address_is_in_no_log(slack: FakeSlack, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), messenger(slack.url) as to:
        to.send("text")
        slack.status = 500
        with pytest.raises(NotDelivered):
            to.send("text")

    assert "canary" not in caplog.text


def test_an_empty_text_is_refused_before_it_is_sent(slack: FakeSlack) -> None:
    with messenger(slack.url) as to, pytest.raises(ValueError, match="empty"):
        to.send(" \n")

    assert slack.got == []


@given(st.text(st.characters(), max_size=300))
def test_slack_reads_nothing_into_a_text(text: str) -> None:
    out = escaped(text)

    assert not set(out) & set("<>")
    back = out.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert back == text.encode("utf-8", "replace").decode()


@given(st.text("&<>x", min_size=1, max_size=30), st.integers(0, 10))
def test_a_long_text_is_cut_between_characters(piece: str, shift: int) -> None:
    out = escaped("x" * shift + piece * MOST_CHARACTERS)

    assert MOST_CHARACTERS - 10 <= len(out) <= MOST_CHARACTERS
    rest = out.removesuffix("…").replace("&lt;", "").replace("&gt;", "").replace("&amp;", "")
    assert not set(rest) & set("&<>")


@pytest.mark.parametrize("url", ["canary", "ftp://canary.example/", "https://"])
def test_an_address_that_is_none_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings(slack={"webhook_url": url})

    assert "canary" not in str(refused.value.errors(include_input=False))

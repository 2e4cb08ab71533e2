"""A model server behind Modal's proxy: calls beyond 150 seconds answer 303, and strangers get 401.

`test_decide.py` has the rules for redirects; here they are held against real sockets, with all that is secret.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from pydantic import SecretStr
from tests.adapters.llama.scripted import GOOD, REQUEST

from wikikeeper.adapters.llama.decide import LlamaDecider
from wikikeeper.errors import ModelUnusable, Unusable

KEY, PROXY_KEY, PROXY_SECRET = "sk-canary-7f3a", "wk-canary-1b", "ws-canary-9c"
SECRETS = (KEY, PROXY_KEY, PROXY_SECRET)
PROXY = (SecretStr(PROXY_KEY), SecretStr(PROXY_SECRET))


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Modal:
    """Turns strangers away; answers a call with redirects to its result, then with the result."""

    location: str = "/v1/systemone?__modal_function_call_id=fc-1"
    redirects: int = 1
    """How often the result is not there yet."""
    asked: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(asked)
        if (asked.headers.get("Modal-Key"), asked.headers.get("Modal-Secret")) != (PROXY_KEY, PROXY_SECRET):
            return 401, {}, b"modal-http: missing credentials for proxy authorization\n"
        if len(self.asked) <= self.redirects:
            return 303, {"Location": self.location}, b""
        return 200, {"Content-Type": "application/json"}, json.dumps(GOOD).encode()


@contextmanager
def serving(modal: Modal) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        answers: ClassVar[Modal] = modal

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, headers, content = self.answers.answer(Asked(self.command, self.path, dict(self.headers), body))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815 - http.server's name

        def log_request(self, code: object = "-", size: object = "-") -> None:
            """Say nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def client(base_url: str, proxy: tuple[SecretStr, SecretStr] | None = PROXY) -> Iterator[LlamaDecider]:
    decider = LlamaDecider(base_url, "decider", SecretStr(KEY), connect_timeout=5, timeout=10, proxy=proxy)
    try:
        yield decider
    finally:
        decider.close()


@pytest.mark.parametrize("redirects", [0, 1, 5])
def test_a_call_that_takes_minutes_is_asked_once_and_its_result_fetched(redirects: int) -> None:
    modal = Modal(redirects=redirects)
    with serving(modal) as base_url, client(base_url) as decider:
        reply = decider.decide(REQUEST)

    assert (reply.model, reply.attempts) == ("m-1", 1)
    assert [asked.method for asked in modal.asked] == ["POST"] + ["GET"] * redirects
    assert all(asked.path == modal.location and asked.body == b"" for asked in modal.asked[1:])


def test_the_result_is_fetched_with_key_and_proxy_token() -> None:
    modal = Modal()
    with serving(modal) as base_url, client(base_url) as decider:
        decider.decide(REQUEST)

    result = modal.asked[-1].headers
    assert (result["Authorization"], result["Modal-Key"], result["Modal-Secret"]) == (
        f"Bearer {KEY}",
        PROXY_KEY,
        PROXY_SECRET,
    )


def test_a_redirect_to_somebody_else_takes_nothing_along() -> None:
    other = Modal(redirects=0)
    with serving(other) as elsewhere:
        modal = Modal(location=f"{elsewhere}/v1/systemone?__modal_function_call_id=fc-1")
        with serving(modal) as base_url, client(base_url) as decider, pytest.raises(ModelUnusable) as failed:
            decider.decide(REQUEST)

    assert failed.value.cause == "redirected"
    assert other.asked == []
    assert not any(secret in str(failed.value) for secret in SECRETS)


def test_without_the_proxy_token_the_server_is_told_apart_from_one_that_is_off() -> None:
    modal = Modal()
    with serving(modal) as base_url, client(base_url, proxy=None) as decider:
        state = decider.state()
        with pytest.raises(ModelUnusable) as failed:
            decider.decide(REQUEST)

    assert (state.state, state.cause) == ("unhealthy", "unauthorized")
    assert failed.value.cause == "unauthorized"
    assert not any("Modal-Key" in asked.headers for asked in modal.asked)


@pytest.mark.parametrize(
    ("proxy", "named"),
    [
        ((SecretStr("two\nlines"), SecretStr("s")), "proxy_key"),
        ((SecretStr("k"), SecretStr("pass phrase")), "proxy_secret"),
    ],
)
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(
    proxy: tuple[SecretStr, SecretStr], named: str
) -> None:
    with pytest.raises(Unusable, match=named) as refused:
        LlamaDecider("http://127.0.0.1:9", "m", None, connect_timeout=1, timeout=1, proxy=proxy)

    assert not any(part.get_secret_value() in str(refused.value) for part in proxy if len(part.get_secret_value()) > 1)

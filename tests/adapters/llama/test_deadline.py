"""Against real sockets: what no mock of the transport shows."""

import socket
import time

import pytest
from tests.adapters.decider_contract import asking_about
from tests.adapters.llama.servers import Script, raw

from wikikeeper.adapters.llama.decide import LlamaDecider
from wikikeeper.errors import AnswerMalformed, AnswerTimedOut, ModelError, ModelUnavailable

REQUEST = asking_about("birds")
DEADLINE = 0.4
SLACK = 0.6
"""Seconds that a busy machine may add."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def dripping(head: bytes, drop: bytes) -> Script:
    """Send the head at once and then one drop at a time, each well inside any read timeout, without end."""

    def script(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(drop)
            time.sleep(0.02)

    return script


def sending(*parts: bytes) -> Script:
    return lambda connection: connection.sendall(b"".join(parts))


def silent(connection: socket.socket) -> None:
    connection.settimeout(5)  # bounded, should the client never hang up
    connection.recv(1)


def call(base_url: str, timeout: float = DEADLINE) -> ModelError:
    decider = LlamaDecider(base_url, "m", None, connect_timeout=5, timeout=timeout)
    try:
        with pytest.raises(ModelError) as failed:
            decider.decide(REQUEST)
    finally:
        decider.close()
    return failed.value


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(silent, id="nothing"),
        pytest.param(dripping(b"", b"H"), id="status line"),
        pytest.param(dripping(HEAD, b"X: y\r\n"), id="headers"),
        pytest.param(dripping(HEAD + b"Content-Length: 100000\r\n\r\n", b" "), id="body"),
        pytest.param(dripping(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"), id="chunks"),
    ],
)
def test_a_server_that_drips_does_not_outlive_the_deadline(script: Script) -> None:
    with raw(script) as base_url:
        began = time.monotonic()
        error = call(base_url)
        took = time.monotonic() - began

    assert isinstance(error, AnswerTimedOut)
    assert error.cause == "deadline"
    assert DEADLINE * 0.9 <= took < DEADLINE + SLACK


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        (sending(), "malformed:no_response"),
        (sending(b"SSH-2.0-OpenSSH_9.2\r\n"), "malformed:no_response"),
        (sending(HEAD, b"Content-Length: 40\r\n\r\n", b'{"model": '), "malformed:truncated"),
        (sending(HEAD, b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\n{"), "malformed:truncated"),
        (sending(HEAD, b"\r\n", b'{"model": '), "malformed:not_json"),
        (sending(HEAD, b"Content-Length: 0\r\n\r\n"), "malformed:empty"),
    ],
)
def test_an_answer_that_breaks_off_is_malformed(script: Script, cause: str) -> None:
    with raw(script) as base_url:
        error = call(base_url, timeout=5)

    assert isinstance(error, AnswerMalformed)
    assert error.cause == cause


def test_an_endless_answer_is_cut() -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"\r\n")
        while True:
            connection.sendall(b" " * 65536)

    with raw(endless) as base_url:
        error = call(base_url, timeout=30)

    assert isinstance(error, AnswerMalformed)
    assert error.cause == "malformed:too_large"


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "127.0.0.1:99999", "a" * 64 + ".invalid"])
def test_an_address_where_nobody_can_be_is_unreachable(address: str) -> None:
    with socket.socket() as bound:  # and not listening: nobody else gets its port meanwhile
        bound.bind(("127.0.0.1", 0))
        error = call(f"http://{address.format(port=bound.getsockname()[1])}", timeout=0.3)

    assert isinstance(error, ModelUnavailable)
    assert error.cause == "unreachable"


def test_waking_does_not_wait_for_the_model() -> None:
    with raw(silent) as base_url:
        decider = LlamaDecider(base_url, "m", None, connect_timeout=5, timeout=60)
        began = time.monotonic()
        decider.wake()
        took = time.monotonic() - began
        decider.close()

    assert took < 1 + SLACK


def test_a_server_that_closes_what_it_promised_to_keep_loses_no_call() -> None:
    """llama-server's router does: `Keep-Alive: timeout=5`, and then the connection is closed behind the answer."""
    body = b'{"model": "m", "answers": {"about": {"type": "noul", "noul": 0.5}}}'
    promise = HEAD + b"Keep-Alive: timeout=5, max=100\r\nContent-Length: %d\r\n\r\n" % len(body)

    with raw(sending(promise, body)) as base_url:
        decider = LlamaDecider(base_url, "m", None, connect_timeout=5, timeout=5)
        assert [decider.decide(REQUEST).attempts for _ in range(50)] == [1] * 50
        decider.close()

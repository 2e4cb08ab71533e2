import json
import logging
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest
from pydantic import SecretStr
from tests.adapters.llama.scripted import BASE, GOOD, KEY, REQUEST, Server, client, good

from wikikeeper.adapters.llama.decide import LlamaDecider
from wikikeeper.errors import (
    AnswerMalformed,
    ModelError,
    ModelUnusable,
    PageRefused,
    Unusable,
)
from wikikeeper.models import NoulAnswer

if TYPE_CHECKING:
    from wikikeeper.ports import Decider


def test_it_is_a_decider() -> None:
    decider: Decider = client(Server(good()))

    assert decider.model == "decider"


def test_a_call_names_its_model_and_brings_its_key() -> None:
    server = Server(good())

    reply = client(server).decide(REQUEST)

    (asked,) = server.asked
    assert (asked.method, str(asked.url)) == ("POST", f"{BASE}/v1/systemone")
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.headers["Content-Type"] == "application/json"
    assert json.loads(asked.content)["model"] == "decider"
    assert (reply.model, reply.input_tokens, reply.attempts) == ("m-1", 9, 1)
    assert reply.answers == {"about": NoulAnswer(noul=0.75)}


@pytest.mark.parametrize(
    ("base_url", "asked"),
    [
        ("http://h:1", "http://h:1/v1/systemone"),
        ("http://h:1/", "http://h:1/v1/systemone"),
        ("http://h:1/v1", "http://h:1/v1/systemone"),
        ("http://h:1/v1/", "http://h:1/v1/systemone"),
        ("https://h/llama/box", "https://h/llama/box/v1/systemone"),
        ("https://h/llama/v1/", "https://h/llama/v1/systemone"),
        ("https://h/prev1", "https://h/prev1/v1/systemone"),
        ("http://[::1]:8080/", "http://[::1]:8080/v1/systemone"),
    ],
)
def test_the_base_url_may_have_a_path_with_or_without_v1(base_url: str, asked: str) -> None:
    server = Server(good())

    client(server, base_url=base_url).decide(REQUEST)

    assert str(server.asked[0].url) == asked


@pytest.mark.parametrize(
    "base_url",
    [
        "model:8080",
        "ftp://h",
        "http://",
        "",
        "http://user:secret@h",
        "http://h?key=1",
        "http://h#x",
    ],
)
def test_a_base_url_that_cannot_be_used_is_refused_at_once(base_url: str) -> None:
    with pytest.raises(Unusable):
        client(Server(good()), base_url=base_url)


@pytest.mark.parametrize("key", ["", "two words", "line\n", "schlüssel", "a\r\nX-Other: b"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(Unusable) as refused:
        LlamaDecider(BASE, "m", SecretStr(key), connect_timeout=1, timeout=1)

    assert not key or key not in str(refused.value)


class TestRedirects:
    def test_a_slow_call_is_fetched_where_the_server_says(self) -> None:
        later = httpx.Response(303, headers={"Location": "/v1/systemone?call=fc-1"})
        server = Server(later, later, good())

        reply = client(server).decide(REQUEST)

        assert reply.attempts == 1
        assert [(asked.method, asked.url.query) for asked in server.asked] == [
            ("POST", b""),
            ("GET", b"call=fc-1"),
            ("GET", b"call=fc-1"),
        ]
        assert server.asked[1].content == b""

    @pytest.mark.parametrize("status", [307, 308])
    def test_a_moved_path_gets_the_same_call(self, status: int) -> None:
        server = Server(httpx.Response(status, headers={"Location": f"{BASE}/api/v1/systemone"}), good())

        client(server).decide(REQUEST)

        assert [asked.method for asked in server.asked] == ["POST", "POST"]
        assert server.asked[0].content == server.asked[1].content

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    @pytest.mark.parametrize(
        "location",
        [
            "https://model.test:8080/v1/systemone",
            "http://model.test/v1/systemone",
            "//evil.test:8080/x",
        ],
    )
    def test_neither_page_nor_key_goes_to_another_origin(self, status: int, location: str) -> None:
        server = Server(httpx.Response(status, headers={"Location": location}), good())

        with pytest.raises(ModelUnusable) as failed:
            client(server).decide(REQUEST)

        assert failed.value.cause == "redirected"
        assert len(server.asked) == 1

    @pytest.mark.parametrize("location", ["http://xn--0/", "http://h:abc/"])
    def test_an_impossible_address_is_a_broken_answer(self, location: str) -> None:
        server = Server(httpx.Response(307, headers={"Location": location}), good())

        with pytest.raises(AnswerMalformed) as failed:
            client(server).decide(REQUEST)

        assert (failed.value.cause, len(server.asked)) == ("malformed:no_response", 1)

    def test_the_state_is_not_asked_elsewhere_either(self) -> None:
        server = Server(httpx.Response(307, headers={"Location": "http://evil.test/"}), good())

        state = client(server).state()

        assert (state.state, state.cause, len(server.asked)) == ("unhealthy", "redirected", 1)

    def test_a_moved_page_is_for_a_person_to_mend(self) -> None:
        server = Server(httpx.Response(301, headers={"Location": "/elsewhere"}), good())

        with pytest.raises(ModelUnusable) as failed:
            client(server).decide(REQUEST)

        assert (failed.value.cause, len(server.asked)) == ("redirected", 1)

    @pytest.mark.parametrize("location", ["/v1/systemone", "http://[", ""])
    def test_a_circle_ends(self, location: str) -> None:
        server = Server(httpx.Response(307, headers={"Location": location}))

        with pytest.raises(ModelUnusable) as failed:
            client(server).decide(REQUEST)

        assert failed.value.cause == "redirected"
        assert len(server.asked) <= 21


class TestBodies:
    def test_an_answer_beyond_a_megabyte_is_not_read(self) -> None:
        with pytest.raises(AnswerMalformed) as failed:
            client(Server(httpx.Response(200, content=b" " * (1 << 20) + b"{}"))).decide(REQUEST)

        assert failed.value.cause == "malformed:too_large"

    def test_a_compressed_answer_that_nobody_asked_for_is_not_unpacked(self) -> None:
        answer = httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"\x1f\x8b"))

        with pytest.raises(AnswerMalformed) as failed:
            client(Server(answer)).decide(REQUEST)

        assert failed.value.cause == "malformed:encoded"

    def test_a_status_is_not_lost_over_its_page(self) -> None:
        unpacked = httpx.Response(401, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"\x1f\x8b"))
        endless = httpx.Response(503, content=b" " * (2 << 20))

        with pytest.raises(ModelUnusable):
            client(Server(unpacked)).decide(REQUEST)
        assert client(Server(endless, good())).decide(REQUEST).attempts == 2

    def test_the_content_type_does_not_matter(self) -> None:
        answer = httpx.Response(200, content=json.dumps(GOOD), headers={"Content-Type": "text/plain"})

        assert client(Server(answer)).decide(REQUEST).model == "m-1"

    def test_a_malformed_answer_is_not_asked_for_again(self) -> None:
        server = Server(httpx.Response(200, content=b"<html>"), good())

        with pytest.raises(AnswerMalformed) as failed:
            client(server).decide(REQUEST)

        assert (failed.value.cause, len(server.asked)) == ("malformed:not_json", 1)


class TestWaking:
    def test_the_smallest_call_is_sent_and_its_answer_not_waited_for(self) -> None:
        server = Server(httpx.ReadTimeout("loading"))

        client(server).wake()

        (asked,) = server.asked
        assert asked.url.path == "/v1/systemone"
        assert json.loads(asked.content)["model"] == "decider"
        assert asked.extensions["timeout"]["read"] <= 1

    @pytest.mark.parametrize(
        "answer",
        [
            httpx.ConnectError("off"),
            httpx.Response(503),
            httpx.Response(500),
            httpx.Response(307, headers={"Location": "http://evil.test"}),
        ],
    )
    def test_what_goes_wrong_is_left_to_the_next_look(self, answer: httpx.Response | Exception) -> None:
        server = Server(answer)

        client(server).wake()

        assert len(server.asked) == 1


class TestState:
    def test_looking_at_the_state_calls_no_model(self) -> None:
        server = Server(httpx.Response(404), httpx.Response(200, json={"status": "ok"}))

        assert client(server).state().state == "healthy"
        assert [(asked.method, asked.url.path) for asked in server.asked] == [("GET", "/v1/models"), ("GET", "/health")]

    def test_an_unreachable_server_is_a_state(self) -> None:
        state = client(Server(httpx.ConnectError("[Errno 111] Connection refused"))).state()

        assert (state.state, state.cause) == ("unhealthy", "unreachable")

    def test_a_server_that_takes_the_connection_and_says_nothing_may_be_starting(self) -> None:
        state = client(Server(httpx.ReadTimeout("t"))).state()

        assert (state.state, state.cause) == ("waking", "loading")

    def test_a_router_is_asked_for_the_model_by_name(self) -> None:
        models = {"data": [{"id": "decider", "status": {"value": "sleeping"}}]}

        state = client(Server(httpx.Response(200, json=models))).state()

        assert (state.state, state.cause) == ("waking", "sleeping")


def outcomes() -> Iterator[httpx.Response | Exception]:
    echo = f"{KEY} {REQUEST.state['text']}"
    yield from (httpx.Response(status, text=echo) for status in (200, 301, 400, 401, 404, 422, 500, 501, 503))
    yield httpx.Response(400, json={"error": {"message": echo, "type": echo, "code": 400}})
    yield httpx.Response(200, json={"model": echo, "answers": {"about": {"type": echo, "noul": echo}}})
    yield httpx.Response(200, json={echo: echo, "answers": {"about": {"type": "noul", "noul": echo}}})
    yield httpx.Response(200, json=GOOD | {"answers": {"about": {"error": echo}}})
    yield httpx.Response(200, content=f'{{"{echo}": NaN, "a": 1, "a": 2}}')
    yield httpx.ReadError("reset")


@pytest.mark.parametrize("outcome", list(outcomes()))
def test_no_error_holds_the_key_or_the_page(
    outcome: httpx.Response | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    decider = client(Server(outcome))

    with pytest.raises(ModelError) as failed:
        decider.decide(REQUEST)

    shown = "".join(traceback.format_exception(failed.value)) + repr(vars(failed.value)) + repr(decider) + caplog.text
    assert KEY not in shown
    assert REQUEST.state["text"] not in shown


def test_a_page_that_the_server_refuses_says_so() -> None:
    with pytest.raises(PageRefused) as failed:
        client(Server(httpx.Response(413))).decide(REQUEST)

    assert (failed.value.cause, failed.value.status) == ("too_long", 413)

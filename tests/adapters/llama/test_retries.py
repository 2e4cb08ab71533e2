import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.llama.scripted import BASE, REQUEST, Server, Time, client, good

from wikikeeper.adapters.llama.decide import LONGEST_PAUSE, MOST_TRIES, LlamaDecider
from wikikeeper.errors import AnswerMalformed, AnswerTimedOut, ModelError, ModelUnavailable


class TestRetries:
    @pytest.mark.parametrize("status", [429, 502, 503, 504, 529])
    def test_a_busy_server_is_asked_again(self, status: int) -> None:
        server = Server(httpx.Response(status), httpx.Response(status), good())

        assert client(server).decide(REQUEST).attempts == 3

    @pytest.mark.parametrize("error", [httpx.ConnectError("refused"), httpx.ConnectTimeout("slow")])
    def test_a_connection_that_failed_is_tried_again(self, error: Exception) -> None:
        time = Time()

        reply = client(Server(error, good()), time).decide(REQUEST)

        assert (reply.attempts, reply.seconds) == (2, sum(time.slept))

    def test_every_try_sends_the_same_call(self) -> None:
        server = Server(httpx.Response(503), good())

        client(server).decide(REQUEST)

        assert server.asked[0].content == server.asked[1].content

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 422, 500, 501, 505])
    def test_what_would_fail_again_is_not_asked_again(self, status: int) -> None:
        server = Server(httpx.Response(status), good())

        with pytest.raises(ModelError) as failed:
            client(server).decide(REQUEST)

        assert len(server.asked) == failed.value.attempts == 1

    @pytest.mark.parametrize(
        "error", [httpx.ReadTimeout("t"), httpx.WriteTimeout("t"), httpx.PoolTimeout("t"), httpx.ReadError("reset")]
    )
    def test_a_call_that_may_still_be_running_is_not_sent_again(self, error: Exception) -> None:
        server = Server(error, good())

        with pytest.raises((AnswerTimedOut, AnswerMalformed)):
            client(server).decide(REQUEST)

        assert len(server.asked) == 1

    def test_pauses_grow_up_to_a_limit_and_tries_end(self) -> None:
        time, server = Time(), Server(httpx.Response(503))

        with pytest.raises(ModelUnavailable) as failed:
            client(server, time).decide(REQUEST)

        assert time.slept == [0.5, 1, 2, 4, 8]
        assert (failed.value.cause, failed.value.status, failed.value.attempts) == ("http_503", 503, MOST_TRIES)

    def test_a_server_that_is_off_is_unreachable(self) -> None:
        with pytest.raises(ModelUnavailable) as failed:
            client(Server(httpx.ConnectError("[Errno 111] Connection refused"))).decide(REQUEST)

        assert failed.value.cause == "unreachable"
        assert failed.value.status is None

    def test_a_pause_that_ends_after_the_deadline_is_not_begun(self) -> None:
        time = Time()

        with pytest.raises(ModelUnavailable):
            client(Server(httpx.Response(503)), time, timeout=5).decide(REQUEST)

        assert time.slept == [0.5, 1, 2]

    @given(
        jitters=st.lists(st.floats(min_value=0, max_value=1, exclude_max=True), min_size=MOST_TRIES),
        timeout=st.floats(min_value=0.1, max_value=60),
    )
    def test_retries_never_pass_the_deadline(self, jitters: list[float], timeout: float) -> None:
        time = Time()
        shares = iter(jitters)
        decider = LlamaDecider(
            BASE,
            "m",
            None,
            connect_timeout=5,
            timeout=timeout,
            transport=httpx.MockTransport(Server(httpx.Response(503))),
            sleep=time.sleep,
            jitter=lambda: next(shares),
            clock=time,
        )
        with pytest.raises(ModelUnavailable):
            decider.decide(REQUEST)

        assert time.now < 1000 + timeout
        assert all(pause <= LONGEST_PAUSE for pause in time.slept)


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("headers", "pause"),
        [
            ({"Retry-After": "20"}, 20),
            ({"Retry-After": " 20 "}, 20),
            ({"Retry-After": "0"}, 0.5),
            ({"Retry-After": "-3"}, 0.5),
            ({"Retry-After": "soon"}, 0.5),
            ({"Retry-After": ""}, 0.5),
            ({"Retry-After": "²"}, 0.5),
            ({"Retry-After": "Mon, 30 Nov 2026 12:00:10 GMT", "Date": "Mon, 30 Nov 2026 12:00:00 GMT"}, 10),
            ({"Retry-After": "Mon, 30 Nov 2026 11:00:00 GMT", "Date": "Mon, 30 Nov 2026 12:00:00 GMT"}, 0.5),
            ({"Retry-After": "Mon, 30 Nov 2026 12:00:10 GMT", "Date": "Mon, 30 Nov 2026 12:00:00 -0000"}, 0.5),
            ({"Retry-After": "Mon, 30 Nov 2026 12:00:10 GMT"}, 0.5),
        ],
    )
    def test_is_honoured_where_it_can_be_read(self, headers: dict[str, str], pause: float) -> None:
        time = Time()

        busy = httpx.Response(429, headers=httpx.Headers(headers, encoding="utf-8"))

        client(Server(busy, good()), time).decide(REQUEST)

        assert time.slept == [pause]

    def test_beyond_the_deadline_ends_the_call_at_once(self) -> None:
        time = Time()
        server = Server(httpx.Response(503, headers={"Retry-After": "3600"}), good())

        with pytest.raises(ModelUnavailable) as failed:
            client(server, time).decide(REQUEST)

        assert (time.slept, failed.value.attempts) == ([], 1)

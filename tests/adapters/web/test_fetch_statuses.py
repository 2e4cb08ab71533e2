"""What a status means: never again, later, unchanged, or a challenge in front of the page."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.adapters.web.servers import StubWeb, Visitor, reply

from wikikeeper.adapters.web.fetch import FeedFetcher
from wikikeeper.adapters.web.guard_client import GuardedClient
from wikikeeper.errors import FetchFailed, Unfetchable
from wikikeeper.settings import Fetch

URL = "http://news.example/x"


@pytest.fixture
def web() -> Iterator[StubWeb]:
    with StubWeb() as web:
        yield web


def answer(web: StubWeb, response: bytes) -> Visitor:
    web.on("news.example/x", response)
    return Visitor(web)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 418, 422, 451, 499])
def test_a_refusal_is_definite(web: StubWeb, status: int) -> None:
    error = answer(web, reply(b"<p>no", status=status)).refusal(URL)

    assert isinstance(error, Unfetchable)
    assert error.cause == f"http_{status}"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 520, 529, 599])
def test_a_server_in_trouble_is_tried_later(web: StubWeb, status: int) -> None:
    error = answer(web, reply(b"<p>later", "Retry-After: 120", status=status)).refusal(URL)

    assert isinstance(error, FetchFailed)
    assert (error.cause, error.after) == (f"http_{status}", timedelta(seconds=120))


@pytest.mark.parametrize(
    ("header", "after"),
    [
        ("0", timedelta()),
        (" 30 ", timedelta(seconds=30)),
        ("Sat, 01 Mar 2025 12:05:00 GMT", timedelta(minutes=5)),
        ("Sat, 01 Mar 2025 11:00:00 GMT", timedelta()),
        ("Sat, 01 Mar 2200 12:00:00 GMT", timedelta(days=1)),
        ("999999999999", timedelta(days=1)),
        ("9" * 5000, timedelta(days=1)),
        ("-5", None),
        ("soon", None),
        ("Sat, 01 Mar 2025 12:00:00 +99999999999999", None),
        ("", None),
    ],
)
def test_a_wait_is_honoured_up_to_a_day(web: StubWeb, header: str, after: timedelta | None) -> None:
    error = answer(web, reply(b"", f"Retry-After: {header}", status=503)).refusal(URL)

    assert isinstance(error, FetchFailed)
    assert error.after == after


@pytest.mark.parametrize(
    ("status", "header", "body"),
    [
        (403, "cf-mitigated: challenge", b"<p>"),
        (403, "Server: cloudflare", b"<html><head><title>Just a moment...</title></head>"),
        (503, "Server: cloudflare", b"<title>Just a moment...</title>"),
        (503, "X: y", b"x" * 5000 + b"<script>window._cf_chl_opt = {}"),
        (401, "X-Vercel-Mitigated: challenge", b""),
        (403, "X-DataDome: protected", b"<p>"),
    ],
)
def test_a_challenge_is_told_from_a_refusal(web: StubWeb, status: int, header: str, body: bytes) -> None:
    error = answer(web, reply(body, header, status=status)).refusal(URL)

    assert isinstance(error, Unfetchable)
    assert error.cause == "bot_challenge"


def test_a_refusal_stays_one_when_its_body_cannot_be_read(web: StubWeb) -> None:
    assert answer(web, reply(b"x", "Content-Encoding: br", status=403)).refusal(URL).cause == "http_403"
    assert answer(web, reply(b"x", "Content-Length: 99", status=403)).refusal(URL).cause == "http_403"


def test_validators_come_back_in_a_conditional_request(web: StubWeb) -> None:
    moment = "Sat, 01 Mar 2025 12:00:00 GMT"
    visitor = answer(web, reply(b"<p>new", 'ETag: W/"abc"', f"Last-Modified: {moment}"))
    page = visitor.fetch(URL)
    assert (page.etag, page.last_modified, page.not_modified) == ('W/"abc"', moment, False)

    web.on("news.example/x", b'HTTP/1.1 304 Not Modified\r\nETag: W/"abc"\r\n\r\n')
    again = visitor.fetch(URL, etag=page.etag, last_modified=page.last_modified)

    assert (again.status, again.not_modified, again.body, again.etag) == (304, True, b"", 'W/"abc"')
    assert 'If-None-Match: W/"abc"\r\n' in web.requests[-1]
    assert f"If-Modified-Since: {moment}\r\n" in web.requests[-1]
    assert "If-" not in web.requests[0]


@pytest.mark.parametrize("validator", ['"a"\r\nX-Injected: b', '"ü"', "", " "])
def test_a_validator_that_cannot_be_sent_is_left_out(web: StubWeb, validator: str) -> None:
    answer(web, reply(b"<p>")).fetch(URL, etag=validator, last_modified=validator)

    assert "If-" not in web.requests[0]
    assert "Injected" not in web.requests[0]


def test_a_request_says_who_asks_and_nothing_of_the_person(web: StubWeb) -> None:
    answer(web, reply(b"<p>")).fetch(URL)

    names = {line.split(":")[0] for line in web.requests[0].split("\r\n")[1:] if line}
    assert names == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}
    assert web.requests[0].startswith("GET /x HTTP/1.1\r\n")
    assert "User-Agent: wikikeeper/" in web.requests[0]


def test_a_proxy_in_the_environment_is_not_used(web: StubWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert answer(web, reply(b"<p>")).fetch(URL).body == b"<p>"


def test_certificates_named_in_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, "/nonexistent")

    GuardedClient(Fetch())  # reads no file that is not there


@pytest.mark.parametrize("declared", ["application/rss+xml", "application/atom+xml; charset=utf-8", "text/xml", "text/html",
                                      "application/octet-stream", None])  # fmt: skip
def test_a_feed_is_taken_under_any_header_that_feeds_come_with(web: StubWeb, declared: str | None) -> None:
    body = b'<?xml version="1.0"?><rss version="2.0">'
    visitor = answer(web, reply(body, content_type=declared))

    assert FeedFetcher(visitor.client).get(URL).body == body


def test_a_picture_is_no_feed(web: StubWeb) -> None:
    visitor = answer(web, reply(b"\x89PNG\r\n\x1a\n", content_type="text/xml"))

    with pytest.raises(Unfetchable, match="wrong_type"):
        FeedFetcher(visitor.client).get(URL)

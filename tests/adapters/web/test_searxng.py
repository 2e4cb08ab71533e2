"""SearXNG's answers, each to its state: found, nothing found, or an outage with its cause."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from wikikeeper.adapters.web.searxng import MAX_BYTES, Hits, Searxng
from wikikeeper.errors import SearchFailed
from wikikeeper.models import Found, Origin

DATA = Path(os.environ.get("WIKIKEEPER_DATA", Path(__file__).parents[4] / "shared" / "data")) / "02_searxng"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no captured answers of SearXNG in {DATA} (WIKIKEEPER_DATA)")

HTML = {"Content-Type": "text/html; charset=utf-8"}
FORBIDDEN = "<!doctype html>\n<html lang=en>\n<title>403 Forbidden</title>\n<h1>Forbidden</h1>\n"
SILENT = [["brave", "timeout"], ["google", "Suspended: CAPTCHA"]]

Handler = Callable[[httpx.Request], httpx.Response]


@contextmanager
def searxng(handler: Handler, *, url: str = "http://searxng.lan:8080", timeout: float = 5) -> Iterator[Searxng]:
    server = Searxng(url, timeout=timeout, user_agent="wikikeeper/test", transport=httpx.MockTransport(handler))
    try:
        yield server
    finally:
        server.close()


def answered(response: httpx.Response, limit: int = 20) -> Hits:
    with searxng(lambda request: response) as server:
        return server.search("log4shell", None, limit)


def failed(response: httpx.Response) -> SearchFailed:
    with pytest.raises(SearchFailed) as failure:
        answered(response)
    return failure.value


def results(*rows: object, silent: object = ()) -> httpx.Response:
    return httpx.Response(200, json={"results": list(rows), "unresponsive_engines": silent})


def state(response: httpx.Response) -> str:
    """The word for what an answer means."""
    try:
        hits = answered(response)
    except SearchFailed as error:
        return error.cause
    return f"{len(hits.found)} found" + (", degraded" if hits.warnings else "")


# -- what is asked


def test_a_query_is_sent_as_searxng_expects_it() -> None:
    seen: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return results()

    with searxng(handler, url="http://searxng.lan:8080/searx/") as server:
        server.search("größe & mehr", "de", 20)
        server.search("plain", None, 20)

    assert seen[0].url.path == "/searx/search"
    assert dict(seen[0].url.params) == {"q": "größe & mehr", "format": "json", "language": "de"}
    assert dict(seen[1].url.params) == {"q": "plain", "format": "json"}
    assert seen[0].headers["User-Agent"] == "wikikeeper/test"


# -- what an answer means


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (httpx.Response(200, json={"results": [{"url": "https://example.org/"}]}), "1 found"),
        (results(), "0 found"),
        (results({"url": "https://example.org/"}, silent=SILENT), "1 found, degraded"),
        (results({"title": "no address"}), "0 found"),
        (results(silent=SILENT), "engines_unresponsive"),
        (results({"url": "javascript:alert(1)"}, silent=SILENT), "engines_unresponsive"),
        (results(silent=[["a"], "b", [], {"c": 1}]), "engines_unresponsive"),
        (results(silent="nonsense"), "0 found"),
        (httpx.Response(403, text=FORBIDDEN, headers=HTML), "json_disabled"),
        (httpx.Response(403, json={"error": "no"}), "http_403"),
        (httpx.Response(429, text="Too Many Requests"), "rate_limited"),
        (httpx.Response(429, text="IP is on BLOCKLIST - x", headers=HTML), "rate_limited"),
        (httpx.Response(400, json={"error": "No query"}), "bad_request"),
        (httpx.Response(401, text=""), "http_401"),
        (httpx.Response(404, text="not here", headers=HTML), "http_404"),
        (httpx.Response(500, text="oops"), "http_500"),
        (httpx.Response(502, text="<html>", headers=HTML), "http_502"),
        (httpx.Response(204), "http_204"),
        (httpx.Response(200, text="<!DOCTYPE html><html>", headers=HTML), "not_json"),
        (httpx.Response(200, text=""), "not_json"),
        (httpx.Response(200, content=b"\xff\xfe\xfa"), "not_json"),
        (httpx.Response(200, text="1" * 5000), "not_json"),
        (httpx.Response(200, json={"unexpected": []}), "bad_reply"),
        (httpx.Response(200, json={"results": None}), "bad_reply"),
        (httpx.Response(200, json=[]), "bad_reply"),
        (httpx.Response(200, text="null"), "bad_reply"),
        (httpx.Response(200, text="[" * 100_000), "bad_reply"),
        (httpx.Response(200, content=b"x" * (MAX_BYTES + 1)), "bad_reply"),
        (httpx.Response(200, content=iter([b"no gzip"]), headers={"Content-Encoding": "gzip"}), "bad_reply"),
    ],
)
def test_each_answer_has_its_state(response: httpx.Response, expected: str) -> None:
    assert state(response) == expected


def test_a_server_without_json_says_how_to_turn_it_on() -> None:
    error = failed(httpx.Response(403, text=FORBIDDEN, headers=HTML))

    assert "add `json` under `search.formats`" in error.detail


def test_an_outage_names_its_engines() -> None:
    assert failed(results(silent=SILENT)).detail.endswith("brave (timeout), google (Suspended: CAPTCHA)")


def test_engines_without_an_answer_are_a_warning_when_others_found_something() -> None:
    hits = answered(results({"url": "https://example.org/"}, silent=SILENT))

    assert hits.warnings == ("engines without an answer: brave (timeout), google (Suspended: CAPTCHA)",)


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_busy_says_when_to_come_again(status: int) -> None:
    assert failed(httpx.Response(status, headers={"Retry-After": "120"})).after == timedelta(seconds=120)


def test_a_date_to_come_again_is_counted_from_now() -> None:
    response = httpx.Response(429, headers={"Retry-After": "Wed, 21 Oct 2026 07:30:00 GMT"})
    server = Searxng(
        "http://searxng.lan",
        timeout=5,
        user_agent="x",
        transport=httpx.MockTransport(lambda request: response),
        now=lambda: datetime(2026, 10, 21, 7, 28, tzinfo=UTC),
    )

    with pytest.raises(SearchFailed) as failure:
        server.search("x", None, 20)
    server.close()

    assert failure.value.after == timedelta(minutes=2)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (httpx.ConnectError("refused"), "unreachable"),
        (httpx.RemoteProtocolError("closed"), "unreachable"),
        (httpx.ConnectTimeout("slow"), "timeout"),
        (httpx.ReadTimeout("slow"), "timeout"),
    ],
)
def test_a_server_that_does_not_answer_is_an_outage(error: httpx.HTTPError, cause: str) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise error

    with searxng(handler) as server, pytest.raises(SearchFailed) as failure:
        server.search("x", None, 20)

    assert failure.value.cause == cause


def test_an_answer_that_drips_ends_at_the_total_deadline() -> None:
    def drip() -> Iterator[bytes]:
        while True:
            time.sleep(0.01)
            yield b" "

    slow = httpx.Response(200, content=drip())
    with searxng(lambda request: slow, timeout=0.1) as server, pytest.raises(SearchFailed) as failure:
        server.search("x", None, 20)

    assert failure.value.cause == "timeout"


def test_an_endless_answer_is_cut_off() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 100_000

    assert failed(httpx.Response(200, content=endless())).cause == "bad_reply"


def test_a_redirect_is_followed_on_the_same_server_only() -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        if request.url.path == "/search":
            return httpx.Response(301, headers={"Location": "/searx/search?q=x&format=json"})
        return results({"url": "https://example.org/"})

    with searxng(handler) as server:
        assert len(server.search("x", None, 20).found) == 1
    assert asked[1] == "http://searxng.lan:8080/searx/search?q=x&format=json"


@pytest.mark.parametrize(
    ("location", "cause"),
    [
        ("http://169.254.169.254/latest", "http_302"),
        ("http://searxng.lan/search", "http_302"),
        ("https://searxng.lan:8080/search", "http_302"),
        ("file:///etc/passwd", "http_302"),
        ("/search", "redirect_loop"),
    ],
)
def test_a_redirect_elsewhere_or_in_a_circle_is_an_outage(location: str, cause: str) -> None:
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        return httpx.Response(302, headers={"Location": location})

    with searxng(handler) as server, pytest.raises(SearchFailed) as failure:
        server.search("x", None, 20)

    assert failure.value.cause == cause
    assert set(asked) == {"searxng.lan"}


def test_a_password_in_the_address_shows_in_no_message() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with searxng(handler, url="http://me:canary@searxng.lan") as server, pytest.raises(SearchFailed) as failure:
        server.search("x", None, 20)

    assert "canary" not in str(failure.value)


# -- what becomes of a result


def test_a_result_keeps_its_address_title_and_date() -> None:
    row = {"url": "https://example.org/a?b=c", "title": "A &amp; <b>B</b>", "publishedDate": "2026-01-02T03:04:05"}

    assert answered(results(row)).found == (
        Found(
            url="https://example.org/a?b=c",
            title="A & B",
            origin=Origin.SEARCH,
            published=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        ),
    )


@pytest.mark.parametrize(
    ("url", "mended"),
    [
        ("http://example.com/a b?c=ü", "http://example.com/a%20b?c=%C3%BC"),
        ("http://example.com/a%20b", "http://example.com/a%20b"),
        (" https://example.com/x ", "https://example.com/x"),
        ("https://例え.jp/", "https://xn--r8jz45g.jp/"),
        ("javascript:alert(1)", None),
        ("ftp://example.com/", None),
        ("//example.com/", None),
        ("https://", None),
        ("https://me:pw@example.com/", None),
        ("https://example.com/\ud800", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_sloppy_addresses_are_mended_and_unusable_ones_dropped(url: object, mended: str | None) -> None:
    found = answered(httpx.Response(200, content=json.dumps({"results": [{"url": url}]}))).found

    assert [item.url for item in found] == ([] if mended is None else [mended])


@pytest.mark.parametrize("date", [None, "", "yesterday", "2026-13-40", 1767323045, "0001-01-01T00:00:00+14:00", []])
def test_a_date_that_is_none_is_left_out(date: object) -> None:
    assert answered(results({"url": "https://example.org/", "publishedDate": date})).found[0].published is None


@pytest.mark.parametrize(
    ("title", "clean"),
    [
        (None, ""),
        (["x"], ""),
        ("a\n\tb\0c\u202ed", "a b c d"),
        ("\ud83d\ude00 \ud800", "😀 \ufffd"),
        ("x" * 10_000, "x" * 500),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
    ],
)
def test_a_title_becomes_one_line_of_plain_text(title: object, clean: str) -> None:
    body = json.dumps({"results": [{"url": "https://example.org/", "title": title}]})

    assert answered(httpx.Response(200, content=body)).found[0].title == clean


def test_a_page_that_several_rows_name_is_found_once_and_the_limit_holds() -> None:
    rows: list[object] = [{"url": f"https://example.org/{index // 2}"} for index in range(10)]
    rows += ["no row", None, {}]

    hits = answered(results(*rows), limit=3)

    assert [item.url for item in hits.found] == [f"https://example.org/{index}" for index in range(3)]


def test_raw_control_characters_in_a_string_break_nothing() -> None:
    body = b'{"results": [{"url": "https://e.example/", "title": "t", "content": "raw \x01"}]}'

    assert len(answered(httpx.Response(200, content=body)).found) == 1


# -- what a running server really answered


@needs_data
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("config", "bad_reply"),
        ("healthz", "not_json"),
        ("search_bad_pageno", "bad_request"),
        ("search_bad_timerange", "bad_request"),
        ("search_csv", "not_json"),
        ("search_empty_results", "engines_unresponsive"),
        ("search_html_only_page", "not_json"),
        ("search_json_not_enabled_403", "json_disabled"),
        ("search_no_q", "bad_request"),
        ("search_pageno2", "engines_unresponsive"),
        ("search_rss", "not_json"),
        ("search_single_engine_bang", "found, degraded"),
        ("search_suspended_second_call", "found, degraded"),
        ("search_unknown_category", "found, degraded"),
        ("search_unknown_format", "not_json"),
        ("search_unknown_language", "found, degraded"),
    ],
)
def test_each_captured_answer_has_its_state(name: str, expected: str) -> None:
    status, *lines = (DATA / "captured" / f"{name}.headers").read_text().splitlines()
    headers = [
        line.split(": ", 1) for line in lines if ": " in line and not line.startswith(("Content-Length", "Connection"))
    ]
    response = httpx.Response(
        int(status.split()[1]),
        headers=[(key, value) for key, value in headers],
        content=(DATA / "captured" / f"{name}.body").read_bytes(),
    )

    assert state(response).lstrip("0123456789 ") == expected


@needs_data
def test_a_captured_answer_gives_its_usable_results() -> None:
    hits = answered(httpx.Response(200, content=(DATA / "captured" / "search_ok_with_unresponsive.json").read_bytes()))

    assert "http://example.com/a%20b?c=%C3%BC" in [item.url for item in hits.found]
    assert "None" not in [item.title for item in hits.found]
    assert "engines without an answer" in hits.warnings[0]


@needs_data
def test_each_edge_of_public_reports_has_its_state() -> None:
    edges = json.loads((DATA / "edge_responses.json").read_text())
    states = []
    for edge in edges:
        body = edge.get("raw_body") or edge["body"]
        content = body if isinstance(body, str) else json.dumps(body)
        kind = edge.get("content_type", "application/json")
        states.append(state(httpx.Response(edge["status"], content=content, headers={"Content-Type": kind})))

    assert states == [
        "engines_unresponsive",
        "engines_unresponsive",
        "rate_limited",
        "rate_limited",
        "json_disabled",
        "not_json",
        "bad_reply",
        "1 found, degraded",
        "1 found",
    ]

"""What a document is: its bytes count more than its header, and only what text can be read from is taken."""

import gzip
from collections.abc import Callable, Iterable, Iterator

import pytest
from tests.adapters.web.servers import StubWeb, Visitor, reply

HTML = b"<!doctype html><title>News</title><p>" + b"All of it. " * 500
PDF = b"%PDF-1.7\n" + b"x" * 2000
URL = "http://news.example/x"


@pytest.fixture
def web() -> Iterator[StubWeb]:
    with StubWeb() as web:
        yield web


def answer(web: StubWeb, pieces: bytes | Callable[[], Iterable[bytes]]) -> Visitor:
    web.on("news.example/x", pieces)
    return Visitor(web)


@pytest.mark.parametrize(
    ("declared", "body", "kind"),
    [
        ("text/html; charset=utf-8", HTML, "text/html"),
        ("TEXT/HTML", HTML, "text/html"),
        ("text/html, text/html", HTML, "text/html"),
        ("application/xhtml+xml", HTML, "application/xhtml+xml"),
        ("application/xml", b'<?xml version="1.0"?><!DOCTYPE html><html>', "application/xhtml+xml"),
        ("text/plain", b"Release notes", "text/plain"),
        ("text/plain", HTML, "text/plain"),
        ("text/markdown", b"# Release", "text/markdown"),
        ("text/x-markdown", b"# Release", "text/markdown"),
        (None, HTML, "text/html"),
        (None, b"<!-- hello --><html>", "text/html"),
        (None, b"Release notes", "text/plain"),
        ("application/octet-stream", HTML, "text/html"),
        ("application/pdf", PDF, "application/pdf"),
        ("application/pdf", b"\n\n" + PDF, "application/pdf"),
        ("application/pdf", b"junk before " + PDF, "application/pdf"),
        ("application/pdf", HTML, "text/html"),
        ("text/html", PDF, "application/pdf"),
        ("application/octet-stream", PDF, "application/pdf"),
        ("application/octet-stream", b"junk before " + PDF, "application/pdf"),
        (None, PDF, "application/pdf"),
        ("text/html", b"<p>Files begin with %PDF-1.7", "text/html"),
        ("text/html", "<p>ü".encode("utf-16"), "text/html"),
        ("text/plain", "ü".encode("utf-16"), "text/plain"),
    ],
)
def test_a_document_is_what_its_bytes_show(web: StubWeb, declared: str | None, body: bytes, kind: str) -> None:
    for path in ("x", "x.PDF", "x.pdf?download=1"):
        web.on(f"news.example/{path}", reply(body, content_type=declared))
        page = Visitor(web).fetch(f"http://news.example/{path}")

        assert (page.content_type, page.body) == (kind, body)


@pytest.mark.parametrize(
    ("declared", "body"),
    [
        ("video/mp4", b"\0\0\0\x20ftypisom"),
        ("text/html", b"\0\0\0\x20ftypisom" + bytes(2000)),
        ("text/html", b"PK\x03\x04" + bytes(2000)),
        ("application/octet-stream", b"PK\x03\x04" + bytes(2000)),
        ("text/html", b"\x89PNG\r\n\x1a\n"),
        ("text/html", b"\xff\xd8\xff\xe0"),
        ("text/html", gzip.compress(HTML, mtime=0)),  # without the moment, which would be in the name of the test
        ("text/plain", b"\x7fELF" + bytes(100)),
        ("text/plain", b"\1\2\0\3"),
        ("image/png", HTML),
        ("application/json", b"{}"),
        ("text/css", b"p {}"),
        ("application/xml", b'<?xml version="1.0"?><rss>'),
        ("application/pdf", b"no such thing"),
        ("application/octet-stream", b"anything"),
        (None, b"\1\2\0\3"),
    ],
)
def test_what_no_text_can_be_read_from_is_of_the_wrong_type(web: StubWeb, declared: str | None, body: bytes) -> None:
    assert answer(web, reply(body, content_type=declared)).refusal(URL).cause == "wrong_type"


def test_a_film_is_refused_after_its_first_bytes(web: StubWeb) -> None:
    sent = 0

    def film() -> Iterator[bytes]:
        nonlocal sent
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n\0\0\0\x20ftypisom"
        while web.wait(0.01):
            sent += 1
            yield bytes(2000)

    assert answer(web, film).refusal(URL).cause == "wrong_type"
    assert sent < 20


@pytest.mark.parametrize(
    ("declared", "charset"),
    [
        ("text/html; charset=Shift_JIS", "Shift_JIS"),
        ("text/html;charset='gbk'", "gbk"),
        ('text/html; CHARSET = "latin-1"; x=y', "latin-1"),
        ("text/html", None),
        ("text/html; charset=", None),
    ],
)
def test_the_charset_is_passed_on_as_it_was_declared(web: StubWeb, declared: str, charset: str | None) -> None:
    assert answer(web, reply(HTML, content_type=declared)).fetch(URL).charset == charset

"""Bodies: bounded in bytes and time whatever the server sends, decoded once, of a kind that text can be read from."""

import gzip
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.web.servers import NOW, PUBLIC, TLS, StubWeb, Visitor, reply

from wikikeeper.adapters.web.decode_body import BodyDecoder
from wikikeeper.adapters.web.guard_client import GuardedClient
from wikikeeper.errors import FetchFailed, Unfetchable
from wikikeeper.settings import Fetch

HTML = b"<!doctype html><title>News</title><p>" + b"All of it. " * 500
URL = "http://news.example/x"
SMALL = Fetch(deadline=60, max_bytes=100_000)


@pytest.fixture
def web() -> Iterator[StubWeb]:
    with StubWeb() as web:
        yield web


def answer(web: StubWeb, pieces: bytes | Callable[[], Iterable[bytes]], settings: Fetch = SMALL) -> Visitor:
    web.on("news.example/x", pieces)
    return Visitor(web, settings=settings)


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


def raw_deflate(body: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeezer.compress(body) + squeezer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("identity", HTML),
        ("", HTML),
        ("gzip", gzip.compress(HTML)),
        ("x-gzip", gzip.compress(HTML)),
        ("GZIP", gzip.compress(HTML)),
        ("identity, gzip", gzip.compress(HTML)),
        ("gzip", gzip.compress(HTML[:1000]) + gzip.compress(HTML[1000:])),
        ("gzip", gzip.compress(HTML) + b"\0" * 100),
        ("deflate", zlib.compress(HTML)),
        ("deflate", raw_deflate(HTML)),
    ],
    # A body in a test's name would be another one each second: gzip writes down when it compressed.
    ids=[
        "plain",
        "unnamed",
        "gzip",
        "x-gzip",
        "GZIP",
        "identity, gzip",
        "two members",
        "padded",
        "zlib",
        "raw deflate",
    ],
)
@pytest.mark.parametrize("slices", [1, 7, 700])
def test_an_encoded_body_is_decoded_however_it_arrives(web: StubWeb, encoding: str, body: bytes, slices: int) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {encoding}\r\n"
    size = len(body) // slices + 1
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    visitor = answer(web, head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(*pieces))

    assert visitor.fetch(URL).body == HTML


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "utf-8", "gzip, gzip", "gzip,gzip,gzip", "gzip, br"])
def test_an_encoding_that_was_not_offered_is_refused(web: StubWeb, encoding: str) -> None:
    visitor = answer(web, reply(gzip.compress(gzip.compress(HTML)), f"Content-Encoding: {encoding}"))

    assert visitor.refusal(URL).cause == "unsupported_encoding"
    assert "Accept-Encoding: gzip, deflate, identity\r\n" in web.requests[0]


def test_an_encoding_in_two_headers_counts_twice(web: StubWeb) -> None:
    body = gzip.compress(gzip.compress(HTML))

    assert answer(web, reply(body, "Content-Encoding: gzip", "Content-Encoding: gzip")).refusal(URL).cause == (
        "unsupported_encoding"
    )


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_body_that_is_not_encoded_as_it_says_is_refused(web: StubWeb, encoding: str) -> None:
    assert answer(web, reply(b"\xffnot encoded" * 9, f"Content-Encoding: {encoding}")).refusal(URL).cause == (
        "broken_encoding"
    )


def test_an_encoded_body_that_stops_too_early_is_tried_later(web: StubWeb) -> None:
    assert answer(web, reply(gzip.compress(HTML)[:-20], "Content-Encoding: gzip")).refusal(URL).cause == "interrupted"
    assert answer(web, reply(b"\x1f", "Content-Encoding: gzip")).refusal(URL).cause == "interrupted"


@pytest.mark.parametrize("pieces", [[gzip.compress(b"") * 100], [b""] * 100])
def test_decoding_looks_at_the_clock_for_each_piece_and_each_stream(pieces: list[bytes]) -> None:
    looks: list[None] = []
    decoder = BodyDecoder("gzip", 1000, lambda: looks.append(None))

    for piece in pieces:
        decoder.feed(piece)

    assert len(looks) >= 100


def test_an_empty_body_is_a_page_without_text(web: StubWeb) -> None:
    assert answer(web, reply(b"", "Content-Encoding: gzip")).fetch(URL).body == b""
    assert answer(web, reply(b"", status=204)).refusal(URL).cause == "no_text"


def bomb(layers: int = 1) -> bytes:
    body = bytes(3_000_000)
    for _ in range(layers):
        body = gzip.compress(body)
    return reply(body, "Content-Encoding: gzip")


def endless(web: StubWeb, head: bytes, piece: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + head + b"\r\n"
        while web.wait(0):
            yield piece

    return pieces


def test_too_much_is_refused_as_soon_as_it_shows(web: StubWeb) -> None:
    many = b"a" * 10_000
    for pieces in (
        bomb(),
        reply(b"a" * 100_001),
        reply(b"", "Content-Length: 10000000000"),
        reply(b"", f"Content-Length: {'9' * 20}"),
        endless(web, b"", many),
        endless(web, b"Content-Length: 90000\r\nX: y\r\nTransfer-Encoding: chunked\r\n", b"2710\r\n" + many + b"\r\n"),
        endless(web, b"Transfer-Encoding: chunked\r\n", b"1\r\na\r\n" * 5_000),
        endless(
            web, b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", b"14\r\n" + gzip.compress(b"") + b"\r\n"
        ),
    ):
        assert answer(web, pieces).refusal(URL).cause == "too_large"


def test_what_just_fits_is_taken(web: StubWeb) -> None:
    body = b"<p>" + b"a" * 99_997

    assert answer(web, reply(body)).fetch(URL).body == body
    assert answer(web, reply(gzip.compress(body), "Content-Encoding: gzip")).fetch(URL).body == body
    assert answer(web, b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + body).fetch(URL).body == body


def test_a_length_that_is_shorter_than_the_body_cuts_it_off(web: StubWeb) -> None:
    assert answer(web, reply(HTML, "Content-Length: 2000")).fetch(URL).body == HTML[:2000]


def test_a_body_that_is_shorter_than_its_length_is_tried_later(web: StubWeb) -> None:
    assert answer(web, reply(HTML, "Content-Length: 90000")).refusal(URL).cause == "interrupted"


@pytest.mark.parametrize(
    "pieces",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nab",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
        b"\0" * 1000,
    ],
)
def test_what_is_no_http_is_tried_later(web: StubWeb, pieces: bytes) -> None:
    assert answer(web, pieces).refusal(URL).cause == "interrupted"


def header_flood(web: StubWeb, line: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n"
        while web.wait(0):
            yield line * 100

    return pieces


@pytest.mark.parametrize("line", [b"X-Header: value\r\n", b"a:\r\n", b"X" * 10_000])
def test_endless_headers_are_refused(web: StubWeb, line: bytes) -> None:
    assert answer(web, header_flood(web, line)).refusal(URL).cause == "too_large"


def test_endless_informational_answers_are_refused(web: StubWeb) -> None:
    def pieces() -> Iterator[bytes]:
        while web.wait(0):
            yield b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100

    assert answer(web, pieces).refusal(URL).cause == "too_large"


@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"]
)
def test_a_server_that_sends_a_byte_now_and_then_ends_at_the_deadline(web: StubWeb, start: bytes) -> None:
    def pieces() -> Iterator[bytes]:
        yield start
        while web.wait(0.05):
            yield b"x"

    begun = time.monotonic()
    assert answer(web, pieces, Fetch(deadline=0.5)).refusal(URL).cause == "deadline"
    assert time.monotonic() - begun < 2


def test_chunks_of_one_byte_cost_no_more_time_than_the_deadline(web: StubWeb) -> None:
    begun = time.monotonic()
    visitor = answer(web, endless(web, b"Transfer-Encoding: chunked\r\n", b"1\r\na\r\n" * 10_000), Fetch(deadline=0.7))

    assert visitor.refusal(URL).cause in ("deadline", "too_large")
    assert time.monotonic() - begun < 2


GROWTH = """
import json, re, zlib
from pathlib import Path
from tests.adapters.web.servers import StubWeb, Visitor, reply
from wikikeeper.errors import FetchFailed, Unfetchable
from wikikeeper.settings import Fetch

def peak():
    "MB of this process alone; getrusage would begin with what its parent held."
    return int(re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[1]) / 1024

def deflated(chunk, times):
    "One gzip stream of `times` chunks without compressing each anew: after a full flush the output repeats."
    squeezer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield squeezer.compress(chunk) + squeezer.flush(zlib.Z_FULL_FLUSH)
    again = squeezer.compress(chunk) + squeezer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(times - 1):
        yield again

ok = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html\\r\\n"
with StubWeb() as web:
    def bomb():
        yield ok + b"Content-Encoding: gzip\\r\\n\\r\\n"
        yield from deflated(bytes(1_000_000), 10_000)
    def endless():
        yield ok + b"Transfer-Encoding: chunked\\r\\n\\r\\n"
        while web.wait(0):
            yield b"10000\\r\\n" + b"a" * 65536 + b"\\r\\n"
    def headers():
        yield b"HTTP/1.1 200 OK\\r\\n"
        for number in range(100_000):
            yield b"X-%d: y\\r\\n" % number
    def header():
        yield b"HTTP/1.1 200 OK\\r\\nX: "
        for _ in range(100):
            yield b"y" * 10_000
    web.on("news.example/warm-up", reply(b"<p>"))
    for name, pieces in {"bomb": bomb, "endless": endless, "headers": headers, "header": header}.items():
        web.on("news.example/" + name, pieces)
    visitor = Visitor(web, settings=Fetch())
    visitor.fetch("http://news.example/warm-up")
    wire = sum(map(len, deflated(bytes(1_000_000), 10_000)))
    before, outcomes = peak(), {}
    for name in ("bomb", "endless", "headers", "header"):
        outcomes[name] = visitor.refusal("http://news.example/" + name).cause
    growth = peak() - before
    held = bytearray(60_000_000)  # to show that what is held is seen
    print(json.dumps({"outcomes": outcomes, "growth": growth, "control": peak() - before, "wire": wire / 1e6}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from Linux's /proc")
def test_memory_grows_by_less_than_50_mb_whatever_is_sent() -> None:
    """Ten megabytes that inflate to ten gigabytes, an endless body, 100,000 headers, a header of a megabyte."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], cwd=root, env={"PYTHONPATH": f"{root}:{root / 'shared'}"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert set(seen["outcomes"].values()) == {"too_large"}
    assert seen["wire"] > 9
    assert seen["growth"] < 50 < seen["control"]


RESPONSES = st.one_of(
    st.binary(max_size=300),
    st.builds(
        "HTTP/1.1 {} X\r\n{}: {}\r\n{}: {}\r\n\r\n{}".format,
        st.sampled_from([100, 101, 200, 204, 206, 301, 302, 304, 403, 404, 429, 500, 503, 999]),
        *[
            st.sampled_from(["Location", "Content-Length", "Content-Encoding", "Content-Type", "Retry-After", "ETag"]),
            st.one_of(st.text(max_size=30), st.sampled_from(["gzip", "5", "text/html", "http://[", "//a.example/%"])),
        ]
        * 2,
        st.text(max_size=50),
    ).map(lambda text: text.encode("utf-8", "surrogatepass")),
)


@given(st.lists(RESPONSES, min_size=1, max_size=3))
def test_no_answer_makes_the_client_fail_otherwise_than_it_says(responses: list[bytes]) -> None:
    network = httpcore.MockBackend(responses)
    client = GuardedClient(Fetch(), resolve=lambda host, port: [PUBLIC], network=network, tls=TLS, now=lambda: NOW)
    try:
        page = client.get("http://news.example/", exempt=False)
    except (Unfetchable, FetchFailed):
        return

    assert 200 <= page.status < 300

"""Each hop of a redirect is a new URL from a stranger, whoever wrote the first one."""

from collections.abc import Iterator
from functools import partial

import pytest
from tests.adapters.web.servers import PUBLIC, Names, Network, StubWeb, Visitor, redirect, reply

from wikikeeper.models import Origin
from wikikeeper.settings import Fetch

STATUSES = [301, 302, 303, 307, 308]


@pytest.fixture
def web() -> Iterator[StubWeb]:
    with StubWeb() as web:
        web.on("news.example/end", reply(b"<p>end"))
        yield web


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize(
    "location",
    ["/end", "end", "//news.example/end", "http://NEWS.example:80/./end#x", "http://news.example/e%6Ed/../end"],
)
def test_a_redirect_is_followed_to_the_address_that_answers(web: StubWeb, status: int, location: str) -> None:
    web.on("old.example/start", redirect("http://news.example/middle", status))
    web.on("news.example/middle", redirect(location, status))
    names = Names()

    page = Visitor(web, names=names).fetch("http://old.example/start")

    assert (page.url, page.body) == ("http://news.example/end", b"<p>end")
    assert names.asked == ["old.example", "news.example", "news.example"], "one lookup per hop"


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("origin", [Origin.SEARCH, Origin.LINK])
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "[::1]",
        "[::ffff:a9fe:a9fe]",
        "169.254.169.254",
        "10.0.0.1",
        "localhost",
        "a.internal",
    ],
)
def test_a_redirect_to_a_forbidden_address_is_refused(web: StubWeb, status: int, origin: Origin, host: str) -> None:
    web.on("evil.example/", redirect(f"http://{host}/latest/meta-data", status))
    visitor = Visitor(web)

    assert visitor.refusal("http://evil.example/", origin).cause == "forbidden_address"
    assert web.asked == ["evil.example/"]


def test_a_redirect_to_a_name_that_has_moved_meanwhile_is_refused(web: StubWeb) -> None:
    web.on("evil.example/", redirect("/again"))
    names = Names(**{"evil.example": [[PUBLIC], ["127.0.0.1"]]})

    assert Visitor(web, names=names).refusal("http://evil.example/").cause == "forbidden_address"
    assert names.asked == ["evil.example", "evil.example"]
    assert web.asked == ["evil.example/"]


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "ftp://news.example/end",
        "gopher://127.0.0.1:6379/_x",
        "data:text/html,hello",
        "javascript:alert(1)",
        "http://user:password@news.example/end",
        "http://ok\\@127.0.0.1/",
        "http://127.0.0.1\t/",
        "ht\ttp://127.0.0.1/",
        "http://[::1/",
        "http://news.example:99999/",
        "http:///end",
        "http:end",
        f"http://news.example/{'a' * 9000}",
    ],
)
def test_a_redirect_to_what_is_no_page_is_refused(web: StubWeb, location: str) -> None:
    web.on("evil.example/", redirect(location))

    assert Visitor(web).refusal("http://evil.example/").cause == "bad_redirect"
    assert web.asked == ["evil.example/"]


def test_a_redirect_from_a_saved_page_address_is_impossible_and_to_one_refused(web: StubWeb) -> None:
    web.on("evil.example/", redirect("file:///pages/secret.html"))

    assert Visitor(web).refusal("http://evil.example/", Origin.FEED).cause == "bad_redirect"


def test_a_redirect_that_leads_in_a_circle_is_refused(web: StubWeb) -> None:
    web.on("evil.example/a", redirect("/b"))
    web.on("evil.example/b", redirect("/a#again"))
    web.on("evil.example/self", redirect(""))

    assert Visitor(web).refusal("http://evil.example/a").cause == "redirect_loop"
    assert Visitor(web).refusal("http://evil.example/self").cause == "redirect_loop"
    assert web.asked == ["evil.example/a", "evil.example/b", "evil.example/self"]


def test_five_redirects_are_followed_and_no_sixth(web: StubWeb) -> None:
    for number in range(20):
        web.on(f"long.example/{number}", redirect(f"/{number + 1}"))
    web.on("long.example/20", reply(b"<p>end"))

    assert Visitor(web).refusal("http://long.example/0").cause == "too_many_redirects"
    assert len(web.asked) == 6
    assert Visitor(web).fetch("http://long.example/15").body == b"<p>end"


def test_all_hops_together_keep_to_the_deadline(web: StubWeb) -> None:
    def slow(number: int) -> Iterator[bytes]:
        web.wait(0.25)
        yield redirect(f"/{number + 1}")

    for number in range(5):
        web.on(f"slow.example/{number}", partial(slow, number))

    assert Visitor(web, settings=Fetch(deadline=0.6)).refusal("http://slow.example/0").cause == "deadline"


def test_nothing_is_carried_from_one_hop_to_the_next(web: StubWeb) -> None:
    web.on("old.example/", reply(b"", "Location: http://news.example/end", "Set-Cookie: id=1", status=302))

    Visitor(web).fetch("http://old.example/")

    last = web.requests[-1].lower()
    assert "cookie" not in last
    assert "referer" not in last
    assert "host: news.example\r\n" in last
    assert web.connections == 2


def test_a_meta_refresh_is_not_followed(web: StubWeb) -> None:
    body = b'<meta http-equiv="refresh" content="0; url=http://127.0.0.1/">'
    web.on("evil.example/", reply(body, "Refresh: 0; url=http://127.0.0.1/"))

    assert Visitor(web).fetch("http://evil.example/").body == body
    assert web.asked == ["evil.example/"]


@pytest.mark.parametrize("status", [300, 304, 305, 306])
def test_a_redirect_status_that_leads_nowhere_is_definite(web: StubWeb, status: int) -> None:
    web.on("evil.example/", redirect("http://news.example/end", status))
    web.on("evil.example/nowhere", reply(b"", status=302))

    assert Visitor(web).refusal("http://evil.example/").cause == f"http_{status}"
    assert Visitor(web).refusal("http://evil.example/nowhere").cause == "http_302"


def test_the_body_of_a_redirect_is_not_read(web: StubWeb) -> None:
    def endless() -> Iterator[bytes]:
        yield b"HTTP/1.1 302 Found\r\nLocation: http://news.example/end\r\nContent-Length: 10000000000\r\n\r\n"
        while web.wait(0.01):
            yield b"x" * 10_000

    web.on("evil.example/", endless)

    assert Visitor(web, network=Network(**{PUBLIC: web.port})).fetch("http://evil.example/").body == b"<p>end"

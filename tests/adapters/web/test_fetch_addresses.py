"""No connection is made to where none may go: not by any spelling, name, lookup or exception."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpcore
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.web.servers import PUBLIC, Names, Network, StubWeb, Visitor, reply

from wikikeeper.adapters.web.fetch import FeedFetcher
from wikikeeper.adapters.web.guard import system_resolver
from wikikeeper.adapters.web.guard_client import GuardedClient
from wikikeeper.errors import FetchFailed, Unfetchable, Unusable
from wikikeeper.models import Origin
from wikikeeper.policy.addresses import is_forbidden
from wikikeeper.settings import Fetch

FORBIDDEN_HOSTS = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[::127.0.0.1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "①②⑦.⓪.⓪.①",
    "１２７.0.0.1",
    "metadata.google.internal",
    "metadata.google.internal.",
    "printer.local",
    "nas.lan",
    "intranet",
    "router",
    "anything.localhost",
]
TRICKS = [
    "http://a@127.0.0.1/",
    "http://user:password@news.example/",
    "http://ok\\@127.0.0.1/",
    "http://127.0.0.1\\.news.example/",
    "http:\\\\127.0.0.1/",
    "http://127.0.0.1\t.news.example/",
    "http://news.example\n/",
    "http://news.example\r\nX: y/",
    "http://[fe80::1%25eth0]/",
    "file:///etc/passwd",
    "ftp://news.example/",
    "gopher://127.0.0.1:6379/_x",
    "data:text/html,hello",
    "jar:http://news.example!/x",
    "news.example",
    "",
]
FORBIDDEN_PORTS = [0, 21, 22, 25, 81, 110, 143, 445, 2375, 3306, 5432, 6379, 6667, 11211, 27017]


@pytest.fixture
def web() -> Iterator[StubWeb]:
    with StubWeb() as web:
        web.on("news.example/", reply(b"<p>news"))
        yield web


def cause(visitor: Visitor, url: str, origin: Origin = Origin.SEARCH) -> str:
    return visitor.refusal(url, origin).cause


@pytest.mark.parametrize("origin", [Origin.SEARCH, Origin.FEED, Origin.LINK])
@pytest.mark.parametrize("host", FORBIDDEN_HOSTS)
def test_a_forbidden_host_is_refused_before_any_lookup_or_connection(web: StubWeb, host: str, origin: Origin) -> None:
    names, network = Names(), Network()
    visitor = Visitor(web, names=names, network=network)

    assert cause(visitor, f"http://{host}:{web.port}/", origin) == "forbidden_address"
    assert cause(visitor, f"https://{host}/", origin) == "forbidden_address"
    assert (names.asked, network.tried, web.connections) == ([], [], 0)


@pytest.mark.parametrize("url", TRICKS)
def test_a_url_that_two_readers_could_read_differently_is_refused(web: StubWeb, url: str) -> None:
    names, network = Names(), Network()

    assert cause(Visitor(web, names=names, network=network), url) == "bad_url"
    assert (names.asked, network.tried) == ([], [])


def test_what_follows_a_hash_is_no_part_of_the_host(web: StubWeb) -> None:
    names = Names()

    assert cause(Visitor(web, names=names), "http://missing.example#@127.0.0.1/") == "http_404"
    assert names.asked == ["missing.example"]


@pytest.mark.parametrize("port", FORBIDDEN_PORTS)
def test_ports_of_other_services_are_not_spoken_to(web: StubWeb, port: int) -> None:
    names, network = Names(), Network()

    assert cause(Visitor(web, names=names, network=network), f"http://news.example:{port}/") in (
        "forbidden_port",
        "bad_url",
    )
    assert (names.asked, network.tried) == ([], [])


@pytest.mark.parametrize("port", [80, 443, 3000, 8000, 8080, 8443])
def test_ports_where_pages_are_found_are_asked(web: StubWeb, port: int) -> None:
    web.on(f"news.example:{port}/", reply(b"<p>news"))

    assert Visitor(web).fetch(f"http://news.example:{port}/").body == b"<p>news"


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        [PUBLIC, "127.0.0.1"],
        ["10.0.0.1", PUBLIC],
        [PUBLIC, "::1"],
        [PUBLIC, "fd00::1"],
        [PUBLIC, "64:ff9b::a00:1"],
        [PUBLIC, "fe80::1%eth0"],
        [PUBLIC] * 9 + ["192.168.0.1"],
    ],
)
def test_a_name_with_one_forbidden_address_is_refused_whichever_else_it_has(
    web: StubWeb, addresses: Sequence[str]
) -> None:
    network = Network(**{PUBLIC: web.port})

    assert cause(
        Visitor(web, names=Names(**{"evil.example": [addresses]}), network=network), "http://evil.example/"
    ) == ("forbidden_address")
    assert (network.tried, web.connections) == ([], 0)


def test_a_name_is_looked_up_once_and_the_checked_address_is_connected_to(web: StubWeb) -> None:
    rebinding = Names(**{"news.example": [[PUBLIC], ["127.0.0.1"]]})
    network = Network(**{PUBLIC: web.port})

    page = Visitor(web, names=rebinding, network=network).fetch("http://news.example/")

    assert page.body == b"<p>news"
    assert rebinding.asked == ["news.example"]
    assert network.tried == [(PUBLIC, 80)]
    assert web.asked == ["news.example/"]


def test_a_public_address_needs_no_lookup(web: StubWeb) -> None:
    web.on(f"{PUBLIC}/", reply(b"<p>news"))
    names = Names()

    assert Visitor(web, names=names).fetch(f"http://{PUBLIC}/").body == b"<p>news"
    assert names.asked == []


def test_a_public_ipv6_address_is_asked_in_brackets(web: StubWeb) -> None:
    web.on("[2606:4700::1111]:8080/", reply(b"<p>six"))
    network = Network(**{"2606:4700::1111": web.port})

    assert Visitor(web, network=network).fetch("http://[2606:4700:0::1111]:8080/").body == b"<p>six"


def test_an_international_name_is_asked_for_in_ascii(web: StubWeb) -> None:
    web.on("xn--bcher-kva.example/%C3%BC?q=%20", reply(b"<p>B\xc3\xbccher"))
    names = Names()

    page = Visitor(web, names=names).fetch("http://BÜCHER.example./ü?q= #x")

    assert page.url == "http://xn--bcher-kva.example/%C3%BC?q=%20"
    assert names.asked == ["xn--bcher-kva.example"]


def test_the_next_address_is_tried_when_one_does_not_answer(web: StubWeb) -> None:
    with StubWeb() as closed:
        dead = closed.port
    network = Network(**{"1.1.1.1": dead, PUBLIC: web.port})
    names = Names(**{"news.example": [["1.1.1.1", PUBLIC]]})

    assert Visitor(web, names=names, network=network).fetch("http://news.example/").body == b"<p>news"


def test_a_server_that_is_down_is_tried_later(web: StubWeb) -> None:
    with StubWeb() as closed:
        dead = closed.port

    assert cause(Visitor(web, network=Network(**{PUBLIC: dead})), "http://news.example/") == "connect"


class Silent(Network):
    """The first address never answers."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        if host != "1.1.1.1":
            return super().connect_tcp(host, port, timeout, local_address, socket_options)
        assert timeout is not None
        time.sleep(min(timeout, 3))
        raise httpcore.ConnectTimeout("timed out")


def test_an_address_that_is_silent_leaves_time_for_the_next(web: StubWeb) -> None:
    network = Silent(**{PUBLIC: web.port})
    names = Names(**{"news.example": [["1.1.1.1", PUBLIC]], "dead.example": [["1.1.1.1"]]})
    visitor = Visitor(web, names=names, network=network, settings=Fetch(deadline=0.6))

    assert visitor.fetch("http://news.example/").body == b"<p>news"
    assert cause(visitor, "http://dead.example/") == "deadline"


def test_a_name_that_is_not_found_is_tried_later(web: StubWeb) -> None:
    def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    assert cause(Visitor(web, names=unknown), "http://news.example/") == "dns"
    assert cause(Visitor(web, names=lambda host, port: []), "http://news.example/") == "dns"


def test_the_machines_own_resolver_gives_addresses_that_can_be_checked() -> None:
    addresses = system_resolver("localhost", 80)

    assert set(addresses) <= {"127.0.0.1", "::1"}
    assert addresses


def test_a_lookup_that_hangs_ends_at_the_deadline(web: StubWeb) -> None:
    release = threading.Event()

    def hanging(host: str, port: int) -> Sequence[str]:
        release.wait(5)
        return [PUBLIC]

    begun = time.monotonic()
    assert cause(Visitor(web, names=hanging, settings=Fetch(deadline=0.3)), "http://news.example/") == "deadline"
    assert time.monotonic() - begun < 2
    release.set()


@pytest.fixture
def listed(web: StubWeb) -> Visitor:
    """A visitor that may ask the stub by its real address, on the real network."""
    web.on(f"127.0.0.1:{web.port}/", reply(b"<p>inside"))
    web.on("news.example/to-listed", reply(b"", f"Location: http://127.0.0.1:{web.port}/", status=302))
    web.on(f"127.0.0.1:{web.port}/to-itself", reply(b"", "Location: /", status=302))
    settings = Fetch(deadline=5, allow_origins=(f"127.0.0.1:{web.port}", "NAS.lan:8080"))
    return Visitor(
        web,
        network=Network(**{PUBLIC: web.port, "127.0.0.1": web.port, "10.0.0.7": web.port}),
        names=Names(**{"nas.lan": [["10.0.0.7"]]}),
        settings=settings,
    )


def test_a_listed_origin_works_as_a_link_and_as_a_feed(web: StubWeb, listed: Visitor) -> None:
    web.on("nas.lan:8080/feed", reply(b"<rss>", content_type="application/rss+xml"))

    assert listed.fetch(f"http://127.0.0.1:{web.port}/", Origin.LINK).body == b"<p>inside"
    assert FeedFetcher(listed.client).get("http://nas.lan:8080/feed").body == b"<rss>"


@pytest.mark.parametrize("origin", [Origin.SEARCH, Origin.FEED])
def test_a_listed_origin_is_refused_when_others_name_it(web: StubWeb, listed: Visitor, origin: Origin) -> None:
    assert cause(listed, f"http://127.0.0.1:{web.port}/", origin) == "forbidden_address"
    assert web.connections == 0


def test_a_listed_origin_is_refused_when_a_redirect_leads_to_it(web: StubWeb, listed: Visitor) -> None:
    assert cause(listed, "http://news.example/to-listed", Origin.LINK) == "forbidden_address"
    assert cause(listed, f"http://127.0.0.1:{web.port}/to-itself", Origin.LINK) == "forbidden_address"
    assert web.asked == ["news.example/to-listed", f"127.0.0.1:{web.port}/to-itself"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:{other}/", "http://127.0.0.2:{port}/", "http://localhost:{port}/",
                                 "http://sub.nas.lan:8080/", "http://nas.lan/", "http://nas.lan:8081/"])  # fmt: skip
def test_a_listed_origin_is_exactly_that_host_and_port(web: StubWeb, listed: Visitor, url: str) -> None:
    url = url.format(port=web.port, other=web.port - 1)

    assert cause(listed, url, Origin.LINK) == "forbidden_address"
    assert web.connections == 0


def test_settings_that_no_request_can_be_made_with_are_said_so() -> None:
    with pytest.raises(Unusable, match="allow_origins"):
        GuardedClient(Fetch(allow_origins=("a b:80",)))
    with pytest.raises(Unusable, match="user_agent"):
        GuardedClient(Fetch(user_agent="a\r\nX-Injected: b"))


def test_many_threads_share_one_fetcher(web: StubWeb) -> None:
    for number in range(48):
        web.on(f"host{number}.example/", reply(b"<p>%d" % number))
    visitor = Visitor(web)

    with ThreadPoolExecutor(12) as pool:
        pages = list(pool.map(lambda number: visitor.fetch(f"http://host{number}.example/"), range(48)))

    assert [page.body for page in pages] == [b"<p>%d" % number for number in range(48)]


class Refusing(httpcore.NetworkBackend):
    """Every connection fails; a forbidden one fails the test."""

    def connect_tcp(self, host: str, *args: object, **more: object) -> httpcore.NetworkStream:
        assert is_forbidden(host) is None
        raise httpcore.ConnectError("refused")


def nowhere(host: str, port: int) -> Sequence[str]:
    assert host.isascii()
    return [PUBLIC]


HOSTS = st.one_of(
    st.text(max_size=20), st.ip_addresses().map(str), st.integers(0, 2**33).map(str), st.just("a.example")
)
URLS = st.one_of(
    st.text(max_size=40),
    st.builds("{}://{}{}{}".format, st.sampled_from(["http", "https"]), HOSTS, st.sampled_from(["", ":80", ":99999", "@"]),
              st.text(max_size=20)),
)  # fmt: skip
FUZZED = GuardedClient(Fetch(), resolve=nowhere, network=Refusing())


@given(URLS)
def test_no_url_makes_the_guard_fail_otherwise_than_it_says(url: str) -> None:
    with pytest.raises((Unfetchable, FetchFailed)):
        FUZZED.get(url, exempt=False)

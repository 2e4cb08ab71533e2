"""The sources of a topic: which there are, and that one that is out takes no other with it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from wikikeeper.adapters.web.feeds import FeedSource
from wikikeeper.adapters.web.fetch import FeedFetcher
from wikikeeper.adapters.web.guard_client import GuardedClient
from wikikeeper.adapters.web.searxng import Hits
from wikikeeper.adapters.web.sources import TopicSearch, WebSearch
from wikikeeper.errors import FetchFailed, SearchFailed
from wikikeeper.models import Fetched, Found, Origin, Topic
from wikikeeper.ports import Search, Source
from wikikeeper.settings import Fetch

TOPIC = Topic(
    slug="t",
    title="T",
    brief="What is new?",
    links=("https://example.org/a#part", "https://example.org/b"),
    folder="saved",
    feeds=("https://example.org/feed",),
    queries=("one", "two"),
    language="de",
)

RSS = ("application/rss+xml", b'<rss version="2.0"><channel><item><link>/a</link></item></channel></rss>')
PAGE = ("text/html", b"<!doctype html><html><head><title>News</title></head><body>x</body></html>")


class FakeWeb:
    """Finds the query itself, once; fails on "out"."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, int]] = []

    def search(self, query: str, language: str | None, limit: int) -> Hits:
        self.asked.append((query, language, limit))
        if query == "out":
            raise SearchFailed("rate_limited", "come again later")
        return Hits((Found(url=f"https://example.org/{query}", origin=Origin.SEARCH),), ("one engine is silent",))


class NoFeeds:
    def get(self, url: str) -> Fetched:
        raise FetchFailed("dns")


@contextmanager
def serving(pages: Mapping[str, tuple[str, bytes]]) -> Iterator[int]:
    """A web server on loopback; gives its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = pages.get(self.path, ("text/plain", b""))
            self.send_response(200 if self.path in pages else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def outage(source: Source) -> str:
    with pytest.raises(SearchFailed) as failure:
        source.find()
    return failure.value.cause


def search(root: Path, web: WebSearch | None) -> Search:
    return TopicSearch(web=web, feeds=NoFeeds(), root=root, results_per_query=7)


def test_a_topic_has_one_source_for_its_links_its_folder_and_each_feed_and_query(tmp_path: Path) -> None:
    names = [source.name for source in search(tmp_path, FakeWeb()).sources(TOPIC)]

    assert names == ["links", "folder saved", "feed https://example.org/feed", "search 'one'", "search 'two'"]


def test_a_topic_has_no_source_that_it_does_not_name(tmp_path: Path) -> None:
    assert [source.name for source in search(tmp_path, None).sources(Topic(slug="t", title="T", brief="B"))] == []


def test_links_are_found_as_they_were_written(tmp_path: Path) -> None:
    links, *_ = search(tmp_path, None).sources(TOPIC)

    assert links.find() == [
        Found(url="https://example.org/a#part", origin=Origin.LINK),
        Found(url="https://example.org/b", origin=Origin.LINK),
    ]
    assert links.warnings == ()


def test_a_query_is_asked_in_the_topics_language_up_to_the_limit(tmp_path: Path) -> None:
    web = FakeWeb()
    *_, source = search(tmp_path, web).sources(TOPIC)

    assert [page.url for page in source.find()] == ["https://example.org/two"]
    assert source.warnings == ("one engine is silent",)
    assert web.asked == [("two", "de", 7)]


def test_a_source_that_is_out_takes_no_other_with_it(tmp_path: Path) -> None:
    topic = TOPIC.model_copy(update={"queries": ("out", "two")})
    found: list[str] = []
    out: list[str] = []
    for source in search(tmp_path, FakeWeb()).sources(topic):
        try:
            found.extend(page.url for page in source.find())
        except SearchFailed as error:
            out.append(error.cause)

    assert out == ["folder_missing", "dns", "rate_limited"]
    assert found == ["https://example.org/a#part", "https://example.org/b", "https://example.org/two"]


def test_a_query_without_a_search_engine_says_what_to_set(tmp_path: Path) -> None:
    *_, source = search(tmp_path, None).sources(TOPIC)

    with pytest.raises(SearchFailed) as failure:
        source.find()

    assert failure.value.cause == "not_configured"
    assert "searxng.url" in failure.value.detail


def test_a_feed_is_read_through_the_guarded_client() -> None:
    """The address of a feed was written by a person, so a listed origin of the own network is allowed for it."""
    with serving({"/feed": RSS, "/page": PAGE}) as port:
        listed = FeedFetcher(GuardedClient(Fetch(allow_origins=(f"127.0.0.1:{port}",))))
        unlisted = FeedFetcher(GuardedClient(Fetch()))
        url = f"http://127.0.0.1:{port}"

        assert [page.url for page in FeedSource(listed, f"{url}/feed").find()] == [f"{url}/a"]
        assert outage(FeedSource(listed, f"{url}/page")) == "not_a_feed"
        assert outage(FeedSource(listed, f"{url}/none")) == "http_404"
        assert outage(FeedSource(unlisted, f"{url}/feed")) == "forbidden_address"

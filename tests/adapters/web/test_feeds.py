"""Feeds as they are in the wild: what entries they give, and when they are none."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.adapters.web.feeds import MAX_BYTES, MOST_ENTRIES, FeedSource, read
from wikikeeper.errors import FetchFailed, SearchFailed, Unfetchable, WikikeeperError
from wikikeeper.models import Fetched, Found, Origin

DATA = Path(os.environ.get("WIKIKEEPER_DATA", Path(__file__).parents[4] / "shared" / "data")) / "02b_feeds"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no feeds in {DATA} (WIKIKEEPER_DATA)")

URL = "https://example.org/news/feed.xml"
RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0"><channel><title>News</title><link>https://example.org/</link>
<item><title>Old &lt;b&gt;&amp;amp;&lt;/b&gt; good</title><link>https://example.org/old</link>
  <pubDate>Thu, 03 Jul 2025 11:20:02 +0200</pubDate></item>
<item><title>New</title><link>../a b/ü.html#top</link><pubDate>Fri, 04 Jul 2025 11:20:02 +0200</pubDate></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://base.example/x/">
<title>News</title><link rel="self" href="feed"/>
<entry><title type="html">One &lt;i&gt;more&lt;/i&gt;</title><link rel="self" href="self"/><link href="one"/>
  <link rel="enclosure" href="one.mp3"/>
  <published>2025-07-03T11:20:02+02:00</published><updated>2025-07-04T01:00:00Z</updated></entry>
</feed>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
  xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://example.org/"><title>News</title></channel>
<item rdf:about="https://example.org/1"><title>One</title><link>https://example.org/1</link>
  <dc:date>2025-07-04T11:20+02:00</dc:date></item></rdf:RDF>"""


def page(body: str | bytes, content_type: str = "application/xml", charset: str | None = None) -> Fetched:
    data = body.encode() if isinstance(body, str) else body
    return Fetched(url=URL, status=200, content_type=content_type, charset=charset, body=data)


def rss(*items: str) -> str:
    return f'<rss version="2.0"><channel><title>x</title>{"".join(f"<item>{item}</item>" for item in items)}</channel></rss>'


def entries(body: str | bytes) -> list[Found]:
    return read(page(body))[0]


def urls(body: str | bytes) -> list[str]:
    return [entry.url for entry in entries(body)]


def cause(body: str | bytes) -> str:
    with pytest.raises(SearchFailed) as failure:
        read(page(body))
    return failure.value.cause


class FakeClient:
    """Answers with one page, or fails in one way."""

    def __init__(self, answer: Fetched | WikikeeperError) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def get(self, url: str) -> Fetched:
        self.asked.append(url)
        if isinstance(self.answer, WikikeeperError):
            raise self.answer
        return self.answer


def test_rss_gives_addresses_titles_and_dates_newest_first() -> None:
    assert entries(RSS) == [
        Found(
            url="https://example.org/a%20b/%C3%BC.html",
            title="New",
            origin=Origin.FEED,
            published=datetime(2025, 7, 4, 9, 20, 2, tzinfo=UTC),
        ),
        Found(
            url="https://example.org/old",
            title="Old & good",
            origin=Origin.FEED,
            published=datetime(2025, 7, 3, 9, 20, 2, tzinfo=UTC),
        ),
    ]


def test_atom_gives_the_page_of_an_entry_and_its_latest_date() -> None:
    assert entries(ATOM) == [
        Found(
            url="https://base.example/x/one",
            title="One more",
            origin=Origin.FEED,
            published=datetime(2025, 7, 4, 1, 0, tzinfo=UTC),
        )
    ]


def test_rdf_is_a_feed_too() -> None:
    assert entries(RDF)[0].published == datetime(2025, 7, 4, 9, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("item", "url"),
    [
        ("<guid>https://example.org/g</guid>", "https://example.org/g"),
        ('<guid isPermaLink="true">https://example.org/g</guid>', "https://example.org/g"),
        ('<guid isPermaLink="false">https://example.org/g</guid>', None),
        ("<guid>tag:example.org,2025:1</guid>", None),
        ('<guid isPermaLink="false"></guid><link>/b</link>', "https://example.org/b"),
        ("<guid></guid>", None),
        ("<link>javascript:alert(1)</link>", None),
        ("<link>file:///etc/passwd</link>", None),
        ("<link>b</link>", "https://example.org/news/b"),
        ("<title>no address</title>", None),
    ],
)
def test_an_entry_is_known_by_its_link_or_its_permanent_guid(item: str, url: str | None) -> None:
    assert urls(rss(item)) == ([] if url is None else [url])


def test_a_feed_in_which_no_entry_has_an_address_says_so() -> None:
    assert read(page(rss("<title>a</title>", "<title>b</title>"))) == ([], ("none of the 2 entries has a web address",))


@pytest.mark.parametrize("date", ["", "yesterday", "Fri, 99 Jul 2025 11:20:02 +0200", "0000-00-00", "x" * 1000])
def test_a_date_that_is_none_is_left_out(date: str) -> None:
    assert entries(rss(f"<link>/a</link><pubDate>{date}</pubDate>"))[0].published is None


def test_an_entry_that_stands_there_twice_is_found_once() -> None:
    assert urls(rss("<link>/a</link>", "<link>/a#more</link>", "<link>/b</link>")) == [
        "https://example.org/a",
        "https://example.org/b",
    ]


def test_only_the_newest_entries_of_an_archive_are_taken() -> None:
    first = datetime(2020, 1, 1, tzinfo=UTC)
    dated = [f"<link>/{day}</link><pubDate>{first + timedelta(days=day):%Y-%m-%d}</pubDate>" for day in range(300)]

    found = urls(rss(*dated, "<link>/undated</link>"))

    assert len(found) == MOST_ENTRIES
    assert found[:2] == ["https://example.org/undated", "https://example.org/299"]


@pytest.mark.parametrize(
    "body",
    [
        rss("<title>A & B</title><link>https://example.org/a</link>"),
        '<rss version="2.0"><channel><item><link>https://example.org/a</link></item><item><title>cut o',
        rss("<title>&nbsp;&eacute;</title><link>https://example.org/a</link>"),
        rss("<x:y>undeclared</x:y><link>https://example.org/a</link>"),
        " \n" + RSS.replace("old", "a"),
    ],
)
def test_a_malformed_feed_with_entries_is_taken_as_it_is(body: str) -> None:
    found, warnings = read(page(body))

    assert "https://example.org/a" in [entry.url for entry in found]
    assert all("malformed" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("encoding", "content_type", "charset"),
    [
        ("utf-8", "text/plain", None),
        ("utf-8", "application/rss+xml", "utf-8"),
        ("utf-16", "application/xml", None),
        ("iso-8859-1", "text/xml", "iso-8859-1"),
        ("iso-8859-1", "application/xml", None),
    ],
)
def test_the_encoding_is_found_in_header_mark_or_declaration(
    encoding: str, content_type: str, charset: str | None
) -> None:
    declared = f'<?xml version="1.0" encoding="{encoding}"?>' + rss("<title>Grüße</title><link>/a</link>")

    found, _ = read(page(declared.encode(encoding), content_type, charset))

    assert found[0].title == "Grüße"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "bad_feed"),
        (" \n", "bad_feed"),
        ('<rss version="2.0"><channel><title>cut', "bad_feed"),
        ("<!DOCTYPE html><html><body>x</body></html>", "not_a_feed"),
        ("\ufeff<!-- x -->\n<html lang=en><head><title>x</title>", "not_a_feed"),
        ("<!doctype html><title>404</title><p>gone", "not_a_feed"),
        ('{"version": "https://jsonfeed.org/version/1.1", "items": []}', "not_a_feed"),
        ("just text", "not_a_feed"),
        ('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>/a</loc></url></urlset>', "not_a_feed"),
        ("<rss>" + " " * MAX_BYTES, "too_large"),
        ("<rss><channel>" + "<a>" * 300_000, "too_large"),
    ],
)
def test_what_is_no_feed_is_an_outage_with_its_cause(body: str, expected: str) -> None:
    assert cause(body) == expected


def test_a_feed_under_the_doctype_of_a_web_page_is_a_feed() -> None:
    assert urls("<!DOCTYPE html>\n" + rss("<link>/a</link>")) == ["https://example.org/a"]


def test_an_empty_feed_is_no_outage() -> None:
    assert read(page(rss())) == ([], ())


def test_nothing_that_a_feed_names_is_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    doctype = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{secret.as_uri()}"><!ENTITY % p SYSTEM "{secret.as_uri()}"> %p;]>'

    found = entries(doctype + rss("<title>a&e;b</title><link>/a</link>"))

    assert "canary" not in str(found)


@pytest.mark.parametrize("body", ["/etc/hostname", "https://example.org/other.xml", "file:///etc/hostname"])
def test_a_body_that_is_an_address_or_a_path_is_not_followed(body: str) -> None:
    assert cause(body) == "not_a_feed"


def test_entities_that_multiply_come_to_nothing() -> None:
    levels = "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 10))
    bomb = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">{levels}]>' + rss("<title>&l9;</title><link>/a</link>")

    assert len(entries(bomb)[0].title) <= 500


@given(st.lists(st.tuples(st.integers(0, len(RSS) - 1), st.sampled_from("<>&;/]\"'\0 a")), max_size=6))
def test_no_damage_to_a_feed_makes_the_reader_raise_anything_else(damage: list[tuple[int, str]]) -> None:
    broken = list(RSS)
    for at, char in damage:
        broken[at] = char
    try:
        found, _ = read(page("".join(broken)))
    except SearchFailed:
        return
    assert all(entry.url.startswith(("http://", "https://")) for entry in found)


def test_a_source_asks_for_its_feed_and_keeps_its_warnings() -> None:
    client = FakeClient(page(rss("<title>a</title>")))
    source = FeedSource(client, URL)

    assert source.find() == []
    assert client.asked == [URL]
    assert source.name == f"feed {URL}"
    assert len(source.warnings) == 1


def test_a_token_in_the_address_of_a_feed_shows_in_no_name() -> None:
    source = FeedSource(FakeClient(page(RSS)), "https://example.org/feed?token=canary&page=2")

    assert source.name == "feed https://example.org/feed?token=redacted&page=2"


@pytest.mark.parametrize(
    ("error", "expected", "after"),
    [
        (FetchFailed("dns"), "dns", None),
        (FetchFailed("http_429", after=timedelta(minutes=5)), "http_429", timedelta(minutes=5)),
        (Unfetchable("http_404"), "http_404", None),
        (Unfetchable("forbidden_address", "127.0.0.1"), "forbidden_address", None),
    ],
)
def test_a_feed_that_cannot_be_fetched_is_an_outage(
    error: WikikeeperError, expected: str, after: timedelta | None
) -> None:
    with pytest.raises(SearchFailed) as failure:
        FeedSource(FakeClient(error), URL).find()

    assert (failure.value.cause, failure.value.after) == (expected, after)


@needs_data
def test_feeds_of_two_parsers_own_suites_raise_nothing_else() -> None:
    files = sorted(path for path in DATA.rglob("*") if path.suffix in {".xml", ".rss", ".atom", ".json"})
    states = {path.name: _state(page(path.read_bytes())) for path in files}

    assert len(files) > 70
    assert set(states.values()) <= {"read", "not_a_feed", "bad_feed"}
    assert states["neos_618_blank_guid.xml"] == states["feed1.atom"] == states["feed2.rss"] == "read"
    assert states["sitemap.xml"] == states["feed.json"] == "not_a_feed"


def _state(feed: Fetched) -> str:
    try:
        read(feed)
    except SearchFailed as error:
        return error.cause
    return "read"

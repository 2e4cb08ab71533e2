"""The sources of a topic: each query, each feed, its links, its folder; asked one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from wikikeeper.adapters.web.feeds import FeedClient, FeedSource
from wikikeeper.adapters.web.folder import FolderSource
from wikikeeper.adapters.web.searxng import Hits
from wikikeeper.errors import SearchFailed
from wikikeeper.models import Found, Origin, Topic
from wikikeeper.ports import Source


class WebSearch(Protocol):
    def search(self, query: str, language: str | None, limit: int) -> Hits:
        """The first results for a query. Raises SearchFailed when there is an outage."""
        ...


class TopicSearch:
    """Implements the Search port."""

    def __init__(self, *, web: WebSearch | None, feeds: FeedClient, root: Path, results_per_query: int) -> None:
        """`web`: None when no search engine is set; topics with queries then say so, and nothing else changes.

        `root`: the folder of the wiki, which topics' folders lie in.
        """
        self._web = web
        self._feeds = feeds
        self._root = root
        self._results_per_query = results_per_query

    def sources(self, topic: Topic) -> Iterator[Source]:
        """What a person listed comes before what an engine found: where both have a page, it is taken as a link."""
        if topic.links:
            yield LinkSource(topic.links)
        if topic.folder is not None:
            yield FolderSource(self._root, topic.folder)
        for feed in topic.feeds:
            yield FeedSource(self._feeds, feed)
        for query in topic.queries:
            yield QuerySource(self._web, query, topic.language, self._results_per_query)


class LinkSource:
    """The addresses that a person wrote down, as they were written."""

    name = "links"
    warnings: tuple[str, ...] = ()

    def __init__(self, links: tuple[str, ...]) -> None:
        self._links = links

    def find(self) -> list[Found]:
        return [Found(url=link, origin=Origin.LINK) for link in self._links]


class QuerySource:
    """One query to the search engine."""

    def __init__(self, web: WebSearch | None, query: str, language: str | None, limit: int) -> None:
        self.name = f"search {query!r}"
        self.warnings: tuple[str, ...] = ()
        self._web = web
        self._query = query
        self._language = language
        self._limit = limit

    def find(self) -> list[Found]:
        """Raises SearchFailed when the engine is out, or none is set (not_configured)."""
        self.warnings = ()
        if self._web is None:
            raise SearchFailed("not_configured", "the topic has queries but no searxng.url is set")
        hits = self._web.search(self._query, self._language, self._limit)
        self.warnings = hits.warnings
        return list(hits.found)

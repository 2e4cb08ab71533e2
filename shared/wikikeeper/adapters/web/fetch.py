"""Fetching what a topic's sources named: pages from the web through the guard, saved pages from the topic's folder."""

from pathlib import Path

from wikikeeper.adapters.web.guard_client import GuardedClient
from wikikeeper.adapters.web.guard_folder import SavedPages
from wikikeeper.errors import Unfetchable
from wikikeeper.models import Fetched, Origin
from wikikeeper.policy import media
from wikikeeper.settings import Fetch


class GuardedFetcher:
    """Implements the Fetcher port. Any number of threads may use one at once."""

    def __init__(self, settings: Fetch, wiki_root: Path, *, client: GuardedClient | None = None) -> None:
        self._client = client or GuardedClient(settings)
        self._saved = SavedPages(wiki_root, settings.max_bytes)

    def fetch(
        self, url: str, *, origin: Origin, folder: str | None, etag: str | None, last_modified: str | None
    ) -> Fetched:
        """As the port says. Only a link, a URL that a person wrote, may go to a listed origin.

        The causes are those of `GuardedClient.get` and `SavedPages.get`.
        """
        saved = url.strip()[:5].lower() == "file:"
        if saved != (origin is Origin.FOLDER):
            raise Unfetchable("bad_url", "saved pages come from the topic's folder, and nothing else does")
        if saved:
            return self._saved.get(url, folder)
        return self._client.get(url, exempt=origin is Origin.LINK, etag=etag, last_modified=last_modified)


class FeedFetcher:
    """The client that feeds are read with: their addresses stand in the topic, so a listed origin is allowed."""

    def __init__(self, client: GuardedClient) -> None:
        self._client = client

    def get(self, url: str) -> Fetched:
        """The feed, undecoded. Raises what `GuardedClient.get` raises."""
        return self._client.get(url, exempt=True, accepted=media.FEEDS)

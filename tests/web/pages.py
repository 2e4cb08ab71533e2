"""A site over a store in a temporary folder, and a browser-like client for it."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

from wikikeeper.adapters.local.folder_wiki import FolderWiki
from wikikeeper.adapters.local.sqlite_database import Database
from wikikeeper.adapters.local.sqlite_store import SqliteRunStore
from wikikeeper.fakes import RecordingReporter, SettableClock
from wikikeeper.models import Thresholds
from wikikeeper.policy.web_access import Access, own_names
from wikikeeper.web.app import create_app
from wikikeeper.web.site import Site

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"
TOKEN = "0123456789abcdef0123456789abcdef"
THRESHOLDS = Thresholds(keep=0.6, injection=0.5)
OWN = {"origin": ORIGIN, "sec-fetch-site": "same-origin"}
"""What a browser says of a form on our own pages."""


@dataclass
class World:
    root: Path
    store: SqliteRunStore
    wiki: FolderWiki
    site: Site
    app: FastAPI
    client: TestClient

    def get(self, path: str, status: int = 200) -> "Shown":
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        return Shown(answer.text)

    def post(self, path: str, **form: str) -> str:
        """Post a form as our own page does. Returns where the browser is sent."""
        answer = self.client.post(path, data=form, headers=OWN)
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]


@contextmanager
def world(root: Path, *, access: Access | None = None, base: str = ORIGIN) -> Iterator[World]:
    store = SqliteRunStore(Database(root / ".wikikeeper" / "state.sqlite"))
    wiki = FolderWiki(root)
    (root / "topics").mkdir(exist_ok=True)
    site = Site(
        store=store,
        wiki=wiki,
        clock=SettableClock(),
        reporter=RecordingReporter(),
        access=access or Access(names=own_names("127.0.0.1", PORT)),
        thresholds=THRESHOLDS,
        gate_limit=2,
    )
    app = create_app(site)
    with TestClient(app, base_url=base, follow_redirects=False) as client:
        yield World(root, store, wiki, site, app, client)
    store.close()


class Shown(HTMLParser):
    """A page taken apart as a browser does: what stands in it, where it leads, and what it would load or run."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._text: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._text.append(" ")  # a new cell or term is a new word

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self._text))

    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.tags if tag == "a" and "href" in attributes]

    def link(self, beginning: str) -> str:
        """The one address that begins so."""
        (found,) = dict.fromkeys(link for link in self.links() if link.startswith(beginning))
        return html.unescape(found)

    def loads(self) -> list[str]:
        """Everything that a browser would fetch or run by itself."""
        found = []
        for tag, attributes in self.tags:
            found += [f"{tag} {name}" for name in attributes if name.startswith("on") or name == "style"]
            if tag in ("script", "img", "iframe", "object", "embed", "video", "audio", "source", "base", "meta"):
                found += [attributes[name] or "" for name in ("src", "data", "srcset") if name in attributes]
                found += ["refresh"] if tag == "meta" and "http-equiv" in attributes else []
            if tag == "link":
                found.append(attributes.get("href") or "")
        return found

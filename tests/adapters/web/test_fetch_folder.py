"""Saved pages: only what lies in the topic's folder."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from tests.adapters.web.servers import StubWeb, Visitor

from wikikeeper.errors import Unfetchable
from wikikeeper.models import Origin
from wikikeeper.policy.urls import folder_url
from wikikeeper.settings import Fetch

HTML = b"<!doctype html><p>Saved"


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    wiki = tmp_path / "wiki"
    (wiki / "pages" / "deep").mkdir(parents=True)
    (wiki / "topics").mkdir()
    (wiki / "pages" / "release.html").write_bytes(HTML)
    (wiki / "topics" / "other.html").write_bytes(b"<p>not of this folder")
    (tmp_path / "outside.html").write_bytes(b"<p>outside")
    return wiki


@pytest.fixture
def visitor(wiki: Path) -> Iterator[Visitor]:
    with StubWeb() as web:
        yield Visitor(web, wiki=wiki, settings=Fetch(max_bytes=10_000))


def saved(visitor: Visitor, path: str, folder: str | None = "pages") -> str:
    """The cause for which a path is refused."""
    error = visitor.refusal(folder_url(PurePosixPath(path)), Origin.FOLDER, folder=folder)
    assert isinstance(error, Unfetchable)
    return error.cause


@pytest.mark.parametrize(
    ("name", "body", "kind"),
    [
        ("release.html", HTML, "text/html"),
        ("RELEASE.HTM", HTML, "text/html"),
        ("deep/a b#c?d%.html", HTML, "text/html"),
        ("Übung.md", b"# Title", "text/markdown"),
        ("notes.txt", b"text", "text/plain"),
        ("paper.PDF", b"%PDF-1.4", "application/pdf"),
        ("really-a-pdf.html", b"%PDF-1.4", "application/pdf"),
        ("broken.html", b"\x81\xfe<p", "text/html"),
        ("empty.html", b"", "text/html"),
    ],
)
def test_a_saved_page_is_read_by_its_ending_and_its_bytes(
    visitor: Visitor, wiki: Path, name: str, body: bytes, kind: str
) -> None:
    (wiki / "pages" / name).write_bytes(body)
    url = folder_url(PurePosixPath("pages") / name)

    page = visitor.fetch(url, Origin.FOLDER, folder="pages")

    assert (page.url, page.content_type, page.body, page.status) == (url, kind, body, 200)


@pytest.mark.parametrize(
    ("name", "body"), [("x.html", b"PK\x03\x04"), ("x.zip", HTML), ("x", HTML), ("x.pdf", b"text")]
)
def test_a_saved_file_that_is_no_page_is_of_the_wrong_type(
    visitor: Visitor, wiki: Path, name: str, body: bytes
) -> None:
    (wiki / "pages" / name).write_bytes(body)

    assert saved(visitor, f"pages/{name}") == "wrong_type"


def test_what_lies_elsewhere_is_not_read(visitor: Visitor, wiki: Path) -> None:
    assert saved(visitor, "topics/other.html") == "forbidden_path"
    assert saved(visitor, "pages/release.html", folder=None) == "forbidden_path"
    assert saved(visitor, "pages/release.html", folder="pages/deep") == "forbidden_path"
    assert saved(visitor, "pages/release.html", folder="..") == "forbidden_path"
    assert saved(visitor, "pages/release.html", folder=str(wiki.parent)) == "forbidden_path"


def test_a_link_may_lead_around_within_the_folder_only(visitor: Visitor, wiki: Path) -> None:
    pages = wiki / "pages"
    (pages / "inside.html").symlink_to("release.html")
    (pages / "sideways.html").symlink_to("../topics/other.html")
    (pages / "outside.html").symlink_to(wiki.parent / "outside.html")
    (pages / "up").symlink_to(wiki.parent, target_is_directory=True)
    (pages / "circle.html").symlink_to("circle.html")
    (pages / "dangling.html").symlink_to("nothing.html")

    assert visitor.fetch("file:///pages/inside.html", Origin.FOLDER, folder="pages").body == HTML
    assert saved(visitor, "pages/sideways.html") == "forbidden_path"
    assert saved(visitor, "pages/outside.html") == "forbidden_path"
    assert saved(visitor, "pages/up/outside.html") == "forbidden_path"
    assert saved(visitor, "pages/circle.html") == "forbidden_path"
    assert saved(visitor, "pages/dangling.html") == "missing_file"


def test_a_folder_that_is_a_link_out_of_the_wiki_is_not_read(visitor: Visitor, wiki: Path) -> None:
    (wiki / "linked").symlink_to(wiki.parent, target_is_directory=True)

    assert saved(visitor, "linked/outside.html", folder="linked") == "forbidden_path"


def test_a_file_that_is_not_there_is_definite(visitor: Visitor) -> None:
    assert saved(visitor, "pages/nothing.html") == "missing_file"
    assert saved(visitor, "pages/release.html/x.html") == "missing_file"
    assert saved(visitor, "pages/release.html", folder="missing") == "missing_file"


def test_special_files_are_not_opened_for_long(visitor: Visitor, wiki: Path) -> None:
    os.mkfifo(wiki / "pages" / "pipe.html")
    (wiki / "pages" / "folder.html").mkdir()

    assert saved(visitor, "pages/pipe.html") == "wrong_type"
    assert saved(visitor, "pages/folder.html") == "wrong_type"


def test_a_saved_page_has_the_limit_of_a_fetched_one(visitor: Visitor, wiki: Path) -> None:
    (wiki / "pages" / "large.txt").write_bytes(b"a" * 10_001)
    (wiki / "pages" / "fits.txt").write_bytes(b"a" * 10_000)

    assert saved(visitor, "pages/large.txt") == "too_large"
    assert len(visitor.fetch("file:///pages/fits.txt", Origin.FOLDER, folder="pages").body) == 10_000


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd/../x", "file:///pages/%2e%2e/x.html", "file:///pages/..%2f..%2foutside.html", "file://x/y.html",
     "file:///", "file:pages/release.html", "file:////pages/release.html", "file:///pages/release.html?x"],
)  # fmt: skip
def test_an_address_that_climbs_is_refused(visitor: Visitor, url: str) -> None:
    assert visitor.refusal(url, Origin.FOLDER, folder="pages").cause == "bad_url"


@pytest.mark.parametrize("origin", [Origin.SEARCH, Origin.FEED, Origin.LINK])
def test_only_the_folder_itself_names_saved_pages(visitor: Visitor, origin: Origin) -> None:
    assert visitor.refusal("file:///pages/release.html", origin, folder="pages").cause == "bad_url"
    assert visitor.refusal(" FILE:///pages/release.html", origin, folder="pages").cause == "bad_url"
    assert visitor.refusal("http://news.example/", Origin.FOLDER, folder="pages").cause == "bad_url"

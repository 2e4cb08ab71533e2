"""Real pages, where they are at hand: text is found, rubbish is not, and nothing honest is taken for an attack."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import extraction
from wikikeeper.adapters.web.extract import ChildExtractor
from wikikeeper.models import Extract, Fetched
from wikikeeper.settings import Extraction

PAGES = Path(os.environ.get("WIKIKEEPER_DATA") or Path(__file__).parents[3] / "../shared/data") / "01_html"

pytestmark = pytest.mark.skipif(
    not PAGES.exists(), reason="no real pages: set WIKIKEEPER_DATA to a folder with 01_html"
)


@pytest.fixture(scope="module")
def extracts() -> Iterator[dict[bytes, Extract]]:
    extractor = ChildExtractor(Extraction())
    try:
        yield {page.body: extractor.extract(fetched(page.body, page.charset)) for page in extraction.load(PAGES)}
    finally:
        extractor.close()


def fetched(body: bytes, charset: str | None) -> Fetched:
    return Fetched(url="https://example.org/", status=200, content_type="text/html", charset=charset, body=body)


def test_real_pages_give_their_main_text(extracts: dict[bytes, Extract]) -> None:
    figures = extraction.measure(
        extraction.load(PAGES), lambda body, charset: "\n".join(extracts[body].paragraphs)
    ).figures()

    assert figures["failed"] == 0
    assert figures["f1"] >= 0.95
    assert figures["must"] >= 0.94
    assert figures["must_not"] >= 0.80


def test_no_honest_page_is_taken_for_an_attack(extracts: dict[bytes, Extract]) -> None:
    findings = [page.findings for page in extracts.values()]

    assert [found.concealed_address for found in findings if found.concealed_address] == []
    assert [found.role_markers for found in findings if found.role_markers] == []
    assert sum(found.tag_characters for found in findings) == 0

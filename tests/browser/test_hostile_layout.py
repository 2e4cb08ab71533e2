"""Hostile titles, addresses, quotes, errors and notes in a browser: nothing runs, loads, or is wider than the screen."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.browser.conftest import Visit
from tests.browser.pictures import picture
from tests.web.hostile import HOSTILE, URLS, fill
from tests.web.on_socket import on_socket
from tests.web.pages import World, world

from wikikeeper.policy.web_access import Access, own_names
from wikikeeper.web.app import create_app

CASES = [*((text, "https://example.org/") for text in HOSTILE), *(("Title", url) for url in URLS)]
WITH_ADDRESSES = ("/runs", "/attention", "/label")
SPILLING = """() => [...document.querySelectorAll('main *:not(.hidden, .scroll:not(:has(.stack)) *, svg *, br, option)')].filter(one => {
    const box = one.getBoundingClientRect();
    const spills = one.matches('.scroll') && one.scrollWidth > one.clientWidth;
    return box.width && (spills || box.right > document.documentElement.clientWidth + 1);
}).map(one => one.outerHTML.slice(0, 120))"""
"""What stands beyond the screen's edge. A region that scrolls by itself may hold more, but not one whose rows become cards."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.mark.parametrize(("text", "url"), CASES, ids=range(len(CASES)))
def test_a_hostile_text_breaks_no_page(chromium: Browser, web: World, text: str, url: str) -> None:
    paths = [path for path in fill(web, text, url) if text in HOSTILE or path.startswith(WITH_ADDRESSES)]
    with on_socket(
        lambda port: create_app(replace(web.site, access=Access(names=own_names("127.0.0.1", port))))
    ) as port:
        context = chromium.new_context(viewport={"width": 390, "height": 900}, reduced_motion="reduce")
        visit = Visit(context, f"http://127.0.0.1:{port}")
        for number, path in enumerate(paths):
            page = visit.go(path)
            for width in (390, 1280):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), (
                    path
                )
                assert page.evaluate(SPILLING) == [], (path, width)
            page.set_viewport_size({"width": 390, "height": 900})
            picture(page, f"hostile-{CASES.index((text, url)):02}-{number:02}-390", 390)
        context.close()
    assert (visit.complaints, visit.strangers) == ([], [])

"""Pictures of pages for people to look at: `WIKIKEEPER_SCREENSHOTS=<folder>` keeps them."""

import os
from pathlib import Path

from playwright.sync_api import Page

TALLEST = 4_000


def picture(page: Page, name: str, width: int) -> None:
    """Of a whole page from its top, as far as it is worth looking at."""
    if folder := os.environ.get("WIKIKEEPER_SCREENSHOTS"):
        height = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
        page.set_viewport_size({"width": width, "height": max(height, 900)})
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=Path(folder) / f"{name}.png")
        page.set_viewport_size({"width": width, "height": 900})

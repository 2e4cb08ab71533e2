"""What only comes after months of use, in a browser: a curve from many labels, a run with failures before it, a model that
comes and goes, work at the gate, injections and quotes that wait for a person.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page
from tests.adapters.contracts.samples import LEASE, NOW, VERDICT, a_failure, a_result, a_run, claimed
from tests.browser.conftest import Visit
from tests.browser.pictures import picture
from tests.browser.test_pages import AXE, OVERLAPPING, SEVERE, SHAPES
from tests.web.on_socket import on_socket
from tests.web.pages import World, world
from tests.web.test_other_pages import judged, write_topic

from wikikeeper.adapters.local.gate import SqliteSlots
from wikikeeper.models import Condition, Lane, ModelSighting, StoredPage
from wikikeeper.policy.web_access import Access, own_names
from wikikeeper.web.app import create_app

PATHS = (
    "/runs?ended=kept",
    "/calibrate",
    "/runs/r0900-2",
    "/topics",
    "/attention",
    "/thresholds?keep=0.4&injection=0.3",
    "/label?seed=ab",
)
UNREADABLE = """() => [...document.querySelectorAll('svg text')].filter(one => {
    const [picture, word] = [one.ownerSVGElement.getBoundingClientRect(), one.getBoundingClientRect()];
    return word.left < picture.left || word.right > picture.right || word.bottom > picture.bottom || word.height < 9;
}).map(one => one.outerHTML)"""
"""Words in pictures that stand beyond their edge, or are too small. axe does not look into pictures."""

TORN = """() => [...document.querySelectorAll('time, .of')].filter(one =>
    new Set([...one.getClientRects()].map(part => part.top)).size > (one.matches('time') ? 2 : 1)).map(one => one.outerHTML)"""
"""A moment over more than two lines, or an interval over more than one: nobody reads them so."""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("old")) as web:
        after_months(web)
        yield web


def after_months(web: World) -> None:
    write_topic(web)
    web.store.checked("what-" + "is-new-in-" * 6 + "postgres", NOW, ran=True)
    chance = random.Random(5)
    for number in range(120):
        useful = chance.random()
        run = judged(number, useful, kept=useful >= 0.6, seconds=1.4, started=NOW + timedelta(minutes=number))
        web.store.put_run(run)
        if number % 2:
            good = useful + chance.gauss(0, 0.2) > 0.55
            web.post("/label", run=run.id, should="kept" if good else "discarded", seed="ab")
    poisoned = VERDICT.model_copy(update={"kept": False, "reason": "injection", "injection": 0.9, "quotes": ()})
    same = {"model": "decider-1", "model_asked": "decider", "question_version": "1", "url": "https://example.org/a?b=c"}
    web.store.put_run(a_run(800, title="Read by an AI?", verdict=poisoned, kept=False, **same))
    claim = claimed(web.store, a_result(id="r0900", title="Im dritten Anlauf"))
    failure = a_failure(cause="http_503", detail="Service Unavailable, " + "/".join(["a-long-way-round"] * 12))
    web.store.put_back(claim, stay_in_cycle=False, failure=failure)
    web.store.put_run(a_run(900, title="Im dritten Anlauf", **same))
    web.store.put_page(StoredPage(text_hash=VERDICT.text_hash or "", paragraphs=("Er ist Größer 🐘",), stored=NOW))
    for minutes, condition in enumerate((Condition.HEALTHY, Condition.UNREACHABLE, Condition.LOADING) * 4):
        since = NOW + timedelta(minutes=minutes)
        web.store.saw_model(ModelSighting(model="d-1", condition=condition, cause="dns", detail="no", since=since))
    slots, now = SqliteSlots(web.store.database, web.site.clock.now), web.site.clock.now()
    slots.want("process-7", Lane.PLEB, NOW, now + LEASE)
    slots.take(1, "host:1", Lane.KEEPER, now + LEASE, 1)


@pytest.mark.parametrize(("width", "scheme"), SHAPES)
def test_what_comes_with_time_has_no_serious_finding_and_fits_its_screen(
    chromium: Browser, old: World, width: int, scheme: str
) -> None:
    with on_socket(
        lambda port: create_app(replace(old.site, access=Access(names=own_names("127.0.0.1", port))))
    ) as port:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="light" if scheme == "light" else "dark",
            reduced_motion="reduce",
        )
        visit = Visit(context, f"http://127.0.0.1:{port}")
        for path in PATHS:
            page = visit.go(path)
            for closed in page.locator("details:not([open]) > summary").all()[:3]:
                closed.click()
            found = page.evaluate(f"async () => {{ {AXE}; return (await axe.run(document)).violations }}")
            severe = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found if one["impact"] in SEVERE]
            assert severe == [], (path, severe)
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
            assert page.evaluate(OVERLAPPING) == [], path
            assert page.evaluate(UNREADABLE) == [], path
            assert page.evaluate(TORN) == [], path
            assert contrasts(page) == {}, path
            picture(page, f"rare-{re.sub('[^a-z0-9]+', '-', path.strip('/'))[:20]}-{width}-{scheme}", width)
        context.close()
    assert (visit.complaints, visit.strangers) == ([], [])


LEAST_CONTRAST = 3.0
"""Of lines and large signs, by WCAG 1.4.11."""
CURVES = """() => Object.fromEntries([...document.querySelectorAll('.curve polyline, .curve .mark')].map(one =>
    [one.getAttribute('class'), [getComputedStyle(one).stroke, getComputedStyle(document.body).backgroundColor]]))"""


def contrasts(page: Page) -> dict[str, float]:
    """The lines of a curve that can hardly be told from the page."""
    found = {name: contrast(*colours) for name, colours in page.evaluate(CURVES).items()}
    return {name: value for name, value in found.items() if value < LEAST_CONTRAST}


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_the_curve_its_numbers_and_what_failed_before_are_there_without_script(chromium: Browser, old: World) -> None:
    with on_socket(
        lambda port: create_app(replace(old.site, access=Access(names=own_names("127.0.0.1", port))))
    ) as port:
        context = chromium.new_context(java_script_enabled=False)
        visit = Visit(context, f"http://127.0.0.1:{port}")
        page = visit.go("/calibrate")
        assert page.locator("svg.curve polyline").count() == 2
        page.get_by_text("The curve as numbers").click()
        assert page.get_by_role("table", name="Precision and recall for each keep threshold").is_visible()
        page = visit.go("/runs/r0900-2")
        assert page.get_by_role("table", name="What failed before").get_by_role("row").count() == 2
        page = visit.go("/thresholds")
        page.get_by_label("Keep from useful").fill("0.4")
        page.get_by_role("button", name="Try").click()
        assert page.get_by_role("table", name="Pages that would be judged the other way").is_visible()
        context.close()
    assert (visit.complaints, visit.strangers) == ([], [])

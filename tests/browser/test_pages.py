"""Every page in a browser: it shows what it should, complains of nothing, loads nothing from elsewhere, and can be used
by keyboard and screen reader.

`WIKIKEEPER_SCREENSHOTS=<folder>` keeps pictures of every page at both widths in light and dark, to be looked at.
"""

import re
from importlib.resources import files

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import Visit
from tests.browser.pictures import picture

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
SEVERE = ("serious", "critical")
PAGES = (
    "/runs", "/runs?ended=kept", "/runs?topic=nobody", "/topics", "/cycles", "/notes", "/notes?folder=completed", "/attention",
    "/thresholds", "/thresholds?keep=0.9&injection=0.2", "/label?seed=ab", "/calibrate", "/login",
)  # fmt: skip
OVERLAPPING = """() => {
    const fields = [...document.querySelectorAll('input, select, button, main a')].filter(one => one.getClientRects().length);
    const over = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
        && one.top < other.bottom - 1 && other.top < one.bottom - 1;
    return fields.flatMap((one, place) => fields.slice(place + 1)
        .filter(other => !one.contains(other) && over(one.getBoundingClientRect(), other.getBoundingClientRect()))
        .map(other => one.outerHTML.slice(0, 80) + ' and ' + other.outerHTML.slice(0, 80)));
}"""
"""What can be pressed or filled in and stands over another such thing. axe looks at each by itself."""
SHAPES = [(width, scheme) for width in (390, 1280) for scheme in ("light", "dark")]


def a_run(page: Page) -> str:
    return page.locator("article h2 a").first.get_attribute("href") or ""


def a_note(page: Page) -> str:
    return page.locator("ul.notes a").first.get_attribute("href") or ""


@pytest.mark.parametrize(("width", "scheme"), SHAPES)
def test_no_page_has_a_serious_finding_of_axe_or_is_wider_than_its_screen(
    chromium: Browser, served: str, width: int, scheme: str
) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="light" if scheme == "light" else "dark",
        reduced_motion="reduce",
    )
    visit = Visit(context, served)
    own = [a_run(visit.go("/runs?ended=kept")), a_run(visit.go("/runs?ended=discarded")), a_note(visit.go("/notes"))]
    for number, path in enumerate([*PAGES, *own]):
        page = visit.go(path)
        for closed in page.locator("details:not([open]) > summary").all()[:3]:
            closed.click()
        found = page.evaluate(f"async () => {{ {AXE}; return (await axe.run(document)).violations }}")
        severe = [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found if one["impact"] in SEVERE]
        assert severe == [], (path, severe)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
        assert page.evaluate(OVERLAPPING) == [], path
        name = re.sub(r"[^a-z0-9]+", "-", path.strip("/"))[:40] or "start"
        picture(page, f"{number:02}-{name}-{width}-{scheme}", width)
    context.close()
    assert (visit.complaints, visit.strangers) == ([], [])


def test_the_runs_of_a_cycle_are_there_with_bars(visit: Visit) -> None:
    page = visit.go("/")

    expect(page).to_have_url(re.compile("/runs$"))
    expect(page.locator("article.card")).to_have_count(10)
    bar = page.locator("svg.meter").first
    expect(bar).to_be_visible()
    expect(bar).to_have_attribute("aria-label", re.compile(r"^useful 0\.\d\d, kept from 0\.\d\d$"))


def test_filters_narrow_the_runs(visit: Visit) -> None:
    page = visit.go("/runs")
    page.get_by_label("Ended").select_option("kept")
    page.get_by_role("button", name="Filter").click()

    expect(page).to_have_url(re.compile("ended=kept"))
    expect(page.locator("article .badge.kept")).to_have_count(5)
    expect(page.locator("article .badge.discarded")).to_have_count(0)
    expect(page.get_by_label("Ended")).to_have_value("kept")

    page.get_by_label("To", exact=True).fill("2001-01-01")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No run matches")).to_be_visible()
    page.get_by_role("link", name="Clear").click()
    expect(page.locator("article.card")).to_have_count(10)


def test_a_verdict_is_corrected_and_the_correction_stays(visit: Visit) -> None:
    page = visit.go("/runs?ended=kept")
    page.locator("article h2 a").first.click()
    page.get_by_role("button", name="Should have been dropped").click()

    expect(page.locator("#label ~ form .labelled")).to_contain_text("should be dropped")
    page.get_by_role("button", name="Should have been kept").click()
    expect(page.locator("#label ~ form .labelled")).to_contain_text("should be kept")
    page.reload()
    expect(page.locator("#label ~ form .labelled")).to_contain_text("should be kept")


def test_moving_a_threshold_moves_its_line_and_trying_shows_what_would_flip(visit: Visit) -> None:
    page = visit.go("/thresholds")
    expect(page.get_by_text("Nothing would flip")).to_be_visible()
    line = page.locator('line[data-line="useful"]').first

    page.get_by_label("useful threshold").fill("0.99")
    expect(line).to_have_attribute("x1", "99")
    expect(page.get_by_label("Keep from useful")).to_have_value("0.99")
    page.get_by_role("button", name="Try").click()

    expect(page).to_have_url(re.compile("keep=0.99"))
    expect(page.get_by_role("table")).to_contain_text("not useful")
    expect(page.locator("tbody tr").first.get_by_role("link")).not_to_have_text("")


def test_thresholds_can_be_tried_without_script(chromium: Browser, served: str) -> None:
    context = chromium.new_context(java_script_enabled=False)
    visit = Visit(context, served)
    page = visit.go("/thresholds")
    page.get_by_label("Keep from useful").fill("0.99")
    page.get_by_role("button", name="Try").click()

    expect(page.get_by_role("heading", name="What would flip")).to_be_visible()
    expect(page.get_by_role("table")).to_contain_text("not useful")
    context.close()


def test_a_drawn_page_is_labelled_and_gone_from_the_sample(visit: Visit) -> None:
    page = visit.go("/label?sample=9")
    before = page.locator("article.card").count()
    title = page.locator("article h2").first.inner_text()
    page.locator("article").first.get_by_role("button", name="Should be dropped").click()

    expect(page).to_have_url(re.compile("seed="))
    expect(page.locator("article.card")).to_have_count(before - 1)
    expect(page.get_by_role("heading", name=title, exact=True)).to_have_count(0)
    page.get_by_role("link", name="What they say of the thresholds").click()
    expect(page.get_by_text("Cannot say")).to_be_visible()


def test_what_needs_attention_says_what_to_do(visit: Visit) -> None:
    page = visit.go("/attention")

    for said in (
        "Start the server.",
        "Look whether the wiki can be written",
        "topics/broken.md",
        "A page that would not load",
        "AI assistants that read this page",
    ):
        expect(page.get_by_text(said).first).to_be_visible()


def test_topics_and_cycles_show_why_nothing_ran(visit: Visit) -> None:
    page = visit.go("/topics")
    expect(page.get_by_text("skipped: unreachable: connection refused")).to_be_visible()
    expect(page.get_by_text("topics/broken.md").first).to_be_visible()
    expect(page.get_by_text("decider is unreachable since")).to_be_visible()
    expect(page.get_by_text("unreachable: no route")).to_be_visible()
    expect(page.get_by_text("No lane waits.")).to_be_visible()

    page = visit.go("/cycles")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.get_by_text("unreachable: connection refused")).to_be_visible()


def test_everything_is_reached_by_keyboard(visit: Visit) -> None:
    page = visit.go("/runs")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("select[name=topic]")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"


def test_a_page_from_elsewhere_cannot_post_in_the_readers_name(chromium: Browser, served: str) -> None:
    """From another origin on the same machine, as a page that a name was made to lead to would be."""
    context = chromium.new_context()
    page = context.new_page()
    stranger = served.replace("127.0.0.1", "localhost")
    page.goto(stranger + "/runs")
    status = page.evaluate(
        """async ([url]) => (await fetch(url, {method: 'POST', mode: 'no-cors', redirect: 'manual',
            body: new URLSearchParams({should: 'kept'})}).then(a => a.type, e => String(e)))""",
        [served + "/results/x/retry"],
    )
    assert "opaque" not in status  # the content policy of our own page stops it before it is sent
    context.close()


def test_a_note_is_read_and_marked_done(chromium: Browser, served: str) -> None:
    """Last, since it can be done once."""
    context = chromium.new_context()
    visit = Visit(context, served)
    page = visit.go("/notes")
    page.locator("ul.notes a").first.click()
    expect(page.locator("article.note blockquote").first).to_be_visible()
    page.get_by_role("button", name="Done with it").click()

    expect(page).to_have_url(re.compile("/notes/completed/"))
    expect(page.locator("article.note blockquote").first).to_be_visible()
    expect(visit.go("/notes").get_by_text("No note awaits you.")).to_be_visible()
    context.close()
    assert visit.complaints == []

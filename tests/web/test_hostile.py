"""Titles, addresses, quotes, errors and notes of strangers on every page: nothing runs, loads, or breaks the page."""

import pytest
from tests.web.hostile import HOSTILE, URLS, fill
from tests.web.pages import World

OURS = ["/static/wikikeeper.css", "/static/icon.svg", "/static/wikikeeper.js"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_text_is_only_text_on_every_page(web: World, text: str) -> None:
    for path in fill(web, text):
        shown = web.get(path)
        assert sorted(shown.loads()) == sorted(OURS), path
        assert [tag for tag, _ in shown.tags].count("h1") == 1, path
        assert [tag for tag, _ in shown.tags].count("main") == 1, path
        forms = [attributes.get("action") or "" for tag, attributes in shown.tags if tag == "form"]
        assert all(action.startswith("/") for action in forms), path
        # What a person writes into a note as a link to the web is one; a click follows it, and nothing else does.
        web_links = "https://" if path.startswith("/notes/awaiting/") else "https://example.org/"
        assert all(link.startswith(("/", "#", web_links)) for link in shown.links()), (path, shown.links())
        assert "\u202e" not in shown.source, path
        assert "49" not in shown.text.replace("0.49", "") or text != "{{ 7*7 }}{% for x in y %}", path
        longest = max((len(attributes.get("aria-label") or "") for _, attributes in shown.tags), default=0)
        assert longest < 500, path


@pytest.mark.parametrize("url", URLS, ids=range(len(URLS)))
def test_an_address_is_a_link_only_where_it_leads_to_the_web(web: World, url: str) -> None:
    for path in fill(web, "Title", url):
        shown = web.get(path)
        assert sorted(shown.loads()) == sorted(OURS), path
        assert "hunter2" not in shown.source, path
        for link in shown.links():
            assert link.startswith(("/", "#", "https://example.org/")), (path, link)
            assert not link.startswith(("//", "/\\")), (path, link)


def test_a_note_keeps_its_words_and_its_links_to_the_web(web: World) -> None:
    fill(web, "Title")

    shown = web.get("/notes/awaiting/2026-03-01-hostile.md")
    assert "https://example.org/a?b=c&d=e" in shown.links()
    assert "https://example.org/auto" in shown.links()
    for said in ("local", "picture", "click", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>"):
        assert said in shown.text
    assert "result: 0123456789abcdef01234567" not in shown.text
    assert not [1 for tag, _ in shown.tags if tag in ("img", "iframe")]


@pytest.mark.parametrize(
    "name",
    [
        "..%2f..%2fwikikeeper.toml",
        "%2e%2e%2fx.md",
        ".hidden.md",
        "a%00.md",
        "x.txt",
        "x" * 300 + ".md",
        "%5c..%5cx.md",
        "nope.md",
    ],
)
def test_no_name_of_a_note_leads_out_of_its_folder(web: World, name: str) -> None:
    (web.root / "wikikeeper.toml").write_text("secret")
    (web.root / "x.md").write_text("secret")

    answer = web.client.get(f"/notes/awaiting/{name}")
    assert answer.status_code == 404
    assert "secret" not in answer.text

"""The list of runs and a run's own page."""

from datetime import timedelta

import pytest
from tests.adapters.contracts.samples import NOW, SECOND, TOPIC, VERDICT, a_result, a_run, add
from tests.web.pages import World

from wikikeeper.models import Kind, Should, StoredPage, Verdict
from wikikeeper.policy.run_filter import RunFilter
from wikikeeper.web.runs import A_PAGE, MOST_READ

DISCARDED = VERDICT.model_copy(update={"kept": False, "reason": "not_useful", "quotes": ()})
INJECTED = VERDICT.model_copy(update={"kept": False, "reason": "injection", "injection": 1.0, "quotes": ()})


def subjects(web: World, path: str) -> list[str]:
    links = [link.removeprefix("/runs/") for link in web.get(path).links() if link.startswith("/runs/")]
    return list(dict.fromkeys(link.partition("-")[0] for link in links))


def test_an_empty_store_says_how_a_first_run_comes_about(web: World) -> None:
    assert "No run yet" in web.get("/runs").text


def test_a_run_is_shown_with_all_that_led_to_its_verdict(web: World) -> None:
    web.store.put_run(a_run(model_asked="decider", model="decider-1", question_version="triage-1", title="Neu"))

    shown = web.get("/runs").text
    for said in ("Neu", "kept", "release", TOPIC, "useful", "0.90", "kept from 0.60", "injection", "0.10"):
        assert said in shown
    for said in ("decider → decider-1", "triage-1", "Tokens 900", "Took 400 ms", "Gate wait 10 ms", "Tries 1"):
        assert said in shown
    assert "Größer 🐘" in shown


def test_bars_are_drawn_against_the_thresholds_of_the_verdict(web: World) -> None:
    web.store.put_run(a_run())

    shown = web.get("/runs")
    assert [a["width"] for tag, a in shown.tags if tag == "rect" and a["class"] == "fill"] == ["90.00", "10.00"]
    assert [a["x1"] for tag, a in shown.tags if tag == "line"] == ["60.00", "50.00"]
    assert [a["aria-label"] for tag, a in shown.tags if tag == "svg"] == [
        "useful 0.90, kept from 0.60",
        "injection 0.10, discarded from 0.50",
    ]


def test_a_failed_run_shows_its_error(web: World) -> None:
    web.store.put_run(a_run(outcome="failed", judgement=None, verdict=None, kept=None, kind=None, error="timed out"))

    shown = web.get("/runs").text
    assert "failed" in shown
    assert "timed out" in shown


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("topic=other", ["r0002"]),
        ("topic=" + TOPIC, ["r0006", "r0005", "r0004", "r0003", "r0001"]),
        ("ended=kept", ["r0006", "r0002", "r0001"]),
        ("ended=discarded", ["r0004", "r0003"]),
        ("ended=injection", ["r0004"]),
        ("ended=failed", ["r0005"]),
        ("ended=kept&topic=" + TOPIC, ["r0006", "r0001"]),
        ("kind=opinion", ["r0002"]),
        ("trigger=Triage&kind=opinion", ["r0002"]),
        ("since=2026-03-02", ["r0006"]),
        ("until=2026-03-01&ended=kept", ["r0002", "r0001"]),
        ("topic=&trigger=&ended=&kind=&since=&until=", ["r0006", "r0005", "r0004", "r0003", "r0002", "r0001"]),
        ("topic=nobody", []),
        ("since=0001-01-01&until=9999-12-31&ended=failed", ["r0005"]),
    ],
)
def test_runs_are_filtered(web: World, query: str, found: list[str]) -> None:
    web.store.put_run(a_run(1))
    web.store.put_run(a_run(2, topic="other", kind=Kind.OPINION))
    web.store.put_run(a_run(3, verdict=DISCARDED, kept=False))
    web.store.put_run(a_run(4, verdict=INJECTED, kept=False))
    web.store.put_run(a_run(5, outcome="failed", verdict=None, judgement=None, kept=None, kind=None))
    web.store.put_run(a_run(6, started=NOW + timedelta(days=1)))

    assert subjects(web, f"/runs?{query}") == found


def test_paging_shows_each_run_once_and_keeps_the_filter(web: World) -> None:
    for number in range(2 * A_PAGE + 5):
        web.store.put_run(a_run(number, started=NOW + (number // 3) * SECOND))
        web.store.put_run(a_run(1000 + number, topic="other"))

    seen, path, pages = [], f"/runs?topic={TOPIC}", 0
    while path:
        shown = web.get(path)
        seen += subjects(web, path)
        older = [link for link in shown.links() if "before=" in link]
        path = older[0] if older else ""
        pages += 1
    assert pages == 3
    assert len(seen) == len(set(seen)) == 2 * A_PAGE + 5


def test_a_filter_that_matches_few_runs_reads_a_bounded_number_for_each_page(web: World) -> None:
    rare = a_run(0, kind=Kind.OPINION)
    web.store.put_run(rare)
    for number in range(1, 41):
        web.store.put_run(a_run(number))
    chosen = RunFilter(kind=Kind.OPINION)

    first = web.store.run_page(chosen, after=None, most=5, most_read=20)
    assert first.searched
    assert first.runs == ()
    second = web.store.run_page(chosen, after=first.next, most=5, most_read=20)
    third = web.store.run_page(chosen, after=second.next, most=5, most_read=20)
    assert [run.id for run in third.runs] == [rare.id]
    assert third.next is None
    assert MOST_READ == 5_000


@pytest.mark.parametrize(
    "query",
    [
        "kind=nope",
        "ended=nope",
        "since=yesterday",
        "before=x",
        "before=.",
        "before=" + "9" * 30 + ".a",
        "topic=" + "x" * 301,
    ],
)
def test_a_wrong_value_in_the_address_is_named(web: World, query: str) -> None:
    assert query.partition("=")[0] in web.get(f"/runs?{query}", status=422).text


def test_a_runs_own_page_shows_everything(web: World) -> None:
    add(web.store, a_result())
    web.store.put_run(a_run())
    web.store.put_page(StoredPage(text_hash=VERDICT.text_hash or "", paragraphs=("Er ist Größer 🐘",), stored=NOW))

    shown = web.get("/runs/r0001-2").text
    for said in ("Verdict", "Quotes", "Findings", "zero width 2", "<|user|>", "Source and note", "waiting", "search"):
        assert said in shown
    assert "does not stand in the stored page" in shown
    assert "Order of options 7, 0" in shown


def test_an_unknown_run_is_a_page_that_says_so(web: World) -> None:
    assert "no such run" in web.get("/runs/nobody-1", status=404).text


def test_a_correction_is_stored_as_a_label_and_shown(web: World) -> None:
    web.store.put_run(a_run())

    assert web.post("/runs/r0001-2/label", should="discarded") == "/runs/r0001-2#label"
    label = web.store.labels_of(["r0001"])["r0001"]
    assert (label.should, label.drawn, label.run) == (Should.DISCARDED, False, "r0001-2")
    assert "should be dropped" in web.get("/runs/r0001-2").text

    web.post("/runs/r0001-2/label", should="kept")
    assert web.store.labels_of(["r0001"])["r0001"].should is Should.KEPT


def test_a_run_without_a_verdict_has_nothing_to_correct(web: World) -> None:
    web.store.put_run(a_run(outcome="lost", judgement=None, verdict=None))

    answer = web.client.post("/runs/r0001-2/label", data={"should": "kept"}, headers={"sec-fetch-site": "same-origin"})
    assert answer.status_code == 409
    assert web.store.labels_of(["r0001"]) == {}


def test_a_verdict_without_a_judgement_is_shown_without_bars(web: World) -> None:
    web.store.put_run(a_run(judgement=None, verdict=Verdict.unfetchable("http_404"), kept=False, kind=None))

    assert "unfetchable:http 404" in web.get("/runs").text
    assert "unfetchable:http 404" in web.get("/runs/r0001-2").text

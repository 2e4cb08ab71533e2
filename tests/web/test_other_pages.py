"""Topics, cycles, thresholds, labels and notes."""

from datetime import timedelta

import pytest
from tests.adapters.contracts.samples import HASH, LEASE, NOW, TOPIC, VERDICT, a_cycle, a_result, a_run, add, claimed
from tests.web.pages import OWN, World

from wikikeeper.adapters.local.gate import SqliteGate, SqliteSlots
from wikikeeper.models import (
    Condition,
    CycleState,
    Judgement,
    Kind,
    Lane,
    ModelSighting,
    ResultState,
    Run,
    StoredPage,
)
from wikikeeper.policy.notes import new_note
from wikikeeper.policy.topics import parse_topic
from wikikeeper.web.topics import NEWEST_SIGHTINGS

TOPIC_FILE = b"""---
title: Postgres
links: [https://example.org/]
schedule: {cron: "0 7 * * *", zone: Europe/Berlin}
---
What is new?
"""


def write_topic(web: World, data: bytes = TOPIC_FILE, slug: str = TOPIC) -> None:
    (web.root / "topics" / f"{slug}.md").write_bytes(data)


def judged(number: int, useful: float, *, kept: bool, model: str = "decider-1", **changes: object) -> Run:
    judgement = Judgement(useful=useful, injection=0.1, kinds={Kind.RELEASE: 1.0}, quotes={})
    verdict = VERDICT.model_copy(
        update={"kept": kept, "reason": None if kept else "not_useful", "judgement": judgement, "quotes": ()}
    )
    return a_run(
        number,
        title=f"Page {number}",
        judgement=judgement,
        verdict=verdict,
        kept=kept,
        model=model,
        question_version="1",
        **changes,
    )


# -- topics and cycles


def test_a_topic_shows_its_ticks_what_waits_and_what_it_yields(web: World) -> None:
    write_topic(web)
    web.store.checked(TOPIC, NOW, ran=True)
    add(web.store, a_result(7))
    for number in range(4):
        web.store.put_run(judged(number, 0.9, kept=number == 0, seconds=2.0))

    shown = web.get("/topics").text
    for said in ("Postgres", "2026-03-01 12:00:00 UTC", "06:00:00 UTC", "0.25 (1/4)", "8.0"):
        assert said in shown


def test_a_topic_says_why_its_last_cycle_was_skipped(web: World) -> None:
    write_topic(web)
    web.store.start_cycle(a_cycle(state=CycleState.SKIPPED, reason="unreachable: connection refused", lease_until=None))

    assert "skipped: unreachable: connection refused" in web.get("/topics").text


def test_a_model_that_was_never_seen_is_no_healthy_one(web: World) -> None:
    assert "No cycle has looked at it yet" in web.get("/topics").text


def test_how_the_model_was_is_shown_newest_first_with_the_reason(web: World) -> None:
    for minutes, condition, cause, detail in (
        (0, Condition.HEALTHY, "healthy", "answers"),
        (1, Condition.UNREACHABLE, "unreachable", "connection refused"),
        (2, Condition.LOADING, "loading", "weights"),
    ):
        since = NOW + timedelta(minutes=minutes)
        web.store.saw_model(ModelSighting(model="d-1", condition=condition, cause=cause, detail=detail, since=since))

    shown = web.get("/topics")
    assert "d-1 is loading since 2026-03-01 12:02:00 UTC" in shown.text
    assert shown.text.index("loading: weights") < shown.text.index("unreachable: connection refused")
    assert "answers" not in shown.text, "of a model that is well there is nothing to say"
    assert "3 changes, of which 1 to healthy" in shown.source
    drawn = [attributes["class"] for tag, attributes in shown.tags if tag == "rect"]
    assert drawn == ["healthy", "stopped", "skipped"]


def test_of_a_long_history_the_newest_changes_are_shown(web: World) -> None:
    for minutes in range(NEWEST_SIGHTINGS + 5):
        condition = Condition.HEALTHY if minutes % 2 else Condition.LOADING
        since = NOW + timedelta(minutes=minutes)
        web.store.saw_model(ModelSighting(model="d-1", condition=condition, cause=condition, detail="", since=since))

    shown = web.get("/topics")
    assert [tag for tag, _ in shown.tags].count("rect") == NEWEST_SIGHTINGS
    assert "12:04:00" not in shown.text
    assert "12:05:00" in shown.text


def test_a_faulty_topic_file_is_shown_with_its_line(web: World) -> None:
    write_topic(web, b"no front matter", "broken")

    assert "topics/broken.md:1" in web.get("/topics").text
    assert "topics/broken.md" in web.get("/attention").text


def test_who_holds_a_permit_is_shown_with_lane(web: World) -> None:
    gate = SqliteGate(web.store.database, 2, now=web.site.clock.now)
    gate.acquire(Lane.KEEPER, "host:1", LEASE, timedelta())

    shown = web.get("/topics").text
    assert "1 of 2 permits are held" in shown
    assert "keeper" in shown
    assert "host:1" in shown
    assert "No lane waits" in shown


def test_who_waits_at_the_gate_is_shown_with_lane_and_since_when(web: World) -> None:
    slots = SqliteSlots(web.store.database, web.site.clock.now)
    slots.want("process-7", Lane.PLEB, NOW - timedelta(minutes=3), web.site.clock.now() + LEASE)

    shown = web.get("/topics").text
    assert "0 of 2 permits are held" in shown
    assert "pleb process-7 2026-03-01 11:57:00 UTC" in shown
    assert "No lane waits" not in shown


def test_cycles_are_paged_newest_first(web: World) -> None:
    for number in range(60):
        web.store.start_cycle(
            a_cycle(
                id=f"{TOPIC}#{number}", tick=str(number), started=NOW + timedelta(minutes=number), found=1000 + number
            )
        )

    first = web.get(f"/cycles?topic={TOPIC}")
    assert "1059" in first.text
    second = web.get(first.link("/cycles?topic=postgres&before="))
    assert "1000" in second.text
    assert "1059" not in second.text


# -- thresholds


def test_histograms_are_drawn_for_each_model_and_question_version(web: World) -> None:
    web.store.put_run(judged(1, 0.95, kept=True, model="old"))
    web.store.put_run(judged(2, 0.55, kept=False))
    web.store.put_run(judged(3, 1.0, kept=True))

    shown = web.get("/thresholds")
    titles = [tag for tag, _ in shown.tags].count("figure")
    assert titles == 4
    assert "useful: pages for each twentieth from 0 to 1: 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0 1" in shown.source


def test_other_thresholds_show_what_would_flip_with_titles(web: World) -> None:
    web.store.put_run(judged(1, 0.55, kept=False))
    web.store.put_run(judged(2, 0.9, kept=True))

    assert "Nothing would flip" in web.get("/thresholds").text
    tried = web.get("/thresholds?keep=0.5&injection=")
    assert "kept 1 → 2" in tried.text
    assert "Page 1" in tried.text
    assert "Page 2" not in tried.text
    lines = [a["x1"] for tag, a in tried.tags if tag == "line" and a.get("data-line") == "useful"]
    assert lines == ["50.00"]


@pytest.mark.parametrize("query", ["keep=2", "keep=-0.1", "keep=nan", "injection=inf", "keep=x"])
def test_a_threshold_that_is_no_probability_is_refused(web: World, query: str) -> None:
    web.get(f"/thresholds?{query}", status=422)


# -- labels


def test_a_sample_has_kept_and_discarded_pages_and_hides_what_was_said(web: World) -> None:
    for number in range(30):
        web.store.put_run(judged(number, 0.9 if number < 3 else 0.2, kept=number < 3))

    shown = web.get("/label?sample=6&seed=ab")
    runs = [a["value"] or "" for tag, a in shown.tags if tag == "input" and a.get("name") == "run"]
    assert len(runs) == 6
    assert len([run for run in runs if run in ("r0000-2", "r0001-2", "r0002-2")]) == 3
    assert "discarded" not in shown.text.replace("what was discarded", "")
    assert runs == [
        a["value"] for tag, a in web.get("/label?sample=6&seed=ab").tags if tag == "input" and a.get("name") == "run"
    ]


def test_a_label_of_a_drawn_page_is_stored_and_the_page_not_drawn_again(web: World) -> None:
    web.store.put_run(judged(1, 0.9, kept=True))
    web.store.put_run(judged(2, 0.2, kept=False))

    there = web.post("/label", run="r0001-2", should="kept", seed="ab", sample="2", topic="")
    assert there == "/label?sample=1&seed=ab"
    assert web.store.labels_of(["r0001"])["r0001"].drawn
    shown = web.get("/label?sample=5")
    assert "Page 1" not in shown.text
    assert "Page 2" in shown.text


def test_a_corrected_page_can_still_be_drawn_and_a_drawn_one_stays_drawn(web: World) -> None:
    web.store.put_run(judged(1, 0.9, kept=True))
    web.post("/runs/r0001-2/label", should="discarded")
    assert "Page 1" in web.get("/label").text

    web.post("/label", run="r0001-2", should="discarded", seed="ab")
    web.post("/runs/r0001-2/label", should="kept")
    assert web.store.labels_of(["r0001"])["r0001"].drawn


def test_calibrating_says_when_it_cannot_say(web: World) -> None:
    assert "Cannot say no page was judged yet" in web.get("/calibrate").text
    web.store.put_run(judged(1, 0.9, kept=True))
    assert "Cannot say 0 labels on drawn pages" in web.get("/calibrate").text


def test_calibrating_proposes_thresholds_with_intervals_weights_and_a_picture(web: World) -> None:
    for number in range(40):
        web.store.put_run(judged(number, number / 40, kept=number >= 24))
        if number % 2:
            web.post("/label", run=f"r{number:04}-2", should="kept" if number >= 20 else "discarded", seed="ab")

    shown = web.get("/calibrate")
    assert "Keep threshold 0.5" in shown.text
    assert "judged by decider-1, questions 1;" in shown.text
    assert "Each stands for" in shown.text
    assert " kept 16 8 2.0" in shown.text
    assert "recall" in shown.text
    assert [1 for tag, a in shown.tags if tag == "polyline" and a["class"] == "recall"]


def test_where_no_threshold_is_better_the_one_in_use_is_still_measured(web: World) -> None:
    for number in range(40):
        web.store.put_run(judged(number, number / 40, kept=number >= 24))
        web.post("/label", run=f"r{number:04}-2", should="discarded" if number % 4 == 3 else "kept", seed="ab")

    shown = web.get("/calibrate").text
    assert "no threshold is better than keeping every page" in shown
    assert "Keep threshold Cannot say. In use: 0.60" in shown
    assert "In use: recall 0.40" in shown


# -- notes


@pytest.fixture
def note(web: World) -> str:
    topic = parse_topic(f"topics/{TOPIC}.md", TOPIC_FILE)
    assert not isinstance(topic, list)
    result = a_result(id="0" * 24, verdict=VERDICT, state=ResultState.KEPT)
    add(web.store, a_result(id="0" * 24))
    name = "2026-03-01-postgres-0a1b2c.md"
    web.wiki.create(f"inbox/awaiting/{name}", new_note(topic, NOW.date(), [result]))
    return name


def test_a_note_is_listed_read_and_marked_done(web: World, note: str) -> None:
    assert note in web.get("/notes").text
    shown = web.get(f"/notes/awaiting/{note}")
    assert "Größer 🐘" in shown.text
    assert "research-note" in shown.text
    etag = next(a["value"] or "" for tag, a in shown.tags if tag == "input" and a.get("name") == "etag")

    assert web.post(f"/notes/awaiting/{note}/done", etag=etag) == f"/notes/completed/{note}"
    assert "Größer 🐘" in web.get(f"/notes/completed/{note}").text
    assert note in web.get("/notes?folder=completed").text
    assert "No note awaits you" in web.get("/notes").text
    moved = web.client.get(f"/notes/awaiting/{note}")
    assert (moved.status_code, moved.headers["location"]) == (303, f"/notes/completed/{note}")


def test_a_note_that_changed_since_it_was_read_is_not_marked(web: World, note: str) -> None:
    answer = web.client.post(f"/notes/awaiting/{note}/done", data={"etag": "old"}, headers=OWN)

    assert answer.status_code == 409
    assert note in web.get("/notes").text


def test_a_quote_that_does_not_hold_needs_attention(web: World, note: str) -> None:
    assert "unknown result" in web.get("/attention").text

    claim = claimed(web.store, a_result(2, id="1" * 24))
    web.store.finish(claim, ResultState.KEPT, NOW, verdict=VERDICT)
    web.store.put_page(StoredPage(text_hash=HASH, paragraphs=("Das Größer 🐘",), stored=NOW))
    path = web.root / "inbox" / "awaiting" / note
    path.write_bytes(path.read_bytes().replace(b"0" * 24, b"1" * 24).replace("Größer".encode(), b"Kleiner"))

    shown = web.get("/attention").text
    assert "edited" in shown
    assert "Put back the words" in shown

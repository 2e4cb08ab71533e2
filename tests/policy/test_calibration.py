from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.models import Judgement, Kind, Label, Run, Should, Trigger, Verdict
from wikikeeper.policy.calibration import FEWEST, FEWEST_EACH, Calibration, Labelled, best_line, calibrate, point, share
from wikikeeper.policy.curve import curve_svg
from wikikeeper.policy.histogram import histograms
from wikikeeper.policy.sampling import draw, newest_judged

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEEP = 0.6


def run(number: int, useful: float, *, injection: float = 0.0, model: str = "m", version: str = "1") -> Run:
    judgement = Judgement(useful=useful, injection=injection, kinds={Kind.RELEASE: 1.0}, quotes={})
    kept = useful >= KEEP and injection < 0.5
    verdict = Verdict(kept=kept, reason=None if kept else "not_useful", judgement=judgement, injection=injection)
    return Run(
        id=f"r{number}-1",
        trigger=Trigger.TRIAGE,
        topic="t",
        subject=f"r{number}",
        started=NOW,
        outcome="answered",
        judgement=judgement,
        verdict=verdict,
        kept=kept,
        model=model,
        question_version=version,
    )


def label(number: int, *, good: bool, drawn: bool = True) -> Label:
    should = Should.KEPT if good else Should.DISCARDED
    return Label(result=f"r{number}", run=f"r{number}-1", topic="t", should=should, at=NOW, drawn=drawn)


def calibrated(runs: Sequence[Run], labels: Sequence[Label]) -> Calibration:
    return calibrate(runs, {each.result: each for each in labels}, keep=KEEP, injection=0.5)


def perfect(count: int = 40) -> tuple[list[Run], list[Label]]:
    """Pages whose use grows evenly; those from one half on should be kept, and all are labelled."""
    return [run(n, n / count) for n in range(count)], [label(n, good=n >= count / 2) for n in range(count)]


# -- when nothing can be said


def test_without_judged_pages_nothing_can_be_said() -> None:
    assert calibrated([], []).cannot_say == "no page was judged yet"


def test_with_too_few_labels_nothing_can_be_said() -> None:
    runs, labels = perfect()
    found = calibrated(runs, labels[: FEWEST - 1])

    assert f"{FEWEST - 1} labels" in (found.cannot_say or "")
    assert (found.keep, found.curve) == (None, ())


@pytest.mark.parametrize(("good", "side"), [(True, "dropped"), (False, "kept")])
def test_with_labels_of_one_side_only_nothing_can_be_said(good: bool, side: str) -> None:
    runs, labels = perfect()
    found = calibrated(
        runs, [each.model_copy(update={"should": Should.KEPT if good else Should.DISCARDED}) for each in labels]
    )

    assert f"only 0 of the 40 labels on drawn pages say that it should be {side}" in (found.cannot_say or "")
    assert f"{FEWEST_EACH} of either side" in (found.cannot_say or "")


def test_without_a_labelled_discard_recall_is_not_made_up() -> None:
    runs = [run(n, 0.9) for n in range(30)] + [run(100 + n, 0.1) for n in range(30)]
    found = calibrated(runs, [label(n, good=n % 2 == 0) for n in range(30)])

    assert "no discarded page is among the labels" in (found.cannot_say or "")


def test_corrections_alone_say_nothing_and_are_counted() -> None:
    runs, labels = perfect()
    found = calibrated(runs, [each.model_copy(update={"drawn": False}) for each in labels])

    assert found.cannot_say is not None
    assert found.corrections == 40


def test_labels_of_another_model_or_question_version_say_nothing() -> None:
    runs, labels = perfect()
    newest = run(1000, 0.5, version="2")

    assert (
        calibrated([newest, *runs], labels).cannot_say
        == "0 labels on drawn pages: 20 are the fewest that say something"
    )


# -- what is proposed


def test_the_threshold_that_parts_both_sides_is_proposed_with_those_that_cannot_be_told_from_it() -> None:
    found = calibrated(*perfect())

    assert found.cannot_say is None
    assert found.keep is not None
    assert found.keep.at == pytest.approx(0.5, abs=0.025)
    assert found.keep.low < found.keep.at < found.keep.high
    assert found.current is not None
    assert found.current.precision is not None
    assert found.current.recall is not None
    assert found.current.precision.value == 1.0
    assert found.current.recall.value == 16 / 20


def test_a_label_weighs_as_many_pages_as_it_stands_for() -> None:
    """Of 20 kept pages all are labelled, of 200 discarded ones 20: each of those stands for ten."""
    runs = [run(n, 0.9) for n in range(20)] + [run(100 + n, 0.3) for n in range(200)]
    labels = [label(n, good=True) for n in range(20)] + [label(100 + n, good=n < 2) for n in range(20)]
    found = calibrated(runs, labels)

    assert [(s.name, s.pages, s.labelled, s.weight) for s in found.strata] == [
        ("kept", 20, 20, 1.0),
        ("discarded", 200, 20, 10.0),
    ]
    assert found.current is not None
    assert found.current.recall is not None
    assert found.current.recall.value == pytest.approx(20 / (20 + 2 * 10))


def test_what_the_injection_threshold_drops_counts_as_missed_where_it_should_be_kept() -> None:
    """Twelve good pages are kept, and two thirds as many dropped: for their injection, not for their use."""
    runs = [run(n, 0.9) for n in range(12)] + [run(50 + n, 0.9, injection=0.8) for n in range(8)]
    runs += [run(100 + n, 0.1) for n in range(10)]
    labels = [label(n, good=True) for n in range(12)] + [label(50 + n, good=True) for n in range(8)]
    found = calibrated(runs, [*labels, *(label(100 + n, good=False) for n in range(10))])

    assert found.current is not None
    assert found.current.recall is not None
    assert found.current.precision is not None
    assert found.current.recall.value == pytest.approx(12 / 20)
    assert found.current.precision.value == 1.0
    at_use = found.curve[round(KEEP * 100)].recall
    assert at_use is not None
    assert at_use.value == 1.0, "the curve is of what the injection threshold lets through"


def test_an_injection_threshold_is_proposed_where_labels_of_useful_pages_part() -> None:
    runs = [run(n, 0.9, injection=n / 40) for n in range(40)] + [run(100 + n, 0.1) for n in range(10)]
    labels = [label(n, good=n < 28) for n in range(40)] + [label(100 + n, good=False) for n in range(10)]
    found = calibrated(runs, labels)

    assert found.injection is not None
    assert found.injection.at == pytest.approx(0.69, abs=0.03)
    assert found.injection.low <= found.injection.at <= found.injection.high


def test_without_injected_pages_among_the_labels_their_threshold_is_left_open() -> None:
    found = calibrated(*perfect())

    assert found.injection is None
    assert "useful enough" in (found.injection_cannot_say or "")


# -- the parts

points = st.lists(st.builds(Labelled, st.floats(0, 1), st.booleans(), st.floats(0.1, 50)), min_size=1, max_size=30)


@given(pages=points, threshold=st.floats(0, 1))
def test_shares_lie_in_their_intervals_and_recall_never_grows_with_the_threshold(
    pages: list[Labelled], threshold: float
) -> None:
    here, above = point(pages, threshold), point(pages, min(1.0, threshold + 0.1))
    for each in (here.precision, here.recall, here.f1):
        assert each is None or 0 <= each.low <= each.value <= each.high <= 1 + 1e-9
    if here.recall is not None and above.recall is not None:
        assert above.recall.value <= here.recall.value + 1e-9


@given(pages=points)
def test_no_threshold_is_better_than_the_one_proposed(pages: list[Labelled]) -> None:
    line = best_line(pages)
    every = point(pages, 0).f1
    best = every if line is None else point(pages, line.at).f1
    assert best is not None
    for step in range(101):
        other = point(pages, step / 100).f1
        assert other is None or other.value <= best.value + 1e-9
    if line is not None:
        assert line.low <= line.at <= line.high
        assert every is not None
        assert best.value > every.value


def test_labels_that_say_nothing_of_injection_propose_no_threshold_for_it() -> None:
    runs = [run(n, 0.61 + n / 200, injection=0.1) for n in range(40)] + [run(100 + n, 0.1) for n in range(10)]
    labels = [label(n, good=n % 2 == 0) for n in range(40)] + [label(100 + n, good=False) for n in range(10)]
    found = calibrated(runs, labels)
    assert found.injection is None
    assert "no threshold is better" in (found.injection_cannot_say or "")


@given(value=st.floats(0, 1), count=st.integers(1, 200))
def test_more_labels_make_an_interval_narrower(value: float, count: int) -> None:
    few = share(value, [Labelled(0.5, True, 1.0)] * count)
    more = share(value, [Labelled(0.5, True, 1.0)] * (count * 4))

    assert more.high - more.low < few.high - few.low


def test_wilsons_interval_is_that_of_the_textbook() -> None:
    found = share(0.5, [Labelled(0.5, True, 3.0)] * 10)

    assert (round(found.low, 3), round(found.high, 3)) == (0.237, 0.763)


# -- sampling


def test_kept_and_discarded_pages_are_drawn_alike_and_the_seed_decides_which() -> None:
    pages = [run(n, 0.9 if n < 50 else 0.1) for n in range(500)]

    drawn = draw(pages, {}, most=20, seed="a")
    assert sum(each.kept is True for each in drawn) == 10
    assert draw(list(reversed(pages)), {}, most=20, seed="a") == drawn
    assert draw(pages, {}, most=20, seed="b") != drawn
    assert [each.kept for each in drawn] != sorted((each.kept for each in drawn), key=lambda kept: not kept)


@given(kept=st.integers(0, 12), dropped=st.integers(0, 12), most=st.integers(1, 15))
def test_where_one_side_has_too_few_the_other_fills_up(kept: int, dropped: int, most: int) -> None:
    pages = [run(n, 0.9) for n in range(kept)] + [run(100 + n, 0.1) for n in range(dropped)]
    drawn = draw(pages, {}, most=most, seed="a")

    assert len(drawn) == min(most, kept + dropped)
    assert len({each.subject for each in drawn}) == len(drawn)


def test_every_page_of_a_side_is_as_likely_to_be_drawn() -> None:
    pages = [run(n, 0.1) for n in range(20)]
    counts = dict.fromkeys((each.subject for each in pages), 0)
    for seed in range(400):
        for each in draw(pages, {}, most=5, seed=str(seed)):
            counts[each.subject] += 1

    assert min(counts.values()) > 65  # 100 expected, 8.7 the standard deviation
    assert max(counts.values()) < 135


def test_only_what_was_drawn_before_is_left_out() -> None:
    pages = [run(n, 0.9) for n in range(3)]
    labels = {"r0": label(0, good=True), "r1": label(1, good=True, drawn=False)}

    assert {each.subject for each in draw(pages, labels, most=9, seed="a")} == {"r1", "r2"}


def test_of_a_page_that_was_judged_again_the_newest_run_counts() -> None:
    newer = run(1, 0.9).model_copy(update={"id": "r1-2"})
    judged = newest_judged([newer, run(2, 0.5, model="old"), run(1, 0.1), run(3, 0.2)])

    assert [each.id for each in judged.pages] == ["r1-2", "r3-1"]
    assert (judged.model, judged.question_version) == ("m", "1")


# -- pictures


def test_histograms_count_each_page_once_for_each_model() -> None:
    first, second = histograms([run(1, 1.0), run(1, 0.0), run(2, 0.0, model="old"), run(3, 0.049), run(4, 0.05)])

    assert (first.model, first.pages, first.useful[0], first.useful[1], first.useful[19]) == ("m", 3, 1, 1, 1)
    assert (second.model, second.pages) == ("old", 1)


def test_the_curve_is_a_picture_without_styles_scripts_or_strangers_words() -> None:
    found = calibrated(*perfect()).model_copy(update={"model": "<script>"})
    svg = curve_svg(found, used=KEEP)

    assert svg.startswith("<svg ")
    for said in ("precision", "recall", "proposed", "in use 0.6"):
        assert said in svg
    for never in ("style", "script", "href", "onload"):
        assert never not in svg
    assert curve_svg(Calibration(), used=KEEP) == ""

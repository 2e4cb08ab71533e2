"""Which thresholds a person's labels speak for, and how sure that is.

Labels on pages that were drawn at random speak for all pages like them. Kept and discarded pages are drawn apart, so
each label weighs as many pages as it stands for:

    weight = pages of its kind (kept, discarded) / labelled pages of its kind

Only so can recall be known: what was discarded and should not have been shows in drawn discards alone. Corrections were
not drawn. They weigh nothing, because they were chosen for looking wrong, and are only counted.

An interval is Wilson's of 95 %, over as many labels as weigh alike would tell as much (Kish). It speaks of chance alone:
neither of labels that are wrong nor of pages to come that are unlike these.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from wikikeeper.models import Label, Run, Should, Value
from wikikeeper.policy.sampling import newest_judged

FEWEST_EACH = 5
"""Labels of either side below which nothing is said: an interval over four spans more than half of everything."""
FEWEST = 20
"""Labels in all."""
Z = 1.96
NO_BETTER = "by these labels no threshold is better than keeping every page"
NEVER = -1.0
"""The probability of a page that no keep threshold keeps."""
STEPS = 100
"""Thresholds that are tried: a person sets them in hundredths."""


class Share(Value):
    """A share with its interval."""

    value: float
    low: float
    high: float


class Point(Value):
    """What one threshold would come to."""

    threshold: float
    precision: Share | None
    """Of what it keeps, what should be kept; None: it keeps nothing that is labelled."""
    recall: Share | None
    """Of what should be kept, what it keeps; None: nothing should be."""
    f1: Share | None


class Line(Value):
    """A threshold that is proposed, and those that the labels cannot tell from it."""

    at: float
    low: float
    high: float


class Stratum(Value):
    """Pages that were drawn alike."""

    name: str
    pages: int
    labelled: int

    @property
    def weight(self) -> float:
        """How many pages one label stands for."""
        return self.pages / self.labelled if self.labelled else 0.0


class Calibration(Value):
    """What labels say of the thresholds."""

    model: str | None = None
    question_version: str | None = None
    strata: tuple[Stratum, ...] = ()
    corrections: int = 0
    """Labels that weigh nothing: made because a verdict looked wrong."""
    good: int = 0
    """Drawn pages that should be kept."""
    bad: int = 0
    cannot_say: str | None = None
    """Why no threshold is proposed."""
    keep: Line | None = None
    injection: Line | None = None
    injection_cannot_say: str | None = None
    current: Point | None = None
    """What both thresholds in use come to: a page that the injection threshold drops is one that is not kept."""
    curve: tuple[Point, ...] = ()
    """Over keep thresholds from 0 to 1, of the pages that the injection threshold in use lets through."""


class Labelled(NamedTuple):
    """A labelled page: its probability, what should have become of it, and how many pages it stands for."""

    probability: float
    good: bool
    weight: float


def calibrate(runs: Iterable[Run], labels: Mapping[str, Label], *, keep: float, injection: float) -> Calibration:
    """What labels (by result) say of answered runs, given newest first.

    As for other thresholds, only the newest model and question version count, and of a page its newest run.
    """
    judged = newest_judged(runs)
    pages = judged.pages
    if judged.model is None:
        return Calibration(cannot_say="no page was judged yet")
    drawn = {run.subject: label for run in pages if (label := labels.get(run.subject)) is not None and label.drawn}
    corrections = sum(1 for run in pages if (label := labels.get(run.subject)) is not None and not label.drawn)
    strata = {kept: _stratum("kept" if kept else "discarded", pages, drawn, kept=kept) for kept in (True, False)}
    chosen = [run for run in pages if run.subject in drawn]
    good = sum(1 for label in drawn.values() if label.should is Should.KEPT)
    about = Calibration(
        model=judged.model,
        question_version=judged.question_version,
        strata=tuple(strata.values()),
        corrections=corrections,
        good=good,
        bad=len(drawn) - good,
        cannot_say=_too_few(good, len(drawn) - good) or _undrawn(strata.values()),
    )
    if about.cannot_say is not None:
        return about

    def points(of: Iterable[Run], *, by_injection: bool) -> list[Labelled]:
        # An injection keeps below its line, so it is turned round: one rule for both.
        return [
            Labelled(
                1 - _injection(run) if by_injection else _useful(run),
                drawn[run.subject].should is Should.KEPT,
                strata[_kept(run)].weight,
            )
            for run in of
        ]

    # Each line is judged by the pages that the other one lets through.
    clean = points((run for run in chosen if _injection(run) < injection), by_injection=False)
    stopped = points((run for run in chosen if _injection(run) >= injection), by_injection=False)
    line = best_line(clean)
    useful = points((run for run in chosen if _useful(run) >= (keep if line is None else line.at)), by_injection=True)
    unclear = _too_few(sum(p.good for p in useful), sum(not p.good for p in useful), among="pages useful enough")
    turned = None if unclear else best_line(useful)
    if turned is None and unclear is None:
        unclear = NO_BETTER
    return about.model_copy(
        update={
            "keep": line,
            "cannot_say": None if line else NO_BETTER,
            "injection": turned
            and Line(at=round(1 - turned.at, 2), low=round(1 - turned.high, 2), high=round(1 - turned.low, 2)),
            "injection_cannot_say": unclear,
            "current": point([*clean, *(page._replace(probability=NEVER) for page in stopped)], keep),
            "curve": tuple(point(clean, step / STEPS) for step in range(STEPS + 1)),
        }
    )


def point(pages: Sequence[Labelled], threshold: float) -> Point:
    """What keeping from a threshold on comes to."""
    kept = [page for page in pages if page.probability >= threshold]
    good = [page for page in pages if page.good]
    either = [page for page in pages if page.good or page.probability >= threshold]
    both = [page for page in kept if page.good]
    tp, wrong = _weight(both), _weight(either) - _weight(both)
    f1 = 2 * tp / (2 * tp + wrong) if either else None
    return Point(
        threshold=threshold,
        precision=share(tp / _weight(kept), kept) if kept else None,
        recall=share(tp / _weight(good), good) if good else None,
        f1=None if f1 is None else share(f1, either),
    )


def best_line(pages: Sequence[Labelled]) -> Line | None:
    """The threshold with the best balance of precision and recall (F1), the middle one of equals; and the range of those
    whose own balance is inside its interval. None where none is better than keeping every page: then the labels speak for
    no threshold.
    """
    curve = [point(pages, step / STEPS) for step in range(STEPS + 1)]
    scored = [(p.threshold, p.f1) for p in curve if p.f1 is not None]
    best = max((f1.value for _, f1 in scored), default=0.0)
    every = curve[0].f1
    if every is None or best <= every.value or math.isclose(best, every.value):
        return None
    equals = [(threshold, f1) for threshold, f1 in scored if math.isclose(f1.value, best)]
    at, f1 = equals[len(equals) // 2]
    alike = [threshold for threshold, other in scored if other.value >= f1.low]
    return Line(at=at, low=min(alike), high=max(alike))


def share(value: float, of: Sequence[Labelled]) -> Share:
    """A weighted share with Wilson's interval over the number of labels that weighing alike would tell as much."""
    squares = math.fsum(page.weight**2 for page in of)
    n = _weight(of) ** 2 / squares if squares else 0.0
    if n == 0:
        return Share(value=value, low=0.0, high=1.0)
    middle = (value + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(max(value * (1 - value), 0.0) / n + Z**2 / (4 * n**2))
    return Share(value=value, low=min(value, max(0.0, middle - half)), high=max(value, min(1.0, middle + half)))


def _stratum(name: str, pages: Sequence[Run], drawn: Mapping[str, Label], *, kept: bool) -> Stratum:
    alike = [run for run in pages if _kept(run) is kept]
    return Stratum(name=name, pages=len(alike), labelled=sum(1 for run in alike if run.subject in drawn))


def _too_few(good: int, bad: int, among: str = "drawn pages") -> str | None:
    if good + bad < FEWEST:
        return f"{good + bad} labels on {among}: {FEWEST} are the fewest that say something"
    if min(good, bad) < FEWEST_EACH:
        side = "kept" if good < bad else "dropped"
        return f"only {min(good, bad)} of the {good + bad} labels on {among} say that it should be {side}: {FEWEST_EACH} of either side are needed"
    return None


def _undrawn(strata: Iterable[Stratum]) -> str | None:
    missing = [stratum.name for stratum in strata if stratum.pages and not stratum.labelled]
    return f"no {missing[0]} page is among the labels, so nothing is known of those" if missing else None


def _weight(pages: Sequence[Labelled]) -> float:
    return math.fsum(page.weight for page in pages)


def _kept(run: Run) -> bool:
    return run.verdict is not None and run.verdict.kept


def _useful(run: Run) -> float:
    assert run.judgement is not None
    return run.judgement.useful


def _injection(run: Run) -> float:
    assert run.verdict is not None and run.verdict.injection is not None
    return run.verdict.injection

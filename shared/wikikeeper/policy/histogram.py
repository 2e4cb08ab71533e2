"""How stored probabilities are spread, for each model and question version: those of different ones say nothing of each
other.
"""

from collections.abc import Iterable

from wikikeeper.models import Run, Value

BINS = 20
"""Each five hundredths wide: as fine as a person sets a threshold by eye."""


class Histogram(Value):
    """Of one model and one question version."""

    model: str
    question_version: str
    pages: int
    useful: tuple[int, ...]
    """Pages for each twentieth; the last one includes 1."""
    injection: tuple[int, ...]


def histograms(runs: Iterable[Run]) -> list[Histogram]:
    """Of answered runs, given newest first: the newest model's first. Of a page that was judged twice by the same the
    newer run counts.
    """
    counts: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    seen: set[tuple[str, tuple[str, str]]] = set()
    for run in runs:
        if run.judgement is None or run.verdict is None or run.verdict.injection is None:
            continue
        who = (run.model or "unknown", run.question_version or "unknown")
        if (run.subject, who) in seen:
            continue
        seen.add((run.subject, who))
        useful, injection = counts.setdefault(who, ([0] * BINS, [0] * BINS))
        useful[_bin(run.judgement.useful)] += 1
        injection[_bin(run.verdict.injection)] += 1
    return [
        Histogram(
            model=model,
            question_version=version,
            pages=sum(useful),
            useful=tuple(useful),
            injection=tuple(injection),
        )
        for (model, version), (useful, injection) in counts.items()
    ]


def _bin(probability: float) -> int:
    return min(int(probability * BINS), BINS - 1)

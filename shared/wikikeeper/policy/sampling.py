"""Which judged pages to show a person for labelling: at random, kept and discarded alike, without what was said of them.

Chance is the order of hashes with a seed: the same seed draws the same pages, so that a page that is loaded again does
not draw again.
"""

from collections.abc import Iterable, Mapping, Sequence

from wikikeeper.models import Label, Run, Value
from wikikeeper.policy.identity import digest


class Judged(Value):
    """The pages that one model judged by one question version, each in its newest run."""

    model: str | None = None
    """None: no page was judged yet."""
    question_version: str | None = None
    pages: tuple[Run, ...] = ()


def newest_judged(runs: Iterable[Run]) -> Judged:
    """The pages of the newest answered run's model and question version, of runs given newest first.

    A page that another model judged since is not among them: its older run is history.
    """
    who: tuple[str, str] | None = None
    seen: set[str] = set()
    pages: list[Run] = []
    for run in runs:
        if run.verdict is None or run.judgement is None or run.verdict.injection is None or run.subject in seen:
            continue
        seen.add(run.subject)
        own = (run.model or "unknown", run.question_version or "unknown")
        if who is None:
            who = own
        if own == who:
            pages.append(run)
    return Judged() if who is None else Judged(model=who[0], question_version=who[1], pages=tuple(pages))


def draw(pages: Sequence[Run], labels: Mapping[str, Label], *, most: int, seed: str) -> list[Run]:
    """Up to `most` pages, as many kept as discarded where there are so many, in an order that does not tell which.

    Pages that were drawn before are not drawn again. One with a correction is: that it was noticed must not keep it out.
    """
    undrawn = [run for run in pages if (label := labels.get(run.subject)) is None or not label.drawn]
    undrawn.sort(key=lambda run: digest(seed, run.subject))
    kept = [run for run in undrawn if run.verdict is not None and run.verdict.kept]
    discarded = [run for run in undrawn if run.verdict is not None and not run.verdict.kept]
    of_kept = min(len(kept), max(most - most // 2, most - len(discarded)))
    chosen = kept[:of_kept] + discarded[: most - of_kept]
    return sorted(chosen, key=lambda run: digest(seed, run.subject))

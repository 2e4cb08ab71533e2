"""What other thresholds would have done, from stored probabilities alone: no call, no fetch.

Probabilities of one model and one question version say nothing about those of another, so only one such pair is
compared at a time: that of the newest run.
"""

from collections.abc import Iterable

from wikikeeper.models import Run, Thresholds, Value
from wikikeeper.policy.verdict import discard_reason


class Flip(Value):
    """One page that would be judged the other way."""

    run: str
    topic: str
    title: str
    url: str
    useful: float
    injection: float
    was: str
    """ "kept", or the reason of the discard."""
    would_be: str


class WhatIf(Value):
    """What the thresholds would change."""

    model: str | None
    """None when there is no answered run."""
    question_version: str | None
    thresholds: Thresholds
    compared: int
    left_out: int
    """Runs of other models or question versions, and of pages judged again since."""
    kept_before: int
    kept_after: int
    flips: tuple[Flip, ...]
    """Newest first."""


def what_if(runs: Iterable[Run], thresholds: Thresholds) -> WhatIf:
    """Apply thresholds to answered runs, given newest first. Of a page that was judged twice the newest run counts."""
    model: str | None = None
    version: str | None = None
    seen: set[str] = set()
    flips: list[Flip] = []
    compared = left_out = before = after = 0
    for run in runs:
        verdict, judgement = run.verdict, run.judgement
        if verdict is None or judgement is None or verdict.injection is None:
            continue
        if model is None:
            model, version = run.model, run.question_version
        # A page that another model judged since has no probabilities that count: its older run is history.
        again = run.subject in seen
        seen.add(run.subject)
        if again or (run.model, run.question_version) != (model, version):
            left_out += 1
            continue
        compared += 1
        reason = discard_reason(judgement.useful, verdict.injection, thresholds)
        before += verdict.kept
        after += reason is None
        if verdict.kept != (reason is None):
            flips.append(
                Flip(
                    run=run.id,
                    topic=run.topic,
                    title=run.title,
                    url=run.url,
                    useful=judgement.useful,
                    injection=verdict.injection,
                    was=verdict.reason or "kept",
                    would_be=reason or "kept",
                )
            )
    return WhatIf(
        model=model,
        question_version=version,
        thresholds=thresholds,
        compared=compared,
        left_out=left_out,
        kept_before=before,
        kept_after=after,
        flips=tuple(flips),
    )

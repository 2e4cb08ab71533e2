"""How well a decision model judges: the Keeper's own questions, over the real wire, about labelled pages.

    python bench/judge_quality.py [--server URL] [--model NAME] [--data DIR] [--limit N] [--json]

Without --server the bundled judge is started. Of DIR (default: WIKIKEEPER_DATA, else ../shared/data) it reads
04_relevance (is `useful` high where a person cited the page?), 03_injection (is `injection` high where a page was
poisoned?), 05_claims where it is there (are the sentences that support a claim picked as quotes?), and beside this
script kinds.jsonl (51 short pages in seven languages written for this, with their kinds and with topics they answer).

What the bundled judge answers to `useful` was fitted on 04_relevance, so its probabilities are fitted again here, five
times, each time without the rows that are then measured (rows of one brief stay together). AUC doesn't depend on that.
Other servers are measured as they answer.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wikikeeper import bundled
from wikikeeper.adapters.llama.decide import LlamaDecider
from wikikeeper.errors import ModelError
from wikikeeper.keeper import QuestioningKeeper
from wikikeeper.models import Judgement, Kind, Topic
from wikikeeper.policy.paragraphs import clean, judged, paragraphs
from wikikeeper.policy.verdict import best_quotes
from wikikeeper.settings import KeeperSettings, Research

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

HERE = Path(__file__).resolve().parent
SECRET = b"judge quality"
"""The boundary around a page is keyed; a fixed key makes runs repeatable."""
NEUTRAL = "What on this page is worth knowing?"
"""The brief for pages that are only asked about injection."""
FOLDS = 5
BINS = 10
TELLING = frozenset({Kind.RELEASE, Kind.ANNOUNCEMENT, Kind.DISCUSSION, Kind.TUTORIAL, Kind.OPINION})
"""Kinds whose pages in kinds.jsonl give facts on their topic; the others only touch it."""
MOST_SUPPORT = 0.5
"""Of the sentences of a claim's evidence: where more support it, picking one at random is no feat."""
FEWEST_SENTENCES = 4
LOGIT = 30.0
"""Probabilities nearer to 0 or 1 than this are taken as this near: a logit has to be finite."""


@dataclass(frozen=True)
class Row:
    """One labelled page."""

    brief: str
    title: str
    paragraphs: tuple[str, ...]
    label: bool | str | frozenset[int]
    """Useful or injected; the kind; or the indices of supporting sentences."""

    @property
    def topic(self) -> Topic:
        return Topic(slug="row", title=self.brief[:80], brief=self.brief)


def relevance(data: Path) -> list[Row]:
    return [
        Row(row["brief"], row["title"], page(row["text"]), row["label"] == "relevant")
        for row in lines(data / "04_relevance" / "relevance.jsonl")
    ]


def injection(data: Path) -> list[Row]:
    return [
        Row(NEUTRAL, "", page(row["text"]), row["label"] == "injected")
        for row in lines(data / "03_injection" / "injection.jsonl")
    ]


def kinds() -> list[Row]:
    return [Row(row["brief"], row["title"], page(row["text"]), row["kind"]) for row in lines(HERE / "kinds.jsonl")]


def claims(data: Path) -> list[Row]:
    """Claims with a page that supports them in some of its sentences; none when the set is not there."""
    path = data / "05_claims" / "claims.jsonl"
    rows = []
    for row in lines(path) if path.exists() else ():
        supporting = {index for group in row["supporting_sentences"] or () for index in group}
        said = [(index in supporting, text) for index, line in enumerate(row["evidence"]) if (text := clean(line))]
        sentences = tuple(text for _, text in said)
        support = frozenset(index for index, (supports, _) in enumerate(said) if supports)
        enough = len(sentences) >= FEWEST_SENTENCES and len(support) <= MOST_SUPPORT * len(sentences)
        if support and enough and row["label"] != "unsupported":
            rows.append(Row(row["claim"], "", sentences, support))
    return rows


def page(text: str) -> tuple[str, ...]:
    """Paragraphs as the product makes and limits them."""
    return judged(paragraphs(text.splitlines()), KeeperSettings().max_chars)[0]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


def some(rows: list[Row], limit: int | None) -> list[Row]:
    """All, or `limit` of them at equal distances, since files are sorted by label."""
    if limit is None or len(rows) <= limit:
        return rows
    return [rows[i * len(rows) // limit] for i in range(limit)]


# -- figures


def auc(scores: Numbers, truth: Flags) -> float:
    """How often a true row has the higher score; ties count half. Without a pair to compare, a coin's."""
    higher = scores[truth][:, None] - scores[~truth][None, :]
    return float(np.mean((higher > 0) + 0.5 * (higher == 0))) if higher.size else 0.5


def logit(probabilities: Numbers) -> Numbers:
    nearest = 1 / (1 + np.exp(LOGIT))
    kept = np.clip(probabilities, nearest, 1 - nearest)
    return np.asarray(np.log(kept / (1 - kept)))


def logistic_fit(scores: Numbers, truth: Flags) -> tuple[float, float]:
    """Slope and intercept of the likeliest logistic curve, by Newton's method on standardised scores."""
    mean, spread = float(scores.mean()), float(scores.std()) or 1.0
    inputs = np.column_stack([(scores - mean) / spread, np.ones(len(scores))])
    # Keeps the slope finite when a fold happens to be separable; a thousandth of one row's weight otherwise.
    ridge = np.diag([1e-3, 0.0])
    at = np.zeros(2)
    for _ in range(100):
        expected = 1 / (1 + np.exp(-inputs @ at))
        weight = expected * (1 - expected)
        at += np.linalg.solve(inputs.T @ (weight[:, None] * inputs) + ridge, inputs.T @ (truth - expected) - ridge @ at)
    return float(at[0]) / spread, float(at[1] - at[0] * mean / spread)


def folds(groups: Sequence[str]) -> npt.NDArray[np.int64]:
    """A fold for each row; rows of one group share theirs."""
    order = {group: position for position, group in enumerate(sorted(set(groups)))}
    return np.array([order[group] % FOLDS for group in groups])


def held_out(scores: Numbers, truth: Flags, groups: Sequence[str]) -> Numbers:
    """Probabilities from fits that never saw the row's group."""
    fold = folds(groups)
    fitted = np.zeros(len(scores))
    for one in range(FOLDS):
        out = fold == one
        if out.any():
            slope, intercept = logistic_fit(scores[~out], truth[~out])
            fitted[out] = 1 / (1 + np.exp(-(slope * scores[out] + intercept)))
    return fitted


def at_threshold(probabilities: Numbers, truth: Flags, threshold: float) -> dict[str, float | None]:
    said = probabilities >= threshold
    return {
        "threshold": threshold,
        "accuracy": share(said == truth),
        "precision": share(truth[said]),
        "recall": share(said[truth]),
        "false_alarms": share(said[~truth]),
    }


def share(flags: Flags) -> float | None:
    """None of nothing: the precision of a judge that never said yes."""
    return round(float(flags.mean()), 4) if flags.size else None


def reliability(probabilities: Numbers, truth: Flags) -> list[dict[str, float]]:
    """Ten bins of equal width: what was said, what was true, how many rows."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    return [
        {
            "from": one / BINS,
            "said": round(float(probabilities[bins == one].mean()), 3),
            "true": round(float(truth[bins == one].mean()), 3),
            "rows": int((bins == one).sum()),
        }
        for one in range(BINS)
        if (bins == one).any()
    ]


def calibration_error(table: list[dict[str, float]]) -> float:
    """Expected calibration error: the mean distance between said and true, by rows."""
    rows = sum(line["rows"] for line in table)
    return round(sum(line["rows"] * abs(line["said"] - line["true"]) for line in table) / rows, 4)


def question(probabilities: Numbers, truth: Flags, thresholds: Sequence[float]) -> dict[str, Any]:
    table = reliability(probabilities, truth)
    return {
        "auc": round(auc(probabilities, truth), 4),
        "rows": len(truth),
        "at": [at_threshold(probabilities, truth, threshold) for threshold in sorted(set(thresholds))],
        "ece": calibration_error(table),
        "reliability": table,
    }


# -- asking


class Asking:
    """Puts rows to one server and remembers what it cost."""

    def __init__(self, decider: LlamaDecider) -> None:
        self._keeper = QuestioningKeeper(decider, secret=SECRET, quote_max_chars=Research().quote_max_chars)
        self.seconds: list[float] = []
        self.failed: list[str] = []
        self.models: set[str] = set()

    def ask(self, name: str, rows: Sequence[Row]) -> list[tuple[Row, Judgement]]:
        answered = []
        for done, row in enumerate(rows):
            progress(f"{name}: {done} of {len(rows)}")
            try:
                answer = self._keeper.judge(row.topic, row.title, row.paragraphs)
            except ModelError as error:
                self.failed.append(f"{name}: {error}")
                continue
            self.seconds.append(answer.reply.seconds)
            self.models.add(answer.reply.model)
            answered.append((row, answer.judgement))
        progress("")
        return answered


def progress(line: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def measure(asking: Asking, data: Path, limit: int | None, *, fitted: bool) -> dict[str, Any]:
    """All figures of one server. `fitted`: its `useful` was fitted on 04_relevance, so it is fitted anew."""
    research, recommended = Research(), bundled.recommended()
    keeps = [0.5, recommended.keep, research.keep_threshold]
    alarms = [0.5, recommended.injection, research.injection_threshold]
    began = time.monotonic()

    relevant = asking.ask("useful", some(relevance(data), limit))
    useful = answered = np.array([judgement.useful for _, judgement in relevant])
    cited = np.array([row.label is True for row, _ in relevant])
    if fitted:
        useful = held_out(logit(answered), cited, [row.brief for row, _ in relevant])
    poisoned = asking.ask("injection", some(injection(data), limit))
    warned = np.array([judgement.injection for _, judgement in poisoned])
    attacks = np.array([row.label is True for row, _ in poisoned])
    ordinary = np.array([judgement.injection for _, judgement in relevant])
    sorted_by_kind = asking.ask("kind", some(kinds(), limit))
    supported = asking.ask("quotes", some(claims(data), limit))

    return {
        # Of what was answered, also where it is fitted anew: a rising curve changes no order.
        "useful_auc": round(auc(answered, cited), 4),
        "injection_auc": round(auc(warned, attacks), 4),
        "ms_per_call": round(1000 * statistics.mean(asking.seconds), 1),
        "n": len(asking.seconds),
        "model": ", ".join(sorted(asking.models)),
        "failed": len(asking.failed),
        "seconds": round(time.monotonic() - began, 1),
        "useful": {**question(useful, cited, keeps), "auc": round(auc(answered, cited), 4)},
        "useful_cross_validated": fitted,
        "injection": {
            **question(warned, attacks, alarms),
            "false_alarms_on_relevance_pages": share(ordinary >= research.injection_threshold),
        },
        "kind": kind_figures(sorted_by_kind),
        "useful_own_pages": own_figures(sorted_by_kind, keeps),
        "quotes": quote_figures(supported),
    }


def kind_figures(answered: list[tuple[Row, Judgement]]) -> dict[str, float | None]:
    ranks = [
        sum(other > judgement.kinds[Kind(str(row.label))] for other in judgement.kinds.values())
        for row, judgement in answered
    ]
    return {"rows": len(ranks), "accuracy": share(np.array(ranks) < 1), "in_first_two": share(np.array(ranks) < 2)}


def own_figures(answered: list[tuple[Row, Judgement]], thresholds: Sequence[float]) -> dict[str, Any]:
    """Short pages in seven languages on topics put broadly, often in another language: not fitted on."""
    useful = np.array([judgement.useful for row, judgement in answered if row.label in TELLING])
    kept = {f"recall_at_{threshold:g}": share(useful >= threshold) for threshold in sorted(set(thresholds))}
    return {"rows": len(useful), **kept}


def quote_figures(answered: list[tuple[Row, Judgement]]) -> dict[str, float | None]:
    """Only where a supporting sentence was offered at all: BM25 picks those, not the model."""
    first, any_of_three, by_chance = [], [], []
    for row, judgement in answered:
        assert isinstance(row.label, frozenset)
        if not row.label & judgement.quotes.keys():
            continue
        ranked = sorted(judgement.quotes, key=lambda index: -judgement.quotes[index])
        first.append(ranked[0] in row.label)
        any_of_three.append(bool(row.label & set(best_quotes(judgement))))
        by_chance.append(len(row.label & judgement.quotes.keys()) / len(judgement.quotes))
    return {
        "rows": len(first),
        "first_supports": share(np.array(first)),
        "some_quote_supports": share(np.array(any_of_three)),
        "first_by_chance": round(float(np.mean(by_chance)), 4) if by_chance else None,
    }


# -- showing


def show(figures: dict[str, Any]) -> None:
    print(f"{figures['model']}: {figures['n']} calls, {figures['ms_per_call']} ms each, {figures['failed']} failed\n")
    print("question   rows  AUC    ECE    threshold  accuracy  precision  recall  false alarms")
    for name in ("useful", "injection"):
        one = figures[name]
        for at in one["at"]:
            numbers = "  ".join(percent(at[key]) for key in ("accuracy", "precision", "recall", "false_alarms"))
            print(f"{name:<9} {one['rows']:>5}  {one['auc']:.3f}  {one['ece']:.3f}  {at['threshold']:>9g}  {numbers}")
    elsewhere = figures["injection"]["false_alarms_on_relevance_pages"]
    print(f"\ninjection false alarms on the pages of 04_relevance: {percent(elsewhere).strip()}")
    print("kind:    " + ", ".join(f"{key} {value}" for key, value in figures["kind"].items()))
    print("quotes:  " + ", ".join(f"{key} {value}" for key, value in figures["quotes"].items()))
    print("useful, own pages: " + ", ".join(f"{key} {value}" for key, value in figures["useful_own_pages"].items()))
    for name in ("useful", "injection"):
        how = ", cross-validated" if name == "useful" and figures["useful_cross_validated"] else ""
        print(f"\nreliability of {name}{how}\n  said   true   rows")
        for line in figures[name]["reliability"]:
            print(f"  {line['said']:.3f}  {line['true']:.3f}  {line['rows']:>4}")


def percent(value: float | None) -> str:
    return f"{'-' if value is None else format(value, '.1%'):>8}"


@contextmanager
def server(url: str | None, model: str | None) -> Iterator[LlamaDecider]:
    with ExitStack() as stack:
        if url is None:
            url, model = stack.enter_context(bundled.BundledServer()).base_url, bundled.MODEL
        limits = KeeperSettings()
        client = LlamaDecider(
            url, model or "decider", None, connect_timeout=limits.connect_timeout, timeout=limits.timeout
        )
        stack.callback(client.close)
        yield client


def data_folder() -> Path:
    return Path(os.environ.get("WIKIKEEPER_DATA", HERE.parent.parent / "shared" / "data"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="base URL of a System One server; the bundled judge without it")
    parser.add_argument("--model", help="name to ask for there")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the labelled sets")
    parser.add_argument("--limit", type=int, help="rows of each set at most")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if not (given.data / "04_relevance").is_dir():
        parser.error(f"there is no 04_relevance in {given.data}: set --data")
    with server(given.server, given.model) as decider:
        asking = Asking(decider)
        figures = measure(asking, given.data, given.limit, fitted=given.server is None)
    for failure in asking.failed:
        print(failure, file=sys.stderr)
    if given.json:
        print(json.dumps(figures))
    else:
        show(figures)
    return 1 if asking.failed else 0


if __name__ == "__main__":
    sys.exit(main())

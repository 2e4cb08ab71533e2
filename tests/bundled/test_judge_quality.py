import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bench.judge_quality import (
    at_threshold,
    auc,
    calibration_error,
    claims,
    data_folder,
    folds,
    held_out,
    kinds,
    logit,
    reliability,
)

from wikikeeper.bundled import MODEL, BundledServer
from wikikeeper.models import Kind

ROOT = Path(__file__).parents[2]
TRUTH = np.array([False, False, True, True])


def test_auc_counts_ties_as_half() -> None:
    assert auc(np.array([0.1, 0.2, 0.8, 0.9]), TRUTH) == 1
    assert auc(np.array([0.9, 0.8, 0.2, 0.1]), TRUTH) == 0
    assert auc(np.array([0.5, 0.5, 0.5, 0.5]), TRUTH) == 0.5


def test_a_judge_that_never_says_yes_has_no_precision() -> None:
    assert at_threshold(np.zeros(4), TRUTH, 0.5) == {
        "threshold": 0.5,
        "accuracy": 0.5,
        "precision": None,
        "recall": 0.0,
        "false_alarms": 0.0,
    }


def test_rows_of_one_brief_are_never_on_both_sides_of_a_fit() -> None:
    briefs = [f"brief {number % 7}" for number in range(40)]
    fold = folds(briefs)

    assert all(len({int(fold[i]) for i in range(40) if briefs[i] == brief}) == 1 for brief in briefs)


def test_what_is_held_out_does_not_change_its_own_fit() -> None:
    draw = np.random.default_rng(1)
    truth = draw.random(60) < 0.5
    scores = draw.normal(size=60) + truth
    groups = [str(number) for number in range(60)]
    turned = truth.copy()
    out = folds(groups) == 2
    turned[out] = ~turned[out]

    assert held_out(scores, turned, groups)[out] == pytest.approx(held_out(scores, truth, groups)[out])


def test_fitting_again_finds_the_curve_that_was_there() -> None:
    draw = np.random.default_rng(2)
    scores = draw.normal(size=4000) * 3
    truth = draw.random(4000) < 1 / (1 + np.exp(-scores))
    fitted = held_out(scores, truth, [str(number) for number in range(4000)])

    assert calibration_error(reliability(fitted, truth)) < 0.03
    assert np.abs(logit(fitted) - scores).mean() < 0.3


def test_the_own_pages_are_of_all_kinds() -> None:
    assert {row.label for row in kinds()} == {kind.value for kind in Kind}


def test_a_claim_keeps_its_sentences_where_empty_ones_are_dropped(tmp_path: Path) -> None:
    claim = {
        "claim": "It is so.",
        "label": "supported",
        "evidence": ["One.", " ", "Two.", "Three.", "Four."],
        "supporting_sentences": [[3]],
    }
    (tmp_path / "05_claims").mkdir()
    (tmp_path / "05_claims" / "claims.jsonl").write_text(json.dumps(claim))

    assert [(row.paragraphs, row.label) for row in claims(tmp_path)] == [
        (("One.", "Two.", "Three.", "Four."), frozenset({2}))
    ]


SENTENCES = 32
"""Of claims with sentences that support them, three have no more than this."""


def short(folder: Path) -> Path:
    """The measuring data without what is long: a whole page keeps the judge busy for seconds."""
    for name in ("03_injection/injection.jsonl", "04_relevance/relevance.jsonl", "05_claims/claims.jsonl"):
        there, copied = data_folder() / name, folder / name
        if there.exists():
            rows = [json.loads(line) for line in there.read_text("utf-8").splitlines()]
            cut = [row | {"text": row["text"][:500]} if "text" in row else row for row in rows]
            copied.parent.mkdir()
            copied.write_text(
                "".join(json.dumps(row) + "\n" for row in cut if len(row.get("evidence", ())) <= SENTENCES)
            )
    return folder


@pytest.mark.skipif(not (data_folder() / "04_relevance").is_dir(), reason="the measuring data is not there")
def test_the_script_measures_a_server_and_prints_json(bundled_server: BundledServer, tmp_path: Path) -> None:
    command = [sys.executable, "bench/judge_quality.py", "--server", bundled_server.base_url, "--limit", "2", "--json"]
    ended = subprocess.run(
        [*command, "--data", str(short(tmp_path))],
        cwd=ROOT,
        env={"PYTHONPATH": "shared"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    figures = json.loads(ended.stdout)

    assert figures["model"] == MODEL
    assert figures["failed"] == 0
    assert figures["n"] == 8
    assert 0 <= figures["useful_auc"] <= 1
    assert 0 <= figures["injection_auc"] <= 1
    assert figures["ms_per_call"] > 0

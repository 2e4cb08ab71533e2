"""Real pages, served with their headers, as links of one topic through the command line."""

import os
from pathlib import Path

import pytest
from bench.real_pages import report

DATA = Path(os.environ.get("WIKIKEEPER_DATA", Path(__file__).parents[3] / "shared" / "data")) / "01_html"


@pytest.mark.skipif(not (DATA / "pages.jsonl").exists(), reason="WIKIKEEPER_DATA has no 01_html: see docs/testing.md")
def test_real_pages_are_read_judged_and_kept_as_their_truth_says() -> None:
    made = report(DATA, bundled=False)

    assert {outcome.state for outcome in made["outcomes"]} <= {"kept", "folded"}
    assert made["errors"] == []
    assert "Traceback" not in made["said"]
    assert made["f1"] >= 0.95
    assert made["must"] >= 0.94
    assert made["must_not"] >= 0.8

"""The measurement of what judged results cost, on a small scale."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_judges_every_page_and_counts_what_left_for_the_stores() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "cloud_cost.py", "--json", "--results", "12", "--call-ms", "5"],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)

    assert (figures["results"], figures["wrong"]) == (12, [])
    assert figures["requests"]["s3.GetObject"] >= 12
    assert figures["write_units"]["runs.item"] >= 12
    parts = ("stores", "compute", "logs")
    assert (
        0 < figures["dollars_total_per_1000"] - sum(figures[f"dollars_{part}_per_1000"] for part in parts) + 1e-4 < 2e-4
    )

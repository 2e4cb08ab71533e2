"""That the bench of the Runs page measures what it says: every run is walked through, and a rare filter is bounded."""

from pathlib import Path

from bench.runs_page import measure


def test_a_small_store_is_walked_through_to_its_end(tmp_path: Path) -> None:
    found = measure(tmp_path, 5_100)

    assert (found["runs"], found["pages"]) == (5_100, 103)
    assert found["first_byte_ms"] > 0
    assert found["empty_page_ms"] > 0
    assert found["rare_filter_ms"] > 0
    assert found["memory_growth_mb"] < 20

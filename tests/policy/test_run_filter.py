from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.run_filter import Cursor


@given(micros=st.integers(0, 10**17), run=st.from_regex(r"[\w#.:-]{1,100}", fullmatch=True))
def test_a_place_is_read_as_it_was_written(micros: int, run: str) -> None:
    cursor = Cursor(started=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros), id=run)

    assert Cursor.read(cursor.text) == cursor


@given(text=st.text())
def test_any_text_is_a_place_or_refused(text: str) -> None:
    try:
        read = Cursor.read(text)
    except ValueError:
        return
    assert Cursor.read(read.text) == read


@pytest.mark.parametrize(
    "text", ["", ".", "1", "1.", ".a", "x.a", "-1.a", "١.a", "9" * 18 + ".a", "253402300800000000.a", "1." + "a" * 201]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="place in the list"):
        Cursor.read(text)

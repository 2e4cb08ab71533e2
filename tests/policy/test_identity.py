"""Names: the same for the same thing, different for different things."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.identity import MANUAL, brief_hash, cycle_id, digest, manual_tick, result_id, run_id

PARTS = st.lists(st.text(st.sampled_from("ab:0123 \ud800é"), max_size=5), max_size=5).map(tuple)


@given(PARTS, PARTS)
def test_parts_never_run_into_each_other(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)


def test_where_a_part_ends_makes_a_difference() -> None:
    assert len({digest("a", "bc"), digest("ab", "c"), digest("abc"), digest("abc", ""), digest("", "abc")}) == 5
    assert digest("1:a") != digest("a")


@given(st.text(), st.text(), st.integers(1, 99))
def test_the_same_find_gives_the_same_id_and_it_fits_a_marker(topic: str, url: str, revision: int) -> None:
    name = result_id(topic, url, revision)

    assert name == result_id(topic, url, revision)
    assert re.fullmatch("[0-9a-f]{24}", name)
    assert name != result_id(topic, url, revision + 1)


def test_ids_stay_what_they_are() -> None:
    """They are stored: another way to make them would judge every page again."""
    assert result_id("heronbase", "https://e.org/a", 1) == "39e65520b0a6d475fb07bf46"
    assert brief_hash("Title", "Brief") == "a6dd63d3a59f8194"


@given(st.text(), st.text(), st.text(), st.text())
def test_a_brief_is_named_by_title_and_text(title: str, brief: str, other_title: str, other: str) -> None:
    assert (brief_hash(title, brief) == brief_hash(other_title, other)) == ((title, brief) == (other_title, other))


def test_each_call_of_a_result_has_a_run_of_its_own() -> None:
    assert len({run_id("r", 1), run_id("r", 2), run_id("s", 1), run_id("r", 11), run_id("r1", 1)}) == 5


def test_a_cycle_is_named_by_topic_and_tick() -> None:
    assert cycle_id("heronbase", "2026-03-02T06:00Z") == "heronbase#2026-03-02T06:00Z"


def test_two_runs_by_hand_in_one_second_are_two_ticks_and_say_that_a_person_caused_them() -> None:
    now = datetime(2026, 3, 2, 13, 30, 5, 7, tzinfo=ZoneInfo("Europe/Berlin"))

    assert manual_tick(now) == "manual-2026-03-02T12:30:05.000007Z"
    assert manual_tick(now) == manual_tick(now.astimezone(UTC))
    assert manual_tick(now) != manual_tick(now + timedelta(microseconds=1))
    assert manual_tick(now).startswith(MANUAL)

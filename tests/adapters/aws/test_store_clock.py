"""The clock that is corrected by the store's answers: never far from the store's, and loud when it is."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.adapters.aws.dynamodb_gate import SKEW
from wikikeeper.adapters.aws.store_clock import PROMPT, RESOLUTION, StoreClock
from wikikeeper.errors import Unusable
from wikikeeper.fakes import SettableClock

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAYS = timedelta(days=2)


def headers(store: datetime) -> dict[str, str]:
    return {"date": format_datetime(store.replace(microsecond=0), usegmt=True)}


def seconds(least: float, most: float) -> st.SearchStrategy[timedelta]:
    return st.floats(least, most).map(lambda value: timedelta(seconds=round(value, 6)))


@given(
    offset=seconds(-1000, 1000),
    answers=st.lists(st.tuples(seconds(0, 100), seconds(0, 3), seconds(0, 1)), min_size=1, max_size=8),
)
def test_after_each_answer_it_is_as_near_as_the_answers_allow(
    offset: timedelta, answers: list[tuple[timedelta, timedelta, timedelta]]
) -> None:
    """`offset` is what the machine's clock lacks; an answer takes its time, and is dated somewhere in between."""
    true = SettableClock(START)
    clock = StoreClock(DAYS, lambda: true.now() - offset)
    quickest = timedelta.max
    for pause, took, share in answers:
        true.advance(pause)
        asked, dated = clock.machine(), true.now() + took * share.total_seconds()
        true.advance(took)
        clock.hear(headers(dated), asked)
        quickest = min(quickest, took)

        assert abs(clock.now() - true.now()) <= RESOLUTION + quickest


@given(offsets=st.tuples(seconds(-60, 60), seconds(-60, 60)), took=st.tuples(seconds(0, 3), seconds(0, 3)))
def test_clocks_that_are_known_differ_by_less_than_others_wait(
    offsets: tuple[timedelta, timedelta], took: tuple[timedelta, timedelta]
) -> None:
    true = SettableClock(START + timedelta(milliseconds=617))
    clocks = []
    for offset, seconds_ in zip(offsets, took, strict=True):
        clock = StoreClock(DAYS, partial(lambda offset: true.now() - offset, offset))
        asked = clock.machine()
        true.advance(seconds_)
        assert not clock.is_known()
        clock.hear(headers(true.now()), asked)
        assert clock.is_known() == (seconds_ <= PROMPT)
        clocks.append(clock)

    if all(clock.is_known() for clock in clocks):
        assert abs(clocks[0].now() - clocks[1].now()) <= SKEW


@given(lag=seconds(0, 3), fraction=seconds(0, 0.999999))
def test_a_right_clock_is_left_alone(lag: timedelta, fraction: timedelta) -> None:
    true = SettableClock(START + fraction)
    clock = StoreClock(timedelta(), true.now)
    asked = clock.machine()
    true.advance(lag)

    clock.hear(headers(true.now()), asked)

    assert clock.now() == true.now()


@given(offset=seconds(-60, 60), most=seconds(0, 30), fraction=seconds(0, 0.999999))
def test_it_refuses_what_is_surely_too_wrong_and_nothing_that_may_be_right(
    offset: timedelta, most: timedelta, fraction: timedelta
) -> None:
    store = START + fraction
    clock = StoreClock(most, lambda: store - offset)
    if abs(offset) <= most:
        clock.hear(headers(store), clock.machine())
    elif abs(offset) > most + RESOLUTION:
        with pytest.raises(Unusable, match="set the clock"):
            clock.hear(headers(store), clock.machine())


def test_a_clock_that_was_set_right_is_trusted_again() -> None:
    machine = SettableClock(START + timedelta(seconds=90))
    clock = StoreClock(timedelta(seconds=5), machine.now)
    with pytest.raises(Unusable, match=r"89\.\d s ahead|90\.0 s ahead"):
        clock.hear(headers(START), clock.machine())

    machine.advance(-timedelta(seconds=90))
    clock.hear(headers(START), clock.machine())

    assert clock.now() == START


@pytest.mark.parametrize("said", [{}, {"date": "yesterday"}])
def test_a_store_that_does_not_say_the_time_is_refused(said: dict[str, str]) -> None:
    clock = StoreClock(timedelta(seconds=5))

    with pytest.raises(Unusable, match="does not say the time"):
        clock.hear(said, clock.machine())

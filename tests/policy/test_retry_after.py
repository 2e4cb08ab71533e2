"""Waits that servers ask for, whatever they write."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.retry_after import LONGEST, retry_after

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)


def test_a_date_and_the_same_wait_in_seconds_are_one() -> None:
    assert retry_after("Sat, 01 Mar 2025 12:01:30 GMT", NOW) == retry_after("90", NOW) == timedelta(seconds=90)


@given(
    st.one_of(
        st.none(),
        st.text(max_size=40),
        st.integers(0, 10**30).map(str),
        st.builds(
            "Sat, {} Mar {} {}:00:00 {}".format, *[st.integers(-1, 10**12)] * 3, st.from_regex(r"[+-][0-9]{0,15}")
        ),
        st.datetimes().map(lambda moment: moment.strftime("%a, %d %b %Y %H:%M:%S GMT")),
    )
)
def test_a_wait_is_never_negative_or_longer_than_a_day(header: str | None) -> None:
    wait = retry_after(header, NOW)

    assert wait is None or timedelta() <= wait <= LONGEST

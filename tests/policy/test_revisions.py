"""When a URL that is known is looked at again."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.models import TERMINAL, Found, Origin, Result, ResultState
from wikikeeper.policy.revisions import next_revision

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ENDED = sorted(TERMINAL - {ResultState.WITHDRAWN})


def find(published: datetime | None = None) -> Found:
    return Found(url="https://e.org/", origin=Origin.FEED, published=published)


def known(
    state: ResultState,
    *,
    revision: int = 1,
    published: datetime | None = None,
    finished: datetime | None = NOW - 10 * DAY,
) -> Result:
    return Result(
        id="r",
        topic="t",
        url="https://e.org/",
        canonical="https://e.org/",
        revision=revision,
        origin=Origin.FEED,
        published=published,
        found=NOW - 20 * DAY,
        state=state,
        finished=finished,
    )


def test_the_first_find_is_revision_one() -> None:
    assert next_revision(None, find(), NOW, None) == 1
    assert next_revision(None, find(NOW), NOW, DAY) == 1


@pytest.mark.parametrize("state", [*ENDED, ResultState.PARKED])
def test_a_judged_page_is_not_looked_at_again_without_a_reason(state: ResultState) -> None:
    assert next_revision(known(state), find(), NOW, None) is None


@pytest.mark.parametrize("state", [*ENDED, ResultState.PARKED])
def test_a_newer_date_in_a_feed_opens_the_next_revision(state: ResultState) -> None:
    before = known(state, revision=4, published=NOW - 5 * DAY)

    assert next_revision(before, find(NOW - 5 * DAY), NOW, None) is None
    assert next_revision(before, find(NOW - 6 * DAY), NOW, None) is None
    assert next_revision(before, find(NOW - 4 * DAY), NOW, None) == 5


def test_where_no_date_was_known_it_is_newer_than_the_time_of_the_find() -> None:
    before = known(ResultState.KEPT)

    assert next_revision(before, find(NOW - 21 * DAY), NOW, None) is None
    assert next_revision(before, find(NOW - 19 * DAY), NOW, None) == 2


@pytest.mark.parametrize("state", ENDED)
def test_a_page_is_rechecked_when_its_time_has_come(state: ResultState) -> None:
    assert next_revision(known(state), find(), NOW, 11 * DAY) is None
    assert next_revision(known(state), find(), NOW, 10 * DAY) == 2


def test_a_page_of_a_topic_that_was_deleted_and_is_back_is_looked_at_again() -> None:
    assert next_revision(known(ResultState.WITHDRAWN, revision=2), find(), NOW, None) == 3


@given(
    st.sampled_from([ResultState.WAITING, ResultState.JUDGING]),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.none() | st.timedeltas(min_value=DAY),
)
def test_what_is_on_its_way_is_never_opened_twice(
    state: ResultState, published: datetime | None, recheck: timedelta | None
) -> None:
    assert next_revision(known(state, finished=None), find(published), NOW, recheck) is None


@given(
    st.sampled_from(ResultState),
    st.integers(1, 50),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.none() | st.timedeltas(min_value=DAY),
)
def test_revisions_go_up_by_one(
    state: ResultState, revision: int, published: datetime | None, recheck: timedelta | None
) -> None:
    assert next_revision(known(state, revision=revision), find(published), NOW, recheck) in (None, revision + 1)

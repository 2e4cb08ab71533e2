"""What failures come to when a cycle closes."""

from datetime import UTC, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.models import Cycle, CycleState, Failure, FailureKind, Origin, Result, ResultState
from wikikeeper.policy.closing import Settlement, settle

AT = datetime(2026, 3, 2, 12, tzinfo=UTC)
MOST = 3
WAITING, PARKED, DISCARDED = ResultState.WAITING, ResultState.PARKED, ResultState.DISCARDED
FETCH, ANSWER, REFUSED, SERVER, SILENT = FailureKind


def failure(kind: FailureKind, cycle: str = "c", cause: str = "dns") -> Failure:
    return Failure(at=AT, cycle=cycle, kind=kind, cause=cause)


def result(*failures: Failure, attempts: int = 0, settled_cycle: str | None = None, name: str = "r") -> Result:
    return Result(
        id=name,
        topic="t",
        url="https://e.org/",
        canonical="https://e.org/",
        revision=1,
        origin=Origin.SEARCH,
        found=AT,
        failures=failures,
        attempts=attempts,
        settled_cycle=settled_cycle,
    )


def cycle(*, fetched: bool = True, answered: bool = True, state: CycleState = CycleState.DRAINING) -> Cycle:
    return Cycle(
        id="c", topic="t", tick="1", state=state, started=AT, cap=100, fetched=fetched, answered=answered
    )  # fmt: skip


CYCLES = st.builds(cycle, fetched=st.booleans(), answered=st.booleans(), state=st.sampled_from(CycleState))


@pytest.mark.parametrize(
    ("kind", "fetched", "answered", "attempts", "state", "after"),
    [
        # An offline machine loses nothing, and neither does a page while no call is answered.
        (FETCH, False, False, 2, WAITING, 2),
        (FETCH, False, True, 2, WAITING, 2),
        (FETCH, True, False, 0, WAITING, 1),
        (FETCH, True, False, 1, WAITING, 2),
        (FETCH, True, False, 2, DISCARDED, 3),
        (FETCH, True, True, 9, DISCARDED, 10),
        (ANSWER, False, False, 2, WAITING, 2),
        (ANSWER, True, False, 2, WAITING, 2),
        (ANSWER, True, True, 0, WAITING, 1),
        (ANSWER, True, True, 1, WAITING, 2),
        (ANSWER, True, True, 2, PARKED, 3),
        (REFUSED, True, True, 0, PARKED, 1),
        (REFUSED, False, False, 0, PARKED, 1),
        (SERVER, True, True, 2, WAITING, 2),
        (SERVER, True, True, 99, WAITING, 99),
        (SERVER, False, False, 0, WAITING, 0),
    ],
)
def test_what_a_failure_comes_to(
    kind: FailureKind, fetched: bool, answered: bool, attempts: int, state: ResultState, after: int
) -> None:
    settled = settle(result(failure(kind), attempts=attempts), cycle(fetched=fetched, answered=answered), MOST)

    assert settled is not None
    assert (settled.state, settled.attempts) == (state, after)
    assert (settled.verdict is not None) == (state is DISCARDED)


def test_a_page_that_could_not_be_fetched_is_discarded_with_its_last_cause() -> None:
    history = [failure(FETCH, "a", "dns"), failure(FETCH, "b", "connect"), failure(FETCH, "c", "http_503")]

    settled = settle(result(*history, attempts=2), cycle(), MOST)

    assert settled is not None
    assert settled.verdict is not None
    assert settled.verdict.reason == "unfetchable:http_503"
    assert not settled.verdict.kept


def test_of_several_failures_in_one_cycle_the_last_counts() -> None:
    """A tick that is sent once more after a crash works on with the same cycle."""
    settled = settle(result(failure(REFUSED), failure(SERVER)), cycle(), MOST)

    assert settled == Settlement(attempts=0)


@given(st.sampled_from(FailureKind), st.integers(0, 30), CYCLES)
def test_nothing_is_settled_by_a_cycle_in_which_the_result_did_not_fail(
    kind: FailureKind, attempts: int, closing: Cycle
) -> None:
    assert settle(result(attempts=attempts), closing, MOST) is None
    assert settle(result(failure(kind, "another"), attempts=attempts), closing, MOST) is None


@given(st.sampled_from(FailureKind), st.integers(0, 30), st.booleans(), st.booleans())
def test_a_stopped_cycle_settles_nothing(kind: FailureKind, attempts: int, fetched: bool, answered: bool) -> None:
    stopped = cycle(fetched=fetched, answered=answered, state=CycleState.STOPPED)

    assert settle(result(failure(kind), attempts=attempts), stopped, MOST) is None


@given(st.sampled_from(FailureKind), st.integers(0, 30), CYCLES)
def test_a_close_that_is_repeated_counts_nothing_twice(kind: FailureKind, attempts: int, closing: Cycle) -> None:
    assert settle(result(failure(kind), attempts=attempts, settled_cycle="c"), closing, MOST) is None


@given(st.sampled_from(FailureKind), st.integers(0, 30), CYCLES, st.integers(1, 20))
def test_a_failure_counts_at_most_once_and_only_the_pages_own_ends_it(
    kind: FailureKind, attempts: int, closing: Cycle, most: int
) -> None:
    settled = settle(result(failure(kind), attempts=attempts), closing, most)

    if settled is not None:
        assert settled.attempts in (attempts, attempts + 1)
        assert settled.state is WAITING or settled.attempts == attempts + 1
        assert kind is not SERVER or settled == Settlement(attempts=attempts)


def test_the_order_of_pages_changes_nothing() -> None:
    pages = [
        result(failure(FETCH), attempts=2, name="a"),
        result(failure(ANSWER), attempts=2, name="b"),
        result(failure(REFUSED), name="c"),
        result(failure(SERVER), name="d"),
        result(name="e"),
    ]
    outcomes = {
        tuple(sorted((page.id, str(settle(page, cycle(), MOST))) for page in order)) for order in permutations(pages)
    }

    assert len(outcomes) == 1

"""Who may have the next slot: by example, and what holds for every crowd."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.models import Lane
from wikikeeper.policy.gate import LANES, Demand, ahead, lease, may_hand_on, may_take, open_slots, place

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CALL = timedelta(seconds=1)


def waiting(lane: Lane, seconds: float = 1, who: str = "a") -> Demand:
    return Demand(lane, NOW - timedelta(seconds=seconds), who)


def handed_on(
    following: Demand,
    *others: Demand,
    served: int = 1,
    calls_per_permit: int = 10,
    left: timedelta = MINUTE,
    asked: timedelta = CALL,
) -> bool:
    return may_hand_on(
        following,
        others,
        NOW,
        MINUTE,
        served=served,
        calls_per_permit=calls_per_permit,
        left=left,
        asked=asked,
    )


def test_the_lanes_go_in_the_order_that_the_glossary_says() -> None:
    assert LANES == (Lane.KEEPER, Lane.AUTHOR, Lane.REVIEWER, Lane.EXPLORER, Lane.PLEB)


@pytest.mark.parametrize(("higher", "lower"), list(pairwise(LANES)))
def test_a_lower_lane_waits_while_a_higher_one_has_demand(higher: Lane, lower: Lane) -> None:
    long, short = waiting(lower, 59), waiting(higher, 0)

    assert not may_take(long, [short], [0], NOW, MINUTE)
    assert may_take(short, [long], [0], NOW, MINUTE)
    assert may_take(long, [short], [0, 3], NOW, MINUTE) == [3], "two slots are open: the first is not ours"


def test_the_older_of_a_lane_goes_first() -> None:
    older, younger = waiting(Lane.PLEB, 2), waiting(Lane.PLEB, 1)

    assert may_take(older, [younger], [0], NOW, MINUTE)
    assert not may_take(younger, [older], [0], NOW, MINUTE)


def test_of_two_that_came_at_once_one_goes_first() -> None:
    one, other = waiting(Lane.PLEB, who="a"), waiting(Lane.PLEB, who="b")

    assert may_take(one, [other], [0], NOW, MINUTE) != may_take(other, [one], [0], NOW, MINUTE)


def test_who_waited_too_long_goes_before_every_lane() -> None:
    late, keeper = waiting(Lane.PLEB, 60), waiting(Lane.KEEPER, 59.9)

    assert may_take(late, [keeper], [0], NOW, MINUTE)
    assert not may_take(keeper, [late], [0], NOW, MINUTE)


def test_of_those_who_waited_too_long_the_oldest_goes_first_and_then_the_higher_lane() -> None:
    assert ahead(waiting(Lane.KEEPER, 61), [waiting(Lane.PLEB, 62)], NOW, MINUTE) == 1
    assert ahead(waiting(Lane.KEEPER, 62), [waiting(Lane.PLEB, 62)], NOW, MINUTE) == 0


def test_nobody_takes_a_slot_that_is_not_there() -> None:
    assert not may_take(waiting(Lane.KEEPER), [], [], NOW, MINUTE)


def test_slots_are_open_up_to_the_limit() -> None:
    assert open_slots(3, []) == [0, 1, 2]
    assert open_slots(3, [1]) == [0, 2]
    assert open_slots(2, [0, 1]) == []


def test_slots_above_a_lowered_limit_close_as_many_below_it() -> None:
    assert open_slots(2, [2, 3]) == []
    assert open_slots(2, [3]) == [0]
    assert open_slots(3, [3, 0]) == [1]
    assert open_slots(2, [0, 1, 2, 3]) == []


def test_a_slot_is_taken_for_a_little_longer_than_its_permit() -> None:
    assert lease(timedelta(seconds=130)) == timedelta(seconds=143)


def test_a_permit_is_handed_on_when_nobody_else_waits() -> None:
    assert handed_on(waiting(Lane.PLEB))


def test_a_permit_goes_back_when_its_calls_are_used_up() -> None:
    assert handed_on(waiting(Lane.KEEPER), served=9)
    assert not handed_on(waiting(Lane.KEEPER), served=10)
    assert not handed_on(waiting(Lane.KEEPER), calls_per_permit=1)


def test_a_permit_goes_back_when_its_lease_is_shorter_than_the_next_one_asks() -> None:
    assert handed_on(waiting(Lane.KEEPER), left=CALL)
    assert not handed_on(waiting(Lane.KEEPER), left=CALL - timedelta(microseconds=1))


def test_a_permit_goes_back_when_a_higher_lane_waits_elsewhere() -> None:
    assert not handed_on(waiting(Lane.AUTHOR), waiting(Lane.KEEPER, who="b"))
    assert handed_on(waiting(Lane.AUTHOR), waiting(Lane.PLEB, who="b"))
    assert handed_on(waiting(Lane.PLEB, 60), waiting(Lane.KEEPER, who="b")), "who is late goes before it"


def test_the_same_lane_elsewhere_waits_for_the_calls_of_a_permit_unless_it_is_late() -> None:
    assert handed_on(waiting(Lane.PLEB, 1), waiting(Lane.PLEB, 59, who="b"))
    assert not handed_on(waiting(Lane.PLEB, 1), waiting(Lane.PLEB, 60, who="b"))


def test_a_permit_goes_back_when_any_lane_waited_too_long_elsewhere() -> None:
    assert not handed_on(waiting(Lane.KEEPER, 1), waiting(Lane.PLEB, 60, who="b"))


# -- every crowd

waits = st.integers(0, 120).map(float)
crowds = st.lists(
    st.builds(waiting, st.sampled_from(LANES), waits, st.text("abc", min_size=1, max_size=2)), max_size=12, unique=True
)
slots = st.sets(st.integers(0, 9))


@given(crowds, slots.map(sorted))
def test_all_who_see_the_same_crowd_agree_on_who_is_let_in(crowd: list[Demand], free: list[int]) -> None:
    """As many as there are slots, the first of them, and never a slot that each leaves to the other."""
    theirs = {one: may_take(one, [other for other in crowd if other != one], free, NOW, MINUTE) for one in crowd}
    in_order = sorted(crowd, key=lambda one: place(one, NOW, MINUTE))

    assert [one for one in in_order if theirs[one]] == in_order[: len(free)]
    for number, one in enumerate(in_order):
        assert theirs[one] == free[number:], "the first ones are left to those who go before"


@given(crowds.filter(bool))
def test_nobody_goes_before_the_oldest_that_waited_too_long(crowd: list[Demand]) -> None:
    oldest = min(crowd, key=lambda one: one.since)
    first = min(crowd, key=lambda one: place(one, NOW, MINUTE))

    if NOW - oldest.since >= MINUTE:
        assert first.since == oldest.since
    else:
        assert first.lane == min((one.lane for one in crowd), key=LANES.index)


@given(crowds, st.lists(st.sampled_from(LANES), min_size=150, max_size=150))
def test_no_lane_starves_whoever_comes(crowd: list[Demand], arrivals: list[Lane]) -> None:
    """One slot, a call each second, one more who comes with each: nobody waits for longer than `max_wait` and those
    who were late before it.
    """
    line = list(crowd)
    for second, lane in enumerate(arrivals):
        now = NOW + timedelta(seconds=second)
        line.append(Demand(lane, now, f"arrival {second}"))
        line.sort(key=lambda one: place(one, now, MINUTE))
        served = line.pop(0)
        older = sum(other.since < served.since for other in line)
        assert older == 0 or now - served.since < MINUTE, "whoever is late is served by age"
        assert max((now - one.since for one in line), default=MINUTE) <= 3 * MINUTE + CALL * len(crowd)


@given(st.integers(1, 8), slots)
def test_open_slots_and_live_ones_are_never_more_than_the_limit(limit: int, live: set[int]) -> None:
    open_ = open_slots(limit, live)

    assert not live & set(open_)
    assert set(open_) <= set(range(limit))
    assert len(live) + len(open_) == max(limit, len(live)) or len(open_) == len(set(range(limit)) - live)


@given(st.integers(1, 5), st.sets(st.integers(5, 9)), st.data())
def test_views_of_different_moments_never_let_in_more_than_the_limit(
    limit: int, above: set[int], data: st.DataObject
) -> None:
    """The limit was lowered, and whoever takes a slot may have looked a while ago; each slot is taken by one write."""
    live, looks = set(above), [frozenset(above)]
    most = max(limit, len(above))
    for _ in range(data.draw(st.integers(0, 12))):
        ends = data.draw(st.booleans())
        if live and ends:
            live.discard(data.draw(st.sampled_from(sorted(live))))
        else:
            seen = data.draw(st.sampled_from(looks))
            choice = open_slots(limit, seen)
            if choice:
                live.add(data.draw(st.sampled_from(choice)))
        looks.append(frozenset(live))
        assert len(live) <= most
        most = max(limit, len(live))


@given(
    crowds.filter(bool),
    st.integers(1, 12),
    st.integers(1, 12),
    st.timedeltas(timedelta(), MINUTE),
    st.timedeltas(timedelta(), MINUTE),
)
def test_what_is_handed_on_takes_nothing_from_who_goes_first(
    crowd: list[Demand], served: int, calls: int, left: timedelta, asked: timedelta
) -> None:
    following, others = crowd[0], crowd[1:]
    if handed_on(following, *others, served=served, calls_per_permit=calls, left=left, asked=asked):
        assert served < calls
        assert left >= asked
        assert not [
            other
            for other in others
            if LANES.index(other.lane) < LANES.index(following.lane) and NOW - following.since < MINUTE
        ]
    elif served < calls and left >= asked:
        assert ahead(following, others, NOW, MINUTE) > 0

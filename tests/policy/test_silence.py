"""When work is silent, how often it is sent again, and when it is given up."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.models import (
    Action,
    Condition,
    Cycle,
    CycleState,
    ModelState,
    Origin,
    Result,
    ResultState,
    Silence,
    Stage,
    Topic,
)
from wikikeeper.policy import silence

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
AFTER = timedelta(minutes=16)


def a_result(**changes: object) -> Result:
    url = "https://example.org/"
    values = {"id": "r", "topic": "t", "url": url, "canonical": url, "revision": 1, "origin": Origin.LINK, "found": NOW}
    return Result.model_validate(values | changes)


def a_cycle(**changes: object) -> Cycle:
    values = {"id": "t#1", "topic": "t", "tick": "1", "state": CycleState.DRAINING, "started": NOW, "cap": 9}
    return Cycle.model_validate(values | changes)


@pytest.mark.parametrize(
    ("state", "cycle", "lease", "called", "expected"),
    [
        (ResultState.WAITING, None, None, None, None),
        (ResultState.WAITING, "c", None, None, Stage.QUEUED),
        (ResultState.JUDGING, "c", NOW + MINUTE, None, Stage.AT_GATE),
        (ResultState.JUDGING, "c", NOW + MINUTE, NOW, Stage.CALLING),
        (ResultState.JUDGING, "c", NOW, None, Stage.SILENT),
        (ResultState.JUDGING, "c", NOW - MINUTE, NOW - MINUTE, Stage.SILENT),
        (ResultState.JUDGING, "c", None, NOW, None),
        (ResultState.KEPT, "c", None, NOW, None),
        (ResultState.KEPT, "c", NOW - MINUTE, NOW, None),
        (ResultState.PARKED, None, None, None, None),
    ],
)
def test_the_stage_of_a_result(
    state: ResultState, cycle: str | None, lease: datetime | None, called: datetime | None, expected: Stage | None
) -> None:
    result = a_result(state=state, cycle=cycle, lease_until=lease)

    assert silence.stage(result, called, NOW) is expected


@pytest.mark.parametrize(
    ("nonresponses", "cooldown", "expected"),
    [
        (0, None, Action.RECOVER),
        (2, None, Action.RECOVER),
        (3, None, Action.GIVE_UP),
        (4, None, Action.GIVE_UP),
        (3, MINUTE, Action.LEAVE),
        (3, -MINUTE, Action.LEAVE),
        (0, MINUTE, Action.LEAVE),
        (0, -MINUTE, Action.RECOVER),
        (0, timedelta(), Action.RECOVER),
    ],
)
def test_what_is_done_about_a_silence(nonresponses: int, cooldown: timedelta | None, expected: Action) -> None:
    until = None if cooldown is None else NOW + cooldown

    assert silence.action(nonresponses, 3, now=NOW, cooldown_until=until) is expected


@given(limit=st.integers(1, 20), seconds=st.lists(st.integers(1, 100_000), min_size=30, max_size=60))
def test_one_silence_is_sent_again_as_often_as_the_limit_says_and_told_once(limit: int, seconds: list[int]) -> None:
    """However its sweeps fall, and however long after the cooldown."""
    stored: Silence | None = None
    now, recovered, told = NOW, 0, 0
    for pause in seconds:
        now += timedelta(seconds=pause)
        nonresponses = stored.nonresponses if stored else 0
        until = stored.cooldown_until if stored else None
        match silence.action(nonresponses, limit, now=now, cooldown_until=until):
            case Action.RECOVER:
                recovered += 1
                stored = silence.counted(stored, "note:t", now)
            case Action.GIVE_UP:
                told += 1
                assert stored is not None
                stored = stored.model_copy(update={"cooldown_until": now + timedelta(hours=6)})
            case Action.LEAVE:
                pass

    assert (recovered, told) == (limit, 1)


@pytest.mark.parametrize(("nonresponses", "parts"), [(0, 0), (1, 0), (2, 1), (3, 6), (9, 6)])
def test_what_went_silent_together_again_and_again_is_sent_apart(nonresponses: int, parts: int) -> None:
    assert silence.gap(nonresponses, timedelta(minutes=30)) == parts * MINUTE


def test_the_first_count_names_the_silence_and_the_others_keep_its_name() -> None:
    first = silence.counted(None, "cycle:c", NOW)
    second = silence.counted(first, "cycle:c", NOW + MINUTE)

    assert (first.nonresponses, first.since, first.counted) == (1, NOW, NOW)
    assert (second.nonresponses, second.since, second.counted) == (2, NOW, NOW + MINUTE)


def test_a_silence_after_an_earlier_one_was_over_has_its_own_recoveries_and_its_own_end() -> None:
    before = Silence(subject="note:t", nonresponses=0, since=NOW, counted=NOW, cooldown_until=NOW + 3 * MINUTE)
    later = NOW + 10 * MINUTE

    again = silence.counted(before, "note:t", later)

    assert again == Silence(subject="note:t", nonresponses=1, since=later, counted=later)
    third = again.model_copy(update={"nonresponses": 3})
    assert silence.action(3, 3, now=later, cooldown_until=third.cooldown_until) is Action.GIVE_UP


@pytest.mark.parametrize(
    ("ends", "known"), [(timedelta(), True), (HOUR, True), (HOUR + MINUTE, False), (-MINUTE, True), (None, False)]
)
def test_a_cooldown_that_is_longer_than_cooldowns_are_was_given_by_a_clock_that_was_ahead(
    ends: timedelta | None, known: bool
) -> None:
    until = None if ends is None else NOW + ends
    stored = Silence(subject="note:t", nonresponses=3, since=NOW, counted=NOW, cooldown_until=until)

    assert silence.cools_until(stored, NOW, HOUR) == (until if known else None)
    assert silence.cools_until(None, NOW, HOUR) is None


@pytest.mark.parametrize(
    ("heard", "left"), [(-MINUTE, 2), (timedelta(), 2), (MINUTE, 0), (HOUR, 0), (HOUR + MINUTE, 2)]
)
def test_only_what_is_heard_after_the_last_count_ends_a_silence(heard: timedelta, left: int) -> None:
    """And not what a clock that was once ahead wrote down."""
    stored = Silence(subject="cycle:c", nonresponses=2, since=NOW - MINUTE, counted=NOW)

    known = silence.since_heard(stored, NOW + heard, NOW + HOUR)

    assert known is not None
    assert known.nonresponses == left


def test_nothing_was_heard_of_what_was_never_counted() -> None:
    stored = Silence(subject="cycle:c", nonresponses=2, since=NOW - MINUTE, counted=NOW)

    assert silence.since_heard(None, NOW, NOW) is None
    assert silence.since_heard(stored, None, NOW) == stored


def is_silent(
    cycle: Cycle,
    later: timedelta,
    *,
    claimed: bool = False,
    busy: bool = False,
    last_sent: datetime | None = None,
) -> bool:
    return silence.cycle_is_silent(
        cycle, cycle, claimed=claimed, busy=busy, last_sent=last_sent, now=NOW + later, after=AFTER
    )


def test_a_draining_cycle_is_silent_when_nothing_was_heard_for_long_enough() -> None:
    assert not is_silent(a_cycle(), AFTER - timedelta(microseconds=1))
    assert is_silent(a_cycle(), AFTER)


@pytest.mark.parametrize("state", [state for state in CycleState if state is not CycleState.DRAINING])
def test_only_a_draining_cycle_has_commands_to_lose(state: CycleState) -> None:
    assert not is_silent(a_cycle(state=state), 10 * AFTER)


def test_a_call_or_being_sent_again_starts_the_wait_anew() -> None:
    assert not is_silent(a_cycle(active=NOW + MINUTE), AFTER)
    assert is_silent(a_cycle(active=NOW + MINUTE), AFTER + MINUTE)
    assert not is_silent(a_cycle(), AFTER, last_sent=NOW + MINUTE)
    assert is_silent(a_cycle(), AFTER + MINUTE, last_sent=NOW + MINUTE)


def test_what_is_claimed_is_not_silent() -> None:
    assert not is_silent(a_cycle(active=NOW), 10 * AFTER, claimed=True)


@pytest.mark.parametrize("active", [None, NOW])
def test_a_cycle_waits_behind_others_for_as_long_as_anything_is_worked_on(active: datetime | None) -> None:
    assert not is_silent(a_cycle(active=active), 10 * AFTER, busy=True)


SEARCHING_SINCE = NOW - 5 * MINUTE


def searching(**changes: object) -> Cycle:
    return a_cycle(**{"state": CycleState.OPEN, "started": SEARCHING_SINCE, "lease_until": NOW, **changes})


@pytest.mark.parametrize(
    ("lease_until", "last_sent", "expected"),
    [
        (NOW, None, True),
        (NOW + TICK, None, False),
        (None, None, False),
        (NOW, NOW - MINUTE, True),  # a worker took the command that was sent then
        (NOW - MINUTE, NOW - MINUTE, False),  # none did, and it may still come
        (NOW - AFTER, NOW - AFTER, True),
        (NOW - AFTER, NOW - AFTER + TICK, False),
        (NOW - AFTER, NOW + MINUTE, True),  # by a clock that was ahead
        (NOW + TICK, NOW - 9 * AFTER, False),
    ],
)
def test_an_open_search_is_silent_after_its_lease_and_the_way_of_its_command(
    lease_until: datetime | None, last_sent: datetime | None, expected: bool
) -> None:
    cycle = searching(lease_until=lease_until)
    assert silence.search_is_silent(cycle, last_sent=last_sent, now=NOW, after=AFTER) == expected


@pytest.mark.parametrize(
    ("last_sent", "expected"), [(None, True), (NOW - AFTER, True), (NOW - AFTER + TICK, False), (NOW + TICK, True)]
)
def test_an_expired_search_is_silent_after_the_way_of_its_command(last_sent: datetime | None, expected: bool) -> None:
    cycle = searching(state=CycleState.EXPIRED, lease_until=None)
    assert silence.search_is_silent(cycle, last_sent=last_sent, now=NOW, after=AFTER) == expected


def test_a_search_is_sent_again_unless_nothing_is_lost_with_it() -> None:
    topic = Topic(slug="t", title="T", brief="B", until=NOW.date())

    def why(
        last_run: datetime | None = None, topic: Topic | None = topic, *, left: bool = False, **changes: object
    ) -> str | None:
        return silence.not_worth_sending(searching(**changes), topic, last_run, NOW, left=left)

    assert why() is why(SEARCHING_SINCE) is None
    assert why(SEARCHING_SINCE + TICK) == why(NOW) == "its topic was searched since"
    assert why(NOW + TICK) is None  # by a clock that was ahead
    assert why(NOW, left=True) is None
    assert why(NOW, tick="hook-pushed-1") is None
    assert why(NOW, tick="hook-1") == "its topic was searched since"
    assert why(topic=None) == "its topic is gone or has a fault"
    assert why(topic=topic.model_copy(update={"until": (NOW - timedelta(days=1)).date()})) == (
        f"ended: the last day of the topic was {(NOW - timedelta(days=1)).date()}"
    )
    assert why(tick="manual-1") == "its worker went silent: whoever began it by hand begins it again"


@pytest.mark.parametrize(
    ("tick", "other", "changes", "expected"),
    [
        ("t", "u", {}, True),
        ("t", "u", {"state": CycleState.EXPIRED, "lease_until": None}, True),
        ("t", "u", {"topic": "another"}, False),
        ("t", "u", {"started": SEARCHING_SINCE + TICK}, False),
        ("t", "u", {"started": SEARCHING_SINCE, "id": "a"}, True),
        ("t", "u", {"started": SEARCHING_SINCE, "id": "z"}, False),
        ("t", "t", {"started": SEARCHING_SINCE}, False),
        ("t", "hook-1", {}, True),
        ("t", "hook-pushed-1", {}, False),
        ("hook-pushed-1", "hook-pushed-2", {}, False),
        ("hook-pushed-1", "u", {}, False),
    ],
)
def test_a_search_waits_for_an_earlier_one_that_does_its_work(
    tick: str, other: str, changes: dict[str, object], expected: bool
) -> None:
    earlier = searching(**{"tick": other, "started": SEARCHING_SINCE - TICK, **changes})
    assert silence.waits_for(searching(tick=tick), earlier) == expected


@pytest.mark.parametrize(
    ("due", "later", "busy", "expected"),
    [
        (None, AFTER, False, False),
        (NOW, MINUTE, False, True),
        (NOW, MINUTE - timedelta(microseconds=1), False, False),
        (NOW, MINUTE, True, False),
        (NOW, AFTER, True, True),
        (NOW, AFTER - timedelta(microseconds=1), True, False),
    ],
)
def test_a_note_is_silent_once_its_command_must_have_come(
    due: datetime | None, later: timedelta, busy: bool, expected: bool
) -> None:
    silent = silence.note_is_silent(due, busy=busy, now=NOW + later, soon=MINUTE, after=AFTER, last_sent=None)

    assert silent is expected


def test_a_note_that_was_sent_again_has_its_time_again() -> None:
    def at(later: timedelta) -> bool:
        return silence.note_is_silent(
            NOW, busy=False, now=NOW + later, soon=MINUTE, after=AFTER, last_sent=NOW + MINUTE
        )

    assert not at(2 * MINUTE - timedelta(microseconds=1))
    assert at(2 * MINUTE)


@pytest.mark.parametrize(
    ("state", "cause", "expected"),
    [
        ("healthy", "", Condition.HEALTHY),
        ("waking", "sleeping", Condition.WAKING),
        ("waking", "unloaded", Condition.WAKING),
        ("waking", "loading", Condition.LOADING),
        ("unhealthy", "wake_timeout", Condition.LOADING),
        ("unhealthy", "model_missing", Condition.MODEL_MISSING),
        ("unhealthy", "wrong_kind", Condition.WRONG_KIND),
        ("unhealthy", "unreachable", Condition.UNREACHABLE),
        ("unhealthy", "unauthorized", Condition.REFUSING),
        ("unhealthy", "model_failed", Condition.REFUSING),
    ],
)
def test_how_a_model_is_in_the_words_of_its_history(state: str, cause: str, expected: Condition) -> None:
    assert silence.condition(ModelState.model_validate({"state": state, "cause": cause})) is expected


# -- the cycle that a silence began with


def ran(number: int, *, until: int | None, **changes: object) -> Cycle:
    """One that began in this minute, and ended in that one."""
    values: dict[str, object] = {
        "id": f"t#{number}",
        "topic": "t",
        "tick": str(number),
        "state": CycleState.DRAINING if until is None else CycleState.DONE,
        "started": NOW + number * MINUTE,
        "ended": None if until is None else NOW + until * MINUTE,
        "sent": 2,
        "cap": 9,
    }
    return Cycle.model_validate(values | changes)


GIVEN_UP = {"state": CycleState.STOPPED, "reason": silence.SILENT + "nobody works on them"}


@pytest.mark.parametrize(
    ("now", "before", "first"),
    [
        ({}, [], "t#9"),
        ({}, [ran(5, until=10)], "t#5"),  # it ended when its results were taken along
        ({}, [ran(5, until=9)], "t#5"),
        ({}, [ran(5, until=8)], "t#9"),  # it was done with them
        ({}, [ran(5, until=10), ran(2, until=6)], "t#2"),
        ({}, [ran(5, until=10), ran(2, until=4)], "t#5"),
        ({}, [ran(5, until=7, **GIVEN_UP), ran(2, until=6)], "t#2"),
        ({}, [ran(5, until=7, state=CycleState.STOPPED, reason="unauthorized: mend it")], "t#9"),
        ({}, [ran(5, until=7, state=CycleState.STOPPED)], "t#9"),
        ({}, [ran(5, until=7, **(GIVEN_UP | {"state": CycleState.SKIPPED}))], "t#9"),
        ({}, [ran(8, until=8, sent=0), ran(5, until=10)], "t#5"),  # it had nothing to send, and hides nothing
        ({}, [ran(5, until=None)], "t#9"),  # it drains beside it
        ({}, [ran(5, until=10, calls=1)], "t#9"),
        ({}, [ran(5, until=10, fetched=True)], "t#9"),
        ({"calls": 1}, [ran(5, until=10)], "t#9"),
        ({"fetched": True}, [ran(5, until=10)], "t#9"),
    ],
)
def test_a_silence_began_with_the_first_cycle_that_nobody_worked_on(
    now: dict[str, object], before: list[Cycle], first: str
) -> None:
    assert silence.first_of(ran(9, until=None, **now), before).id == first

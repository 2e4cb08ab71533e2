"""Ticks: which are due, and that a change of the clocks adds and loses none."""

from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikikeeper.policy.schedule import (
    MOST_COUNTED,
    Due,
    cron_fault,
    ended,
    next_run,
    occurrences,
    tick_id,
    ticks_due,
    zone_fault,
    zones,
)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


BERLIN = "Europe/Berlin"
ZONES = sorted(zones())
CHANGING = [
    zone
    for zone in ZONES
    if len({datetime(2026, month, 15, tzinfo=ZoneInfo(zone)).utcoffset() for month in range(1, 13)}) > 1
]
"""Zones whose clocks change within a year; the others have nothing to get wrong."""
CRONS = st.sampled_from(
    [
        "* * * * *",
        "*/7 * * * *",
        "5 * * * *",
        "0 7 * * *",
        "30 2 * * *",
        "*/30 2 * * *",
        "15,45 1-3 * * 0",
        "0 */6 * * *",
    ]
)
MOMENTS = st.integers(0, 6 * 366 * 24 * 60).map(lambda minutes: utc("2024-01-01") + timedelta(minutes=minutes))


def changes(zone: str, year: int) -> list[datetime]:
    """The hours of a year, in UTC, in which the zone's offset changes."""
    hours = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(hours=12 * half) for half in range(2 * 366)]
    tz = ZoneInfo(zone)
    return [
        later for one, later in pairwise(hours) if one.astimezone(tz).utcoffset() != later.astimezone(tz).utcoffset()
    ]


@pytest.mark.parametrize(
    ("cron", "word"),
    [
        ("0 7 * * *", None),
        ("*/15 8-18 * * MON-FRI", None),
        ("0 0 29 2 *", None),
        ("0 7 L * *", None),
        ("0 7 * * 7", None),
        ("", "five fields"),
        ("@daily", "five fields"),
        ("0 0 7 * * *", "five fields"),
        ("0 7 * *", "five fields"),
        ("60 7 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 7 0 * *", "day of month"),
        ("0 7 * 13 *", "month"),
        ("0 7 * * 8", "day of week"),
        ("0 7 * * mo", "day of week"),
        ("*/0 * * * *", "minute"),
        ("0 0 31 2 *", "day of month"),
        ("0 0 31 2,4 *", "day of month"),
        ("0 0 30-31 2 *", "day of month"),
        ("0 0 */31 2 *", None),
        ("0 0 5 * */7#5", "day of week"),
        ("9" * 5000 + " 7 * * *", "longer"),
        ("² 7 * * *", "minute"),
    ],
)
def test_a_schedule_is_refused_with_the_field_that_is_wrong(cron: str, word: str | None) -> None:
    fault = cron_fault(cron)

    assert fault is None if word is None else fault is not None and word in fault


@given(st.text(alphabet="0123456789*/,-#LWabc ", max_size=40))
def test_no_text_makes_the_check_of_a_schedule_raise(cron: str) -> None:
    fault = cron_fault(cron)

    assert fault is not None or next_run(cron, "UTC", utc("2026-01-01")) is not None


@pytest.mark.parametrize(
    ("zone", "word"),
    [
        ("Europe/Berlin", None),
        ("UTC", None),
        ("europe/berlin", "did you mean Europe/Berlin?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("New York", "did you mean America/New_York?"),
        ("Europe/Berlni", "did you mean Europe/Berlin?"),
        ("Europe", "not an IANA time zone"),
        ("", "not an IANA time zone"),
        ("../../etc/passwd", "not an IANA time zone"),
        ("/etc/localtime", "not an IANA time zone"),
        ("localtime", "not an IANA time zone"),
        ("a\0b", "not an IANA time zone"),
    ],
)
def test_a_zone_is_refused_with_the_one_that_was_meant(zone: str, word: str | None) -> None:
    fault = zone_fault(zone)

    assert fault is None if word is None else fault is not None and word in fault


def test_only_the_latest_missed_tick_is_due_and_the_others_are_counted() -> None:
    due = ticks_due("0 7 * * *", BERLIN, since=utc("2026-01-01 12:00"), now=utc("2026-01-05 12:00"))

    assert due == Due(utc("2026-01-05 06:00"), missed=3)


def test_nothing_is_due_between_two_ticks() -> None:
    assert ticks_due("0 7 * * *", BERLIN, utc("2026-01-05 06:00"), utc("2026-01-06 05:59")) == Due(None, 0)
    assert ticks_due("0 7 * * *", BERLIN, utc("2026-01-05 06:00"), utc("2026-01-06 06:00")).tick is not None


def test_a_clock_that_went_back_makes_nothing_due() -> None:
    assert ticks_due("* * * * *", "UTC", utc("2026-01-05"), utc("2026-01-04")) == Due(None, 0)


def test_a_year_of_missed_minutes_is_counted_only_so_far() -> None:
    due = ticks_due("* * * * *", BERLIN, since=utc("2025-01-05"), now=utc("2026-01-05 00:00:30"))

    assert due == Due(utc("2026-01-05"), missed=MOST_COUNTED)


@given(CRONS, st.sampled_from(CHANGING), MOMENTS, st.integers(0, 12 * 60))
def test_looking_often_or_once_finds_the_same_ticks(cron: str, zone: str, since: datetime, minutes: int) -> None:
    now = since + timedelta(minutes=minutes)
    ticks = list(islice(occurrences(cron, zone, since), 12 * 60 + 1))
    passed = [tick for tick in ticks if tick <= now]
    due = ticks_due(cron, zone, since, now)

    assert due.tick == (passed[-1] if passed else None)
    assert due.missed == min(max(len(passed) - 1, 0), MOST_COUNTED)
    assert next_run(cron, zone, now) == next(tick for tick in ticks if tick > now)


@given(CRONS, st.sampled_from(CHANGING), MOMENTS, st.integers(0, 300))
def test_ticks_do_not_depend_on_when_one_starts_to_look(cron: str, zone: str, after: datetime, count: int) -> None:
    ticks = list(islice(occurrences(cron, zone, after), count + 2))

    assert next_run(cron, zone, ticks[count]) == ticks[count + 1]
    assert all(one < later for one, later in pairwise(ticks))


@pytest.mark.parametrize(
    ("cron", "zone", "day", "ticks"),
    [
        # Berlin skips 02:00-03:00 on 29 March and shows it twice on 25 October.
        ("30 2 * * *", BERLIN, "2026-03-29", ["01:00"]),
        ("0,30 2 * * *", BERLIN, "2026-03-29", ["01:00"]),
        ("30 2 * * *", BERLIN, "2026-10-25", ["00:30"]),
        ("*/30 2 * * *", BERLIN, "2026-03-29", ["01:00"]),
        ("*/30 2 * * *", BERLIN, "2026-10-25", ["00:00", "00:30"]),
        ("0 */12 * * *", BERLIN, "2026-10-25", ["11:00", "23:00"]),
        # Each hour that passes has its tick, so one less and one more on the clock are the same here.
        ("30 */1 * * *", BERLIN, "2026-10-25", [f"{hour:02}:30" for hour in range(24)]),
        ("30 0-23 * * *", BERLIN, "2026-03-29", [f"{hour:02}:30" for hour in range(24)]),
        # Cairo skips the hour after midnight, so the day begins at 01:00.
        ("0 0 * * *", "Africa/Cairo", "2026-04-23", ["22:00"]),
        # Nuuk skips the hour before midnight: the tick of the old day comes with the new one.
        ("30 23 * * *", "America/Nuuk", "2026-03-29", ["01:00"]),
        # Lord Howe moves by half an hour.
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03", ["15:30"]),
    ],
)
def test_a_change_of_the_clocks_moves_ticks_and_repeats_none(cron: str, zone: str, day: str, ticks: list[str]) -> None:
    start = utc(day)
    found = list(islice(occurrences(cron, zone, start - timedelta(seconds=1)), 50))

    assert [f"{tick:%H:%M}" for tick in found if tick.date() == start.date()] == ticks


@pytest.mark.parametrize("year", [2026, 2027])
def test_a_daily_job_runs_once_for_each_day_at_every_change_of_every_zone(year: int) -> None:
    """Also at the minutes around midnight and in the hours that are skipped or repeated."""
    for zone in CHANGING:
        tz = ZoneInfo(zone)
        for change in changes(zone, year):
            for clock in ("0 0", "30 0", "30 1", "0 2", "15 2", "0 3", "30 23"):
                first = datetime.combine(change.astimezone(tz).date() - timedelta(days=2), datetime.min.time(), tz)
                ticks = list(islice(occurrences(f"{clock} * * *", zone, first - timedelta(seconds=1)), 5))
                minute, hour = map(int, clock.split())
                for ahead, tick in enumerate(ticks):
                    day = first.date() + timedelta(days=ahead)
                    wanted = datetime(day.year, day.month, day.day, hour, minute, tzinfo=tz)
                    # Two times of one zone are subtracted as the wall clock shows them.
                    late = tick.astimezone(tz) - wanted
                    # On time, or at the end of a gap, the longest of which is two hours (Troll).
                    assert timedelta() <= late <= timedelta(hours=2), (zone, clock, tick)


@given(CRONS, st.sampled_from(CHANGING), MOMENTS)
def test_firing_twice_gives_the_same_tick(cron: str, zone: str, now: datetime) -> None:
    since = now - timedelta(days=8)

    first, again = ticks_due(cron, zone, since, now), ticks_due(cron, zone, since, now + timedelta(seconds=1))

    assert first.tick is not None
    assert again.tick is not None
    assert tick_id(first.tick) == tick_id(again.tick) or again.tick > now
    assert ticks_due(cron, zone, first.tick, now) == Due(None, 0)


def test_a_tick_is_named_by_its_minute_in_utc() -> None:
    assert tick_id(datetime(2026, 3, 29, 3, 0, tzinfo=ZoneInfo(BERLIN))) == "2026-03-29T01:00Z"


@pytest.mark.parametrize(
    ("now", "over"), [("2026-12-31 22:59", False), ("2026-12-31 23:00", True), ("2026-12-01 00:00", False)]
)
def test_a_topic_ends_with_its_last_day_in_its_own_zone(now: str, over: bool) -> None:
    assert ended(date(2026, 12, 31), BERLIN, utc(now)) == over
    assert not ended(None, BERLIN, utc(now))

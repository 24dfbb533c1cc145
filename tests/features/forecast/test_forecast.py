"""The forecast: what walking from fire to fire would find, added up; the minutes that stand out; the jitter that helps."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.features.forecast import Crowd, ForecastWindow, fires_per_minute, forecast, hot_spots, window_after
from horai.features.forecast.peaks import JITTERS
from horai.time.cron import DstPolicy
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, fires_between

MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MIDNIGHT = CronSchedule("0 0 * * *")
EACH_MINUTE = CronSchedule("* * * * *")
HOURLY = CronSchedule("0 * * * *")

POLICIES = [DstPolicy(gap, overlap) for gap, overlap in product(("shift", "skip"), ("first", "last", "both"))]
CHANGES = {
    "Europe/Berlin": ("2026-03-29", "2026-10-25"),
    "America/New_York": ("2026-03-08", "2026-11-01"),
    "America/Havana": ("2026-03-08", "2026-11-01"),
    "America/Nuuk": ("2026-03-28", "2026-10-24"),
    "Australia/Lord_Howe": ("2026-04-04", "2026-10-03"),
    "Africa/Cairo": ("2026-04-23", "2026-10-29"),
    "Asia/Beirut": ("2026-03-28", "2026-10-24"),
    "Africa/Casablanca": ("2026-02-14", "2026-03-21"),
    "Antarctica/Troll": ("2026-03-28", "2026-10-24"),
    "Pacific/Apia": ("2011-12-29", "2026-07-01"),
    "Asia/Kathmandu": ("2026-06-01", "2026-12-31"),
    "Africa/Monrovia": ("1972-01-06", "2026-06-01"),
    "UTC": ("2026-02-28", "2026-12-31"),
}
"""Zones, and a day near which their clocks do something; for the quiet ones the ends of a month and of a year."""
MINUTES = ("0", "*", "*/7", "15,45", "0-10", "59", "30", "0/20")
HOURS = ("*", "0", "2", "*/5", "0-3", "23", "1,2,3,13")
DAYS = ("*", "1", "28-31", "*/2")
WEEKDAYS = ("*", "SUN", "1-5")
QUARTZ = (
    "0 0 0 L * ?",
    "*/7 * * * * ?",
    "30 59 23 ? * 1",
    "5,10 0/15 2 LW * ?",
    "0 30 2 ? * SUN#5",
    "59 59 23 * * ? 2026",
)
EXCLUDED = ("2026-03-29", "2026-10-24/2026-10-26", "11-01", "12-24/01-02", "2026-03-08", "04-05", "10-29", "2011-12-30")


def walked(schedule: Schedule, window: ForecastWindow) -> bytes:
    """The same, fire by fire."""
    counts = bytearray(window.minutes)
    moment = timedelta(microseconds=1)
    for fire in fires_between(schedule, window.at(0) - moment, window.at(window.minutes) - moment, 10**9):
        counts[(fire - window.at(0)) // MINUTE] += 1
    return bytes(counts)


@st.composite
def windows_near_changes(draw: st.DrawFn) -> tuple[str, ForecastWindow]:
    place = draw(st.sampled_from(sorted(CHANGES)))
    day = datetime.fromisoformat(draw(st.sampled_from(CHANGES[place]))).replace(tzinfo=UTC)
    start = day + draw(st.integers(-1440, 1440)) * MINUTE
    return place, window_after(start, draw(st.integers(1, 2 * 1440)))


def crons() -> st.SearchStrategy[str]:
    vixie = st.tuples(*(st.sampled_from(words) for words in (MINUTES, HOURS, DAYS, ("*",), WEEKDAYS)))
    return vixie.map(" ".join) | st.sampled_from(QUARTZ)


excluded = st.lists(st.sampled_from(EXCLUDED), max_size=3, unique=True).map(lambda dates: tuple(sorted(dates)))


@settings(max_examples=examples(400), deadline=None)
@given(windows_near_changes(), crons(), st.sampled_from(POLICIES), excluded)
@example(("Europe/Berlin", window_after(datetime(2026, 3, 29, 0, tzinfo=UTC), 180)), "30 2 * * *", POLICIES[0], ())
@example(("Europe/Berlin", window_after(datetime(2026, 3, 29, 1, tzinfo=UTC), 1)), "30 2 * * *", POLICIES[0], ())
@example(("Europe/Berlin", window_after(datetime(2026, 3, 29, 1, 1, tzinfo=UTC), 9)), "30 2 * * *", POLICIES[0], ())
@example(("Europe/Berlin", window_after(datetime(2026, 10, 25, tzinfo=UTC), 180)), "30 2 * * *", POLICIES[1], ())
def test_a_cron_is_counted_as_walking_would_over_clock_changes_and_excluded_dates(
    where: tuple[str, ForecastWindow], expression: str, dst: DstPolicy, dates: tuple[str, ...]
) -> None:
    place, window = where
    schedule = CronSchedule(expression, place, dst, excluded=dates)

    assert fires_per_minute(schedule, window) == walked(schedule, window)


intervals = st.integers(1_000, 3 * 86_400_000) | st.sampled_from([1_000, 7_000, 59_999, 60_000, 60_001, 300_000])


@settings(max_examples=examples(200), deadline=None)
@given(windows_near_changes(), intervals, st.integers(0, 10**13), excluded)
def test_an_interval_is_counted_as_walking_would(
    where: tuple[str, ForecastWindow], interval: int, anchor: int, dates: tuple[str, ...]
) -> None:
    place, window = where
    anchored = datetime(1990, 1, 1, tzinfo=UTC) + timedelta(microseconds=anchor)
    schedule = EverySchedule(timedelta(milliseconds=interval), anchored, place, dates)
    short = ForecastWindow(window.start, min(window.end, window.start + interval // 30 + 1))

    assert fires_per_minute(schedule, short) == walked(schedule, short)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from([EACH_MINUTE, HOURLY, CronSchedule("*/7 * * * * ?"), EverySchedule(timedelta(seconds=11))]),
    st.none() | st.integers(-90 * 60_000, 200 * 60_000),
    st.none() | st.integers(-90 * 60_000, 200 * 60_000),
)
def test_a_beginning_and_an_end_count_to_the_moment(schedule: Schedule, start: int | None, end: int | None) -> None:
    window = window_after(NOON, 120)
    start_at, end_at = (None if ms is None else NOON + timedelta(milliseconds=ms) for ms in (start, end))
    fires = fires_between(schedule, NOON - timedelta(microseconds=1), NOON + 120 * MINUTE, 10**6)
    expected = [0] * 121
    for fire in fires:
        expected[(fire - NOON) // MINUTE] += (start_at is None or start_at <= fire) and (
            end_at is None or fire <= end_at
        )

    found = forecast([Crowd(schedule, 3, start_at=start_at, end_at=end_at)], window)

    assert list(found.per_minute) == [3 * fires for fires in expected[:120]]


def test_a_window_begins_with_the_first_minute_that_has_not_begun() -> None:
    assert window_after(NOON, 60).at(0) == NOON
    assert window_after(NOON + timedelta(microseconds=1), 60).at(0) == NOON + MINUTE
    assert window_after(NOON, 60).minutes == 60


def test_crowds_are_added_up_and_a_schedule_that_several_follow_is_one() -> None:
    crowds = [Crowd(HOURLY, 5), Crowd(HOURLY, 7), Crowd(EACH_MINUTE, 2), Crowd(MIDNIGHT, 1_000_000_000)]

    found = forecast(crowds, window_after(NOON, 1440))

    assert found.per_minute[0:3] == [14, 2, 2]
    assert found.per_minute[720] == 1_000_000_014
    assert (found.jobs, dict(found.fires)) == (1_000_000_014, {HOURLY: 288, EACH_MINUTE: 2880, MIDNIGHT: 1_000_000_000})
    assert found.followers[HOURLY] == 12


def test_without_jobs_every_minute_is_empty() -> None:
    found = forecast([], window_after(NOON, 60))

    assert (list(found.per_minute), found.average, hot_spots(found)) == ([0] * 60, 0, [])


def test_jitter_spreads_what_fires_over_the_minutes_behind_and_loses_none() -> None:
    found = forecast([Crowd(MIDNIGHT, 1_000, jitter=7)], window_after(NOON, 1440)).per_minute

    assert (sum(found), sum(found[720:727])) == (1_000, 1_000)
    assert set(found[720:727]) == {142, 143}


def test_jitter_of_a_minute_changes_no_minute() -> None:
    window = window_after(NOON, 1440)

    assert (
        forecast([Crowd(MIDNIGHT, 9, jitter=1)], window).per_minute == forecast([Crowd(MIDNIGHT, 9)], window).per_minute
    )


def test_with_jitter_the_last_slots_before_the_window_still_run_in_it() -> None:
    steady = forecast([Crowd(HOURLY, 600, jitter=60)], window_after(NOON + 20 * MINUTE, 180))

    assert list(steady.per_minute) == [10] * 180


def test_half_a_day_of_jitter_still_adds_up_to_all() -> None:
    found = forecast([Crowd(EACH_MINUTE, 1, jitter=720), Crowd(HOURLY, 11, jitter=1440)], window_after(NOON, 1440))

    assert abs(sum(found.per_minute) - (1440 + 24 * 11)) <= 2
    assert max(found.per_minute) <= 3


def spread_evenly(jobs: int) -> list[Crowd]:
    return [Crowd(EACH_MINUTE, jobs)]


def test_midnight_stands_out_and_half_an_hour_of_jitter_would_level_it() -> None:
    found = forecast([Crowd(MIDNIGHT, 60_000), *spread_evenly(100)], window_after(NOON, 1440))

    (spot,) = hot_spots(found)

    assert (spot.at, spot.fires) == (datetime(2026, 7, 2, tzinfo=UTC), 60_100)
    assert spot.times == round(60_100 / found.average, 1)
    assert [concerned.schedule for concerned in spot.concerned] == [MIDNIGHT]
    assert (spot.suggested_jitter, spot.peak_with_jitter) == (timedelta(minutes=30), 2_100)


def test_the_full_hours_stand_out_and_no_more_than_ten_are_told() -> None:
    found = forecast([Crowd(HOURLY, 600), *spread_evenly(100)], window_after(NOON, 1440))

    spots = hot_spots(found)

    assert [spot.at for spot in spots] == [NOON + hours * 60 * MINUTE for hours in range(10)]
    assert {spot.suggested_jitter for spot in spots} == {timedelta(minutes=10)}
    assert {spot.peak_with_jitter for spot in spots} == {160}


@pytest.mark.parametrize("jobs", [300, 600, 2_000, 10_000])
def test_the_suggestion_is_the_shortest_that_brings_the_minute_under_twice_its_hour(jobs: int) -> None:
    found = forecast([Crowd(HOURLY, jobs), *spread_evenly(100)], window_after(NOON, 1440))
    around = 100 + jobs / 60
    peaks = {jitter: 100 + jobs * MINUTE / jitter for jitter in JITTERS}

    expected = next(jitter for jitter, peak in peaks.items() if peak < 2 * around)

    assert {spot.suggested_jitter for spot in hot_spots(found)} == {expected}


def test_a_busy_afternoon_and_a_schedule_of_every_minute_are_no_hot_spots() -> None:
    afternoon = CronSchedule("* 14-18 * * *")

    assert hot_spots(forecast([Crowd(afternoon, 5_000), *spread_evenly(1_000)], window_after(NOON, 1440))) == []


def test_less_than_one_fire_a_second_is_no_hot_spot() -> None:
    assert hot_spots(forecast([Crowd(MIDNIGHT, 59)], window_after(NOON, 1440))) == []
    assert len(hot_spots(forecast([Crowd(MIDNIGHT, 60)], window_after(NOON, 1440)))) == 1


def test_no_more_jitter_is_suggested_than_half_the_time_between_two_fires() -> None:
    found = forecast([Crowd(CronSchedule("*/5 * * * *"), 1_000)], window_after(NOON, 180))

    spots = hot_spots(found)

    assert len(spots) == 6
    assert {(spot.suggested_jitter, spot.peak_with_jitter) for spot in spots} == {(timedelta(minutes=2), 500)}


def test_a_schedule_that_fires_too_often_for_a_jitter_is_left_out_of_the_suggestion() -> None:
    often = EverySchedule(timedelta(minutes=2))
    found = forecast([Crowd(MIDNIGHT, 100_000), Crowd(often, 70)], window_after(NOON, 1440))

    spot = hot_spots(found)[0]

    assert [concerned.schedule for concerned in spot.concerned] == [MIDNIGHT]
    assert (spot.suggested_jitter, spot.peak_with_jitter) == (timedelta(hours=1), 70 + -(-100_000 // 60))


def test_a_schedule_with_a_jitter_gets_no_suggestion() -> None:
    found = forecast([Crowd(HOURLY, 1_000, jitter=4)], window_after(NOON + 30 * MINUTE, 60))

    (spot,) = hot_spots(found)

    assert (spot.fires, spot.suggested_jitter, spot.peak_with_jitter) == (250, None, None)
    assert [(concerned.schedule, concerned.jobs, concerned.fires) for concerned in spot.concerned] == [
        (HOURLY, 1_000, 250)
    ]


@pytest.mark.parametrize(("hours", "suggested"), [(1, timedelta(minutes=30)), (3, timedelta(minutes=30))])
def test_the_time_to_the_next_fire_behind_a_short_window_counts_too(hours: int, suggested: timedelta) -> None:
    """Within one hour, an hourly schedule has one fire; an hour of jitter would still be too much for it."""
    spots = hot_spots(forecast([Crowd(HOURLY, 100_000)], window_after(NOON + 30 * MINUTE, hours * 60)))

    assert {spot.suggested_jitter for spot in spots} == {suggested}

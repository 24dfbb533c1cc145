"""Intervals that drifted, and fires looked for in the past or by the wrong clock.

The catalogue is docs/concepts/peer-faults.md.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from fire_times import fires, read

from horai.time.misfire import latest_until
from horai.time.schedule import CronSchedule, EverySchedule, fires_between, next_after

NEW_YORK = "America/New_York"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


# Intervals


def test_xxl_job_3432_a_restart_does_not_move_a_fixed_rate():
    hourly = EverySchedule(HOUR, at("2024-04-22 08:10Z"))

    assert next_after(hourly, at("2024-04-22 09:30Z")) == at("2024-04-22 10:10Z")
    assert next_after(hourly, at("2024-04-22 10:45Z")) == at("2024-04-22 11:10Z")


def test_rq_scheduler_57_an_hour_of_downtime_does_not_move_ten_o_clock():
    daily = EverySchedule(DAY, at("2015-01-27 10:00Z"))

    assert next_after(daily, at("2015-01-28 10:30Z")) == at("2015-01-29 10:00Z")


def test_gocron_382_being_a_little_late_each_time_adds_up_to_nothing():
    every_second = EverySchedule(timedelta(seconds=1), at("2022-08-23 00:00Z"))
    now = at("2022-08-23 00:00Z")
    for _ in range(1_000):
        fire = next_after(every_second, now)
        assert fire is not None
        now = fire + timedelta(milliseconds=7)

    assert now == at("2022-08-23 00:16:40.007Z")


def test_bullmq_2966_a_late_look_still_finds_an_evenly_spaced_slot():
    every_five_seconds = EverySchedule(timedelta(seconds=5), at("2024-12-12 10:23:03Z"))

    assert next_after(every_five_seconds, at("2024-12-12 10:23:09.500Z")) == at("2024-12-12 10:23:13Z")


def test_apscheduler_97_an_interval_fires_at_its_anchor():
    every_five_minutes = EverySchedule(timedelta(seconds=300), at("2015-06-12 09:00Z"))

    assert next_after(every_five_minutes, at("2015-06-12 08:59:59.999999Z")) == at("2015-06-12 09:00Z")


def test_schedule_649_an_hourly_interval_runs_through_the_repeated_hour():
    hourly = EverySchedule(HOUR, datetime(2025, 10, 26, 0, 0, tzinfo=ZoneInfo("Europe/Berlin")))
    found = fires_between(hourly, at("2025-10-26 00:30+02:00"), at("2025-10-26 03:30+01:00"), 10)

    assert [read(fire, "Europe/Berlin") for fire in found] == [
        "2025-10-26 01:00+02:00",
        "2025-10-26 02:00+02:00",
        "2025-10-26 02:00+01:00",
        "2025-10-26 03:00+01:00",
    ]


def test_rufus_scheduler_218_a_day_is_24_hours_as_an_interval_and_a_time_of_day_as_a_cron():
    interval, cron = EverySchedule(DAY, at("2016-10-29 09:00+02:00")), CronSchedule("0 9 * * *", "Europe/Berlin")
    day_before = at("2016-10-29 09:00+02:00")

    assert next_after(interval, day_before) == at("2016-10-30 08:00+01:00")
    assert next_after(cron, day_before) == at("2016-10-30 09:00+01:00")


# The latest fire in the past


def latest(cron: str, place: str, until: str, floor: str) -> str:
    return read(latest_until(CronSchedule(cron, place), at(until), at(floor)), place)


def test_airflow_70089_the_fire_before_a_shifted_one_is_the_day_before():
    assert latest("0 2 * * *", NEW_YORK, "2024-03-10 03:30-04:00", "2024-03-01 02:00-05:00") == "2024-03-10 03:00-04:00"
    assert latest("0 2 * * *", NEW_YORK, "2024-03-10 02:59:59-04:00", "2024-03-01 02:00-05:00") == (
        "2024-03-09 02:00-05:00"
    )
    assert latest("0 1 * * *", NEW_YORK, "2024-11-03 01:30-04:00", "2024-11-01 01:00-04:00") == "2024-11-03 01:00-04:00"


def test_croniter_116_the_fire_before_the_change_kept_its_hour():
    weekdays = "0 8 * * 1,2,3,4,5"

    assert latest(weekdays, NEW_YORK, "2018-11-04 05:00-05:00", "2018-10-01 08:00-04:00") == "2018-11-02 08:00-04:00"


def test_croniter_258_looking_back_agrees_with_looking_ahead():
    lord_howe = "Australia/Lord_Howe"

    assert fires("0 * * * *", lord_howe, "2019-10-06 01:43+10:30") == ["2019-10-06 03:00+11:00"]
    assert latest("0 * * * *", lord_howe, "2019-10-06 02:59+11:00", "2019-10-01 00:00+10:30") == (
        "2019-10-06 01:00+10:30"
    )


@pytest.mark.parametrize("until", ["2024-03-02 00:00Z", "2024-03-15 00:00Z", "2024-03-28 00:00Z"])
def test_croniter_203_the_29th_before_march_is_in_february(until: str):
    assert latest("0 0 29 * *", "UTC", until, "2023-01-29 00:00Z") == "2024-02-29 00:00+00:00"


def test_croniter_62_the_leap_day_before_a_leap_day_is_four_years_back():
    assert latest("15 22 29 2 *", "UTC", "2024-02-29 00:00Z", "2016-02-29 22:15Z") == "2020-02-29 22:15+00:00"


def test_ccronexpr_32_looking_back_for_a_leap_day_ends_in_a_common_year():
    assert latest("* * * 29 2 *", "UTC", "2021-12-07 12:00Z", "2016-02-29 00:00Z") == "2020-02-29 23:59:59+00:00"


def test_cron_utils_50_the_latest_fire_is_never_in_the_future():
    assert latest("0 11 * * 1", "UTC", "2015-11-02 00:10Z", "2015-09-07 11:00Z") == "2015-10-26 11:00+00:00"


# The machine's own zone


@pytest.fixture
def live_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Moves this process to a place, until the test is over."""

    def move(place: str) -> None:
        monkeypatch.setenv("TZ", place)
        time.tzset()

    yield move
    monkeypatch.undo()
    time.tzset()


def test_croner_284_the_change_of_the_machine_s_zone_is_none_in_utc(live_in: Callable[[str], None]):
    live_in("Australia/Sydney")

    assert fires("0 0 * * * *", "UTC", "2025-10-05 02:00Z") == ["2025-10-05 03:00+00:00"]


@pytest.mark.parametrize("cron", ["0 1 * * *", "1 1 * * *", "30 1 * * *", "59 1 * * *"])
def test_cronie_124_a_job_in_utc_runs_while_the_machine_s_clock_goes_back(cron: str, live_in: Callable[[str], None]):
    live_in("Europe/London")
    minute = int(cron.split(maxsplit=1)[0])

    assert next_after(CronSchedule(cron), at("2022-10-29 23:50Z")) == datetime(2022, 10, 30, 1, minute, tzinfo=UTC)


def test_quartznet_3135_an_instant_has_one_meaning_wherever_the_machine_is(live_in: Callable[[str], None]):
    live_in("Europe/Moscow")

    assert fires("0 0 0 1 * ?", NEW_YORK, "2026-07-15 00:00Z") == ["2026-08-01 00:00-04:00"]
    assert next_after(CronSchedule("0 0 0 1 * ?", NEW_YORK), at("2026-07-15 00:00Z")) == at("2026-08-01 04:00Z")

"""Days on the clock of a zone."""

import itertools
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from horai.features.overview.days import days_until

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)


def test_the_last_day_is_that_of_now_by_the_clock_of_the_zone():
    late = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)

    assert [day.date for day in days_until(late, ZoneInfo("UTC"), 2)] == [date(2026, 2, 28), date(2026, 3, 1)]
    assert days_until(late, ZoneInfo("Asia/Shanghai"), 1)[0].date == date(2026, 3, 2)


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC", 24), ("Europe/Berlin", 23), ("Asia/Kolkata", 24)],
)
def test_a_day_is_as_long_as_its_clock_makes_it(zone: str, hours: int):
    (day,) = days_until(NOON, ZoneInfo(zone), 1)

    assert day.until - day.since == timedelta(hours=hours)
    assert day.since <= NOON < day.until


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Santiago", "Pacific/Apia", "Africa/Cairo"])
def test_days_follow_each_other_without_a_gap_also_where_clocks_jump_at_midnight(zone: str):
    days = days_until(NOON, ZoneInfo(zone), 400)

    assert all(before.until == after.since for before, after in itertools.pairwise(days))
    assert all(timedelta(hours=22) < day.until - day.since < timedelta(hours=26) for day in days)

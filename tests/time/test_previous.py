"""The last fire before an instant, compared with the fires that the schedule itself lists."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.time.previous import previous_before
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, next_after

START = datetime(2026, 3, 1, tzinfo=UTC)
SCHEDULES: list[Schedule] = [
    CronSchedule("0 9 * * *", "Asia/Shanghai"),
    CronSchedule("30 2 * * *", "Europe/Berlin"),
    CronSchedule("0 9 * * 1-5", "America/New_York", excluded=("2026-03-06", "2026-03-09")),
    CronSchedule("*/7 8-10 * * *"),
    CronSchedule("* * 9 * * ?"),
    CronSchedule("0 0 1 * *"),
    EverySchedule(timedelta(minutes=90), START),
    EverySchedule(timedelta(hours=1), START, "UTC", ("2026-03-04",)),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@given(seconds=st.integers(0, 45 * 86_400))
def test_the_previous_fire_is_the_last_that_the_schedule_lists_before(schedule: Schedule, seconds: int) -> None:
    instant = START + timedelta(days=31, seconds=seconds)
    found = previous_before(schedule, instant)

    assert found is not None
    assert found < instant
    assert next_after(schedule, found - timedelta(microseconds=1)) == found, "it is a fire"
    following = next_after(schedule, found)
    assert following is not None
    assert following >= instant, "no fire lies between"


def test_the_days_of_a_clock_change_have_intervals_of_23_and_25_hours() -> None:
    nightly = CronSchedule("0 4 * * *", "Europe/Berlin")
    spring, autumn = datetime(2026, 3, 29, 2, tzinfo=UTC), datetime(2026, 10, 25, 3, tzinfo=UTC)

    assert spring - (previous_before(nightly, spring) or spring) == timedelta(hours=23)
    assert autumn - (previous_before(nightly, autumn) or autumn) == timedelta(hours=25)


def test_a_schedule_without_an_earlier_fire_has_no_previous_one() -> None:
    assert previous_before(CronSchedule("0 0 29 2 *"), datetime(1, 1, 2, tzinfo=UTC)) is None

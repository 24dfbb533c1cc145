"""Slots in bulk are those that come one by one."""

from datetime import UTC, datetime, timedelta
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.time.cron import DstPolicy
from horai.time.fires_between import are_more_than, slots_from
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, fires_between

MOMENT = timedelta(microseconds=1)
EXPRESSIONS = (
    *("*/7 * * * *", "30 2 * * *", "0 0 * * *", "15 0,1,2,3,23 * * 1-5", "59 23 29 2 *", "0 */6 1,15 * *"),
    *("30 15 2 ? * MON#1", "0 0 12 L * ?", "10 30 1 * * ? 2026", "0 30 2 LW * ?"),
)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca")


def one_by_one(schedule: Schedule, first: datetime, until: datetime) -> list[datetime]:
    return [*fires_between(schedule, first - MOMENT, until - MOMENT, 10_000)]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(ZONES),
    st.builds(DstPolicy, st.sampled_from(("shift", "skip")), st.sampled_from(("first", "last", "both"))),
    st.sampled_from(((), ("03-29",), ("2026-03-20/2026-04-02", "12-31", "01-01"))),
    st.integers(0, 60 * 24 * 365 * 20),
    st.integers(0, 60 * 24 * 25),
)
def test_C21_they_are_the_same_slots_over_every_clock_change(
    expression: str, zone: str, dst: DstPolicy, excluded: tuple[str, ...], begin: int, length: int
):
    schedule = CronSchedule(expression, zone, dst, None, excluded)
    first = datetime(2010, 1, 1, tzinfo=UTC) + timedelta(minutes=begin)
    until = first + timedelta(minutes=length)

    assert [*slots_from(schedule, first, until)] == one_by_one(schedule, first, until)


@pytest.mark.parametrize("zone", ZONES)
def test_C21_a_year_of_hours_is_the_same_in_every_zone(zone: str):
    schedule = CronSchedule("30 1-3 * * *", zone)
    first, until = datetime(2025, 12, 20, tzinfo=UTC), datetime(2027, 1, 10, tzinfo=UTC)

    assert [*slots_from(schedule, first, until)] == one_by_one(schedule, first, until)


def test_the_ends_are_exact_within_a_calm_day():
    schedule = CronSchedule("* * * * *")
    noon = datetime(2026, 6, 15, 12, tzinfo=UTC)

    found = [*slots_from(schedule, noon, noon + timedelta(minutes=2))]

    assert found == [noon, noon + timedelta(minutes=1)]
    assert [*slots_from(EverySchedule(timedelta(minutes=1)), noon + MOMENT, noon + timedelta(minutes=1))] == []


def test_a_cron_that_has_ended_has_no_slots():
    assert [
        *slots_from(
            CronSchedule("0 0 1 * * ? 2020"), datetime(2026, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
        )
    ] == []


@pytest.mark.parametrize("expression", ["* * * * *", "*/7 3-5 * * 1,3", "0 0 29 2 *", "30 1-3 * * *"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
def test_a_count_of_whole_days_never_exceeds_the_slots_and_misses_few(expression: str, zone: str) -> None:
    schedule = CronSchedule(expression, zone)
    first = datetime(2026, 3, 1, 10, 17, tzinfo=UTC)
    until = first + timedelta(days=400, hours=3)
    exact = sum(1 for _ in slots_from(schedule, first, until))

    assert not are_more_than(exact, schedule, first, until)
    assert are_more_than(exact * 9 // 10, schedule, first, until) or exact < 30


def test_a_range_of_far_too_many_slots_is_told_in_100_ms() -> None:
    began = process_time()
    assert are_more_than(
        1_000_000,
        CronSchedule("* * * * *", "Europe/Berlin"),
        datetime(2000, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert process_time() - began < 0.1

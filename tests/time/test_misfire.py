import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.time.misfire import (
    COUNT_LIMIT,
    DEFAULT,
    MOST_CATCHUP,
    CatchUpPlan,
    MisfireRule,
    Policy,
    Stretch,
    catch_up,
    latest_until,
)
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, fires_between, next_after

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
HOURLY, EVERY_SECOND = CronSchedule("0 * * * *"), EverySchedule(timedelta(seconds=1))
SKIP, ALL = MisfireRule(Policy.skip), MisfireRule(Policy.all)

SCHEDULES: list[Schedule] = [
    CronSchedule("* * * * *"),
    CronSchedule("*/7 * * * *"),
    HOURLY,
    CronSchedule("30 2 * * *", "Europe/Berlin"),
    CronSchedule("0 9 * * 1"),
    CronSchedule("0 0 1 * *"),
    CronSchedule("0 12 29 2 *"),
    CronSchedule("*/20 * * * * *"),
    CronSchedule("* 0 3 * * ?", "Europe/Berlin"),
    CronSchedule("*/5 * * 3 *", excluded=("03-10/03-20",)),
    CronSchedule("0 0 0 1 1 ? 2024-2025"),
    EVERY_SECOND,
    EverySchedule(timedelta(seconds=1), excluded=("2025-02-01/2025-02-20", "12-25"), timezone="Asia/Tokyo"),
    EverySchedule(13 * MINUTE, datetime(2026, 1, 1, 0, 0, 7, 250_001, tzinfo=UTC)),
    EverySchedule(45 * DAY),
]

afters = st.one_of(st.just(DEFAULT.after), st.timedeltas(timedelta(seconds=1), DAY))
windows = st.one_of(st.none(), st.timedeltas(timedelta(0), 2 * HOUR), st.timedeltas(timedelta(0), 200 * DAY))
counts = st.one_of(st.none(), st.integers(1, 30), st.integers(1, 500))
misfires = st.one_of(
    st.builds(MisfireRule, st.just(Policy.skip), after=afters),
    st.builds(MisfireRule, st.just(Policy.once), window=windows, after=afters),
    st.builds(MisfireRule, st.just(Policy.all), counts, windows, afters),
)


def stretch(slots: Sequence[datetime], *, counted: bool) -> Stretch | None:
    return Stretch(slots[0], slots[-1], len(slots) if counted else None) if slots else None


def by_hand(schedule: Schedule, misfire: MisfireRule, slots: Sequence[datetime], now: datetime) -> CatchUpPlan:
    """Every late slot of `slots`, one by one; there are more of them than are late."""
    late = [slot for slot in slots if slot < now - misfire.after]
    if not late:
        return CatchUpPlan(slots[0])
    made = [slot for slot in late if misfire.window is None or slot >= now - misfire.window]
    match misfire.policy:
        case Policy.skip:
            made = []
        case Policy.once:
            made = made[-1:]
        case Policy.all:
            made = made[-(misfire.max_catchup or len(late)) :]
    left_out = late[: len(late) - len(made)]
    return CatchUpPlan(next_after(schedule, late[-1]), stretch(made, counted=False), stretch(left_out, counted=True))


@settings(max_examples=examples(400), deadline=None)
@given(
    schedule=st.sampled_from(SCHEDULES),
    misfire=misfires,
    base=st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    count=st.integers(0, 900),
    extra=st.one_of(st.just(timedelta(0)), st.timedeltas(timedelta(0), timedelta(seconds=200))),
)
def test_catching_up_equals_walking_over_every_late_slot(
    schedule: Schedule, misfire: MisfireRule, base: datetime, count: int, extra: timedelta
):
    cursor = next_after(schedule, base) or datetime(2024, 1, 1, tzinfo=UTC)
    slots = [cursor, *fires_between(schedule, cursor, cursor + 900 * DAY, count)]
    now = min(slots[-1] + misfire.after + extra, (next_after(schedule, slots[-1]) or slots[-1] + DAY) + misfire.after)

    assert catch_up(schedule, misfire, cursor, now) == by_hand(schedule, misfire, slots, now)


@settings(max_examples=examples(200), deadline=None)
@given(
    schedule=st.sampled_from(SCHEDULES),
    base=st.datetimes(datetime(2024, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    count=st.integers(0, 500),
    extra=st.timedeltas(timedelta(0), 100 * DAY),
)
def test_the_latest_slot_is_the_last_one_that_a_walk_meets(
    schedule: Schedule, base: datetime, count: int, extra: timedelta
):
    floor = next_after(schedule, base) or datetime(2024, 1, 1, tzinfo=UTC)
    last = [floor, *fires_between(schedule, floor, floor + 900 * DAY, count)][-1]
    until = min(
        last + extra, (next_after(schedule, last) or datetime.max.replace(tzinfo=UTC)) - timedelta(microseconds=1)
    )

    assert latest_until(schedule, until, floor) == last


# What is late


@pytest.mark.parametrize("misfire", [SKIP, DEFAULT, ALL, MisfireRule(Policy.all, 1, MINUTE)])
def test_a_slot_that_is_exactly_as_late_as_allowed_is_made(misfire: MisfireRule):
    assert catch_up(HOURLY, misfire, NOON, NOON + MINUTE) == CatchUpPlan(NOON)
    assert catch_up(HOURLY, misfire, NOON, NOON + MINUTE + timedelta(microseconds=1)) != CatchUpPlan(NOON)


def test_a_job_says_itself_how_late_is_late():
    patient = MisfireRule(Policy.skip, after=HOUR)

    assert catch_up(HOURLY, patient, NOON, NOON + HOUR) == CatchUpPlan(NOON)
    assert catch_up(HOURLY, patient, NOON, NOON + HOUR + MINUTE) == CatchUpPlan(
        NOON + HOUR, None, Stretch(NOON, NOON, 1)
    )


def test_a_slot_to_come_is_waited_for():
    assert catch_up(HOURLY, DEFAULT, NOON, NOON - DAY) == CatchUpPlan(NOON)


# What is made of it


def test_one_late_slot_is_made_and_nothing_skipped():
    assert catch_up(HOURLY, DEFAULT, NOON, NOON + 59 * MINUTE) == CatchUpPlan(NOON + HOUR, Stretch(NOON, NOON))


def test_of_two_late_slots_the_first_is_skipped():
    late = catch_up(HOURLY, DEFAULT, NOON, NOON + 62 * MINUTE)

    assert late == CatchUpPlan(NOON + 2 * HOUR, Stretch(NOON + HOUR, NOON + HOUR), Stretch(NOON, NOON, 1))


def test_a_slot_that_is_not_late_yet_follows_the_late_ones():
    assert catch_up(HOURLY, SKIP, NOON, NOON + HOUR + MINUTE) == CatchUpPlan(NOON + HOUR, None, Stretch(NOON, NOON, 1))


@pytest.mark.parametrize(
    ("misfire", "made", "left_out"),
    [
        (SKIP, 0, 6),
        (DEFAULT, 1, 5),
        (ALL, 6, 0),
        (MisfireRule(Policy.all, 2), 2, 4),
        (MisfireRule(Policy.all, 6), 6, 0),
        (MisfireRule(Policy.all, 7), 6, 0),
        (MisfireRule(Policy.all, window=3 * HOUR), 3, 3),
        (MisfireRule(Policy.all, window=2 * HOUR + 30 * MINUTE), 3, 3),
        (MisfireRule(Policy.all, 2, 3 * HOUR), 2, 4),
        (MisfireRule(Policy.all, 4, 3 * HOUR), 3, 3),
        (MisfireRule(Policy.all, window=29 * MINUTE), 0, 6),
        (MisfireRule(Policy.once, window=30 * MINUTE), 1, 5),
        (MisfireRule(Policy.once, window=29 * MINUTE), 0, 6),
    ],
)
def test_six_hours_of_downtime_come_to_what_the_policy_says(misfire: MisfireRule, made: int, left_out: int):
    late = catch_up(HOURLY, misfire, NOON, NOON + 5 * HOUR + 30 * MINUTE)

    slots = [NOON + step * HOUR for step in range(6)]
    assert late == CatchUpPlan(
        NOON + 6 * HOUR, stretch(slots[left_out:], counted=False), stretch(slots[:left_out], counted=True)
    )
    assert made == 6 - left_out


def test_a_slot_exactly_a_window_back_is_made():
    window = MisfireRule(Policy.all, window=2 * HOUR)

    assert catch_up(HOURLY, window, NOON, NOON + 3 * HOUR).made == Stretch(NOON + HOUR, NOON + HOUR + HOUR)


def test_a_schedule_that_never_fires_again_has_its_late_slots_and_no_next_one():
    twice = CronSchedule("0 0 0 1 1 ? 2024-2025")
    first, last = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)

    assert catch_up(twice, ALL, first, NOON) == CatchUpPlan(None, Stretch(first, last))
    assert catch_up(twice, DEFAULT, first, NOON) == CatchUpPlan(None, Stretch(last, last), Stretch(first, first, 1))


# How much of it


def test_the_skipped_slots_of_an_every_second_schedule_are_one_range_without_a_count():
    now = NOON + 300 * DAY

    late = catch_up(EVERY_SECOND, DEFAULT, NOON, now)

    last = now - MINUTE - timedelta(seconds=1)
    assert late == CatchUpPlan(now - MINUTE, Stretch(last, last), Stretch(NOON, last - timedelta(seconds=1), None))


@pytest.mark.parametrize(("skipped", "counted"), [(COUNT_LIMIT, COUNT_LIMIT), (COUNT_LIMIT + 1, None)])
def test_the_count_is_given_up_to_its_limit(skipped: int, counted: int | None):
    late = catch_up(EVERY_SECOND, SKIP, NOON, NOON + MINUTE + timedelta(seconds=skipped))

    assert late.skipped == Stretch(NOON, NOON + timedelta(seconds=skipped - 1), counted)


def test_the_latest_slot_of_a_rare_schedule_is_its_known_one():
    yearly = CronSchedule("0 0 1 1 *")
    floor = datetime(2026, 1, 1, tzinfo=UTC)

    assert latest_until(yearly, datetime(2026, 12, 31, tzinfo=UTC), floor) == floor


@pytest.mark.parametrize(
    "misfire",
    [SKIP, DEFAULT, ALL, MisfireRule(Policy.all, MOST_CATCHUP), MisfireRule(Policy.all, MOST_CATCHUP, 40 * DAY)],
)
@pytest.mark.parametrize(
    "schedule",
    [
        EVERY_SECOND,
        EverySchedule(
            timedelta(seconds=1), timezone="Europe/Berlin", excluded=("2026-10-20/2026-11-30", "02-29/08-01")
        ),
        CronSchedule("* * * * * ?", "Europe/Berlin"),
        CronSchedule("* * * * 1 ?"),
        CronSchedule("* * * 29 2 ?", "America/New_York"),
        CronSchedule("* 0 0 * * ?", "Europe/Berlin"),
        CronSchedule("0-9 0 */2 * * ?", "Europe/Berlin"),
    ],
)
def test_ten_years_behind_cost_no_walk_over_ten_years(schedule: Schedule, misfire: MisfireRule):
    now = datetime(2026, 11, 15, 12, tzinfo=UTC)
    cursor = next_after(schedule, now - 3_650 * DAY)
    assert cursor is not None

    began = time.perf_counter()
    late = catch_up(schedule, misfire, cursor, now)

    assert time.perf_counter() - began < 5, "twenty times what it takes: only a walk is found"
    if misfire.max_catchup and late.made and not misfire.window:
        assert sum(1 for _ in fires_between(schedule, late.made.first, late.made.last, 20_000)) == MOST_CATCHUP - 1

from datetime import UTC, datetime, timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from horai.core.misfire import COUNT_LIMIT, CatchUp, Skipped, catch_up, latest_until
from horai.core.schedule import CronSchedule, EverySchedule, Schedule, fires_between, next_after

AFTER = timedelta(seconds=60)
NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
HOURLY = CronSchedule("0 * * * *")

SCHEDULES: list[Schedule] = [
    CronSchedule("* * * * *"),
    CronSchedule("*/7 * * * *"),
    HOURLY,
    CronSchedule("30 2 * * *", "Europe/Berlin"),
    CronSchedule("0 9 * * 1"),
    CronSchedule("0 0 1 * *"),
    CronSchedule("0 12 29 2 *"),
    CronSchedule("*/20 * * * * *"),
    EverySchedule(timedelta(seconds=1)),
    EverySchedule(timedelta(minutes=13), datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC)),
    EverySchedule(timedelta(days=45)),
]


def by_hand(schedule: Schedule, cursor: datetime, now: datetime) -> CatchUp:
    """Every late slot, one by one."""
    late = [cursor, *fires_between(schedule, cursor, now - AFTER, 5_000)] if cursor < now - AFTER else [cursor]
    if len(late) == 1:
        return CatchUp(cursor)
    return CatchUp(late[-1], Skipped(late[0], late[-2], len(late) - 1))


@settings(max_examples=300, deadline=None)
@given(
    schedule=st.sampled_from(SCHEDULES),
    base=st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    slots=st.integers(0, 400),
    extra=st.timedeltas(timedelta(0), timedelta(seconds=200)),
)
def test_catching_up_once_equals_walking_over_every_late_slot(
    schedule: Schedule, base: datetime, slots: int, extra: timedelta
):
    cursor = next_after(schedule, base)
    assert cursor is not None
    now = [cursor, *fires_between(schedule, cursor, cursor + timedelta(days=300), slots)][-1] + extra
    assume(now - cursor <= timedelta(days=330))

    assert catch_up(schedule, cursor, now, AFTER) == by_hand(schedule, cursor, now)


def test_a_slot_that_is_not_late_is_made():
    assert catch_up(HOURLY, NOON, NOON + timedelta(seconds=60), AFTER) == CatchUp(NOON)


def test_one_late_slot_is_made_and_nothing_skipped():
    assert catch_up(HOURLY, NOON, NOON + timedelta(minutes=59), AFTER) == CatchUp(NOON)


def test_of_two_late_slots_the_first_is_skipped():
    late = catch_up(HOURLY, NOON, NOON + timedelta(minutes=62), AFTER)

    assert late == CatchUp(NOON + timedelta(hours=1), Skipped(NOON, NOON, 1))


def test_a_year_of_seconds_is_one_range_that_nobody_counted():
    every_second = EverySchedule(timedelta(seconds=1))
    now = NOON + timedelta(days=300)

    late = catch_up(every_second, NOON, now, AFTER)

    assert late == CatchUp(now - AFTER, Skipped(NOON, now - AFTER - timedelta(seconds=1), None))


def test_the_count_is_given_up_to_its_limit():
    every_second = EverySchedule(timedelta(seconds=1))

    for skipped, counted in ((COUNT_LIMIT, COUNT_LIMIT), (COUNT_LIMIT + 1, None)):
        late = catch_up(every_second, NOON, NOON + AFTER + timedelta(seconds=skipped), AFTER)
        assert late.skipped is not None
        assert late.skipped.slots == counted


def test_the_latest_slot_of_a_rare_schedule_is_its_known_one():
    yearly = CronSchedule("0 0 1 1 *")
    floor = datetime(2026, 1, 1, tzinfo=UTC)

    assert latest_until(yearly, datetime(2026, 12, 31, tzinfo=UTC), floor) == floor

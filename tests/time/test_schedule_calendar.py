"""Excluded dates, by the calendar of the zone: also where midnight is jumped over, comes twice, or a day is missing."""

import time
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import IS_LONG

from horai.time.cron import NO_NEXT_FIRE, DstPolicy
from horai.time.exclusions import is_excluded
from horai.time.schedule import (
    EPOCH,
    CronSchedule,
    EverySchedule,
    Schedule,
    check,
    fires_between,
    first_open,
    next_after,
    next_from,
    wall_of,
)
from horai.time.zones import zone

MOMENT, HOUR, DAY = timedelta(microseconds=1), timedelta(hours=1), timedelta(days=1)
HALF_HOURLY = timedelta(minutes=30)
MANY = 1_000 if IS_LONG else 100

CHANGES = {
    "America/Sao_Paulo": ["2018-11-04", "2018-02-18"],  # midnight is lost; 23:00 of the day before comes again
    "America/Havana": ["2025-03-09", "2025-11-02"],  # midnight is lost; it comes twice
    "Africa/Cairo": ["2026-04-24", "2026-10-30"],
    "Asia/Beirut": ["2026-03-29", "2026-10-25"],
    "America/St_Johns": ["2010-03-14", "2010-11-07"],  # at 00:01: the day begins, ends, and begins again
    "Atlantic/Azores": ["2026-03-29", "2026-10-25"],
    "Pacific/Apia": ["2011-12-30", "2011-12-31"],  # there was no 30th
    "America/Nuuk": ["2026-03-29", "2026-10-25"],  # the last hour of the day before is lost; it comes twice
    "Australia/Lord_Howe": ["2026-04-05", "2026-10-04"],
    "UTC": ["2026-12-25"],
}


def local(text: str, place: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone(place)).astimezone(UTC)


def walls(schedule: Schedule, after: datetime, count: int) -> list[str]:
    fires = islice(fires_between(schedule, after, after + 900 * DAY, count), count)
    return [fire.astimezone(zone(schedule.timezone)).isoformat(" ", "minutes") for fire in fires]


def without_calendar(schedule: Schedule) -> Schedule:
    match schedule:
        case CronSchedule(expression, timezone, dst, dialect):
            return CronSchedule(expression, timezone, dst, dialect)
        case EverySchedule(interval, anchor, timezone):
            return EverySchedule(interval, anchor, timezone)


@st.composite
def schedules_at_a_change(draw: st.DrawFn) -> tuple[Schedule, datetime]:
    """A schedule that leaves out some days around a change of its clock, and an instant before them."""
    place = draw(st.sampled_from(sorted(CHANGES)))
    change = datetime.fromisoformat(draw(st.sampled_from(CHANGES[place])))
    days = draw(st.lists(st.integers(-3, 3), max_size=5))
    calendar = tuple(sorted({f"{change + day * DAY:{draw(st.sampled_from(['%Y-%m-%d', '%m-%d']))}}" for day in days}))
    after = change.replace(tzinfo=UTC) + draw(st.timedeltas(-5 * DAY, 3 * DAY))
    if draw(st.booleans()):
        minutes = draw(st.sampled_from([10, 30, 60, 7 * 60, 24 * 60]))
        return EverySchedule(timedelta(minutes=minutes), draw(st.sampled_from([after, EPOCH])), place, calendar), after
    cron = draw(
        st.sampled_from(["0 0 * * *", "*/20 * * * *", "30 0,23 * * *", "15 0 * * *", "0 12 * * *", "0 */3 * * *"])
    )
    dst = DstPolicy(draw(st.sampled_from(["shift", "skip"])), draw(st.sampled_from(["first", "last", "both"])))
    return CronSchedule(cron, place, dst, None, calendar), after


@settings(max_examples=MANY)
@given(schedules_at_a_change())
def test_the_fires_are_those_without_a_calendar_whose_date_on_the_clock_is_open(drawn: tuple[Schedule, datetime]):
    schedule, after = drawn
    place, until = zone(schedule.timezone), after + 12 * DAY
    every_fire = fires_between(without_calendar(schedule), after, until, 5_000)

    fires = [*fires_between(schedule, after, until, 5_000)]

    assert fires == [fire for fire in every_fire if not is_excluded(schedule.excluded, fire.astimezone(place).date())]


@settings(max_examples=MANY)
@given(schedules_at_a_change())
def test_the_first_open_instant_is_the_instant_itself_or_the_first_one_after_excluded_dates(
    drawn: tuple[Schedule, datetime],
):
    schedule, instant = drawn
    place = zone(schedule.timezone)

    opens = first_open(schedule, instant)

    assert opens is not None
    assert opens >= instant
    assert not is_excluded(schedule.excluded, opens.astimezone(place).date())
    passed = takewhile(lambda at: at < opens, (instant + step * timedelta(minutes=1) for step in range(20_000)))
    assert all(is_excluded(schedule.excluded, at.astimezone(place).date()) for at in [*passed, opens - MOMENT][:-1])


def test_a_day_that_begins_at_one_is_excluded_from_its_first_instant_to_its_last():
    hourly = EverySchedule(HOUR, timezone="America/Sao_Paulo", excluded=("2018-11-04",))

    assert walls(hourly, local("2018-11-03T22:00", "America/Sao_Paulo"), 3) == [
        "2018-11-03 23:00-03:00",
        "2018-11-05 00:00-02:00",
        "2018-11-05 01:00-02:00",
    ]


def test_after_an_excluded_day_the_first_fire_of_a_day_without_a_midnight_is_not_lost():
    hourly = EverySchedule(HOUR, timezone="America/Sao_Paulo", excluded=("2018-11-03",))
    midnight = CronSchedule("0 0 * * *", "America/Sao_Paulo", excluded=("2018-11-03",))

    assert walls(hourly, local("2018-11-02T23:00", "America/Sao_Paulo"), 1) == ["2018-11-04 01:00-02:00"]
    assert walls(midnight, local("2018-11-02T23:00", "America/Sao_Paulo"), 1) == ["2018-11-04 01:00-02:00"]


def test_an_excluded_day_whose_last_hour_comes_twice_is_excluded_twice():
    hourly = EverySchedule(HOUR, timezone="America/Sao_Paulo", excluded=("2018-02-17",))

    assert walls(hourly, local("2018-02-16T23:00", "America/Sao_Paulo"), 1) == ["2018-02-18 00:00-03:00"]


def test_a_midnight_that_comes_twice_opens_the_day_at_the_first():
    half_hourly = EverySchedule(HALF_HOURLY, timezone="America/Havana", excluded=("2025-11-01",))

    assert walls(half_hourly, local("2025-10-31T23:30", "America/Havana"), 4) == [
        "2025-11-02 00:00-04:00",
        "2025-11-02 00:30-04:00",
        "2025-11-02 00:00-05:00",
        "2025-11-02 00:30-05:00",
    ]


def test_a_day_that_begins_ends_and_begins_again_never_leads_back_in_time():
    """In St. John's clocks went back at 00:01, to 23:01 of the day before."""
    half_hourly = EverySchedule(HALF_HOURLY, timezone="America/St_Johns", excluded=("11-06",))
    before = local("2010-11-05T23:45", "America/St_Johns")

    fires = [*fires_between(half_hourly, before, before + 3 * DAY, 50)]

    assert all(earlier < later for earlier, later in pairwise(fires))
    assert walls(half_hourly, before, 3) == [
        "2010-11-07 00:00-02:30",
        "2010-11-07 00:00-03:30",
        "2010-11-07 00:30-03:30",
    ]


@pytest.mark.parametrize(
    ("excluded", "first"),
    [
        ((), "2011-12-29 12:00-10:00"),
        (("2011-12-29",), "2011-12-31 12:00+14:00"),
        (("2011-12-29/2011-12-30",), "2011-12-31 12:00+14:00"),
        (("2011-12-29", "2011-12-31"), "2012-01-01 12:00+14:00"),
    ],
)
def test_a_date_that_a_zone_has_jumped_over_is_neither_open_nor_in_the_way(excluded: tuple[str, ...], first: str):
    noon = CronSchedule("0 12 * * *", "Pacific/Apia", DstPolicy(gap="skip"), excluded=excluded)

    assert walls(noon, local("2011-12-29T00:00", "Pacific/Apia"), 1) == [first]


def test_an_open_date_that_a_zone_has_jumped_over_opens_nothing():
    every = EverySchedule(HOUR, timezone="Pacific/Apia", excluded=("2011-12-29", "2011-12-31"))

    opens = first_open(every, local("2011-12-29T08:15", "Pacific/Apia"))

    assert opens == local("2012-01-01T00:00", "Pacific/Apia")


def test_a_fire_shifted_by_a_gap_is_excluded_by_the_date_on_which_it_fires():
    last_hour = CronSchedule("30 23 * * *", "America/Nuuk", excluded=("2026-03-29",))

    assert walls(last_hour, local("2026-03-28T12:00", "America/Nuuk"), 1) == ["2026-03-30 23:30-01:00"]


def test_the_dates_are_those_of_the_zone_and_not_of_utc():
    tokyo = EverySchedule(timedelta(hours=8), timezone="Asia/Tokyo", excluded=("2026-12-25",))

    assert walls(tokyo, local("2026-12-24T18:00", "Asia/Tokyo"), 1) == ["2026-12-26 01:00+09:00"]


def test_a_fixed_rate_keeps_its_beat_over_excluded_dates():
    anchor = datetime(2026, 12, 20, 7, 0, 7, 250_000, tzinfo=UTC)
    schedule = EverySchedule(timedelta(hours=7), anchor, excluded=("12-24/01-02",))

    fire = next_after(schedule, datetime(2026, 12, 24, tzinfo=UTC))

    assert fire is not None
    assert fire.date().isoformat() == "2027-01-03"
    assert (fire - anchor) % timedelta(hours=7) == timedelta(0)


def test_the_next_from_an_instant_is_the_instant_itself_when_it_fires():
    nightly = CronSchedule("30 2 * * *", "Europe/Berlin", excluded=("2026-05-02",))
    fire = local("2026-05-01T02:30", "Europe/Berlin")

    assert next_from(nightly, fire) == next_from(nightly, fire - DAY + MOMENT) == fire
    assert next_from(nightly, fire + MOMENT) == next_after(nightly, fire) == fire + 2 * DAY


def test_the_wall_is_what_the_clock_of_the_zone_shows_in_a_gap_and_an_overlap():
    berlin = CronSchedule("30 2 * * *", "Europe/Berlin")
    first, last = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)

    assert wall_of(berlin, first) == wall_of(berlin, last) == datetime.fromisoformat("2026-10-25T02:30")
    assert wall_of(berlin, datetime(2026, 3, 29, 1, tzinfo=UTC)) == datetime.fromisoformat("2026-03-29T03:00")
    assert wall_of(EverySchedule(HOUR, timezone="Asia/Tokyo"), first).hour == 9


LEAP_YEAR = [datetime.fromisoformat("2000-01-01") + step * DAY for step in range(366)]
ODD_DAYS = tuple(f"{day:%m-%d}" for day in LEAP_YEAR if day.day % 2)


@pytest.mark.parametrize(
    "schedule",
    [
        CronSchedule("0 0 25 12 *", "Europe/Berlin", excluded=("12-25",)),
        CronSchedule("0 0 29 2 *", "America/New_York", excluded=("02-29",)),
        CronSchedule("* * * * * ?", excluded=("01-01/12-31",)),
        CronSchedule("0 0 1-31/2 * *", excluded=ODD_DAYS),
        EverySchedule(timedelta(seconds=1), excluded=("07-01/06-30",)),
        EverySchedule(timedelta(seconds=1), excluded=("2000-01-01/9999-12-31",)),
        EverySchedule(timedelta(days=7), excluded=("2000-01-01/9999-12-31",)),
    ],
)
def test_a_schedule_whose_dates_are_all_excluded_never_fires_and_says_so_soon(schedule: Schedule):
    began = time.process_time()

    with pytest.raises(ValueError, match=NO_NEXT_FIRE):
        check(schedule, datetime(2026, 1, 1, tzinfo=UTC))

    assert time.process_time() - began < 1, "fifty times what the dearest takes alone: only a runaway is found"


def test_a_fire_that_is_open_only_years_ahead_is_found():
    leap_days = CronSchedule("0 9 * * *", "Europe/Berlin", excluded=("03-01/02-28",))

    assert walls(leap_days, local("2027-05-01T00:00", "Europe/Berlin"), 1) == ["2028-02-29 09:00+01:00"]
    assert next_after(leap_days, local("2024-03-01T00:00", "Europe/Berlin")) == local(
        "2028-02-29T09:00", "Europe/Berlin"
    )


NONE_OR_LAST = (None, datetime(9999, 12, 31, 23, tzinfo=UTC))


@pytest.mark.parametrize("place", ["Asia/Tokyo", "America/New_York"])
def test_with_a_calendar_no_schedule_fires_after_the_end_of_time(place: str):
    schedule = EverySchedule(HOUR, timezone=place, excluded=("12-25",))

    assert next_after(schedule, datetime(9999, 12, 31, 23, 30, tzinfo=UTC)) is None
    assert next_after(schedule, datetime(9999, 12, 31, 22, 30, tzinfo=UTC)) in NONE_OR_LAST


def test_an_open_evening_that_comes_again_after_an_excluded_midnight_is_not_lost():
    twice = CronSchedule("*/20 * * * *", "America/St_Johns", excluded=("2010-11-07",))

    fires = [
        *fires_between(twice, datetime(2010, 11, 7, 2, 25, tzinfo=UTC), datetime(2010, 11, 8, 3, 30, tzinfo=UTC), 5)
    ]

    assert fires == [
        datetime(2010, 11, 7, 2, 50, tzinfo=UTC),
        datetime(2010, 11, 7, 3, 10, tzinfo=UTC),
        datetime(2010, 11, 8, 3, 30, tzinfo=UTC),
    ]

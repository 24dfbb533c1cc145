"""Fires on working days: left out or moved, compared with an oracle that walks minute by minute and day by day."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise

import pytest
from cron_scanner import Expression
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import IS_LONG

from horai.time import work_calendar
from horai.time.calendar_rule import FARTHEST, CalendarNotLoaded, CalendarRule, OnHoliday, landing
from horai.time.cron import DstPolicy
from horai.time.fires_between import are_more_than, slots_from
from horai.time.schedule import (
    CronSchedule,
    EverySchedule,
    fires_between,
    first_open,
    from_spec,
    identity,
    next_after,
    next_from,
    to_spec,
    wall_of,
)
from horai.time.zones import zone

MINUTE, DAY, MOMENT = timedelta(minutes=1), timedelta(days=1), timedelta(microseconds=1)
MANY = 1_000 if IS_LONG else 60
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
CN = {
    "holidays": ["2026-10-01/2026-10-07"],
    "workdays": ["2026-09-27", "2026-10-10"],
}

PLACES = {
    "UTC": date(2026, 10, 1),
    "Asia/Shanghai": date(2026, 10, 4),
    "Europe/Berlin": date(2026, 3, 29),
    "America/Sao_Paulo": date(2018, 11, 4),  # midnight is lost
    "America/Havana": date(2025, 11, 2),  # midnight comes twice
    "America/New_York": date(2026, 11, 1),
    "Pacific/Apia": date(2011, 12, 30),  # there was no 30th
}
CRONS = ["0 9 * * *", "30 0,2,23 * * *", "*/30 * * * *", "0 1,12 * * 6,0", "15 8-20/4 1,2,15,30,31 * *", "0 */7 * * *"]
HOURS: list[dict[str, str]] = [
    {},
    {"default": "09:00-18:00"},
    {"default": "00:00-03:00,12:00-24:00"},
    {"default": "08:30-12:00,13:00-17:30", "fri": "08:30-12:00", "sat": "10:00-11:00"},
]


@st.composite
def rules_at_a_change(draw: st.DrawFn) -> tuple[CronSchedule, date]:
    """A cron with a calendar whose days off surround a change of the clock, and the day of the change."""
    place = draw(st.sampled_from(sorted(PLACES)))
    middle = PLACES[place]
    near = st.lists(st.integers(-6, 6), max_size=5)
    spec = {
        "holidays": [str(middle + day * DAY) for day in draw(near)],
        "workdays": [str(middle + day * DAY) for day in draw(near)],
        "weekend": draw(st.sampled_from([[], ["sat", "sun"], ["fri"], WEEKDAYS])),
        "hours": draw(st.sampled_from(HOURS)),
    }
    rule = CalendarRule(work_calendar.from_spec(spec), draw(st.sampled_from(list(OnHoliday))))
    dst = DstPolicy(draw(st.sampled_from(["shift", "skip"])), draw(st.sampled_from(["first", "last", "both"])))
    return CronSchedule(draw(st.sampled_from(CRONS)), place, dst, None, (), rule), middle


def is_off(spec: dict[str, list[str]], day: date) -> bool:
    """Decide about a day with single dates only."""
    if str(day) in spec["workdays"]:
        return False
    return str(day) in spec["holidays"] or WEEKDAYS[day.weekday()] in spec["weekend"]


@dataclass(frozen=True)
class Clock:
    """The times that the clock of a place shows, minute by minute, with their instants, and its jumps with the times around."""

    instants: dict[datetime, list[datetime]]
    jumps: list[tuple[datetime, datetime, datetime]]


@cache
def _clock(place: str, first: datetime) -> Clock:
    """Look at the clock at each minute of 24 days. Examples share what they see: it depends on nothing else."""
    shown = [(first + n * MINUTE, _wall(first + n * MINUTE, zone(place))) for n in range(24 * 1440)]
    instants: dict[datetime, list[datetime]] = {}
    for instant, wall in shown:
        instants.setdefault(wall, []).append(instant)
    steps = ((instant, before, after) for (_, before), (instant, after) in pairwise(shown))
    return Clock(instants, [step for step in steps if step[2] - step[1] > MINUTE])


@cache
def _named(expression: str, first: datetime) -> list[datetime]:
    """Ask the expression about each minute of 18 days."""
    scanned = Expression(expression)
    every = (first + minute * MINUTE for minute in range(18 * 1440))
    return [wall for wall in every if scanned.names(wall)]


class Oracle:
    """The rule by its letter: each minute of each day, moved day by day and minute by minute."""

    def __init__(self, schedule: CronSchedule, middle: date) -> None:
        assert schedule.calendar is not None
        self.schedule, self.spec = schedule, schedule.calendar.to_spec()
        self.word = schedule.calendar.on_holiday.value
        self.start = datetime.combine(middle - 9 * DAY, datetime.min.time())
        self.expression = Expression(schedule.expression)
        self.ends: dict[datetime, datetime] = {}

    def is_open(self, wall: datetime) -> bool:
        if is_off(self.spec, wall.date()):
            return False
        hours = self.spec["hours"]
        text = hours.get(WEEKDAYS[wall.weekday()], hours.get("default", "00:00-24:00"))
        return any(part.split("-")[0] <= f"{wall:%H:%M}" < part.split("-")[1] for part in text.split(","))

    def moved(self, wall: datetime) -> datetime | None:
        if self.word == "skip":
            return wall if self.is_open(wall) else None
        step = 1 if self.word == "after" else -1
        begin = wall
        while is_off(self.spec, wall.date()):
            wall += step * DAY
            if abs(wall - begin) > 60 * DAY:
                return None
        return self.walked(wall, step * MINUTE)

    def walked(self, wall: datetime, step: timedelta) -> datetime | None:
        """Walk minute by minute to the first open one. A stretch that an earlier walk found closed is not walked again."""
        begin, closed = wall, list[datetime]()
        while abs(wall - begin) <= 60 * DAY and not self.is_open(wall):
            closed.append(wall)
            wall = self.ends.get(wall, wall + step)
        self.ends.update(dict.fromkeys(closed, wall))
        return wall if abs(wall - begin) <= 60 * DAY else None

    def walls(self) -> set[datetime]:
        moved = map(self.moved, _named(self.schedule.expression, self.start))
        return {wall for wall in moved if wall is not None}

    def fires(self) -> list[datetime]:
        """Map the walls to real minutes, by looking at what the clock shows at each of them."""
        place, dst, is_real = self.schedule.timezone, self.schedule.dst, self.expression.is_wildcard
        shown = _clock(place, self.start.replace(tzinfo=UTC) - 3 * DAY)
        overlap, gap = ("both", "skip") if is_real else (dst.overlap, dst.gap)
        fires: set[datetime] = set()
        for wall in self.walls():
            match shown.instants.get(wall, []), overlap:
                case [], _:
                    if gap == "shift":
                        fires |= {instant for instant, before, after in shown.jumps if before < wall < after}
                case [*found], "both":
                    fires |= {*found}
                case [*found], _:
                    fires.add(found[0] if overlap == "first" else found[-1])
        return sorted(fires)


def _wall(instant: datetime, place: object) -> datetime:
    return instant.astimezone(place).replace(tzinfo=None)  # pyright: ignore[reportArgumentType]


@settings(max_examples=MANY, deadline=None)
@given(rules_at_a_change())
def test_each_fire_of_the_oracle_comes_exactly_once_and_in_order(case: tuple[CronSchedule, date]) -> None:
    schedule, middle = case
    # The oracle sees the walls of 18 days: fires of its middle are complete, because no day moves further than a week.
    inner = datetime.combine(middle, datetime.min.time(), UTC)
    since, until = inner - 1 * DAY, inner + 1 * DAY
    expected = [fire for fire in Oracle(schedule, middle).fires() if since < fire <= until]

    found = [*fires_between(schedule, since, until, 10_000)]

    assert found == expected
    assert all(one < other for one, other in pairwise(found))


@settings(max_examples=MANY, deadline=None)
@given(rules_at_a_change(), st.integers(-4 * 1440, 4 * 1440))
def test_the_next_fire_is_the_first_of_all_later_fires_from_any_instant(
    case: tuple[CronSchedule, date], minutes: int
) -> None:
    schedule, middle = case
    at = datetime.combine(middle, datetime.min.time(), UTC) + minutes * MINUTE
    everything = [*fires_between(schedule, at - 3 * DAY, at + 10 * DAY, 10_000)]

    coming = next_after(schedule, at)

    later = [fire for fire in everything if fire > at]
    assert later[:1] == ([coming] if coming is not None and coming <= at + 10 * DAY else [])
    assert [*slots_from(schedule, at, at + 5 * DAY)] == [f for f in everything if at <= f < at + 5 * DAY]
    for fire in everything[:20]:
        assert next_from(schedule, fire) == fire


@settings(max_examples=MANY, deadline=None)
@given(rules_at_a_change())
def test_every_fire_of_a_moved_cron_is_open_or_replaces_a_time_that_the_clock_lost(
    case: tuple[CronSchedule, date],
) -> None:
    schedule, middle = case
    assert schedule.calendar is not None
    since = datetime.combine(middle, datetime.min.time(), UTC) + 3 * DAY  # no clock changes within these days
    for fire in fires_between(schedule, since, since + 6 * DAY, 1_000):
        assert work_calendar.is_open(schedule.calendar.calendar, fire, schedule.timezone)
        assert landing(schedule.calendar, _seconds(wall_of(schedule, fire))) == _seconds(wall_of(schedule, fire))


@settings(max_examples=MANY, deadline=None)
@given(rules_at_a_change())
def test_a_schedule_with_a_calendar_is_restored_from_its_spec(case: tuple[CronSchedule, date]) -> None:
    schedule, _ = case
    restored = from_spec(to_spec(schedule))

    assert restored == schedule
    assert identity(restored) == identity(schedule)


def _seconds(wall: datetime) -> int:
    return (wall - datetime(1970, 1, 1)) // timedelta(seconds=1)  # noqa: DTZ001 - a wall time


def shown(schedule: CronSchedule | EverySchedule, first: str, count: int) -> list[str]:
    after = datetime.fromisoformat(first).replace(tzinfo=zone(schedule.timezone)).astimezone(UTC)
    fires: Iterator[datetime] = fires_between(schedule, after - MOMENT, after + 900 * DAY, count)
    return [f"{wall_of(schedule, fire):%m-%d %H:%M}" for fire in fires]


def cn(word: str, cron: str = "0 9 * * *", **more: object) -> CronSchedule:
    rule = CalendarRule(work_calendar.from_spec({**CN, **more}), OnHoliday(word), "cn-workdays")
    return CronSchedule(cron, "Asia/Shanghai", calendar=rule)


def test_skip_leaves_out_holidays_and_weekends_and_fires_on_make_up_days() -> None:
    assert shown(cn("skip"), "2026-09-26", 6) == [
        *("09-27 09:00", "09-28 09:00", "09-29 09:00", "09-30 09:00", "10-08 09:00", "10-09 09:00"),
    ]
    assert shown(cn("skip"), "2026-10-09", 3) == ["10-09 09:00", "10-10 09:00", "10-12 09:00"]


def test_after_moves_the_first_of_the_month_to_the_end_of_the_holidays() -> None:
    assert shown(cn("after", "0 9 1 * *"), "2026-09-15", 3) == ["10-08 09:00", "11-02 09:00", "12-01 09:00"]


def test_before_moves_the_first_of_the_month_to_the_day_before_the_holidays() -> None:
    assert shown(cn("before", "0 9 1 * *"), "2026-09-15", 3) == ["09-30 09:00", "10-30 09:00", "12-01 09:00"]


def test_times_outside_business_hours_go_to_the_next_opening_or_the_last_minute_before_closing() -> None:
    hours = {"hours": {"default": "09:00-12:00,13:00-18:00"}}

    assert shown(cn("after", "0 8,12,20 8,9 * *", **hours), "2026-10-08", 5) == [
        *("10-08 09:00", "10-08 13:00", "10-09 09:00", "10-09 13:00", "10-10 09:00"),
    ]
    assert shown(cn("before", "0 8,12,20 8,9 * *", **hours), "2026-09-30", 5) == [
        *("09-30 17:59", "10-08 11:59", "10-08 17:59", "10-09 11:59", "10-09 17:59"),
    ]
    assert shown(cn("skip", "0 8,10,12,17 8,9 * *", **hours), "2026-10-08", 2) == ["10-08 10:00", "10-08 17:00"]


def test_a_day_moves_no_further_than_the_limit() -> None:
    def once(day: str, word: OnHoliday) -> list[str]:
        only = {"weekend": WEEKDAYS, "holidays": [], "workdays": ["2026-10-01"]}
        year, month, number = day.split("-")
        cron = f"0 0 9 {int(number)} {int(month)} ? {year}"
        return shown(CronSchedule(cron, calendar=CalendarRule(work_calendar.from_spec(only), word)), "2025-09-01", 5)

    assert FARTHEST == 366
    assert once("2025-09-30", OnHoliday.after) == ["10-01 09:00"]
    assert once("2025-09-29", OnHoliday.after) == []
    assert once("2027-10-02", OnHoliday.before) == ["10-01 09:00"]
    assert once("2027-10-03", OnHoliday.before) == []


def test_a_cron_that_never_meets_business_hours_has_no_next_fire() -> None:
    assert (
        next_after(cn("skip", "0 20 * * *", hours={"default": "09:00-18:00"}), datetime(2026, 1, 1, tzinfo=UTC)) is None
    )


def test_an_interval_leaves_out_closed_hours_and_refuses_to_move() -> None:
    rule = CalendarRule(work_calendar.from_spec({**CN, "hours": {"default": "09:00-18:00"}}))
    every = EverySchedule(timedelta(hours=3), timezone="Asia/Shanghai", calendar=rule)

    assert shown(every, "2026-09-30", 6) == [
        *("09-30 11:00", "09-30 14:00", "09-30 17:00", "10-08 11:00", "10-08 14:00", "10-08 17:00"),
    ]
    assert f"{first_open(every, datetime(2026, 10, 1, tzinfo=UTC)):%m-%d %H:%M}" == "10-08 01:00"
    with pytest.raises(ValueError, match="use skip"):
        EverySchedule(timedelta(hours=3), calendar=CalendarRule(rule.days, OnHoliday.after))


def test_a_calendar_that_was_not_read_computes_no_fire() -> None:
    with pytest.raises(CalendarNotLoaded, match="cn-workdays"):
        next_after(CronSchedule("0 9 * * *", calendar=CalendarRule(None, name="cn-workdays")), datetime.now(UTC))


def test_names_of_calendars_and_holidays_do_not_change_the_identity_of_a_schedule() -> None:
    one, named = cn("after"), work_calendar.from_spec(CN, {"2026-10-01/2026-10-07": "National Day"})
    other = CronSchedule("0 9 * * *", "Asia/Shanghai", calendar=CalendarRule(named, OnHoliday.after, "other"))

    assert one == other
    assert identity(one) == identity(other)
    assert identity(one) != identity(cn("before"))


def test_a_long_range_is_counted_by_expanding_it() -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    assert not are_more_than(10, cn("skip"), since, since + 365 * DAY)
    assert sum(1 for _ in slots_from(cn("skip"), since, since + 365 * DAY)) == 258

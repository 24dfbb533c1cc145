"""Coming fires are those that the trigger makes, and what is said of them is true."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.core.timing import Timing, read_timing
from horai.core.upcoming import MOST_FIRES, Fire, upcoming_fires
from horai.core.validation import Validation
from horai.time.cron import parse, why_not
from horai.time.schedule import fires_between
from horai.time.zones import zone

BERLIN = "Europe/Berlin"
SPRING = "2026-03-27T12:00:00+00:00"
AUTUMN = "2026-10-23T12:00:00+00:00"
JUMP = "the clock jumps from 02:00 to 03:00"


def timing(**fields: Any) -> Timing:
    faults = Validation()
    read = read_timing(fields, faults)
    faults.raise_if_any()
    return read


def fires(after: str, count: int, **fields: Any) -> list[Fire]:
    return upcoming_fires(timing(**fields), datetime.fromisoformat(after), count)


def shown(after: str, count: int, **fields: Any) -> list[tuple[str, str | None]]:
    return [(fire.local.isoformat(), fire.note) for fire in fires(after, count, **fields)]


def test_a_fire_is_told_in_utc_and_as_its_own_clock_shows_it():
    (fire,) = fires(SPRING, 1, cron="0 9 * * *", timezone="Asia/Shanghai")

    assert fire.fire_time == datetime(2026, 3, 28, 1, tzinfo=UTC)
    assert fire.fire_time.tzinfo is UTC
    assert fire.local.isoformat() == "2026-03-28T09:00:00+08:00"
    assert fire.note is None


def test_X15_a_fire_that_the_clock_has_shifted_says_so():
    assert shown(SPRING, 3, cron="30 2 * * *", timezone=BERLIN) == [
        ("2026-03-28T02:30:00+01:00", None),
        ("2026-03-29T03:00:00+02:00", f"02:30 does not exist on 2026-03-29: {JUMP}"),
        ("2026-03-30T02:30:00+02:00", None),
    ]


def test_X15_a_time_that_is_left_out_is_told_with_the_next_fire():
    assert shown(SPRING, 2, cron="30 2 * * *", timezone=BERLIN, dst={"gap": "skip"}) == [
        ("2026-03-28T02:30:00+01:00", None),
        ("2026-03-30T02:30:00+02:00", f"02:30 does not exist on 2026-03-29 and is left out: {JUMP}"),
    ]


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0,30 2 * * *", "02:00 and 02:30 do not exist on 2026-03-29"),
        ("0,20,40 2 * * *", "02:00, 02:20 and 02:40 do not exist on 2026-03-29"),
        ("0-59 2 * * *", "02:00, 02:01, 02:02 and more do not exist on 2026-03-29"),
        ("15 30 2 * * ?", "02:30:15 does not exist on 2026-03-29"),
    ],
)
def test_several_times_that_one_jump_has_taken_are_named_once(cron: str, words: str):
    (fire,) = fires("2026-03-28T12:00:00+00:00", 1, cron=cron, timezone=BERLIN)

    assert fire.local.isoformat() == "2026-03-29T03:00:00+02:00"
    assert fire.note == f"{words}: {JUMP}"


def test_X15_a_wildcard_cron_has_lost_nothing_and_still_explains_its_clock():
    assert shown("2026-03-29T00:30:00+00:00", 2, cron="30 * * * *", timezone=BERLIN) == [
        ("2026-03-29T03:30:00+02:00", f"02:30 does not exist on 2026-03-29: {JUMP}"),
        ("2026-03-29T04:30:00+02:00", None),
    ]


def test_a_jump_over_a_whole_day_names_its_dates():
    assert shown("2011-12-29T19:00:00+00:00", 2, cron="0 9 * * *", timezone="Pacific/Apia") == [
        (
            "2011-12-31T00:00:00+14:00",
            "09:00 does not exist on 2011-12-30: the clock jumps from 00:00 to 00:00 on 2011-12-31",
        ),
        ("2011-12-31T09:00:00+14:00", None),
    ]


TWICE = "02:30 comes twice on 2026-10-25: this is the"


@pytest.mark.parametrize(
    ("overlap", "told"),
    [
        ("first", [("02:30:00+02:00", f"{TWICE} first")]),
        ("last", [("02:30:00+01:00", f"{TWICE} last")]),
        ("both", [("02:30:00+02:00", f"{TWICE} first of two"), ("02:30:00+01:00", f"{TWICE} second of two")]),
    ],
)
def test_X15_a_time_that_comes_twice_says_which_one_it_is(overlap: str, told: list[tuple[str, str]]):
    on_the_day = shown(AUTUMN, 4, cron="30 2 * * *", timezone=BERLIN, dst={"overlap": overlap})[1 : 1 + len(told)]

    assert on_the_day == [(f"2026-10-25T{local}", note) for local, note in told]


def test_X15_a_wildcard_cron_fires_at_both():
    notes = [note for _, note in shown("2026-10-24T23:30:00+00:00", 3, cron="0 * * * *", timezone=BERLIN)]

    assert notes == [
        "02:00 comes twice on 2026-10-25: this is the first of two",
        "02:00 comes twice on 2026-10-25: this is the second of two",
        None,
    ]


def test_an_interval_follows_real_time_and_has_nothing_to_tell_of_clocks():
    assert {note for _, note in shown("2026-10-24T20:00:00+00:00", 50, every="10m", timezone=BERLIN)} == {None}


@pytest.mark.parametrize(
    ("calendar", "note"),
    [
        (["12-25"], "2026-12-25 is excluded"),
        (["2026-12-24/2026-12-25"], "2026-12-24 and 2026-12-25 are excluded"),
        (["2026-12-24/2026-12-30"], "5 dates from 2026-12-24 to 2026-12-30 are excluded"),
        (["2026-12-24/2027-12-30"], "more than 30 dates from 2026-12-24 on are excluded"),
        (["2026-12-26", "2026-12-27"], None),
    ],
)
def test_excluded_dates_before_a_fire_are_told_where_there_would_have_been_one(calendar: list[str], note: str | None):
    """From Monday to Friday: a weekend that is excluded changes nothing."""
    told = shown("2026-12-23T12:00:00+00:00", 3, cron="0 9 * * 1-5", timezone=BERLIN, calendar=calendar)

    assert [n for _, n in told if n] == [note] * (note is not None)


def test_a_time_lost_on_an_excluded_date_is_no_loss():
    told = shown(SPRING, 2, cron="30 2 * * *", timezone=BERLIN, dst={"gap": "skip"}, calendar=["2026-03-29"])

    assert told[1] == ("2026-03-30T02:30:00+02:00", "2026-03-29 is excluded")


def test_start_and_end_bound_the_fires_both_included():
    start, end = datetime(2026, 3, 28, 9, tzinfo=UTC), datetime(2026, 3, 30, 9, tzinfo=UTC)
    found = fires(SPRING, 10, cron="0 9 * * *", startAt=start, endAt=end, calendar=["2026-03-20/2026-03-27"])

    assert [fire.fire_time.day for fire in found] == [28, 29, 30]
    assert found[0].note is None, "what was excluded before its start is not of its concern"


def test_a_schedule_that_ends_answers_fewer_and_then_none():
    assert len(fires(SPRING, 10, cron="0 0 9 * * ? 2026")) == 10
    assert len(fires("2026-12-30T00:00:00+00:00", 10, cron="0 0 9 * * ? 2026")) == 2
    assert fires("2027-01-01T00:00:00+00:00", 10, cron="0 0 9 * * ? 2026") == []
    assert upcoming_fires(Timing(), datetime(2026, 1, 1, tzinfo=UTC), 10) == []


def test_of_a_fixed_delay_only_the_first_fire_is_known():
    (only,) = fires(SPRING, 10, every="10m", everyFrom="finish")

    assert only.fire_time == datetime(2026, 3, 27, 12, 10, tzinfo=UTC)
    assert only.note == "then 10m after each run has ended"


def test_fires_beyond_the_calendar_are_not_told():
    found = fires("8990-01-01T00:00:00+00:00", MOST_FIRES, every="3653d", timezone="Pacific/Auckland")

    assert 90 < len(found) < 110


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "0 0 0 ? 2 MON#5"},
        {"cron": "0 30 2 29 3 ?", "dst": {"gap": "skip"}},
        {"cron": "0-59 2 * * *", "dst": {"gap": "skip"}, "calendar": ["01-01/06-14", "06-16/12-31"]},
        {"cron": "* * * * * ?", "calendar": ["2026-04-01/8000-12-31"]},
    ],
)
def test_rare_and_hostile_schedules_are_told_in_bounded_time(fields: dict[str, Any]):
    begun = perf_counter()
    found = fires(SPRING, MOST_FIRES, timezone=BERLIN, **fields)

    assert found
    assert perf_counter() - begun < 15  # about one second; the rest is for a busy machine


ZONES = [BERLIN, "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "America/Havana", "Africa/Casablanca",
         "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "Europe/Dublin", "Antarctica/Troll", "UTC"]  # fmt: skip
CRONS = ["30 2 * * *", "0 0 * * *", "15,45 0-3 * * *", "0-59/20 1-2 * * 0", "30 23 * * *", "*/15 2 * * *",
         "30 * * * *", "0 0,1,2,3 * * *", "45 1 1-31/2 * *", "0 */6 * * *"]  # fmt: skip
AFTER = st.integers(0, 37 * 366 * 86_400).map(
    lambda seconds: datetime(1999, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
POLICIES = st.fixed_dictionaries(
    {"gap": st.sampled_from(["shift", "skip"]), "overlap": st.sampled_from(["first", "last", "both"])}
)


def minutes_lost(place: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the minutes that the clock of a zone jumped over, found by a look at each minute."""
    hour, minute = timedelta(hours=1), timedelta(minutes=1)
    moment = after.replace(second=0, microsecond=0)
    while moment < until:
        is_steady = (moment + hour).astimezone(place).utcoffset() == moment.astimezone(place).utcoffset()
        step = hour if is_steady else minute
        before, behind = (at.astimezone(place).replace(tzinfo=None) for at in (moment, moment + step))
        if behind - before > step and after < moment + step <= until:
            yield from (before + step + n * minute for n in range((behind - before - step) // minute))
        moment += step


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from(ZONES), st.sampled_from(CRONS), POLICIES, AFTER, st.booleans())
def test_the_notes_on_clock_changes_match_the_clock_of_the_zone(
    name: str, cron: str, dst: dict[str, str], after: datetime, near: bool
):
    place, parsed = zone(name), parse(cron)
    after = _near_a_change(place, after) if near else after
    previous = after

    for fire in upcoming_fires(timing(cron=cron, timezone=name, dst=dst), after, 12):
        lost = [wall for wall in minutes_lost(place, previous, fire.fire_time) if why_not(parsed, wall) is None]
        note = fire.note or ""
        assert ("not exist" in note) == bool(lost), (fire, lost)
        assert not lost or f"{lost[0]:%H:%M}" in note
        assert ("left out" in note) == (bool(lost) and dst["gap"] == "skip" and not parsed.is_wildcard)
        local = fire.fire_time.astimezone(place)
        is_twice = local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset()
        assert ("comes twice" in note) == is_twice, fire
        assert not is_twice or (("second of two" in note or "the last" in note) == bool(local.fold))
        assert fire.local == fire.fire_time
        assert fire.local.isoformat() == local.isoformat()
        previous = fire.fire_time


def _near_a_change(place: ZoneInfo, after: datetime) -> datetime:
    """A few hours before the next change of offset within a year, if there is one."""
    offset = after.astimezone(place).utcoffset()
    for days in range(366):
        later = after + timedelta(days=days)
        if later.astimezone(place).utcoffset() != offset:
            return later - timedelta(days=1, hours=3)
    return after


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(CRONS),
    AFTER,
    st.lists(st.dates(date(2000, 1, 1), date(2000, 12, 31)).map("{:%m-%d}".format), max_size=40),
)
def test_the_fires_are_those_of_the_schedule_and_every_excluded_date_is_told(
    name: str, cron: str, after: datetime, calendar: list[str]
):
    read = timing(cron=cron, timezone=name, calendar=calendar)
    assert read.schedule is not None
    found = upcoming_fires(read, after, 20)

    assert [fire.fire_time for fire in found] == list(
        fires_between(read.schedule, after, datetime.max.replace(tzinfo=UTC), 20)
    )
    every = timing(cron=cron, timezone=name).schedule
    assert every is not None
    previous = after
    for fire in found:
        between = fires_between(every, previous, fire.fire_time - timedelta(seconds=1), 10_000)
        days = sorted({missed.astimezone(zone(name)).date() for missed in between})
        told = [part for part in (fire.note or "").split("; ") if "excluded" in part]
        assert len(told) == bool(days)
        assert not days or told[0].removeprefix(f"{len(days)} dates from ").startswith(str(days[0]))
        previous = fire.fire_time

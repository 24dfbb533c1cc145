"""Quartz: the examples of its documentation and the forms of its day fields, with their fires as on a calendar."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import pytest

from horai.time.cron import CronError, Dialect, next_fire, parse
from horai.time.zones import zone

WHERE = zone("UTC")


def walk(expression: str, since: str) -> Iterator[datetime]:
    cron, after = parse(expression), datetime.fromisoformat(since).replace(tzinfo=UTC)
    while (fire := next_fire(cron, WHERE, after)) is not None:
        yield fire
        after = fire


def fires(expression: str, count: int, since: str = "2025-12-31T23:59:59") -> list[str]:
    """The next fires without the year, and without seconds where there are none."""
    return [f"{fire:%m-%d %H:%M:%S}".removesuffix(":00") for fire in islice(walk(expression, since), count)]


def days(expression: str, count: int, since: str = "2025-12-31T23:59:59") -> str:
    return " ".join(fire[:5] for fire in fires(expression, count, since))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 12 * * ?", ["01-01 12:00", "01-02 12:00"]),
        ("0 15 10 ? * *", ["01-01 10:15", "01-02 10:15"]),
        ("0 15 10 * * ?", ["01-01 10:15", "01-02 10:15"]),
        ("0 15 10 * * ? *", ["01-01 10:15", "01-02 10:15"]),
        ("0 * 14 * * ?", ["01-01 14:00", "01-01 14:01", "01-01 14:02"]),
        ("0 0-5 14 * * ?", [*(f"01-01 14:0{minute}" for minute in range(6)), "01-02 14:00"]),
        ("0 10,44 14 ? 3 WED", ["03-04 14:10", "03-04 14:44", "03-11 14:10"]),
        ("0 15 10 ? * MON-FRI", ["01-01 10:15", "01-02 10:15", "01-05 10:15"]),
        ("0 0/30 8-9 5,20 * ?", ["01-05 08:00", "01-05 08:30", "01-05 09:00", "01-05 09:30", "01-20 08:00"]),
        ("10 0/5 * * * ?", ["01-01 00:00:10", "01-01 00:05:10"]),
        ("0 30 10-13 ? * WED,FRI", ["01-02 10:30", "01-02 11:30", "01-02 12:30", "01-02 13:30", "01-07 10:30"]),
        ("* * * ? * *", ["01-01 00:00", "01-01 00:00:01", "01-01 00:00:02"]),
        ("0 11 11 11 11 ?", ["11-11 11:11", "11-11 11:11"]),
    ],
)
def test_X14_published_examples_fire_when_their_description_says(expression: str, expected: list[str]):
    assert fires(expression, len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 15 10 15 * ?", "01-15 02-15 03-15"),
        ("0 15 10 L * ?", "01-31 02-28 03-31 04-30"),
        ("0 15 10 L-2 * ?", "01-29 02-26 03-29 04-28"),
        ("0 0 15 L-3 * ?", "01-28 02-25 03-28 04-27"),
        ("0 15 10 ? * 6L", "01-30 02-27 03-27 04-24"),
        ("0 15 10 ? * 6#3", "01-16 02-20 03-20 04-17"),
        ("0 0 12 1/5 * ?", "01-01 01-06 01-11 01-16 01-21 01-26 01-31 02-01"),
        ("0 0 5 1 * ?", "01-01 02-01 03-01"),
        ("0 0 5 1W * ?", "01-01 02-02 03-02 04-01 05-01 06-01 07-01 08-03 09-01 10-01 11-02 12-01"),
        ("0 0 5 LW * ?", "01-30 02-27 03-31 04-30 05-29 06-30 07-31 08-31"),
        ("0 0 15 15W * ?", "01-15 02-16 03-16 04-15 05-15 06-15 07-15 08-14"),
        ("0 0 0 ? * L", "01-03 01-10 01-17"),
        ("0 0 0 ? * 7", "01-03 01-10 01-17"),
    ],
)
def test_X14_published_day_forms_fall_on_the_days_of_the_calendar(expression: str, expected: str):
    assert days(expression, len(expected.split())) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 0 0 L-3W * ?", "01-28 02-25 03-27 04-27 05-28 06-26"),
        ("0 0 0 L-30 * ?", "01-01 03-01 05-01 07-01 08-01"),
        ("0 0 0 L-30W * ?", "01-01 03-02 05-01 07-01 08-03"),
        ("0 0 0 L-0 * ?", "01-31 02-28"),
        ("0 0 0 31W * ?", "01-30 03-31 05-29 07-31"),
        ("0 0 0 1,15,L * ?", "01-01 01-15 01-31 02-01 02-15 02-28"),
        ("0 0 0 15W,LW * ?", "01-15 01-30 02-16 02-27"),
        ("0 0 0 ? * MON#1,MON#3", "01-05 01-19 02-02 02-16"),
        ("0 0 0 ? * MON,FRI#2", "01-05 01-09 01-12 01-19"),
        ("0 0 0 ? * fril", "01-30 02-27"),
        ("0 0 0 ? * SAT#5", "01-31 05-30 08-29 10-31"),
        ("0 0 0 ? * 1#1", "01-04 02-01"),
        ("0 0 0 ? NOV-FEB FRI-MON/2", "01-02 01-04 01-09 01-11"),
        ("0 0 0 25-5/5 * ?", "01-04 01-25 01-30 02-04 02-25 03-04"),
        ("0 0 0 28-2 * ?", "01-01 01-02 01-28 01-29 01-30 01-31 02-01"),
    ],
)
def test_X14_day_forms_in_lists_and_at_the_edges_of_a_month(expression: str, expected: str):
    assert days(expression, len(expected.split())) == expected


def test_X14_a_question_mark_for_the_month_is_a_slip_even_where_it_is_published():
    with pytest.raises(CronError, match=r"\? is no month"):
        parse("* * * * ? *")


@pytest.mark.parametrize(
    ("vixie", "quartz"),
    [
        ("0 0 L * *", "0 0 0 L * ?"),
        ("0 0 LW * *", "0 0 0 LW * ?"),
        ("0 0 15W * *", "0 0 0 15W * ?"),
        ("0 0 L-5 * *", "0 0 0 L-5 * ?"),
        ("0 0 * * 5L", "0 0 0 ? * 6L"),
        ("0 0 * * FRIL", "0 0 0 ? * FRIL"),
        ("0 0 * * 0#2", "0 0 0 ? * 1#2"),
        ("0 0 * * 7#2", "0 0 0 ? * SUN#2"),
        ("0 0 * * 7L,0#1", "0 0 0 ? * 1L,1#1"),
    ],
)
def test_X14_five_fields_take_the_same_day_forms_with_their_own_weekday_numbers(vixie: str, quartz: str):
    assert fires(vixie, 30) == fires(quartz, 30)


def test_two_restricted_day_fields_of_five_mean_either_also_when_one_moves():
    assert days("0 0 L * FRI#1", 5) == "01-02 01-31 02-06 02-28 03-06"


def test_a_year_field_ends_the_fires_with_its_last_year():
    year = list(walk("0 15 10 * * ? 2005", "2001-01-01"))
    fridays = list(walk("0 15 10 ? * 6L 2002-2005", "2001-01-01"))

    assert (len(year), year[0], year[-1]) == (
        365,
        datetime(2005, 1, 1, 10, 15, tzinfo=UTC),
        datetime(2005, 12, 31, 10, 15, tzinfo=UTC),
    )
    assert (len(fridays), fridays[0], fridays[-1]) == (
        48,
        datetime(2002, 1, 25, 10, 15, tzinfo=UTC),
        datetime(2005, 12, 30, 10, 15, tzinfo=UTC),
    )


def test_years_take_lists_ranges_and_steps():
    expression = "0 0/5 14,18 ? JAN,MAR,SEP MON-FRI 2002-2010"
    leap_days = [fire.year for fire in walk("0 0 0 29 2 ? 1970/6,2199", "1969-01-01")]

    assert next(walk(expression, "1999-01-01")) == datetime(2002, 1, 1, 14, tzinfo=UTC)
    assert leap_days[:4] == [1976, 1988, 2000, 2012]
    assert [fire.year for fire in walk("0 0 0 1 1 ? 2027,2150,2199", "2026-06-01")] == [2027, 2150, 2199]


def test_a_far_year_is_found_even_when_the_one_before_it_is_lost_in_a_gap():
    lost_in_2026 = parse("0 */20 2 8 3 ? 2026,2190")
    after = datetime(2025, 1, 1, tzinfo=UTC)

    assert next_fire(lost_in_2026, zone("America/New_York"), after) == datetime(2190, 3, 8, 7, tzinfo=UTC)


def test_a_time_that_every_clock_change_takes_never_fires():
    always_lost = parse("0 */20 2 ? 3 1#2")

    assert next_fire(always_lost, zone("America/New_York"), datetime(2026, 1, 1, tzinfo=UTC)) is None
    assert next_fire(always_lost, zone("Europe/Berlin"), datetime(2026, 1, 1, tzinfo=UTC)) is not None


@pytest.mark.parametrize(
    ("nickname", "canonical"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@ANNUALLY", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@Weekly", "0 0 * * 0"),
        (" @daily ", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_a_nickname_is_the_five_fields_it_stands_for(nickname: str, canonical: str):
    assert parse(nickname) == parse(canonical)
    assert parse(nickname).expression == canonical


def test_a_nickname_that_is_no_time_points_to_what_to_use_instead():
    with pytest.raises(CronError) as refusal:
        parse("@every 90s")

    assert refusal.value.hint == 'use `every` instead of `cron`: "every": "90s"'


def test_a_dialect_says_how_weekdays_are_counted_and_the_fields_where_it_begins():
    assert parse("0 9 * * 1").days_of_week == parse("0 9 * * MON").days_of_week
    assert parse("0 9 ? * 1", Dialect.QUARTZ).days_of_week == parse("0 9 * * SUN").days_of_week
    assert parse("0 0 9 ? * 1").days_of_week == parse("0 9 * * SUN").days_of_week
    assert parse("0 0 9 ? * 1", Dialect.VIXIE).days_of_week == parse("0 9 * * MON").days_of_week
    assert parse("0 0 9 ? * 0 2030", Dialect.VIXIE).days_of_week == parse("0 9 * * SUN").days_of_week


def test_two_restricted_days_mean_what_the_dialect_says():
    assert parse("0 0 9 13 * FRI", Dialect.VIXIE).is_either_day
    assert not parse("0 0 9 13 * ?", Dialect.VIXIE).is_either_day
    with pytest.raises(CronError, match="both restricted"):
        parse("0 9 13 * FRI", Dialect.QUARTZ)


def test_a_nickname_is_the_same_in_every_dialect():
    assert parse("@weekly", Dialect.QUARTZ) == parse("@weekly") == parse("0 0 * * 0")

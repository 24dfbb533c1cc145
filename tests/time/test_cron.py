"""Cron: both dialects, and what is refused."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import pytest

from horai.time.cron import CronError, next_fire, parse
from horai.time.zones import zone

JANUARY = datetime(2026, 1, 1, tzinfo=UTC)


def walk(expression: str) -> Iterator[datetime]:
    """The fires of `expression` in 2026 and later, one after the other, in UTC."""
    cron, after = parse(expression), JANUARY
    while (fire := next_fire(cron, zone("UTC"), after)) is not None:
        yield fire
        after = fire


@pytest.mark.parametrize(
    ("vixie", "quartz"),
    [
        ("*/5 * * * *", "0 */5 * * * ?"),
        ("*/5 * * * *", "0 */5 * * * *"),
        ("*/5 * * * *", "0 */5 * ? * *"),
        ("0 9 * * 1-5", "0 0 9 ? * 2-6"),
        ("0 9 * * MON-FRI", "0 0 9 ? * mon-fri"),
        ("0 9 * * 0", "0 0 9 ? * 1"),
        ("0 9 * * 7", "0 0 9 * * SUN"),
        ("0 9 * * 5,6,0,1", "0 0 9 ? * FRI-MON"),
        ("0 22,23,0,1,2 * * *", "0 0 22-2 * * ?"),
        ("0 0,2,22 * * *", "0 0 22-2/2 * * ?"),
        ("0 0 1 11,12,1,2 *", "0 0 0 1 nov-feb ?"),
        ("5/20 3 1,15 * *", "0 5,25,45 3 1,15 * ?"),
        ("10-30/10 3 1-3 JAN *", "0 10,20,30 3 1,2,3 1 ?"),
        ("0 0 */10 * *", "0 0 0 1,11,21,31 * ?"),
        ("0 0 * * */2", "0 0 0 ? * 1,3,5,7"),
    ],
)
def test_C56_cron_parses_both_dialects(vixie: str, quartz: str):
    assert list(islice(walk(vixie), 40)) == list(islice(walk(quartz), 40))


def test_C56_the_seconds_of_the_six_field_form_come_first():
    assert next(walk("30 15 10 * * ?")) == datetime(2026, 1, 1, 10, 15, 30, tzinfo=UTC)


def test_two_restricted_day_fields_of_five_mean_either_of_them():
    assert [fire.day for fire in islice(walk("0 0 13 * FRI"), 4)] == [2, 9, 13, 16]


def test_a_day_field_that_starts_with_a_star_narrows_the_other_one():
    assert [fire.day for fire in islice(walk("0 0 */2 * MON"), 2)] == [5, 19]


def test_texts_that_differ_only_in_spaces_and_case_are_one_value():
    assert parse(" 0  9\t* * mon ") == parse("0 9 * * MON")
    assert len({parse("0 9 * * mon"), parse("0 9 * * MON")}) == 1


@pytest.mark.parametrize(
    ("expression", "position", "message"),
    [
        ("", 0, "cron has 0 fields, not 5, 6 or 7"),
        ("* * * *", 7, "cron has 4 fields"),
        ("* * * * * * * *", 14, "cron has 8 fields"),
        ("60 * * * *", 0, "minute 60 is out of range"),
        ("0 24 * * *", 2, "hour 24 is out of range"),
        ("0 0 0 * *", 4, "day of month 0 is out of range"),
        ("0 0 1,32 * *", 6, "day of month 32 is out of range"),
        ("0 0 * 13 *", 6, "month 13 is out of range"),
        ("0 0 * * 8", 8, "day of week 8 is out of range"),
        ("0 0 0 ? * 0", 10, "day of week 0 is out of range"),
        ("60 0 0 * * ?", 0, "second 60 is out of range"),
        ("0 MON * * *", 2, "MON is no hour"),
        ("0 0 * FOO *", 6, "FOO is no month"),
        ("1,,2 * * * *", 2, "empty item"),
        ("5- * * * *", 2, "empty value"),
        ("1-2-3 * * * *", 0, "more than one dash"),
        ("1/2/3 * * * *", 3, "more than one step"),
        ("*/0 * * * *", 2, "step 0 of minute is out of range"),
        ("*/90 * * * *", 2, "step 90 of minute is out of range"),
        ("*/x * * * *", 2, "step 'X' of minute is not a number"),
        ("-5 * * * *", 0, "empty value"),
        ("0 22-2 * * *", 2, "runs backwards"),
        ("0 0 * * ?", 8, r"\? is no day of week"),
        ("0 ? 0 * * ?", 2, r"\? is no minute"),
        ("0 0 0 ?,1 * *", 6, r"\? is no day of month"),
        ("0 0 0 1 * MON", 10, "both restricted"),
        ("0 0 0 */2 * MON", 12, "both restricted"),
        ("0 0 9 * * ½", 10, "not printable ASCII"),
        ("0 0 * *\n*", 7, "not printable ASCII"),
        ("0 " * 200, 256, "longer than 256 characters"),
        ("0 0 30 2 *", 4, "cron has no next fire time"),
        ("0 0 0 31 2,4,6,9,11 ?", 6, "cron has no next fire time"),
        ("0 0 0 29 2 ? 2027,2100", 6, "cron has no next fire time"),
        ("0 0 L-30 2,4,6 *", 4, "cron has no next fire time"),
        ("0 0 0 ? 2 MON#5 2029-2031", 6, "cron has no next fire time"),
        ("@reboot", 0, "@reboot names no time"),
        (" @every 5m", 1, "@every is no cron"),
        ("@fortnightly", 0, "@fortnightly is no nickname"),
        ("@daily 5", 7, "@daily stands alone"),
        ("0 0 0 1 1 ? 1969", 12, "year 1969 is out of range"),
        ("0 0 0 1 1 ? 2200", 12, "year 2200 is out of range"),
        ("0 0 0 1 1 ? 2030-2027", 12, "runs backwards"),
        ("0 0 0 1 1 ? ?", 12, r"\? is no year"),
        ("0 0 1-5W * *", 7, "1-5W is no day of month"),
        ("0 0 15W/2 * *", 6, "15W/2 is no day of month"),
        ("0 0 32W * *", 4, "day of month 32 is out of range"),
        ("0 0 W * *", 4, "W is no day of month"),
        ("0 0 LW-3 * *", 4, "LW-3 is no day of month"),
        ("0 0 L-31 * *", 6, "no month has a day L-31"),
        ("0 0 1,L/2 * *", 6, "L/2 is no day of month"),
        ("0 0 0 ? * FRI#0", 14, "no month has a FRI#0"),
        ("0 0 0 ? * FRI#6", 14, "no month has a FRI#6"),
        ("0 0 0 ? * MON-FRI#2", 17, "MON-FRI#2 is no day of week"),
        ("0 0 0 ? * 8L", 10, "day of week 8 is out of range"),
        ("0 0 0 ? * FRIL/2", 13, "FRIL/2 is no day of week"),
        ("0 0 0 ? * 5W", 10, "5W is no day of week"),
        ("0 0 * * L", 8, "L is no day of week"),
        ("0 L * * *", 2, "L is no hour"),
        ("0 0 0 L * FRIL", 10, "both restricted"),
    ],
)
def test_C46_an_invalid_cron_is_refused_at_its_position_with_a_hint(expression: str, position: int, message: str):
    with pytest.raises(CronError, match=message) as refusal:
        parse(expression)

    assert refusal.value.position == position
    assert refusal.value.hint

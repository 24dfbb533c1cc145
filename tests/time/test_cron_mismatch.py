"""Why a time is no slot: one plain sentence, and none exactly when the time matches."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from cron_cases import EXPRESSIONS, random_expression
from cron_scanner import Expression
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.time.cron import parse, why_not

TUESDAY = datetime(2026, 7, 14, 9, 7)  # noqa: DTZ001 - a wall clock has no zone


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("*/5 * * * *", "the minute 7 is not one of */5"),
        ("30 * * * *", "the minute 7 is not 30"),
        ("7 10-18/2 * * *", "the hour 9 is not one of 10-18/2"),
        ("15 7 9 * * ?", "the second 0 is not 15"),
        ("7 9 * NOV-DEC *", "July is not one of NOV-DEC"),
        ("7 9 * 1,3 *", "July is not one of JAN,MAR"),
        ("7 9 * 8 *", "July is not AUG"),
        ("7 9 1 * *", "the 14th is not the 1st"),
        ("7 9 1,15,L * *", "the 14th is not one of 1,15,L"),
        ("7 9 L * *", "the 14th is not the last day of the month (L)"),
        ("7 9 L-3 * *", "the 14th is not the day 3 before the last of the month (L-3)"),
        ("7 9 LW * *", "the 14th is not the last weekday of the month (LW)"),
        ("7 9 15W * *", "the 14th is not the nearest weekday to the 15th (15W)"),
        ("7 9 L-2W * *", "the 14th is not the nearest weekday to the day 2 before the last of the month (L-2W)"),
        ("7 9 * * MON,WED-FRI", "Tuesday is not one of MON,WED-FRI"),
        ("7 9 * * 1", "Tuesday is not MON"),
        ("7 9 * * 3-7/2", "Tuesday is not one of WED-SUN/2"),
        ("0 7 9 ? * 2", "Tuesday is not MON"),
        ("0 7 9 ? * L", "Tuesday is not SAT"),
        ("7 9 * * TUE#1", "Tuesday the 14th is not the first Tuesday of the month (TUE#1)"),
        ("0 7 9 ? * 3L", "Tuesday the 14th is not the last Tuesday of the month (3L)"),
        ("7 9 13 * FRI", "the 14th is not the 13th, and Tuesday is not FRI"),
        ("7 9 */2 * TUE", "the 14th is not one of */2"),
        ("0 7 9 14 7 ? 2027-2030", "the year 2026 is not one of 2027-2030"),
        ("0 7 9 14 7 ? 2027", "the year 2026 is not 2027"),
    ],
)
def test_the_first_field_that_does_not_allow_a_time_is_told(expression: str, sentence: str):
    assert why_not(parse(expression), TUESDAY) == sentence


def test_five_fields_fire_on_the_minute_and_none_inside_a_second():
    assert why_not(parse("7 9 * * *"), TUESDAY + timedelta(seconds=5)) == (
        "the second 5 is not 0: five fields fire on the minute"
    )
    assert why_not(parse("* * * * * ?"), TUESDAY + timedelta(milliseconds=250)) == (
        "09:07:00.250000 is not a whole second"
    )


@pytest.mark.parametrize(
    "expression", ["7 9 * * *", "7 9 14 * FRI", "7 9 1 * TUE", "0 7 9 ? 7 TUE#2 2026", "*/7 * * * 2"]
)
def test_nothing_is_told_of_a_time_that_matches(expression: str):
    assert why_not(parse(expression), TUESDAY) is None


@settings(max_examples=examples(300), deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 400 * 1440))
def test_a_reason_is_given_exactly_when_the_scanner_sees_no_match(dice: random.Random, minutes: int):
    text = dice.choice([random_expression(dice), *EXPRESSIONS])
    wall = TUESDAY + timedelta(minutes=minutes)
    expression = Expression(text)

    is_match = expression.names(wall.replace(tzinfo=UTC)) and 0 in expression.seconds
    assert (why_not(parse(text), wall) is None) == is_match

"""iCalendar files: all-day events become holidays; hostile and huge files are refused."""

import time
from datetime import date

import pytest

from horai.core.errors import Invalid
from horai.features.calendars.ics import LONGEST_FILE, MOST_EVENTS, MOST_REPEATING, read_ics

TODAY = date(2026, 11, 17)


def ics(*events: str) -> str:
    body = "\r\n".join(f"BEGIN:VEVENT\r\nUID:{n}\r\n{event}\r\nEND:VEVENT" for n, event in enumerate(events))
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n{body}\r\nEND:VCALENDAR\r\n"


def day(text: str, *more: str) -> str:
    return "\r\n".join([f"DTSTART;VALUE=DATE:{text}", *more])


def refused(text: str) -> str:
    with pytest.raises(Invalid) as error:
        read_ics(text, TODAY)
    assert [fault.field for fault in error.value.errors] == ["ics"]
    return error.value.errors[0].message


def test_all_day_events_become_days_and_ranges_with_their_names() -> None:
    found = read_ics(
        ics(
            day("20261225", "SUMMARY:Christmas\\, first day"),
            day("20261001", "DTEND;VALUE=DATE:20261008", "SUMMARY:国庆节"),
            day("20270101", "DURATION:P2D"),
            "DTSTART:20261111T090000Z\r\nSUMMARY:a meeting",
            day("20261111", "STATUS:CANCELLED"),
            day("20261010", "SUMMARY:国庆节（班）", "X-APPLE-SPECIAL-DAY:ALTERNATE-WORKDAY"),
        ),
        TODAY,
    )

    assert found.holidays == {
        "2026-12-25": "Christmas, first day",
        "2026-10-01/2026-10-07": "国庆节",
        "2027-01-01/2027-01-02": None,
    }
    assert found.workdays == {"2026-10-10"}


def test_an_event_of_every_year_becomes_a_day_of_every_year() -> None:
    found = read_ics(ics(day("20201225", "RRULE:FREQ=YEARLY"), day("20200501", "RRULE:FREQ=YEARLY;BYMONTH=5")), TODAY)

    assert [*found.holidays] == ["12-25", "05-01"]


def test_other_rules_are_expanded_for_ten_years_without_their_exceptions() -> None:
    thanksgiving = day("20261126", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "EXDATE;VALUE=DATE:20281123")
    bounded = day("20261201", "RRULE:FREQ=DAILY;UNTIL=20261203")
    counted = day("20270201", "DTEND;VALUE=DATE:20270203", "RRULE:FREQ=WEEKLY;COUNT=2")

    found = [*read_ics(ics(thanksgiving, bounded, counted), TODAY).holidays]

    assert found[:2] == ["2026-11-26", "2027-11-25"]
    assert "2028-11-23" not in found
    assert found[9] == "2036-11-27"
    assert found[10:] == [
        *("2026-12-01", "2026-12-02", "2026-12-03", "2027-02-01/2027-02-02", "2027-02-08/2027-02-09"),
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "iCalendar"),
        ("hello", "iCalendar"),
        ("BEGIN:VCALENDAR\r\nEND:VEVENT\r\n", "no all-day event"),
        (ics(), "no all-day event"),
        (ics("SUMMARY:no start"), "no all-day event"),
        (ics("DTSTART:20261111T090000Z"), "no all-day event"),
        (ics(day("20260101", "RRULE:FREQ=SECONDLY")), "SECONDLY"),
        (ics(day("20260101", "RRULE:FREQ=DAILY;BYHOUR=1,2,3")), "BYHOUR"),
        (ics(day("00010101", "RRULE:FREQ=DAILY;COUNT=3")), "COUNT"),
        (ics(day("20260101", "RDATE;VALUE=DATE:20260102")), "RDATE"),
        (ics(day("20260101", "RRULE:FREQ=DAILY")), "1000 days"),
        (ics(*[day("20260101", "RRULE:FREQ=YEARLY")] * (MOST_REPEATING + 1)), "repeat"),
        (ics(*[day("20260101")] * (MOST_EVENTS + 1)), "events"),
        ("x" * (LONGEST_FILE + 1), "longer"),
        (ics(day("20000101", "RRULE:FREQ=DAILY;COUNT=5")), "COUNT"),
        (ics(day("20260101", "RRULE:FREQ=YEARLY;BYDAY=1MO")), "BYDAY"),
        (ics(day("20260101", "RRULE:FREQ=DAILY;INTERVAL=0")), "INTERVAL"),
        (ics(day("20260101", "RRULE:FREQ=MONTHLY;BYSETPOS=1;BYDAY=MO")), "BYSETPOS"),
    ],
    ids=lambda text: text[:12] + str(len(text)),
)
def test_a_file_that_is_hostile_or_has_no_holiday_is_refused_with_the_reason(text: str, word: str) -> None:
    assert word in refused(text)


def test_rules_of_months_and_weeks_are_expanded() -> None:
    last_friday = day("20261127", "RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=3")
    second_week = day("20261116", "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;UNTIL=20261203T000000Z")
    end_of_month = day("20261130", "RRULE:FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=2")
    second_year = day("20240229", "RRULE:FREQ=YEARLY;INTERVAL=4;COUNT=2")

    found = [*read_ics(ics(last_friday, second_week, end_of_month, second_year), TODAY).holidays]

    assert found[:3] == ["2026-11-27", "2026-12-25", "2027-01-29"]
    assert found[3:7] == ["2026-11-16", "2026-11-18", "2026-11-30", "2026-12-02"]
    assert found[7:] == ["2026-12-31", "2024-02-29", "2028-02-29"]


def test_rules_that_never_match_end_soon() -> None:
    never = day("20070101", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=5")

    begun = time.process_time()
    read_ics(ics(day("20261225"), *[never] * 100), TODAY)

    assert time.process_time() - begun < 5

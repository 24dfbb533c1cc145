from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.time.exclusions import MOST, check, is_excluded, next_open

DAY = timedelta(days=1)
days = st.dates(date(2023, 1, 1), date(2032, 12, 31))
month_days = st.dates(date(2000, 1, 1), date(2000, 12, 31)).map(lambda day: f"{day:%m-%d}")
entries = st.one_of(
    days.map(str),
    st.tuples(days, st.integers(0, 800)).map(lambda of: f"{of[0]}/{of[0] + of[1] * DAY}"),
    month_days,
    st.tuples(month_days, month_days).map("/".join),
)
calendars = st.lists(entries, max_size=8).map(check)


def covers(entry: str, day: date) -> bool:
    """Return true if an entry covers a day, both read as text: dates in order are texts in order."""
    first, _, last = entry.partition("/")
    last = last or first
    text = day.isoformat()[-len(first) :]
    return first <= text <= last if first <= last else text >= first or text <= last


@settings(max_examples=examples(300), deadline=None)
@given(calendars, days)
def test_a_day_is_excluded_when_one_of_the_entries_covers_it(calendar: tuple[str, ...], day: date):
    assert is_excluded(calendar, day) == any(covers(entry, day) for entry in calendar)


@settings(max_examples=examples(300), deadline=None)
@given(calendars, days)
def test_the_next_open_day_is_found_as_by_walking_from_day_to_day(calendar: tuple[str, ...], day: date):
    walked = (day + step * DAY for step in range(3_000))

    found = next_open(calendar, day)

    assert found == next((open_day for open_day in walked if not is_excluded(calendar, open_day)), found)
    assert found is None or not is_excluded(calendar, found)


@pytest.mark.parametrize(
    ("entry", "closed", "open_days"),
    [
        ("2026-12-25", ["2026-12-25"], ["2025-12-25", "2026-12-24", "2026-12-26"]),
        (
            "2026-12-24/2027-01-02",
            ["2026-12-24", "2026-12-31", "2027-01-02"],
            ["2026-12-23", "2027-01-03", "2027-12-24"],
        ),
        ("12-25", ["1970-12-25", "2026-12-25", "9000-12-25"], ["2026-12-24"]),
        ("07-01/08-31", ["2026-07-01", "2027-08-31"], ["2026-06-30", "2026-09-01"]),
        ("12-24/01-02", ["2026-12-24", "2026-12-31", "2027-01-02"], ["2026-12-23", "2027-01-03"]),
        ("02-29", ["2028-02-29"], ["2027-02-28", "2027-03-01"]),
        ("02-28/03-01", ["2027-02-28", "2028-02-29", "2027-03-01"], ["2027-02-27"]),
        ("02-29/02-28", ["2027-02-28", "2027-03-01", "2028-02-29", "2028-02-28"], []),
    ],
)
def test_an_entry_is_a_day_or_a_stretch_of_one_year_or_of_all(entry: str, closed: list[str], open_days: list[str]):
    calendar = check([entry])

    assert [day for day in closed if not is_excluded(calendar, date.fromisoformat(day))] == []
    assert [day for day in open_days if is_excluded(calendar, date.fromisoformat(day))] == []


def test_without_entries_every_day_is_open():
    assert not is_excluded((), date(2026, 12, 25))
    assert next_open((), date(2026, 12, 25)) == date(2026, 12, 25)


def test_entries_that_touch_or_overlap_are_passed_in_one_go():
    calendar = check(["2026-12-20/2026-12-24", "12-25", "2026-12-26/2026-12-30", "2026-12-28/2027-01-03", "12-31"])

    assert next_open(calendar, date(2026, 12, 20)) == date(2027, 1, 4)


@pytest.mark.parametrize(
    ("calendar", "opens"),
    [
        (["03-01/02-28"], date(2028, 2, 29)),
        (["03-01/02-28", "2028-02-29"], date(2032, 2, 29)),
        (["01-01/12-24", "12-26/12-31", *(f"{year}-12-25" for year in range(2024, 2060))], date(2060, 12, 25)),
    ],
)
def test_a_day_that_is_open_only_years_ahead_is_found(calendar: list[str], opens: date):
    assert next_open(check(calendar), date(2024, 3, 1)) == opens


@pytest.mark.parametrize("calendar", [["01-01/12-31"], ["02-01/01-31"], ["2026-01-01/9999-12-31"]])
def test_a_calendar_without_an_open_day_has_no_next_one(calendar: list[str]):
    assert next_open(check(calendar), date(2026, 5, 5)) is None


@pytest.mark.parametrize("day", [date.max, date.max - DAY])
def test_the_search_ends_at_the_end_of_the_calendar(day: date):
    assert next_open(("12-30/12-31",), day) is None


def test_the_same_dates_in_another_order_are_the_same_calendar():
    assert check(["12-25", "2026-01-01", "12-25"]) == check(["2026-01-01", "12-25"]) == ("12-25", "2026-01-01")


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("", "is not an excluded date: write dates such as 2026-12-25"),
        ("Christmas", "'Christmas' is not an excluded date"),
        ("2026-1-1", "'2026-1-1' is not an excluded date"),
        ("26-12-25", "is not an excluded date"),
        ("2026-12-25 ", "is not an excluded date"),
        ("2026-12-25\n", "is not an excluded date"),
        ("2026-12-25T00:00:00Z", "is not an excluded date"),
        ("2026/12/25", "is not an excluded date"),
        ("2026-12-24/", "is not an excluded date"),
        ("2026-12-24/2026-12-25/2026-12-26", "is not an excluded date"),
        ("٢٠٢٦-١٢-٢٥", "is not an excluded date"),
        ("x" * 10_000, f"{'x' * 40!r} is not an excluded date"),
        ("2026-02-29", "'2026-02-29' is not in the calendar"),
        ("0000-01-01", "is not in the calendar"),
        ("13-01", "'13-01' is not in the calendar"),
        ("02-30", "is not in the calendar"),
        ("2026-12-24/2026-12-32", "is not in the calendar"),
        ("2026-12-25/2026-12-24", "'2026-12-25/2026-12-24' ends before it begins"),
        ("2026-12-24/01-02", "mixes a date with a day of every year: write dates such as"),
        ("12-24/2027-01-02", "mixes a date with a day of every year"),
    ],
)
def test_an_invalid_excluded_date_is_refused_with_its_reason(entry: str, reason: str):
    with pytest.raises(ValueError, match=r"\w") as refused:
        check(["2026-01-01", entry])

    assert reason in str(refused.value)


def test_a_calendar_has_so_many_entries_and_no_more():
    single = [str(date(2000, 1, 1) + 2 * step * DAY) for step in range(MOST + 1)]

    assert len(check(single[:MOST])) == MOST
    with pytest.raises(ValueError, match="has 1001 entries, more than 1000: write stretches such as"):
        check(single)

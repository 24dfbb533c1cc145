"""Cron across clock changes: each rule of the DST paragraph, by name and place."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from horai.time.cron import DstPolicy, Gap, Overlap, next_fire, parse
from horai.time.zones import zone

POLICIES = [DstPolicy(gap, overlap) for gap, overlap in product(("shift", "skip"), ("first", "last", "both"))]


def fires(
    expression: str, place: str, since: str, count: int, gap: Gap = "shift", overlap: Overlap = "first"
) -> list[str]:
    """The next `count` fires after the local time `since`, each in local time with its offset."""
    where, cron, policy = zone(place), parse(expression), DstPolicy(gap, overlap)
    after = datetime.fromisoformat(since).replace(tzinfo=where)
    found: list[str] = []
    for _ in range(count):
        fire = next_fire(cron, where, after, policy)
        assert fire is not None
        assert fire.tzinfo is UTC
        after = fire
        found.append(fire.astimezone(where).strftime("%m-%d %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("place", "since", "after_gap", "next_day"),
    [
        ("Europe/Berlin", "2026-03-28T12:00", "03-29 03:00+0200", "03-30 02:30+0200"),
        ("America/New_York", "2026-03-07T12:00", "03-08 03:00-0400", "03-09 02:30-0400"),
    ],
)
def test_a_fixed_time_in_the_gap_fires_at_the_first_instant_after_it_or_not_at_all(
    place: str, since: str, after_gap: str, next_day: str
):
    assert fires("30 2 * * *", place, since, 2) == [after_gap, next_day]
    assert fires("30 2 * * *", place, since, 1, gap="skip") == [next_day]


def test_several_fixed_times_lost_in_one_gap_become_one_fire():
    expected = ["03-29 03:00+0200", "03-29 03:15+0200", "03-29 03:30+0200"]

    assert fires("0,15,30,45 2,3 * * *", "Europe/Berlin", "2026-03-29T01:59", 3) == expected
    assert fires("0,15,30,45 2,3 * * *", "Europe/Berlin", "2026-03-29T01:59", 3, gap="skip") == expected
    assert fires("15,30,45 2,3 * * *", "Europe/Berlin", "2026-03-29T01:59", 2) == expected[:2]


@pytest.mark.parametrize(
    ("place", "since", "first", "last", "next_day"),
    [
        ("Europe/Berlin", "2026-10-24T12:00", "10-25 02:30+0200", "10-25 02:30+0100", "10-26 02:30+0100"),
        ("America/New_York", "2026-10-31T12:00", "11-01 01:30-0400", "11-01 01:30-0500", "11-02 01:30-0500"),
    ],
)
def test_a_repeated_fixed_time_fires_at_its_first_or_last_occurrence_or_at_both(
    place: str, since: str, first: str, last: str, next_day: str
):
    expression = f"30 {first[7:8]} * * *"

    assert fires(expression, place, since, 2) == [first, next_day]
    assert fires(expression, place, since, 2, overlap="last") == [last, next_day]
    assert fires(expression, place, since, 3, overlap="both") == [first, last, next_day]


@pytest.mark.parametrize("expression", ["*/30 * * * *", "*/30 1-3 * * *", "0,30 * * * *", "0 0/30 * * * ?"])
def test_a_wildcard_cron_follows_real_time_under_every_policy(expression: str):
    spring = ["01:30+0100", "03:00+0200", "03:30+0200"]
    autumn = ["01:30+0200", "02:00+0200", "02:30+0200", "02:00+0100", "02:30+0100", "03:00+0100"]
    for policy in POLICIES:
        gap, overlap = policy.gap, policy.overlap
        assert [fire[6:] for fire in fires(expression, "Europe/Berlin", "2026-03-29T01:00", 3, gap, overlap)] == spring
        assert [fire[6:] for fire in fires(expression, "Europe/Berlin", "2026-10-25T01:00", 6, gap, overlap)] == autumn


def test_a_wildcard_minute_in_a_lost_hour_does_not_fire_that_day():
    assert fires("*/20 2 * * *", "America/New_York", "2026-03-08T00:00", 1) == ["03-09 02:00-0400"]


def test_a_gap_and_an_overlap_of_half_an_hour_are_kept_to_the_minute():
    lord_howe = "Australia/Lord_Howe"

    assert fires("15 2 * * *", lord_howe, "2026-10-04T00:00", 2) == ["10-04 02:30+1100", "10-05 02:15+1100"]
    assert fires("45 1 * * *", lord_howe, "2026-04-05T00:00", 2, overlap="both") == [
        "04-05 01:45+1100",
        "04-05 01:45+1030",
    ]
    assert fires("15 1 * * *", lord_howe, "2026-04-05T00:00", 2, overlap="both") == [
        "04-05 01:15+1100",
        "04-06 01:15+1030",
    ]


def test_a_day_that_a_country_skipped_is_one_gap():
    apia = "Pacific/Apia"

    assert fires("0 0 30 12 *", apia, "2011-12-29T12:00", 1) == ["12-31 00:00+1400"]
    assert fires("0 0 30 12 *", apia, "2011-12-29T12:00", 1, gap="skip") == ["12-30 00:00+1400"]
    assert fires("0 0 * * *", apia, "2011-12-28T12:00", 3) == [
        "12-29 00:00-1000",
        "12-31 00:00+1400",
        "01-01 00:00+1400",
    ]
    assert fires("0 8,20 * * *", apia, "2011-12-29T12:00", 3) == [
        "12-29 20:00-1000",
        "12-31 00:00+1400",
        "12-31 08:00+1400",
    ]


@pytest.mark.parametrize(
    ("place", "since", "expected"),
    [
        ("America/Sao_Paulo", "2017-10-14T12:00", ["10-15 01:00-0200", "10-16 00:00-0200"]),
        ("Africa/Cairo", "2024-04-25T12:00", ["04-26 01:00+0300", "04-27 00:00+0300"]),
        ("Asia/Beirut", "2024-03-30T12:00", ["03-31 01:00+0300", "04-01 00:00+0300"]),
    ],
)
def test_a_midnight_that_does_not_exist_fires_when_that_day_begins(place: str, since: str, expected: list[str]):
    assert fires("0 0 * * *", place, since, 2) == expected


def test_a_midnight_that_comes_twice_fires_once():
    expected = ["02-17 23:30-0200", "02-18 23:30-0300"]

    assert fires("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00", 2) == expected


def test_a_summer_time_that_is_called_standard_changes_nothing():
    assert fires("30 1 * * *", "Europe/Dublin", "2026-03-28T12:00", 1) == ["03-29 02:00+0100"]
    assert fires("30 1 * * *", "Europe/Dublin", "2026-10-25T00:00", 1, overlap="last") == ["10-25 01:30+0000"]


def test_a_clock_that_is_changed_for_good_counts_like_any_other_change():
    assert fires("30 1 * * *", "Europe/Moscow", "2014-10-25T12:00", 2) == ["10-26 01:30+0400", "10-27 01:30+0300"]
    assert fires("45 23 * * *", "Asia/Pyongyang", "2018-05-04T12:00", 2) == ["05-05 00:00+0900", "05-05 23:45+0900"]


def test_the_next_fire_is_strictly_later_even_inside_a_second():
    cron, utc, midnight = parse("0 0 * * *"), zone("UTC"), datetime(2026, 1, 1, tzinfo=UTC)

    assert next_fire(cron, utc, midnight) == midnight + timedelta(days=1)
    assert next_fire(cron, utc, midnight - timedelta(microseconds=1)) == midnight
    assert next_fire(cron, utc, midnight + timedelta(microseconds=1)) == midnight + timedelta(days=1)


def test_the_rarest_day_is_found_across_a_century_without_a_leap_year():
    cron, after = parse("0 0 29 2 */7"), datetime(2088, 3, 1, tzinfo=UTC)

    assert next_fire(cron, zone("Europe/Berlin"), after) == datetime(2128, 2, 28, 23, tzinfo=UTC)


def test_the_search_ends_at_the_edges_of_the_calendar():
    cron, berlin = parse("0 0 29 2 *"), zone("Europe/Berlin")

    assert next_fire(cron, berlin, datetime.max.replace(tzinfo=UTC)) is None
    assert next_fire(cron, berlin, datetime.min.replace(tzinfo=UTC)) is not None


def test_seconds_of_one_fixed_minute_share_its_fate():
    assert fires("*/20 30 2 * * ?", "Europe/Berlin", "2026-03-28T12:00", 2) == ["03-29 03:00+0200", "03-30 02:30+0200"]
    assert fires("0/30 30 2 * * ?", "Europe/Berlin", "2026-10-25T00:00", 3) == [
        *["10-25 02:30+0200"] * 2,
        "10-26 02:30+0100",
    ]
    assert fires("0/30 30 2 * * ?", "Europe/Berlin", "2026-10-25T00:00", 3, overlap="last") == [
        *["10-25 02:30+0100"] * 2,
        "10-26 02:30+0100",
    ]

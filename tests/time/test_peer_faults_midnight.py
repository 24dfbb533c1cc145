"""Faults of other schedulers where midnight does not exist, and for jobs that follow real time through a gap.

The catalogue is docs/concepts/peer-faults.md.
"""

import pytest
from fire_times import fires

CHICAGO, LOS_ANGELES = "America/Chicago", "America/Los_Angeles"
SANTIAGO, SAO_PAULO = "America/Santiago", "America/Sao_Paulo"


# A midnight that does not exist


def test_cron_parser_25_a_lost_midnight_on_the_way_does_not_trap_the_search():
    assert fires("0 0 0 10 * *", SAO_PAULO, "2014-10-13 12:00-03:00") == ["2014-11-10 00:00-02:00"]


def test_kelektiv_cron_118_noon_of_a_later_day_is_found_across_a_lost_midnight():
    assert fires("0 0 12 11,26 * *", SAO_PAULO, "2014-10-12 12:00-03:00") == ["2014-10-26 12:00-02:00"]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 0 1 4 11 *", "2018-11-04 01:00-02:00"),
        ("0 0 2 4 11 *", "2018-11-04 02:00-02:00"),
        ("0 1 * * 0", "2018-11-04 01:00-02:00"),
    ],
)
def test_nats_8543_the_hours_after_a_lost_midnight_belong_to_their_day(cron: str, expected: str):
    assert fires(cron, SAO_PAULO, "2018-11-03 23:00-03:00") == [expected]


def test_spring_36859_a_day_that_begins_at_one_is_not_left_out():
    assert fires("0 0 */2 * * ?", "Africa/Cairo", "2025-04-24 21:10:20+02:00", 3) == [
        "2025-04-24 22:00+02:00",
        "2025-04-25 02:00+03:00",
        "2025-04-25 04:00+03:00",
    ]


def test_cron_utils_324_midnight_in_cairo_ends_the_search_with_and_without_summer_time():
    assert fires("0 0 0 * * *", "Africa/Cairo", "2018-04-27 23:00+02:00") == ["2018-04-28 00:00+02:00"]
    assert fires("0 0 0 * * *", "Africa/Cairo", "2023-04-27 23:00+02:00", 2) == [
        "2023-04-28 01:00+03:00",
        "2023-04-29 00:00+03:00",
    ]


def test_prefect_5957_the_sunday_without_midnight_fires_once_and_the_weeks_go_on():
    assert fires("0 0 * * 0", SANTIAGO, "2022-08-21 00:00-04:00", 4) == [
        "2022-08-28 00:00-04:00",
        "2022-09-04 00:00-04:00",
        "2022-09-11 01:00-03:00",
        "2022-09-18 00:00-03:00",
    ]


def test_croner_132_no_day_is_skipped_in_a_country_whose_clocks_change_at_midnight():
    assert fires("0 0 0 * * *", SANTIAGO, "2022-09-09 12:00-04:00", 3) == [
        "2022-09-10 00:00-04:00",
        "2022-09-11 01:00-03:00",
        "2022-09-12 00:00-03:00",
    ]


def test_fugit_60_a_monthly_job_is_found_beyond_a_lost_midnight():
    assert fires("0 8 15 * *", SANTIAGO, "2021-08-17 12:00-04:00") == ["2021-09-15 08:00-03:00"]


def test_delayed_cron_job_30_every_minute_of_monday_begins_after_a_sunday_without_midnight():
    assert fires("* * * * 1", SANTIAGO, "2021-09-01 00:00-04:00") == ["2021-09-06 00:00-03:00"]


# What follows real time goes on through the change


def test_rufus_scheduler_140_an_hourly_job_fires_in_the_hour_after_the_gap():
    assert fires("0 * * * *", LOS_ANGELES, "2015-03-08 01:00-08:00", 2) == [
        "2015-03-08 03:00-07:00",
        "2015-03-08 04:00-07:00",
    ]


def test_airflow_30088_every_fourth_hour_never_goes_back_in_time():
    assert fires("20 */4 * * *", LOS_ANGELES, "2023-03-11 23:00-08:00", 3) == [
        "2023-03-12 00:20-08:00",
        "2023-03-12 04:20-07:00",
        "2023-03-12 08:20-07:00",
    ]


def test_airflow_30195_every_second_hour_goes_on_when_one_of_them_is_lost():
    assert fires("0 */2 * * *", "America/Toronto", "2023-03-11 23:00-05:00", 3) == [
        "2023-03-12 00:00-05:00",
        "2023-03-12 04:00-04:00",
        "2023-03-12 06:00-04:00",
    ]


def test_croniter_258_a_shift_of_half_an_hour_moves_no_full_hour():
    assert fires("0 * * * *", "Australia/Lord_Howe", "2019-10-06 00:43+10:30", 3) == [
        "2019-10-06 01:00+10:30",
        "2019-10-06 03:00+11:00",
        "2019-10-06 04:00+11:00",
    ]


def test_apscheduler_1036_a_job_of_every_seventh_second_is_not_stuck_at_the_change():
    assert fires("*/7 * * * * *", CHICAGO, "2025-03-09 01:59:50-06:00", 3) == [
        "2025-03-09 01:59:56-06:00",
        "2025-03-09 03:00-05:00",
        "2025-03-09 03:00:07-05:00",
    ]


def test_supertinycron_14_the_minute_after_the_gap_is_not_one_in_the_past():
    assert fires("2 * * * * *", "Europe/Bucharest", "2024-03-31 02:59:02+02:00") == ["2024-03-31 04:00:02+03:00"]

"""Faults of other schedulers when the clock is set forward. The catalogue is docs/concepts/peer-faults.md."""

import pytest
from fire_times import fires

from horai.time.cron import Gap

NEW_YORK, CHICAGO, LOS_ANGELES = "America/New_York", "America/Chicago", "America/Los_Angeles"
BERLIN = "Europe/Berlin"


# A fixed time that the clock jumps over


def test_quartz_51_a_daily_job_at_two_is_not_lost_when_two_is_jumped_over():
    assert fires("0 0 2 * * ?", LOS_ANGELES, "2016-03-12 02:00-08:00", 2) == [
        "2016-03-13 03:00-07:00",
        "2016-03-14 02:00-07:00",
    ]


def test_robfig_cron_12_two_o_clock_fires_on_the_day_that_has_none():
    assert fires("0 0 2 * * *", LOS_ANGELES, "2014-03-09 01:00-08:00", 3) == [
        "2014-03-09 03:00-07:00",
        "2014-03-10 02:00-07:00",
        "2014-03-11 02:00-07:00",
    ]


@pytest.mark.parametrize(("gap", "expected"), [("shift", "2025-03-09 03:00-07:00"), ("skip", "2025-03-10 02:00-07:00")])
def test_robfig_cron_541_skipping_the_lost_time_is_a_choice_not_a_fate(gap: Gap, expected: str):
    assert fires("0 2 * * *", LOS_ANGELES, "2025-03-08 12:00-08:00", gap=gap) == [expected]


def test_node_cron_518_a_time_in_the_gap_does_not_put_the_job_off_for_ten_months():
    assert fires("30 2 * * *", NEW_YORK, "2026-03-08 01:30-05:00", 2) == [
        "2026-03-08 03:00-04:00",
        "2026-03-09 02:30-04:00",
    ]
    assert fires("30 2 * * *", NEW_YORK, "2026-03-08 01:30-05:00", gap="skip") == ["2026-03-09 02:30-04:00"]


@pytest.mark.parametrize(
    ("cron", "after_that"),
    [("30 2 * * *", "2023-03-27 02:30+02:00"), ("30 2 * * 0", "2023-04-02 02:30+02:00")],
)
def test_kelektiv_cron_638_the_search_for_a_lost_time_ends(cron: str, after_that: str):
    expected = ["2023-03-26 03:00+02:00", after_that]

    assert fires(cron, "Europe/Amsterdam", "2023-03-25 12:00+01:00", 2) == expected


def test_kelektiv_cron_919_a_yearly_time_in_the_gap_fires_that_year_and_the_next():
    assert fires("0 1 30 3 *", "Europe/Lisbon", "2024-11-15 12:00+00:00", 2) == [
        "2025-03-30 02:00+01:00",
        "2026-03-30 01:00+01:00",
    ]


def test_kelektiv_cron_563_a_lost_time_fires_once_and_a_repeated_time_fires_once():
    assert fires("30 2 * * *", NEW_YORK, "2021-03-13 02:30-05:00") == ["2021-03-14 03:00-04:00"]
    assert fires("30 1 * * *", NEW_YORK, "2021-11-07 00:00-04:00", 2) == [
        "2021-11-07 01:30-04:00",
        "2021-11-08 01:30-05:00",
    ]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("30 2 * * 7", "2025-03-30 03:00+02:00"),
        ("0 3 * * 7", "2025-03-30 03:00+02:00"),
        ("0 4 * * 7", "2025-03-30 04:00+02:00"),
        ("0 5 * * 7", "2025-03-30 05:00+02:00"),
    ],
)
def test_cron_parser_404_a_gap_does_not_end_the_iteration(cron: str, expected: str):
    assert fires(cron, "Europe/Rome", "2025-03-29 00:59:59+01:00") == [expected]


def test_spring_26830_a_time_in_the_gap_has_a_next_fire():
    assert fires("0 10 2 * * *", BERLIN, "2021-03-28 01:09+01:00") == ["2021-03-28 03:00+02:00"]


def test_spring_28245_half_a_minute_before_the_gap_the_lost_time_is_still_to_come():
    assert fires("0 30 2 * * ?", "Europe/Zurich", "2022-03-27 01:59:30+01:00") == ["2022-03-27 03:00+02:00"]


def test_apscheduler_1059_no_fire_has_a_local_time_that_does_not_exist():
    assert fires("0 2 * * *", NEW_YORK, "2013-03-10 01:59:59-05:00") == ["2013-03-10 03:00-04:00"]
    assert fires("0 2 * * *", NEW_YORK, "2013-03-10 01:59:59-05:00", gap="skip") == ["2013-03-11 02:00-04:00"]


def test_croniter_90_the_answer_does_not_depend_on_how_near_the_gap_one_asks():
    expected = ["2020-03-29 03:00+02:00", "2020-03-30 02:01+02:00"]

    assert fires("1 2 * * *", BERLIN, "2020-03-29 01:58:55+01:00", 2) == expected
    assert fires("1 2 * * *", BERLIN, "2020-03-29 01:59:55+01:00", 2) == expected


def test_dagster_13272_the_day_after_the_gap_goes_back_to_its_own_hour():
    assert fires("0 2 * * *", CHICAGO, "2019-03-08 12:00-06:00", 3) == [
        "2019-03-09 02:00-06:00",
        "2019-03-10 03:00-05:00",
        "2019-03-11 02:00-05:00",
    ]


def test_hangfire_537_a_time_in_the_gap_raises_no_error_and_stops_no_later_fire():
    assert fires("30 2 * * *", CHICAGO, "2016-03-13 01:59-06:00") == ["2016-03-13 03:00-05:00"]
    assert fires("* * * * *", CHICAGO, "2016-03-13 01:59-06:00", 2) == [
        "2016-03-13 03:00-05:00",
        "2016-03-13 03:01-05:00",
    ]


def test_quantum_321_a_lost_time_is_a_moment_in_the_future():
    assert fires("0 2 * * *", LOS_ANGELES, "2018-03-11 01:59-08:00") == ["2018-03-11 03:00-07:00"]


def test_nomad_5410_a_fire_after_the_gap_is_not_due_again_and_again():
    assert fires("0 2 * * *", NEW_YORK, "2019-03-10 01:59:59-05:00", 2) == [
        "2019-03-10 03:00-04:00",
        "2019-03-11 02:00-04:00",
    ]


def test_nomad_3392_a_job_at_half_past_two_runs_once_on_every_day_of_the_year():
    assert fires("30 2 * * *", BERLIN, "2017-03-25 02:30+01:00", 2) == [
        "2017-03-26 03:00+02:00",
        "2017-03-27 02:30+02:00",
    ]
    assert fires("30 2 * * *", BERLIN, "2017-10-28 02:30+02:00", 2) == [
        "2017-10-29 02:30+02:00",
        "2017-10-30 02:30+01:00",
    ]


def test_gocron_911_spring_skips_nothing_and_autumn_doubles_nothing():
    assert fires("30 2 * * *", NEW_YORK, "2026-03-08 01:58-05:00") == ["2026-03-08 03:00-04:00"]
    assert fires("30 1 * * *", NEW_YORK, "2026-11-01 01:30-04:00") == ["2026-11-02 01:30-05:00"]


@pytest.mark.parametrize("cron", ["1 2 * * *", "30 2 * * *", "59 2 * * *"])
def test_netresearch_go_cron_41_every_minute_of_the_lost_hour_shares_one_fate(cron: str):
    assert fires(cron, NEW_YORK, "2026-03-08 01:00-05:00") == ["2026-03-08 03:00-04:00"]


def test_rundeck_6879_a_critical_job_in_the_lost_hour_runs():
    assert fires("15 2 * * *", NEW_YORK, "2021-03-13 12:00-05:00") == ["2021-03-14 03:00-04:00"]


def test_quartznet_2497_asking_from_a_shifted_fire_leads_on_to_the_next_day():
    assert fires("30 1 * * *", "Europe/London", "2025-03-29 01:30+00:00", 2) == [
        "2025-03-30 02:00+01:00",
        "2025-03-31 01:30+01:00",
    ]


def test_quartz_1352_a_gap_in_the_past_does_not_move_the_days_after_it():
    assert fires("30 2 * * *", "Europe/Amsterdam", "2025-04-01 02:00+02:00") == ["2025-04-01 02:30+02:00"]


# A day of 23 hours must not be stepped over


def test_cronie_218_a_short_day_does_not_swallow_a_weekly_job():
    assert fires("0 12 * * 0", BERLIN, "2022-03-24 12:00+01:00") == ["2022-03-27 12:00+02:00"]


def test_cronie_217_a_month_with_another_offset_begins_at_midnight():
    assert fires("* * * */3 *", NEW_YORK, "2015-02-15 00:00-05:00") == ["2015-04-01 00:00-04:00"]


def test_cron_parser_400_a_weekday_on_the_short_day_is_that_day():
    assert fires("0 8 * * 0", CHICAGO, "2026-03-07 23:45-06:00") == ["2026-03-08 08:00-05:00"]


def test_spring_28038_midnight_of_the_next_day_is_not_the_day_after():
    assert fires("0 5 0 * * *", "Europe/Amsterdam", "2021-03-28 01:00+01:00") == ["2021-03-29 00:05+02:00"]


def test_apscheduler_529_monday_after_the_change_is_not_tuesday():
    assert fires("0 0 * * 1-5", CHICAGO, "2021-03-12 00:00:01-06:00") == ["2021-03-15 00:00-05:00"]


def test_fugit_53_midnight_on_monday_comes_the_day_after_the_change():
    assert fires("0 0 * * 1", "Europe/Zurich", "2021-03-22 12:00+01:00") == ["2021-03-29 00:00+02:00"]


def test_rufus_scheduler_114_a_weekday_job_just_after_midnight_runs_on_monday():
    assert fires("2 0 * * 1,2,3,4,5", NEW_YORK, "2014-03-07 00:02-05:00") == ["2014-03-10 00:02-04:00"]


def test_prefect_10678_a_cron_between_midnight_and_the_clock_change_fires_at_the_right_times():
    assert fires("10 0 * * *", "America/Toronto", "2023-03-12 00:10:02-05:00", 3) == [
        "2023-03-13 00:10-04:00",
        "2023-03-14 00:10-04:00",
        "2023-03-15 00:10-04:00",
    ]


def test_croniter_82_midnight_after_the_change_is_midnight():
    assert fires("0 0 * * *", "Europe/Warsaw", "2017-03-26 00:00+01:00") == ["2017-03-27 00:00+02:00"]


def test_croniter_70_the_first_of_the_month_after_the_change_comes_once():
    assert fires("0 0 1 * *", BERLIN, "2024-03-01 00:00+01:00", 2) == [
        "2024-04-01 00:00+02:00",
        "2024-05-01 00:00+02:00",
    ]


def test_cron_utils_61_five_in_the_afternoon_stays_five_in_the_afternoon():
    assert fires("0 17 * * *", NEW_YORK, "2016-03-12 17:00-05:00") == ["2016-03-13 17:00-04:00"]
    assert fires("0 17 * * *", NEW_YORK, "2016-11-05 17:00-04:00") == ["2016-11-06 17:00-05:00"]


def test_django_celery_beat_134_a_daily_time_is_not_an_hour_late_on_the_day_of_the_change():
    assert fires("4 16 * * *", NEW_YORK, "2025-03-08 16:04-05:00") == ["2025-03-09 16:04-04:00"]


def test_airflow_30083_office_hours_begin_at_nine_on_the_day_of_the_change():
    assert fires("0 9-16 * * *", NEW_YORK, "2023-03-11 16:00-05:00") == ["2023-03-12 09:00-04:00"]


def test_quartznet_846_the_first_run_after_the_change_is_on_time():
    assert fires("0 17,19 * * 1-5", NEW_YORK, "2020-03-06 19:00-05:00", 2) == [
        "2020-03-09 17:00-04:00",
        "2020-03-09 19:00-04:00",
    ]


def test_quartznet_612_in_the_evening_of_the_short_day_the_next_midnight_lies_ahead():
    assert fires("0 0 * * *", "Europe/Bucharest", "2018-03-25 22:10+03:00") == ["2018-03-26 00:00+03:00"]


def test_node_cron_510_late_in_the_evening_of_the_change_the_next_hour_is_after_midnight():
    assert fires("0 55 * * * *", "Europe/Belgrade", "2026-03-29 23:55:01+02:00") == ["2026-03-30 00:55+02:00"]
    assert fires("0 55 * * * *", "Europe/Belgrade", "2026-03-31 23:55:01+02:00") == ["2026-04-01 00:55+02:00"]

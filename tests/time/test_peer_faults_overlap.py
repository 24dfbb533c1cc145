"""Faults of other schedulers when the clock is set back. The catalogue is docs/concepts/peer-faults.md."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from fire_times import fires

from horai.time.cron import Overlap

NEW_YORK, CHICAGO, LOS_ANGELES = "America/New_York", "America/Chicago", "America/Los_Angeles"
BERLIN, LONDON, SAO_PAULO = "Europe/Berlin", "Europe/London", "America/Sao_Paulo"


# A fixed time that comes twice


def test_robfig_cron_12_one_o_clock_does_not_repeat_itself():
    assert fires("0 0 1 * * *", LOS_ANGELES, "2014-11-02 01:00-07:00") == ["2014-11-03 01:00-08:00"]
    assert fires("0 0 * * * *", LOS_ANGELES, "2014-11-02 01:00-07:00", 2) == [
        "2014-11-02 01:00-08:00",
        "2014-11-02 02:00-08:00",
    ]


@pytest.mark.parametrize("cron", ["1 1 * * *", "1 2 * * *", "59 1 * * *"])
def test_fugit_6_a_daily_job_fires_365_times_in_a_year_of_365_days(cron: str):
    found = fires(cron, NEW_YORK, "2018-01-01 00:00-05:00", 366)

    assert [fire[:4] for fire in found].count("2018") == 365


def test_croner_142_365_fires_are_365_days():
    found = fires("0 30 2 * * *", BERLIN, "2022-10-26 12:00+02:00", 365)

    assert found[0] == "2022-10-27 02:30+02:00"
    assert found[-1] == "2023-10-26 02:30+02:00"
    assert len({fire[:10] for fire in found}) == 365


def test_cron_utils_446_a_yearly_time_that_comes_twice_fires_once_a_year():
    assert fires("0 2 25 10 *", "Europe/Rome", "2020-10-25 02:00+02:00") == ["2021-10-25 02:00+02:00"]


def test_celery_6438_a_time_in_the_repeated_hour_fires_once_and_the_next_day_again():
    assert fires("20 2 * * *", "Europe/Paris", "2020-10-24 12:00+02:00", 2) == [
        "2020-10-25 02:20+02:00",
        "2020-10-26 02:20+01:00",
    ]


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("first", "2024-11-03 02:00+01:00"),
        ("last", "2024-10-27 02:00+01:00"),
        ("both", "2024-10-27 02:00+01:00"),
    ],
)
def test_cronos_71_whether_the_second_occurrence_counts_is_written_down(overlap: Overlap, expected: str):
    assert fires("0 0 2 ? * 1", BERLIN, "2024-10-27 02:30+02:00", overlap=overlap) == [expected]


def test_quantum_407_an_ambiguous_time_ends_nothing():
    assert fires("30 2 * * *", "Australia/Adelaide", "2019-04-06 12:00+10:30", 2) == [
        "2019-04-07 02:30+10:30",
        "2019-04-08 02:30+09:30",
    ]


@pytest.mark.parametrize("minute", ["05", "10", "15", "20"])
def test_jobrunr_1145_a_daily_job_is_not_enqueued_again_in_the_repeated_hour(minute: str):
    assert fires(f"{minute} 2 * * *", BERLIN, "2024-10-26 02:30+02:00", 2) == [
        f"2024-10-27 02:{minute}+02:00",
        f"2024-10-28 02:{minute}+01:00",
    ]


def test_temporal_8205_every_answer_to_a_lost_and_a_repeated_time_can_be_chosen():
    spring, autumn = "2025-03-08 12:00-05:00", "2025-11-01 12:00-04:00"

    assert fires("30 2 * * *", NEW_YORK, spring, gap="shift") == ["2025-03-09 03:00-04:00"]
    assert fires("30 2 * * *", NEW_YORK, spring, gap="skip") == ["2025-03-10 02:30-04:00"]
    assert fires("30 1 * * *", NEW_YORK, autumn, 2, overlap="first") == [
        "2025-11-02 01:30-04:00",
        "2025-11-03 01:30-05:00",
    ]
    assert fires("30 1 * * *", NEW_YORK, autumn, 2, overlap="last") == [
        "2025-11-02 01:30-05:00",
        "2025-11-03 01:30-05:00",
    ]
    assert fires("30 1 * * *", NEW_YORK, autumn, 2, overlap="both") == [
        "2025-11-02 01:30-04:00",
        "2025-11-02 01:30-05:00",
    ]


def test_apscheduler_120_behaviour_at_a_change_is_defined():
    assert fires("30 2 * * *", BERLIN, "2016-03-26 02:30+01:00", gap="skip") == ["2016-03-28 02:30+02:00"]
    assert fires("30 2 * * *", BERLIN, "2015-10-24 02:30+02:00", 3, overlap="both") == [
        "2015-10-25 02:30+02:00",
        "2015-10-25 02:30+01:00",
        "2015-10-26 02:30+01:00",
    ]


def test_healthchecks_196_two_o_clock_is_a_time_of_day_even_in_the_week_of_the_change():
    assert fires("0 2 * * *", "Europe/Copenhagen", "2018-10-27 12:00+02:00", 2) == [
        "2018-10-28 02:00+02:00",
        "2018-10-29 02:00+01:00",
    ]


# The day of 25 hours


def test_spring_28095_midnight_after_the_long_day_is_the_next_midnight():
    assert fires("0 5 0 * * *", "Europe/Paris", "2019-10-27 01:05+02:00") == ["2019-10-28 00:05+01:00"]


def test_cron_parser_72_noon_is_found_every_day_across_the_change():
    assert fires("0 12 * * *", "Europe/Madrid", "2016-10-28 12:00+02:00", 3) == [
        "2016-10-29 12:00+02:00",
        "2016-10-30 12:00+01:00",
        "2016-10-31 12:00+01:00",
    ]


def test_celery_1604_noon_on_monday_is_not_also_eleven_on_monday():
    assert fires("0 12 * * 1", "Europe/Amsterdam", "2013-10-21 12:00+02:00", 2) == [
        "2013-10-28 12:00+01:00",
        "2013-11-04 12:00+01:00",
    ]


def test_croniter_48_the_first_monday_after_the_change_has_one_fire():
    assert fires("0 8 * * 1", "Europe/Amsterdam", "2017-10-16 08:00+02:00", 3) == [
        "2017-10-23 08:00+02:00",
        "2017-10-30 08:00+01:00",
        "2017-11-06 08:00+01:00",
    ]


def test_croniter_25_eight_in_the_evening_stays_eight_on_the_days_after_the_change():
    assert fires("00 20 * * *", "Europe/Paris", "2022-10-30 00:00+02:00", 3) == [
        "2022-10-30 20:00+01:00",
        "2022-10-31 20:00+01:00",
        "2022-11-01 20:00+01:00",
    ]


def test_croniter_87_midnight_after_a_repeated_evening_is_not_eleven():
    expected = ["2018-02-18 00:00-03:00"]

    assert fires("0 0 * * *", SAO_PAULO, "2018-02-17 00:00-02:00") == expected
    assert fires("0 0 * * *", SAO_PAULO, "2018-02-17 00:05-02:00") == expected
    assert fires("0 0 * * *", SAO_PAULO, "2018-02-17 23:30-03:00") == expected


def test_croniter_116_eight_on_monday_is_not_seven_on_monday():
    assert fires("0 8 * * 1,2,3,4,5", NEW_YORK, "2018-11-04 05:00-05:00") == ["2018-11-05 08:00-05:00"]


def test_bull_2207_a_weekly_job_runs_once_in_the_week_of_the_change():
    assert fires("0 6 * * MON", NEW_YORK, "2021-11-01 06:00-04:00", 2) == [
        "2021-11-08 06:00-05:00",
        "2021-11-15 06:00-05:00",
    ]


def test_airflow_35272_several_times_a_day_go_on_after_the_change():
    assert fires("15 7,8,13,19 * * *", "Europe/Brussels", "2023-10-28 19:15+02:00", 4) == [
        "2023-10-29 07:15+01:00",
        "2023-10-29 08:15+01:00",
        "2023-10-29 13:15+01:00",
        "2023-10-29 19:15+01:00",
    ]
    assert fires("0,15,30,45 6-22 * * *", "Europe/Brussels", "2023-10-28 22:45+02:00") == ["2023-10-29 06:00+01:00"]


def test_tokio_cron_scheduler_107_an_hour_after_the_repeated_one_keeps_its_name():
    assert fires("0 5 2 * * *", "Europe/Dublin", "2025-10-25 02:05+01:00") == ["2025-10-26 02:05+00:00"]


# What follows real time fires in the repeated hour too


def test_quartz_81_every_minute_goes_on_through_the_repeated_hour():
    assert fires("0 * * * * ?", BERLIN, "2016-10-30 02:59+02:00", 2) == [
        "2016-10-30 02:00+01:00",
        "2016-10-30 02:01+01:00",
    ]


def test_quartz_1104_every_fifteen_seconds_does_not_stop_for_an_hour():
    assert fires("*/15 * * * * ?", BERLIN, "2023-10-29 02:59:45+02:00", 2) == [
        "2023-10-29 02:00+01:00",
        "2023-10-29 02:00:15+01:00",
    ]


def test_quartznet_2475_in_the_repeated_hour_the_next_minute_lies_ahead():
    assert fires("0 * * * * ?", BERLIN, "2023-10-29 02:00+01:00", 2) == [
        "2023-10-29 02:01+01:00",
        "2023-10-29 02:02+01:00",
    ]


def test_quartznet_540_every_quarter_of_the_repeated_hour_comes_and_the_search_ends():
    assert fires("0 0/15 * * * ?", BERLIN, "2017-10-29 02:59:59+02:00", 5) == [
        "2017-10-29 02:00+01:00",
        "2017-10-29 02:15+01:00",
        "2017-10-29 02:30+01:00",
        "2017-10-29 02:45+01:00",
        "2017-10-29 03:00+01:00",
    ]


def test_hangfire_567_a_job_of_every_minute_runs_in_both_hours_from_one_to_two():
    assert fires("* * * * *", LONDON, "2016-10-30 01:59+01:00") == ["2016-10-30 01:00+00:00"]


def test_kelektiv_cron_120_every_minute_does_not_end_with_the_first_repeated_one():
    assert fires("00 */1 * * * *", NEW_YORK, "2014-11-02 01:59-04:00", 2) == [
        "2014-11-02 01:00-05:00",
        "2014-11-02 01:01-05:00",
    ]


def test_node_cron_492_every_thirty_seconds_goes_on_the_night_before_and_in_the_repeated_hour():
    assert fires("*/30 * * * * *", CHICAGO, "2025-11-01 23:59:30-05:00") == ["2025-11-02 00:00-05:00"]
    assert fires("*/30 * * * * *", CHICAGO, "2025-11-02 01:59:30-05:00") == ["2025-11-02 01:00-06:00"]


def test_croner_343_every_second_means_the_second_after():
    assert fires("* * * * * *", "Europe/Vienna", "2025-10-26 02:59:58+02:00", 3) == [
        "2025-10-26 02:59:59+02:00",
        "2025-10-26 02:00+01:00",
        "2025-10-26 02:00:01+01:00",
    ]


def test_fugit_97_every_minute_crosses_the_end_of_summer_time():
    assert fires("*/1 * * * *", "Europe/Tallinn", "2012-10-28 03:58+03:00", 3) == [
        "2012-10-28 03:59+03:00",
        "2012-10-28 03:00+02:00",
        "2012-10-28 03:01+02:00",
    ]


def test_rufus_scheduler_175_every_minute_of_the_repeated_hour_has_its_fire():
    assert fires("* * * * *", LOS_ANGELES, "2015-11-01 01:57-07:00", 4) == [
        "2015-11-01 01:58-07:00",
        "2015-11-01 01:59-07:00",
        "2015-11-01 01:00-08:00",
        "2015-11-01 01:01-08:00",
    ]


def test_celery_10107_an_hourly_job_runs_at_both_one_o_clocks():
    assert fires("0 * * * *", LOS_ANGELES, "2026-11-01 01:00-07:00") == ["2026-11-01 01:00-08:00"]


def test_dagster_17547_an_hourly_schedule_has_25_ticks_on_the_long_day():
    found = fires("0 * * * *", CHICAGO, "2019-11-02 23:59-05:00", 26)

    assert found[:4] == [
        "2019-11-03 00:00-05:00",
        "2019-11-03 01:00-05:00",
        "2019-11-03 01:00-06:00",
        "2019-11-03 02:00-06:00",
    ]
    assert found[-1] == "2019-11-04 00:00-06:00"


def test_dagster_32250_no_two_ticks_of_an_hourly_schedule_are_the_same_instant():
    found = [datetime.fromisoformat(fire) for fire in fires("0 * * * *", BERLIN, "2025-10-26 00:00+02:00", 5)]

    assert [later - earlier for earlier, later in pairwise(found)] == [timedelta(hours=1)] * 4


def test_apscheduler_1021_a_minute_of_each_hour_moves_on_from_within_the_repeated_hour():
    assert fires("30 * * * *", "Europe/Helsinki", "2017-10-29 03:45+02:00", 2) == [
        "2017-10-29 04:30+02:00",
        "2017-10-29 05:30+02:00",
    ]


def test_apscheduler_980_every_other_hour_moves_on_from_the_repeated_one():
    assert fires("0 1/2 * * *", LONDON, "2024-10-27 01:00+01:00", 2) == [
        "2024-10-27 03:00+00:00",
        "2024-10-27 05:00+00:00",
    ]
    assert fires("0 1/2 * * *", LONDON, "2024-10-27 00:00+01:00", 3, overlap="both") == [
        "2024-10-27 01:00+01:00",
        "2024-10-27 01:00+00:00",
        "2024-10-27 03:00+00:00",
    ]

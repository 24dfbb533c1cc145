"""Weekdays, last days and nearest weekdays that other crons misread. The catalogue is docs/concepts/peer-faults.md."""

import pytest
from fire_times import fires

from horai.time.cron import CronError, parse

UTC, NEW_YORK, SHANGHAI = "UTC", "America/New_York", "Asia/Shanghai"


def hint(cron: str) -> str:
    """Return the hint in the refusal of `cron`: the expression to write instead."""
    with pytest.raises(CronError) as refused:
        parse(cron)
    return refused.value.hint or ""


# Weekdays: their numbers, ranges and steps


def test_quartz_165_tuesday_to_saturday_begins_on_tuesday():
    assert fires("0 5 0 ? * TUE-SAT", NEW_YORK, "2017-07-03 21:04:22-04:00") == ["2017-07-04 00:05-04:00"]


def test_quartz_258_weekday_six_is_friday_and_years_far_ahead_are_found():
    cron = "4 23-37 0-3 ? * 6 2079-2097"

    assert fires(cron, SHANGHAI, "2018-09-05 00:00+08:00") == ["2079-01-06 00:23:04+08:00"]


def test_cron_utils_41_wednesday_is_the_next_wednesday():
    assert fires("0 3 * * 3", UTC, "2015-09-18 12:00Z") == ["2015-09-23 03:00+00:00"]


def test_cron_utils_92_tuesday_at_the_end_of_a_month_is_not_passed_over():
    assert fires("1 0 * * tue", UTC, "2016-05-24 01:02:50Z") == ["2016-05-31 00:01+00:00"]


def test_cron_utils_394_monday_is_not_every_day():
    assert fires("0 0 9 * * MON", UTC, "2019-09-11 10:00Z", 2) == ["2019-09-16 09:00+00:00", "2019-09-23 09:00+00:00"]


@pytest.mark.parametrize(
    ("after", "expected"),
    [("2017-06-30 10:00Z", "2017-07-03 08:00+00:00"), ("2017-09-29 10:00Z", "2017-10-02 08:00+00:00")],
)
def test_cron_utils_215_a_workday_in_the_next_month_is_not_a_saturday(after: str, expected: str):
    assert fires("0 0 8 ? * MON-FRI", UTC, after) == [expected]


def test_cron4s_59_weekdays_never_lead_into_the_past():
    assert fires("0 0 * * 1-3", UTC, "2017-03-29 02:00Z", 2) == ["2017-04-03 00:00+00:00", "2017-04-04 00:00+00:00"]


def test_croner_54_sunday_is_this_week_not_next_year():
    assert fires("0 0 * * sun", UTC, "2022-02-17 00:00Z") == ["2022-02-20 00:00+00:00"]


def test_dkron_1031_a_weekday_is_read_in_the_zone_of_the_job():
    assert fires("0 48 10 ? * WED", "America/Phoenix", "2021-12-01 09:00-07:00") == ["2021-12-01 10:48-07:00"]


def test_cronie_215_a_stepped_weekday_is_no_star():
    assert fires("0 0 * * */2", UTC, "2026-01-01 00:00Z", 2) == ["2026-01-03 00:00+00:00", "2026-01-04 00:00+00:00"]


def test_cron_utils_336_every_third_weekday_is_sunday_wednesday_saturday():
    assert fires("* * * * */3", UTC, "2018-02-08 00:00Z") == ["2018-02-10 00:00+00:00"]


def test_cronjs_38_every_fourth_weekday_is_not_only_sunday():
    assert fires("30 12 * * */4", UTC, "2020-01-01 00:00Z", 2) == ["2020-01-02 12:30+00:00", "2020-01-05 12:30+00:00"]


def test_dbos_1317_a_stepped_range_counts_from_its_start():
    assert fires("0 0 * * 1-7/2", UTC, "2026-07-19 00:00Z", 4) == [
        "2026-07-20 00:00+00:00",
        "2026-07-22 00:00+00:00",
        "2026-07-24 00:00+00:00",
        "2026-07-26 00:00+00:00",
    ]


def test_cron_parser_438_steps_from_tuesday_do_not_add_sunday():
    assert fires("0 9 * * 2/2", UTC, "2026-08-03 00:00Z", 4) == [
        "2026-08-04 09:00+00:00",
        "2026-08-06 09:00+00:00",
        "2026-08-08 09:00+00:00",
        "2026-08-11 09:00+00:00",
    ]


def test_fugit_119_a_range_over_the_end_keeps_its_step():
    assert fires("0 58-2/2 0 ? * FRI-MON/2", UTC, "2026-06-29 12:00Z", 4) == [
        "2026-07-03 00:00+00:00",
        "2026-07-03 00:02+00:00",
        "2026-07-03 00:58+00:00",
        "2026-07-05 00:00+00:00",
    ]


@pytest.mark.parametrize("weekdays", ["7-1/2", "5-1", "FRI-MON"])
def test_cronsim_3_a_range_that_runs_backwards_is_refused_rather_than_never_fired(weekdays: str):
    assert hint(f"0 8 * * {weekdays}")
    assert fires("0 0 8 ? * FRI-MON", UTC, "2024-11-05 00:00Z", 5) == [
        "2024-11-08 08:00+00:00",
        "2024-11-09 08:00+00:00",
        "2024-11-10 08:00+00:00",
        "2024-11-11 08:00+00:00",
        "2024-11-15 08:00+00:00",
    ]


@pytest.mark.parametrize("weekdays", ["6-7", "6,0"])
def test_cronie_200_a_range_may_end_on_a_sunday_and_one_that_names_it_is_told_how(weekdays: str):
    assert fires(f"0 0 * * {weekdays}", UTC, "2025-03-13 00:00Z", 3) == [
        "2025-03-15 00:00+00:00",
        "2025-03-16 00:00+00:00",
        "2025-03-22 00:00+00:00",
    ]
    assert "6-7" in hint("0 0 * * sat-sun")


def test_croniter_119_monday_to_sunday_is_every_day():
    assert fires("0 0 * * 1-7", UTC, "2019-01-26 12:00Z", 2) == ["2019-01-27 00:00+00:00", "2019-01-28 00:00+00:00"]
    assert "1-7" in hint("0 0 * * MON-SUN")


def test_cron_utils_59_steps_of_months_begin_with_january_and_of_weekdays_with_sunday():
    assert fires("* * */3 */4 */5", "America/Los_Angeles", "2015-12-10 16:32:56-08:00") == ["2016-01-01 00:00-08:00"]


def test_croniter_41_a_date_or_a_weekday_as_cron_has_it():
    assert fires("0 16 1,2,3 * FRI", UTC, "2023-05-01 00:00Z", 5) == [
        "2023-05-01 16:00+00:00",
        "2023-05-02 16:00+00:00",
        "2023-05-03 16:00+00:00",
        "2023-05-05 16:00+00:00",
        "2023-05-12 16:00+00:00",
    ]


def test_robfig_cron_70_a_day_that_starts_with_a_star_narrows_and_a_range_widens():
    assert fires("0 0 */10 * 1", UTC, "2016-08-31 00:00Z") == ["2016-10-31 00:00+00:00"]
    assert fires("0 0 1-31/10 * 1", UTC, "2016-08-31 00:00Z", 2) == ["2016-09-01 00:00+00:00", "2016-09-05 00:00+00:00"]


def test_oban_280_a_step_of_one_is_a_star():
    assert fires("0 0 */1 * *", UTC, "2020-06-24 12:00Z", 2) == ["2020-06-25 00:00+00:00", "2020-06-26 00:00+00:00"]


# The last day, the nearest weekday, the first Tuesday


def test_quartz_1298_the_last_day_of_february_is_still_to_come_in_its_morning():
    assert fires("0 0 11 L * ?", UTC, "2017-02-28 05:00Z", 2) == ["2017-02-28 11:00+00:00", "2017-03-31 11:00+00:00"]


def test_quartz_1392_the_last_day_of_a_month_of_30_days_is_the_30th():
    assert fires("0 0 23 L * ?", SHANGHAI, "2025-08-31 23:00+08:00") == ["2025-09-30 23:00+08:00"]


def test_spring_26390_the_last_day_begins_at_midnight_from_wherever_one_asks():
    expected = ["2021-01-31 00:00+00:00", "2021-01-31 01:00+00:00"]

    assert fires("0 0 * L * *", UTC, "2021-01-30 00:00Z", 2) == expected
    assert fires("0 0 * L * *", UTC, "2021-01-30 23:00Z", 2) == expected


def test_croniter_89_the_31st_or_the_last_day_is_every_last_day():
    assert fires("0 0 31,L * *", UTC, "2024-08-12 00:00Z", 3) == [
        "2024-08-31 00:00+00:00",
        "2024-09-30 00:00+00:00",
        "2024-10-31 00:00+00:00",
    ]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("2024-03-20 12:13:14+02:00", "2024-03-31 23:59+03:00"),
        ("2023-03-30 12:13:14+03:00", "2023-03-31 23:59+03:00"),
    ],
)
def test_cron_expression_176_the_last_day_of_march_is_not_in_april(after: str, expected: str):
    assert fires("59 23 L * *", "Europe/Helsinki", after) == [expected]


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("0 30 15 1W * ?", "2025-05-02 00:00Z", "2025-06-02 15:30+00:00"),
        ("0 30 15 1W * ?", "2025-10-02 00:00Z", "2025-11-03 15:30+00:00"),
        ("0 0 5 3W * ?", "2025-04-17 00:00Z", "2025-05-02 05:00+00:00"),
        ("0 0 5 4W * ?", "2025-04-17 00:00Z", "2025-05-05 05:00+00:00"),
        ("0 0 5 5W * ?", "2025-04-17 00:00Z", "2025-05-05 05:00+00:00"),
        ("* * * LW * ?", "2025-04-29 23:59:59Z", "2025-04-30 00:00+00:00"),
    ],
)
def test_quartz_1322_the_nearest_weekday_exists_when_the_day_is_on_a_weekend(cron: str, after: str, expected: str):
    assert fires(cron, UTC, after) == [expected]


def test_cron_utils_75_the_first_workday_of_a_month_raises_nothing():
    assert fires("0 0 12 1W * ? *", UTC, "2016-03-29 00:00Z", 2) == ["2016-04-01 12:00+00:00", "2016-05-02 12:00+00:00"]


def test_cron_utils_720_the_workday_nearest_the_31st_passes_short_months_over_and_stays_in_its_own():
    assert fires("0 0 0 31W * ?", UTC, "2025-06-01 00:00Z", 3) == [
        "2025-07-31 00:00+00:00",
        "2025-08-29 00:00+00:00",
        "2025-10-31 00:00+00:00",
    ]


def test_cron_expression_168_the_last_workday_is_not_a_wednesday():
    assert fires("0 5 LW * *", UTC, "2023-10-01 00:00Z", 2) == ["2023-10-31 05:00+00:00", "2023-11-30 05:00+00:00"]
    assert fires("0 5 LW * *", UTC, "2023-10-03 00:00Z") == ["2023-10-31 05:00+00:00"]


def test_cron_utils_142_a_bare_l_among_the_weekdays_is_saturday():
    assert fires("0 0 0 ? * L *", UTC, "2016-12-22 00:00Z", 2) == ["2016-12-24 00:00+00:00", "2016-12-31 00:00+00:00"]


def test_cron_utils_388_the_first_saturday_can_be_said():
    assert fires("0 0 8 ? * SAT#1", UTC, "2019-07-15 00:00Z", 2) == ["2019-08-03 08:00+00:00", "2019-09-07 08:00+00:00"]


@pytest.mark.parametrize("weekday", ["7L", "0L", "SUNL"])
def test_cron_parser_259_the_last_sunday_is_the_same_under_all_its_names(weekday: str):
    assert fires(f"* * * * {weekday}", UTC, "2022-03-09 00:00Z") == ["2022-03-27 00:00+00:00"]


@pytest.mark.parametrize("weekday", ["5L", "FriL"])
def test_croner_253_the_last_friday_is_not_the_next_friday(weekday: str):
    assert fires(f"0 * * * {weekday}", UTC, "2024-07-11 12:00Z") == ["2024-07-26 00:00+00:00"]
    assert fires(f"0 0 * * {weekday}", UTC, "2024-07-26 00:00Z", 2) == [
        "2024-08-30 00:00+00:00",
        "2024-09-27 00:00+00:00",
    ]


def test_fugit_48_the_first_tuesday_is_not_an_hour_off_after_the_change():
    assert fires("55 6 * * 2#1", "America/Los_Angeles", "2020-10-06 06:55-07:00", 2) == [
        "2020-11-03 06:55-08:00",
        "2020-12-01 06:55-08:00",
    ]

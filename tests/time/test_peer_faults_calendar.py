"""Days that other crons misread, lose or look for in vain. The catalogue is docs/concepts/peer-faults.md."""

import pytest
from fire_times import fires

from horai.time.cron import NO_NEXT_FIRE, CronError, parse

UTC = "UTC"


def refusal(cron: str) -> CronError:
    """Why `cron` is refused."""
    with pytest.raises(CronError) as refused:
        parse(cron)
    return refused.value


# Days that some months do not have


def test_croniter_55_a_leap_day_leads_to_the_next_leap_day():
    assert fires("0 9 29 2 *", UTC, "2016-02-29 09:00Z") == ["2020-02-29 09:00+00:00"]


def test_dagster_16259_a_leap_day_needs_no_special_case_at_any_hour():
    assert fires("15 17 29 2 *", UTC, "2023-08-31 00:00Z", 2) == ["2024-02-29 17:15+00:00", "2028-02-29 17:15+00:00"]


def test_cron_parser_122_a_leap_day_or_a_sunday_in_february():
    assert fires("0 2 29 2 0", UTC, "2018-05-14 00:00Z", 2) == ["2019-02-03 02:00+00:00", "2019-02-10 02:00+00:00"]
    assert fires("0 2 29 2 0", UTC, "2024-02-25 02:00Z") == ["2024-02-29 02:00+00:00"]


def test_spring_13621_a_leap_day_on_one_weekday_is_found_28_years_ahead():
    assert fires("0 0 29 2 */7", UTC, "2004-02-29 00:00Z") == ["2032-02-29 00:00+00:00"]


def test_cron_utils_69_a_weekday_job_on_a_leap_day_fires_within_the_hour():
    assert fires("0 * * * 1-5", "America/Chicago", "2016-02-29 11:00-06:00") == ["2016-02-29 12:00-06:00"]


def test_croniter_166_every_fifth_day_includes_the_first_of_march():
    assert fires("0 0 */5 * *", UTC, "2022-02-20 00:00Z", 4) == [
        "2022-02-21 00:00+00:00",
        "2022-02-26 00:00+00:00",
        "2022-03-01 00:00+00:00",
        "2022-03-06 00:00+00:00",
    ]


def test_croniter_178_every_tenth_day_includes_the_first_of_march():
    assert fires("0 0 */10 * *", UTC, "2025-02-20 00:00Z", 3) == [
        "2025-02-21 00:00+00:00",
        "2025-03-01 00:00+00:00",
        "2025-03-11 00:00+00:00",
    ]


def test_effect_6285_a_day_missing_from_this_month_hides_no_day_of_the_next():
    assert fires("0 0 1,16,31 * *", UTC, "2020-02-18 00:00Z") == ["2020-03-01 00:00+00:00"]


def test_cron_utils_153_the_31st_is_found_from_a_month_of_30_days():
    assert fires("0 0 8 31 * ?", UTC, "2017-04-10 00:00Z", 2) == ["2017-05-31 08:00+00:00", "2017-07-31 08:00+00:00"]


def test_cron_parser_127_months_without_a_31st_are_passed_over():
    assert fires("0 0 0 31 2,3,4,5 *", UTC, "2018-07-27 15:45Z", 3) == [
        "2019-03-31 00:00+00:00",
        "2019-05-31 00:00+00:00",
        "2020-03-31 00:00+00:00",
    ]


def test_cron4s_80_the_end_of_a_month_is_followed_by_its_next_day():
    assert fires("4 31 4 ? * *", UTC, "2017-06-30 23:30:45Z") == ["2017-07-01 04:31:04+00:00"]


def test_kelektiv_cron_191_january_has_a_thirtieth():
    assert fires("0 0 30 1 *", UTC, "2017-01-13 00:00Z", 2) == ["2017-01-30 00:00+00:00", "2018-01-30 00:00+00:00"]
    assert fires("0 0 17 1 * *", UTC, "2015-10-04 00:00Z") == ["2015-11-01 17:00+00:00"]


def test_pg_cron_288_today_s_date_is_today():
    assert fires("* 17 11 * *", "America/Argentina/Buenos_Aires", "2023-10-11 17:23:10-03:00") == [
        "2023-10-11 17:24-03:00"
    ]


def test_pg_cron_329_monthly_is_the_first_of_the_month_in_a_leap_year_too():
    assert fires("@monthly", UTC, "2024-01-01 00:00Z", 3) == [
        "2024-02-01 00:00+00:00",
        "2024-03-01 00:00+00:00",
        "2024-04-01 00:00+00:00",
    ]


# Days that never come


def test_croniter_141_what_is_valid_has_a_next_fire():
    assert str(refusal("0 0 31 2 *")) == NO_NEXT_FIRE
    assert "out of range" in str(refusal("0 0 32 2 *"))


def test_croniter_34_the_31st_of_february_is_refused_at_once():
    assert str(refusal("* * 31 2 *")) == NO_NEXT_FIRE


def test_cron_utils_310_a_cron_that_is_never_true_is_refused():
    assert str(refusal("0 0 31 2 *")) == NO_NEXT_FIRE


def test_cron_utils_329_the_30th_of_february_loops_nowhere():
    assert str(refusal("0 0 30 2 *")) == NO_NEXT_FIRE


def test_cron_parser_115_the_31st_of_april_is_refused():
    assert str(refusal("* * * 31 4 *")) == NO_NEXT_FIRE


def test_fugit_20_the_31st_of_november_is_refused():
    assert str(refusal("* * 31 11 *")) == NO_NEXT_FIRE


@pytest.mark.parametrize("cron", ["* * * 30 2 *", "* * * 31 4 *"])
def test_ccronexpr_5_impossible_dates_are_no_valid_crons(cron: str):
    assert str(refusal(cron)) == NO_NEXT_FIRE


@pytest.mark.parametrize("cron", ["0 0 31 4 *", "0 0 30 2 *", "0 0 31 2 *", "0 0 31 2,4,6 *"])
def test_cronosjs_37_only_months_that_all_lack_the_day_are_refused(cron: str):
    assert str(refusal(cron)) == NO_NEXT_FIRE
    assert fires("0 0 31 4,5 *", UTC, "2029-03-26 09:22:30Z") == ["2029-05-31 00:00+00:00"]


def test_apscheduler_105_a_weekday_that_does_not_exist_is_refused():
    assert "out of range" in str(refusal("* * * * 8"))
    assert fires("0 0 * * 7", UTC, "2015-12-09 00:00Z") == ["2015-12-13 00:00+00:00"]


def test_cron_utils_611_years_that_are_over_have_no_next_fire():
    assert fires("0 30 23 * * ? 2022", UTC, "2022-12-30 23:30Z", 2) == ["2022-12-31 23:30+00:00"]
    assert fires("0 30 23 * * ? 2022", UTC, "2023-11-24 12:00Z") == []


@pytest.mark.parametrize("cron", ["0 0 0 13 * FRI", "0 0 8 1-7 * SAT"])
def test_spring_21574_two_restricted_day_fields_are_refused_when_they_are_written(cron: str):
    refused = refusal(cron)

    assert refused.position == cron.rindex(" ") + 1
    assert refused.hint is not None


def test_spring_26934_a_weekday_on_a_date_is_refused_and_overflows_nothing():
    assert refusal("0 0 6 25 DEC SAT").hint is not None

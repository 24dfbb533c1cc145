import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.time.cron import CronError, Dialect, DstPolicy
from horai.time.schedule import (
    EPOCH,
    CronSchedule,
    EverySchedule,
    Schedule,
    check,
    fires_between,
    from_spec,
    identity,
    next_after,
    next_from,
    to_spec,
)
from horai.time.zones import zone

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
YEAR_3, YEAR_9000 = datetime(3, 1, 1), datetime(9000, 1, 1)  # noqa: DTZ001
EVERY_FIVE_MINUTES = EverySchedule(timedelta(minutes=5))
NIGHTLY = CronSchedule("30 2 * * *", "Europe/Berlin", DstPolicy(gap="skip", overlap="both"))


def test_C46_a_cron_that_never_fires_is_refused_with_that_reason():
    with pytest.raises(ValueError, match="cron has no next fire time"):
        check(CronSchedule("0 0 30 2 *"))


def test_C46_a_schedule_without_a_fire_left_is_refused_with_that_reason():
    with pytest.raises(ValueError, match="cron has no next fire time"):
        check(CronSchedule("0 0 * * *"), after=datetime(9998, 12, 31, tzinfo=UTC))


def test_C46_the_next_fire_is_computed_from_cron_zone_and_now():
    assert next_after(CronSchedule("0 9 * * *", "Asia/Shanghai"), NOON) == datetime(2026, 7, 2, 1, tzinfo=UTC)


def test_a_good_schedule_passes_the_check():
    check(NIGHTLY)
    check(EVERY_FIVE_MINUTES)


def test_the_check_names_an_unknown_zone_and_the_nearest_one():
    with pytest.raises(ValueError, match=r"unknown time zone 'Asia/Shangai': did you mean Asia/Shanghai\?"):
        check(CronSchedule("0 9 * * *", "Asia/Shangai"))


def test_the_check_points_at_what_is_wrong_with_a_cron():
    with pytest.raises(CronError, match="minute 60 is out of range") as refusal:
        check(CronSchedule("60 * * * *"))

    assert refusal.value.position == 0


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("berlin", "Europe/Berlin"), ("EUROPE/BERLIN", "Europe/Berlin"), ("New York", "America/New_York")],
)
def test_a_zone_is_suggested_for_a_name_in_another_case_or_without_its_region(name: str, nearest: str):
    with pytest.raises(ValueError, match=rf"did you mean {nearest}\?"):
        zone(name)


@pytest.mark.parametrize(
    "name", ["", "../../etc/passwd", "/etc/localtime", "localtime", "中国/上海", "UTC\0", "x" * 999]
)
def test_a_name_that_is_no_zone_is_refused(name: str):
    with pytest.raises(ValueError, match="unknown time zone"):
        zone(name)


def test_a_zone_is_looked_up_once():
    assert zone("Europe/Berlin") is zone("Europe/Berlin")


def test_a_fixed_rate_is_aligned_to_the_epoch():
    assert next_after(EVERY_FIVE_MINUTES, NOON) == NOON + timedelta(minutes=5)
    assert next_after(EVERY_FIVE_MINUTES, NOON - timedelta(microseconds=1)) == NOON


def test_a_fixed_rate_is_aligned_to_its_anchor_and_fires_before_it_too():
    weekly = EverySchedule(timedelta(days=7), anchor=NOON)

    assert next_after(weekly, NOON) == NOON + timedelta(days=7)
    assert next_after(weekly, NOON - timedelta(days=8)) == NOON - timedelta(days=7)


@given(
    st.integers(1_000, 10**9),
    st.timedeltas(timedelta(days=-40_000), timedelta(days=40_000)).map(NOON.__add__),
    st.timedeltas(timedelta(days=-40_000), timedelta(days=40_000)).map(NOON.__add__),
)
def test_a_fixed_rate_never_drifts(interval_ms: int, anchor: datetime, after: datetime):
    interval = timedelta(milliseconds=interval_ms)
    fire = next_after(EverySchedule(interval, anchor), after)

    assert fire is not None
    assert after < fire <= after + interval
    assert (fire - anchor) % interval == timedelta(0)


@pytest.mark.parametrize(
    "interval", [timedelta(0), timedelta(milliseconds=999), timedelta(days=-1), timedelta(days=9999)]
)
def test_an_interval_that_is_too_short_or_too_long_is_refused(interval: timedelta):
    with pytest.raises(ValueError, match="between 1s and"):
        EverySchedule(interval)


def test_a_time_without_an_offset_is_refused():
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    with pytest.raises(ValueError, match="needs a UTC offset"):
        EverySchedule(timedelta(seconds=1), naive)
    for schedule in (NIGHTLY, EVERY_FIVE_MINUTES):
        with pytest.raises(ValueError, match="needs a UTC offset"):
            next_after(schedule, naive)


def test_no_schedule_fires_after_the_end_of_the_calendar():
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)

    assert next_after(EVERY_FIVE_MINUTES, last) is None
    assert next_after(NIGHTLY, last) is None


def test_the_fires_between_two_instants_exclude_the_first_and_include_the_last():
    until = NOON + timedelta(minutes=15)

    fires = list(fires_between(EVERY_FIVE_MINUTES, NOON, until, limit=100))

    assert fires == [NOON + timedelta(minutes=minutes) for minutes in (5, 10, 15)]


def test_no_more_fires_are_listed_than_asked_for():
    fires = list(fires_between(CronSchedule("* * * * * *"), NOON, NOON + timedelta(days=1), limit=3))

    assert len(fires) == 3
    assert all(later - earlier == timedelta(seconds=1) for earlier, later in pairwise(fires))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CronSchedule("0 9 * * mon"), CronSchedule("  0\t9 *  * MON ")),
        (CronSchedule("0 9 * * *"), CronSchedule("0 9 * * *", "UTC", DstPolicy("shift", "first"))),
        (EverySchedule(timedelta(minutes=5)), EverySchedule(timedelta(seconds=300), NOON)),
        (
            EverySchedule(timedelta(hours=1)),
            EverySchedule(timedelta(hours=1), EPOCH.astimezone(timezone(timedelta(hours=2)))),
        ),
        (EverySchedule(timedelta(hours=1)), EverySchedule(timedelta(hours=1), timezone="Asia/Tokyo")),
        (
            EverySchedule(timedelta(hours=7), NOON, "Asia/Tokyo", ("12-25",)),
            EverySchedule(timedelta(hours=7), NOON - timedelta(hours=70), "Asia/Tokyo", ("12-25",)),
        ),
        (
            from_spec({"every": "1h", "calendar": ["12-25", "01-01"]}),
            from_spec({"every": "60m", "calendar": ["01-01", "12-25"]}),
        ),
    ],
)
def test_schedules_with_the_same_fires_share_one_identity(one: Schedule, other: Schedule):
    assert identity(one) == identity(other)


def test_schedules_that_may_fire_apart_have_identities_of_their_own():
    schedules = [
        CronSchedule("0 9 * * *"),
        CronSchedule("0 9 * * 1"),
        CronSchedule("0 9 * * *", "Europe/Berlin"),
        CronSchedule("0 9 * * *", "UTC", DstPolicy(gap="skip")),
        CronSchedule("0 9 * * *", "UTC", DstPolicy(overlap="last")),
        EverySchedule(timedelta(minutes=5)),
        EverySchedule(timedelta(minutes=5), NOON + timedelta(minutes=1)),
        EverySchedule(timedelta(minutes=6)),
        CronSchedule("0 9 * * *", excluded=("12-25",)),
        CronSchedule("0 9 * * *", excluded=("12-25", "12-26")),
        CronSchedule("0 0 9 * * 1", dialect=Dialect.QUARTZ),
        CronSchedule("0 9 * * *", dialect=Dialect.VIXIE),
        EverySchedule(timedelta(minutes=5), excluded=("12-25",)),
        EverySchedule(timedelta(minutes=5), timezone="Asia/Tokyo", excluded=("12-25",)),
    ]

    assert len({identity(schedule) for schedule in schedules}) == len(schedules)


@pytest.mark.parametrize(
    "schedule",
    [
        NIGHTLY,
        CronSchedule("0 */5 * * * ?"),
        CronSchedule(
            "0 0 9 ? * 2#1", "Asia/Tokyo", DstPolicy("skip", "last"), Dialect.QUARTZ, ("12-24/01-02", "2026-05-01")
        ),
        EverySchedule(timedelta(minutes=90), NOON),
        EverySchedule(timedelta(milliseconds=1_500), NOON + timedelta(microseconds=7), "Asia/Tokyo", ("12-25",)),
    ],
)
def test_a_schedule_survives_the_trip_through_json(schedule: Schedule):
    assert from_spec(json.loads(json.dumps(to_spec(schedule)))) == schedule


def test_a_spec_says_no_more_than_in_earlier_versions_when_there_is_no_more_to_say():
    assert to_spec(EVERY_FIVE_MINUTES) == {"every": "5m", "anchor": "1970-01-01T00:00:00+00:00"}
    assert to_spec(CronSchedule("0 9 * * *")).keys() == {"cron", "timezone", "dst"}


def test_an_anchor_is_one_instant_at_any_offset():
    anchor = datetime.fromisoformat("2026-07-01T14:00:00+02:00")

    assert EverySchedule(timedelta(days=7), anchor) == EverySchedule(timedelta(days=7), NOON)
    assert next_after(EverySchedule(timedelta(days=7), anchor), NOON - timedelta(microseconds=1)) == NOON


def test_an_anchor_finer_than_a_second_is_kept():
    schedule = EverySchedule(timedelta(seconds=1), NOON + timedelta(microseconds=250_001))

    assert next_after(schedule, NOON) == NOON + timedelta(microseconds=250_001)
    assert next_from(schedule, NOON + timedelta(microseconds=250_001)) == NOON + timedelta(microseconds=250_001)


@given(
    st.sampled_from([NIGHTLY, EVERY_FIVE_MINUTES]),
    st.datetimes(timezones=st.just(UTC), min_value=YEAR_3, max_value=YEAR_9000),
)
def test_the_first_fire_from_an_instant_on_is_the_instant_or_the_one_after(schedule: Schedule, instant: datetime):
    fire = next_after(schedule, instant)
    assert fire is not None

    assert next_from(schedule, fire) == fire
    assert next_from(schedule, instant) in (instant, fire)


def test_a_spec_may_leave_out_what_has_a_default():
    assert from_spec({"cron": "0 9 * * *"}) == CronSchedule("0 9 * * *")
    assert from_spec({"every": "5m"}) == EVERY_FIVE_MINUTES
    assert from_spec({"cron": "0 9 * * *", "dst": {"overlap": "last"}}).dst == DstPolicy(overlap="last")  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"cron": "0 9 * * *", "every": "5m"},
        {"cron": 5},
        {"cron": "0 9 * * *", "timezone": None},
        {"cron": "0 9 * * *", "anchor": "2026-01-01T00:00:00Z"},
        {"cron": "0 9 * * *", "dst": "shift"},
        {"cron": "0 9 * * *", "dst": {"gap": "jump"}},
        {"cron": "0 9 * * *", "dst": {"overlap": "twice"}},
        {"cron": "0 9 * * *", "dst": {"fold": 1}},
        {"every": "5 minutes"},
        {"every": "500ms"},
        {"every": "5m", "anchor": "noon"},
        {"every": "5m", "anchor": 0},
        {"every": "5m", "anchor": "0001-01-01T00:00:00+14:00"},
        {"every": "5m", "dialect": "vixie"},
        {"every": "5m", "dst": {}},
        {"every": "5m", "calendar": ["soon"]},
        {"every": "5m", "timezone": 9},
        {"cron": "0 9 * * *", "dialect": "posix"},
        {"cron": "0 9 * * *", "dialect": None},
        {"cron": "0 9 * * *", "misfire": "all"},
    ],
)
def test_a_spec_that_is_no_schedule_is_refused(spec: dict[str, object]):
    with pytest.raises(ValueError, match=r"\w"):
        from_spec(spec)

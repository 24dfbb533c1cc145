from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai.core.errors import Invalid
from horai.core.timing import Rhythm, Timing, read_timing
from horai.core.validation import Validation
from horai.text import Hint, Wrong
from horai.time.cron import Dialect, DstPolicy
from horai.time.misfire import MisfireRule, Policy
from horai.time.overlap import Overlap
from horai.time.schedule import CronSchedule, EverySchedule

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MOMENT, MINUTE, HOUR, DAY = timedelta(microseconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
HOURLY = EverySchedule(HOUR)


def read(**document: Any) -> Timing:
    faults = Validation()
    timing = read_timing(document, faults)
    assert faults.errors == []
    return timing


def wrong(**document: Any) -> dict[str, str]:
    faults = Validation()
    read_timing(document, faults)
    return {error.field: error.message for error in faults.errors}


# What a document comes to


def test_a_document_without_time_has_none():
    assert read() == read(at=NOON) == read(delay="5m") == Timing()
    assert (Timing().rhythm, Timing().after_finish, Timing().next_after(NOON), Timing().is_gated) == (
        None,
        None,
        None,
        False,
    )


def test_every_field_of_a_cron_is_read():
    timing = read(
        cron="0 9 * * MON",
        dialect="vixie",
        timezone="Europe/Berlin",
        dst={"gap": "skip", "overlap": None},
        calendar=["12-25", "2026-05-01"],
        startAt=NOON,
        endAt=NOON + 400 * DAY,
        jitter="5m",
        misfire={"policy": "all", "maxCatchup": 3, "window": "6h"},
        misfireAfter="2m",
        overlap="queue",
    )

    schedule = CronSchedule("0 9 * * MON", "Europe/Berlin", DstPolicy("skip"), Dialect.VIXIE, ("12-25", "2026-05-01"))
    misfire = MisfireRule(Policy.all, 3, 6 * HOUR, 2 * MINUTE)
    assert timing == Timing(schedule, False, misfire, Overlap.queue, 5 * MINUTE, NOON, NOON + 400 * DAY)
    assert timing.rhythm == Rhythm(schedule, misfire)
    assert timing.is_gated


def test_every_field_of_an_interval_is_read():
    timing = read(
        every="90m", everyFrom="anchor", anchor=NOON, timezone="Asia/Tokyo", calendar=["01-01"], misfire="skip"
    )

    assert timing.schedule == EverySchedule(90 * MINUTE, NOON, "Asia/Tokyo", ("01-01",))
    assert timing.rhythm == Rhythm(EverySchedule(90 * MINUTE, NOON, "Asia/Tokyo", ("01-01",)), MisfireRule(Policy.skip))
    assert (timing.after_finish, timing.is_gated) == (None, False)


def test_an_interval_from_the_finish_follows_no_rhythm():
    timing = read(every="10m", everyFrom="finish")

    assert (timing.rhythm, timing.after_finish, timing.is_gated) == (None, 10 * MINUTE, True)


@pytest.mark.parametrize("field", ["misfire", "overlap", "everyFrom"])
def test_a_default_that_is_spelled_out_may_stand_anywhere(field: str):
    assert read(at=NOON, **{field: {"misfire": "once", "overlap": "allow", "everyFrom": "anchor"}[field]}) == Timing()


# Its slots


def test_start_and_end_are_slots_themselves():
    timing = Timing(HOURLY, start_at=NOON, end_at=NOON + 2 * HOUR)

    assert timing.next_after(NOON - 9 * DAY) == timing.next_after(NOON - MOMENT) == NOON
    assert timing.next_after(NOON) == NOON + HOUR
    assert timing.next_after(NOON + HOUR) == NOON + 2 * HOUR
    assert timing.next_after(NOON + 2 * HOUR) is None


def test_a_start_between_two_slots_leads_to_the_later_one():
    assert Timing(HOURLY, start_at=NOON + MOMENT).next_after(NOON - DAY) == NOON + HOUR


# After the end of a run


def from_finish(**bounds: Any) -> Timing:
    calendar = bounds.pop("calendar", ())
    return Timing(EverySchedule(HOUR, NOON, "Europe/Berlin", calendar), is_from_finish=True, **bounds)


def test_the_first_run_is_a_slot_of_the_fixed_rate():
    assert from_finish().next_after_finish(None, NOON + MINUTE) == NOON + HOUR
    assert from_finish(start_at=NOON + 3 * HOUR).next_after_finish(None, NOON) == NOON + 3 * HOUR


def test_the_next_run_comes_an_interval_after_the_end_of_the_last():
    assert from_finish().next_after_finish(NOON + 7 * MINUTE, NOON) == NOON + HOUR + 7 * MINUTE


def test_a_fixed_rate_has_nothing_to_do_with_the_end_of_a_run():
    assert Timing(HOURLY).next_after_finish(NOON, NOON) is None
    assert Timing().next_after_finish(NOON, NOON) is None


def test_no_run_comes_before_the_start_or_after_the_end():
    assert from_finish(start_at=NOON + DAY).next_after_finish(NOON, NOON) == NOON + DAY
    assert from_finish(end_at=NOON + HOUR).next_after_finish(NOON, NOON) == NOON + HOUR
    assert from_finish(end_at=NOON + HOUR).next_after_finish(NOON + MOMENT, NOON) is None
    assert from_finish(end_at=NOON).next_after_finish(None, NOON) is None


def test_a_run_that_falls_on_an_excluded_date_waits_until_it_is_over():
    midnight = datetime(2026, 7, 2, 22, tzinfo=UTC)

    assert from_finish(calendar=("07-02",)).next_after_finish(NOON + 11 * HOUR, NOON) == midnight
    assert from_finish(calendar=("07-01/07-02",), end_at=midnight - MOMENT).next_after_finish(NOON, NOON) is None


def test_a_start_on_an_excluded_date_waits_until_it_is_over():
    later = from_finish(calendar=("07-02",), start_at=NOON + DAY)

    assert later.next_after_finish(NOON, NOON) == datetime(2026, 7, 2, 22, tzinfo=UTC)


# What is wrong, at its field

CRON, EVERY, SOON = {"cron": "0 9 * * *"}, {"every": "1h"}, {"at": NOON}


@pytest.mark.parametrize(
    ("document", "field", "message"),
    [
        ({**CRON, "timezone": "Europe/Berln"}, "timezone", "did you mean Europe/Berlin?"),
        ({**EVERY, "timezone": "Europe/Berln"}, "timezone", "did you mean Europe/Berlin?"),
        ({**CRON, "calendar": ["Xmas"]}, "calendar", "'Xmas' is not an excluded date: write dates such as"),
        ({**CRON, "dst": {"gap": "jump"}}, "dst", "dst.gap is one of shift, skip, not 'jump'"),
        ({**CRON, "dialect": "posix"}, "dialect", "'posix' is not one of vixie, quartz"),
        ({"cron": "61 9 * * *"}, "cron", "minute 61 is out of range"),
        ({"cron": "0 9 13 * 6", "dialect": "quartz"}, "cron", "both restricted"),
        ({"every": "soon"}, "every", "'soon' is not a duration"),
        ({"every": "10ms"}, "every", "an interval is between 1s and"),
        ({**EVERY, "everyFrom": "start"}, "everyFrom", "'start' is not one of anchor, finish"),
        ({**EVERY, "overlap": "kill"}, "overlap", "'kill' is not one of allow, skip, queue, replace"),
        ({**EVERY, "jitter": "25h"}, "jitter", "is longer than 24h"),
        ({**EVERY, "jitter": "much"}, "jitter", "'much' is not a duration"),
        ({**EVERY, "misfireAfter": "25h"}, "misfireAfter", "is longer than 24h"),
        ({**EVERY, "misfireAfter": "0s"}, "misfireAfter", "is shorter than 1s"),
        ({**EVERY, "misfireAfter": "later"}, "misfireAfter", "'later' is not a duration"),
        ({**EVERY, "misfire": "never"}, "misfire", "'never' is not one of skip, once, all"),
        (
            {**EVERY, "misfire": {"policy": "all", "maxCatchup": 0}},
            "misfire",
            "maxCatchup is between 1 and 10000, not 0",
        ),
        (
            {**EVERY, "misfire": {"policy": "skip", "window": "1h"}},
            "misfire",
            "window is not accepted with the policy skip",
        ),
        ({**EVERY, "everyFrom": "finish", "overlap": "skip"}, "overlap", "is not accepted with everyFrom finish"),
        ({**EVERY, "everyFrom": "finish", "misfire": "all"}, "misfire", "is not accepted with everyFrom finish"),
        ({**EVERY, "startAt": NOON, "endAt": NOON - MOMENT}, "endAt", "is before startAt"),
        ({**CRON, "startAt": NOON, "endAt": NOON + HOUR}, "endAt", "leaves no slot between startAt and endAt"),
        ({"cron": "0 0 0 1 1 ? 2030", "startAt": NOON + 2_000 * DAY}, "startAt", "leaves no slot"),
        ({"cron": "0 0 30 2 *"}, "cron", "cron has no next fire time"),
        ({"cron": "0 0 25 12 *", "calendar": ["12-25"]}, "calendar", "no next fire time"),
        ({**EVERY, "calendar": ["01-01/12-31"]}, "calendar", "no next fire time"),
        ({**SOON, "cron": "0 9 * * *"}, "at", "cannot be combined with cron"),
    ],
)
def test_an_invalid_timing_is_refused_at_its_field(document: dict[str, Any], field: str, message: str):
    found = wrong(**document)

    assert list(found) == [field]
    assert message in found[field]


@pytest.mark.parametrize(
    ("field", "value", "kinds"),
    [
        ("dst", {"gap": "skip"}, "cron"),
        ("dialect", "quartz", "cron"),
        ("anchor", NOON, "every"),
        ("everyFrom", "finish", "every"),
        ("timezone", "UTC", "cron or every"),
        ("calendar", ["12-25"], "cron or every"),
        ("startAt", NOON, "cron or every"),
        ("endAt", NOON, "cron or every"),
        ("jitter", "5s", "cron or every"),
        ("misfire", {"policy": "all"}, "cron or every"),
        ("misfireAfter", "5s", "cron or every"),
        ("overlap", "skip", "cron or every"),
    ],
)
def test_a_field_that_means_nothing_here_is_refused_with_what_it_belongs_to(field: str, value: object, kinds: str):
    beside: dict[str, Any] = EVERY if kinds == "cron" else CRON if kinds == "every" else SOON

    assert wrong(**beside, **{field: value}) == {field: f"is only accepted together with {kinds}"}
    assert list(wrong(**{field: value})) == [field]


def test_all_faults_are_found_at_once():
    found = wrong(
        cron="0 9 * * *",
        timezone="Moon/Base",
        calendar=["x"],
        dst={"gap": "x"},
        dialect="x",
        misfire="x",
        misfireAfter="x",
        overlap="x",
        jitter="x",
        startAt=NOON,
        endAt=NOON - DAY,
        anchor=NOON,
    )

    assert found.keys() == {
        "timezone", "calendar", "dst", "dialect", "misfire", "misfireAfter", "overlap", "jitter", "endAt", "anchor",
    }  # fmt: skip


def test_a_fault_elsewhere_does_not_hide_that_there_is_no_slot():
    faults = Validation()
    faults.add("name", Wrong.ALL_DIGITS())

    read_timing({**CRON, "startAt": NOON, "endAt": NOON + HOUR}, faults)

    assert [error.field for error in faults.errors] == ["name", "endAt"]


def test_faults_are_raised_together_with_the_first_hint():
    faults = Validation()
    faults.raise_if_any()
    assert faults.reading("a", lambda: int("1"), 0) == 1
    assert faults.reading("a", lambda: int("one"), 0) == 0
    faults.add("b", Wrong.MISSING(), Hint.GIVE_CRON())
    faults.add("c", Wrong.MISSING(), Hint.GIVE_TICK())

    with pytest.raises(Invalid) as raised:
        faults.raise_if_any()

    assert [error.field for error in raised.value.errors] == ["a", "b", "c"]
    assert raised.value.detail.endswith("; b: is missing; c: is missing")
    assert raised.value.hint == "Give a cron or an every."

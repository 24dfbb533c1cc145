"""The instants that are slots, the reasons why others are none, and local times where the clock is changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.core.states import State
from horai.core.timing import Timing
from horai.features.explain import (
    Facts,
    InstanceFact,
    JobFacts,
    Verdict,
    explanation_of,
    gap_around,
    is_slot,
    lost_in_gap,
    nothing_there,
    occurrences,
    read_moment,
)
from horai.features.explain.phrases import SlotWords
from horai.features.explain.slots import previous_slot, why_no_slot
from horai.time.cron import DstPolicy
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, next_after

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTLY = CronSchedule("30 2 * * *", "Europe/Berlin")
GAP_END = datetime(2026, 3, 29, 1, tzinfo=UTC)
"""When Berlin's clock jumps from 02:00 to 03:00."""
FIRST = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
SECOND = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
"""The two 02:30 of that night in Berlin."""


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # pyright: ignore[reportArgumentType]


def wall(*parts: int) -> datetime:
    """Return the time of a clock without a zone."""
    return utc(*parts).replace(tzinfo=None)


def why(schedule: Schedule, at: datetime) -> str:
    timing = Timing(schedule)
    assert not is_slot(timing, at)
    return why_no_slot(timing, at)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-29T02:30", wall(2026, 3, 29, 2, 30)),
        ("2026-03-29 02:30:15", wall(2026, 3, 29, 2, 30, 15)),
        ("2026-03-29t02:30:15.250", wall(2026, 3, 29, 2, 30, 15, 250_000)),
        ("2026-03-29T02:30:15.250999", wall(2026, 3, 29, 2, 30, 15, 250_000)),
        ("2026-03-29T02:30z", utc(2026, 3, 29, 2, 30)),
        ("2026-03-29T02:30:00+01:00", utc(2026, 3, 29, 1, 30)),
        ("2026-03-29T02:30:00 01:00", utc(2026, 3, 29, 1, 30)),
        ("2026-03-29 02:30-05:00", utc(2026, 3, 29, 7, 30)),
    ],
)
def test_read_moment_accepts_an_instant_or_a_local_time(text: str, moment: datetime):
    assert read_moment(text) == moment


@pytest.mark.parametrize(
    "text", ["", "now", "2026-03-29", "02:30", "2026-02-30T00:00", "2026-03-29T24:30", "1969-12-31T00:00Z", "9999-01-01T00:00",
             "2026-03-29T02:30:00+99:99", "٢٠٢٦-03-29T02:30"],
)  # fmt: skip
def test_read_moment_refuses_text_that_is_neither_an_instant_nor_a_local_time(text: str):
    with pytest.raises(ValueError, match="is n"):
        read_moment(text)


def test_a_time_on_the_wall_comes_once_twice_or_never():
    assert occurrences(wall(2026, 3, 30, 2, 30), BERLIN) == (utc(2026, 3, 30, 0, 30),)
    assert occurrences(wall(2026, 10, 25, 2, 30), BERLIN) == (FIRST, SECOND)
    assert occurrences(wall(2026, 3, 29, 2, 30), BERLIN) == ()
    assert occurrences(FIRST, BERLIN) == (FIRST,)


def test_a_gap_is_found_by_any_time_in_it():
    for minute in (0, 30, 59):
        gap = gap_around(wall(2026, 3, 29, 2, minute), BERLIN)
        assert gap.end == GAP_END
        assert (gap.lost_from, gap.lost_until) == (wall(2026, 3, 29, 2), wall(2026, 3, 29, 3))
    apia = gap_around(wall(2011, 12, 30, 17), ZoneInfo("Pacific/Apia"))
    assert (apia.lost_from, apia.lost_until) == (wall(2011, 12, 30), wall(2011, 12, 31))


def test_X15_a_time_lost_in_a_gap_has_its_slot_behind_it_or_says_why_it_has_none():
    gap = gap_around(wall(2026, 3, 29, 2, 30), BERLIN)
    jump = "02:30 does not exist on 2026-03-29: the clock jumps from 02:00 to 03:00"

    assert lost_in_gap(NIGHTLY, gap) == (True, f"{jump}, where its slot is")
    skipping = replace(NIGHTLY, dst=DstPolicy(gap="skip"))
    assert lost_in_gap(skipping, gap) == (False, f"{jump}, and by dst.gap skip it is left out")
    real = replace(NIGHTLY, expression="*/30 * * * *")
    assert lost_in_gap(real, gap) == (False, f"{jump}, and */30 * * * * follows the real time, which lost nothing")
    other = replace(NIGHTLY, expression="0 9 * * *")
    assert lost_in_gap(other, gap)[1].startswith(f"{jump}, and 0 9 * * * does not allow it either: the minute 30")
    assert lost_in_gap(EverySchedule(timedelta(hours=1)), gap) == (False, jump)


def test_a_slot_that_was_moved_out_of_a_gap_says_so_before_all_else():
    job = JobFacts(1, Timing(NIGHTLY), utc(2026, 1, 1), utc(2026, 1, 1))
    run = InstanceFact(9, State.SUCCESS, True, GAP_END, 1, claimed_at=GAP_END, finished_at=GAP_END)

    told = explanation_of(Facts(utc(2026, 4, 1), job, run), GAP_END)

    assert told.why.startswith(
        "02:30 does not exist on 2026-03-29: the clock jumps from 02:00 to 03:00, where its slot is. Fired"
    )
    assert told.local == "2026-03-29T03:00:00+02:00"
    assert (told.previous, told.next) == (utc(2026, 3, 28, 1, 30), utc(2026, 3, 30, 0, 30))


def test_a_time_that_never_was_is_answered_at_the_end_of_its_gap():
    job = JobFacts(1, Timing(replace(NIGHTLY, dst=DstPolicy(gap="skip"))), utc(2026, 1, 1), utc(2026, 1, 1))
    told = nothing_there(job, gap_around(wall(2026, 3, 29, 2, 30), BERLIN), SlotWords.NOT_THERE())
    assert (told.at, told.verdict, told.why) == (GAP_END, Verdict.NOT_A_SLOT, "Its schedule does not have this time.")


def test_X15_of_a_time_that_comes_twice_the_policy_says_which_is_the_slot():
    assert is_slot(Timing(NIGHTLY), FIRST)
    assert why(NIGHTLY, SECOND) == (
        "02:30 comes twice on 2026-10-25, and this is the second: "
        "by dst.overlap first the slot is at 2026-10-25T02:30:00+02:00"
    )
    last = replace(NIGHTLY, dst=DstPolicy(overlap="last"))
    assert is_slot(Timing(last), SECOND)
    assert why(last, FIRST) == (
        "02:30 comes twice on 2026-10-25, and this is the first: "
        "by dst.overlap last the slot is at 2026-10-25T02:30:00+01:00"
    )
    both = Timing(replace(NIGHTLY, dst=DstPolicy(overlap="both")))
    assert is_slot(both, FIRST)
    assert is_slot(both, SECOND)


def test_a_cron_names_the_field_that_does_not_allow_a_time():
    assert why(CronSchedule("*/5 * * * *"), utc(2026, 11, 16, 9, 7)) == (
        "*/5 * * * * does not allow 09:07 on 2026-11-16: the minute 7 is not one of */5"
    )
    assert "is not 0" in why(CronSchedule("0 9 * * *"), utc(2026, 11, 16, 9, 0, 7))
    assert "whole second" in why(CronSchedule("0 9 * * *"), utc(2026, 11, 16, 9, 0, 0, 1))


def test_an_interval_names_the_slot_before():
    every = EverySchedule(timedelta(minutes=10))
    assert why(every, utc(2026, 11, 16, 9, 7)) == (
        "the job fires every 10m from 1970-01-01T00:00:00+00:00 on, and 09:07 is 7m after its slot at 09:00"
    )
    assert "is 0.000001s after its slot at 09:00" in why(every, utc(2026, 11, 16, 9, 0, 0, 1))
    weekly = EverySchedule(timedelta(days=7), utc(2026, 11, 2, 9))
    assert "is 6d after its slot at 09:00 on 2026-11-16" in why(weekly, utc(2026, 11, 22, 9))


def test_an_excluded_date_names_its_entry():
    closed = CronSchedule("0 9 * * *", excluded=("12-24/01-02", "2026-11-16"))
    assert why(closed, utc(2026, 11, 16, 9)).endswith("but its calendar leaves out 2026-11-16")
    assert why(closed, utc(2027, 1, 1, 9)).endswith("but its calendar leaves out 2027-01-01 (12-24/01-02)")
    assert "the minute 7 is not 0" in why(closed, utc(2026, 11, 16, 9, 7)), "what no date would allow is said first"


def test_a_job_has_no_slot_before_its_begin_or_behind_its_end():
    timing = Timing(CronSchedule("0 9 * * *"), start_at=utc(2026, 11, 10, 9), end_at=utc(2026, 11, 20, 9))
    assert is_slot(timing, utc(2026, 11, 10, 9))
    assert is_slot(timing, utc(2026, 11, 20, 9))
    assert "begins at 2026-11-10T09:00:00+00:00 (startAt)" in why_no_slot(timing, utc(2026, 11, 9, 9))
    assert "ends at 2026-11-20T09:00:00+00:00 (endAt)" in why_no_slot(timing, utc(2026, 11, 21, 9))
    assert previous_slot(timing, utc(2026, 11, 10, 9)) is None
    assert previous_slot(timing, utc(2026, 12, 24)) == utc(2026, 11, 20, 9)


def test_jobs_without_a_calendar_say_what_they_go_by():
    assert "no schedule" in why_no_slot(Timing(), utc(2026, 11, 16, 9))
    delayed = Timing(EverySchedule(timedelta(minutes=10)), is_from_finish=True)
    assert "each run comes 10m after the one before has ended" in why_no_slot(delayed, utc(2026, 11, 16, 9))
    assert not is_slot(delayed, utc(2026, 11, 16, 9))
    assert previous_slot(delayed, utc(2026, 11, 16, 9)) is None


SCHEDULES: list[Schedule] = [
    NIGHTLY,
    CronSchedule("* * * * * *"),
    CronSchedule("* * 5 1 1 ?", "America/New_York"),
    CronSchedule("0 0 29 2 *"),
    CronSchedule("*/7 9-17 * * MON-FRI", "Asia/Kolkata", excluded=("12-24/01-02",)),
    EverySchedule(timedelta(milliseconds=1500)),
    EverySchedule(timedelta(days=11), excluded=("05-01",)),
]


@settings(max_examples=examples(150), deadline=None)
@given(
    schedule=st.sampled_from(SCHEDULES),
    at=st.datetimes(wall(2015, 1, 1), wall(2040, 1, 1), timezones=st.just(UTC)),
)
def test_the_slot_before_is_the_last_one_before(schedule: Schedule, at: datetime):
    previous = previous_slot(Timing(schedule), at)
    assert previous is not None
    assert previous < at
    following = next_after(schedule, previous)
    assert following is None or following >= at


def test_there_is_no_slot_before_all_of_them():
    assert previous_slot(Timing(CronSchedule("0 0 0 1 1 ? 2030")), utc(2029, 1, 1)) is None
    assert previous_slot(Timing(CronSchedule("0 0 0 1 1 ? 2030")), utc(2080, 1, 1)) == utc(2030, 1, 1)
    assert previous_slot(Timing(CronSchedule("0 0 * * *")), utc(1970, 1, 2)) is None

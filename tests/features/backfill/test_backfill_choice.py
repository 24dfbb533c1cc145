"""The slots that a backfill runs, their start times, and its progress."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.errors import Invalid
from horai.core.queue import parse_rate
from horai.core.timing import Timing
from horai.features.backfill.rules import (
    AHEAD,
    MOST_SLOTS,
    BackfillRequest,
    BackfillStatus,
    Coming,
    KnownSlot,
    Mode,
    Progress,
    after,
    bounds,
    check_range,
    checked,
    choose,
    generation_of,
    is_too_many,
    smoothed,
    starts,
)
from horai.time.fires_between import slots_from
from horai.time.overlap import Overlap
from horai.time.schedule import CronSchedule, EverySchedule

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
EVERY_MINUTE = EverySchedule(MINUTE)
NOTHING = Coming(NOW)


@pytest.mark.parametrize(
    ("known", "missing", "failed", "every"),
    [
        (None, 0, None, 0),
        (KnownSlot(0), None, None, 1),
        (KnownSlot(3), None, None, 4),
        (KnownSlot(0, dead=7), None, 1, 1),
        (KnownSlot(2, dead=7), None, 3, 3),
        (KnownSlot(1, is_live=True), None, None, None),
        (KnownSlot(1, is_live=True, dead=7), None, None, None),
    ],
)
def test_C21_X11_the_mode_says_which_slots_are_run_and_each_in_a_new_generation(
    known: KnownSlot | None, missing: int | None, failed: int | None, every: int | None
):
    found = [generation_of(mode, known, is_coming=False) for mode in (Mode.missing, Mode.failed, Mode.all)]

    assert found == [missing, failed, every]


def test_a_slot_that_comes_by_itself_is_not_run_for_the_first_time():
    assert [generation_of(mode, None, is_coming=True) for mode in Mode] == [None, None, None]
    assert generation_of(Mode.all, KnownSlot(0), is_coming=True) == 1, "it came already: this is another run of it"


def test_upcoming_slots_are_those_from_the_cursor_on_and_late_ones_but_none_before_active_from():
    coming = Coming(NOW, NOW + 10 * MINUTE, ((NOW + 2 * MINUTE, NOW + 4 * MINUTE),))

    assert [n for n in range(-5, 13) if NOW + n * MINUTE in coming] == [2, 3, 4, 10, 11, 12]
    assert NOW - MINUTE not in Coming(NOW, NOW - 5 * MINUTE)
    assert NOW not in Coming(NOW, NOW - 5 * MINUTE), "the slot at active_from is not made by the schedule"
    assert NOW + timedelta(microseconds=1) in Coming(NOW, NOW - 5 * MINUTE)
    assert NOW + MINUTE not in Coming(NOW)


def test_choosing_stops_before_the_first_slot_that_there_is_no_room_for():
    slots = [NOW + n * MINUTE for n in range(6)]
    known = {slots[1]: KnownSlot(0), slots[4]: KnownSlot(0)}

    some = choose(Mode.missing, slots, known, NOTHING, 2)
    rest = choose(Mode.missing, slots, known, NOTHING, 4)

    assert (some.chosen, some.skipped, some.stopped_at) == (((slots[0], 0), (slots[2], 0)), 1, slots[3])
    assert ([slot for slot, _ in rest.chosen], rest.skipped, rest.stopped_at) == (
        [slots[0], slots[2], slots[3], slots[5]],
        2,
        None,
    )
    assert choose(Mode.missing, slots[1:2], known, NOTHING, 0).skipped == 1


@given(st.sets(st.integers(0, 99)), st.lists(st.integers(1, 20), min_size=1), st.sampled_from(Mode))
def test_C21_in_portions_of_any_size_each_slot_is_looked_at_once(made: set[int], rooms: list[int], mode: Mode):
    slots = [NOW + n * MINUTE for n in range(100)]
    known = {slots[n]: KnownSlot(0, dead=n if n % 2 else None) for n in made}
    whole = choose(mode, slots, known, NOTHING, len(slots))
    chosen: list[tuple[datetime, int]] = []
    skipped, turn, first = 0, 0, slots[0]
    while first is not None:
        portion = choose(mode, slots[slots.index(first) :], known, NOTHING, rooms[turn % len(rooms)])
        chosen += portion.chosen
        skipped, turn, first = skipped + portion.skipped, turn + 1, portion.stopped_at

    assert (tuple(chosen), skipped) == (whole.chosen, whole.skipped)
    assert len(chosen) + skipped == len(slots)


def test_the_range_begins_with_its_first_instant_and_ends_before_its_last():
    assert [*slots_from(EVERY_MINUTE, NOW, NOW + 3 * MINUTE)] == [NOW, NOW + MINUTE, NOW + 2 * MINUTE]
    assert [*slots_from(EVERY_MINUTE, NOW + SECOND, NOW + MINUTE)] == []


def test_the_job_s_own_bounds_hold_and_its_last_instant_counts():
    timing = Timing(EVERY_MINUTE, start_at=NOW + MINUTE, end_at=NOW + 3 * MINUTE)

    found = [*slots_from(EVERY_MINUTE, *bounds(timing, NOW, NOW + 10 * MINUTE))]

    assert found == [NOW + MINUTE, NOW + 2 * MINUTE, NOW + 3 * MINUTE]


@pytest.mark.parametrize(
    ("timing", "since", "until", "words"),
    [
        (Timing(), NOW - MINUTE, None, "no schedule"),
        (Timing(EVERY_MINUTE, is_from_finish=True), NOW - MINUTE, None, "everyFrom finish"),
        (Timing(EVERY_MINUTE), NOW - MINUTE, NOW + SECOND, "in the future"),
        (Timing(EVERY_MINUTE), NOW, NOW, "not before to"),
        (Timing(EVERY_MINUTE), NOW + MINUTE, None, "not before to"),
    ],
)
def test_C21_a_range_without_slots_to_run_is_refused_with_a_hint(
    timing: Timing, since: datetime, until: datetime | None, words: str
):
    with pytest.raises(Invalid, match=words) as refused:
        check_range(BackfillRequest(since, until), timing, NOW)

    assert refused.value.hint


def test_more_slots_than_one_takes_are_seen_at_a_glance_where_they_are_even():
    assert is_too_many(EverySchedule(SECOND), NOW, NOW + (MOST_SLOTS + 1) * SECOND)
    assert not is_too_many(EverySchedule(SECOND), NOW, NOW + MOST_SLOTS * SECOND)
    assert not is_too_many(CronSchedule("* * * * *"), NOW, NOW + timedelta(days=9_999))
    assert not is_too_many(EverySchedule(SECOND, excluded=("06-01",)), NOW, NOW + timedelta(days=9_999))


def test_every_wrong_field_is_named():
    wish = checked({"from": NOW, "rate": 5, "maxConcurrency": 3, "mode": "all"})
    assert (wish.mode, str(wish.rate), wish.max_concurrency, wish.until) == (Mode.all, "5/s", 3, None)

    with pytest.raises(Invalid) as refused:
        checked({"from": NOW, "rate": "fast", "maxConcurrency": 0})

    assert [error.field for error in refused.value.errors] == ["maxConcurrency", "rate"]


def test_a_backfill_runs_ten_slots_at_once_by_default_and_one_if_slots_may_not_overlap():
    assert BackfillRequest(NOW).concurrency_of(Timing(EVERY_MINUTE)) == 10
    assert BackfillRequest(NOW).concurrency_of(Timing(EVERY_MINUTE, overlap=Overlap.skip)) == 1
    assert BackfillRequest(NOW, max_concurrency=4).concurrency_of(Timing(EVERY_MINUTE, overlap=Overlap.skip)) == 4


def test_C21_without_a_rate_all_start_now_and_with_one_they_follow_each_other():
    assert starts(None, None, NOW, 3) == [NOW] * 3
    slow = parse_rate("1/s")
    assert starts(slow, None, NOW, 9) == [NOW, NOW + SECOND, NOW + AHEAD]
    assert starts(slow, NOW - timedelta(hours=1), NOW, 1) == [NOW], "what was not used is lost"
    assert starts(slow, NOW + timedelta(seconds=1.5), NOW, 9) == [NOW + timedelta(seconds=1.5)]
    assert starts(slow, NOW + AHEAD + SECOND, NOW, 9) == []
    assert after(slow, [NOW, NOW + SECOND], None) == NOW + 2 * SECOND
    assert after(slow, [], NOW + MINUTE) == NOW + MINUTE
    assert after(None, [NOW], None) is None


@given(st.integers(1, 1000), st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 50)), max_size=30))
def test_C21_no_second_has_more_starts_than_the_rate_says(count: int, looks: list[tuple[int, int]]):
    rate, now = parse_rate(count), NOW
    next_start: datetime | None = None
    begun: list[datetime] = []
    for waited, room in looks:
        now += timedelta(milliseconds=waited)
        begin_at = starts(rate, next_start, now, room)
        next_start = after(rate, begin_at, next_start)
        begun += begin_at

    assert begun == sorted(begun)
    for n, at in enumerate(begun[count:]):
        assert at - begun[n] >= SECOND - timedelta(milliseconds=1)


def test_the_pace_is_that_of_late():
    assert smoothed(None, 0, SECOND) is None
    assert smoothed(None, 50, SECOND) == 50
    assert smoothed(None, 5, timedelta(milliseconds=10)) == 5, "a moment says little"
    assert smoothed(7.0, 3, timedelta(0)) == 7.0
    pace: float | None = 100.0
    for _ in range(60):
        pace = smoothed(pace, 10, SECOND)
    assert pace == pytest.approx(10, rel=0.05)


def test_C21_progress_tells_how_much_is_done_and_when_the_rest_will_be():
    progress = Progress(120, 100, made=60, skipped=20, succeeded=45, failed=4, cancelled=1, pace=5.0)

    assert (progress.running, progress.left) == (10, 50)
    assert progress.percent(BackfillStatus.RUNNING) == 50.0
    assert progress.eta(BackfillStatus.RUNNING, NOW, None) == NOW + 10 * SECOND
    assert progress.eta(BackfillStatus.PAUSED, NOW, None) is None
    assert Progress(10, 10).eta(BackfillStatus.RUNNING, NOW, None) is None
    assert Progress(10, 10).eta(BackfillStatus.RUNNING, NOW, parse_rate("1/s")) == NOW + 10 * SECOND
    assert Progress(10, 10, pace=1e-300).eta(BackfillStatus.RUNNING, NOW, None) is None
    assert Progress(10, 10, 10, succeeded=10).percent(BackfillStatus.RUNNING) == 99.9
    assert Progress(0, 0).percent(BackfillStatus.DONE) == 100.0

"""The rate of notifications to other processes."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from horai.core.debounce import BUSY, QUICK, SLOW, Debounce
from horai.core.wakes import ENTRIES

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def notifications(arrivals: list[datetime]) -> list[datetime]:
    """When they leave, if wakes arrive then and nothing else takes time."""
    debounce, left, waiting = Debounce(), list[datetime](), 0
    leaves_at: datetime | None = None
    for arrival in sorted(arrivals):
        if leaves_at is not None and leaves_at <= arrival:
            left.append(leaves_at)
            debounce, waiting, leaves_at = debounce.after(leaves_at, waiting), 0, None
        waiting += 1
        leaves_at = debounce.ready_at(arrival) if leaves_at is None else leaves_at
    return left if leaves_at is None else [*left, leaves_at]


def every(pause: timedelta, count: int, start: datetime = NOON) -> list[datetime]:
    return [start + number * pause for number in range(count)]


def test_the_first_wake_after_a_calm_leaves_at_once():
    assert Debounce().ready_at(NOON) == NOON
    assert Debounce(NOON, SLOW).ready_at(NOON + SLOW) == NOON + SLOW
    assert Debounce(NOON, SLOW).ready_at(NOON + timedelta(hours=1)) == NOON + timedelta(hours=1)


def test_the_next_one_waits_for_the_end_of_the_interval():
    assert Debounce().after(NOON, 1).ready_at(NOON + MILLISECOND) == NOON + QUICK


def test_at_200_wakes_a_second_each_wake_leaves_within_the_quick_interval():
    arrivals = every(timedelta(milliseconds=4.9), 200)

    left = notifications(arrivals)

    assert max(min(at - arrival for at in left if at >= arrival) for arrival in arrivals) <= QUICK


def test_E13_ten_thousand_wakes_a_second_are_twenty_notifications():
    left = notifications(every(timedelta(microseconds=100), 10_000))

    assert len(left) <= 25


@given(st.lists(st.integers(0, 1_000_000), min_size=1, max_size=300))
def test_E13_two_notifications_are_at_least_an_interval_apart_for_any_arrivals(moments: list[int]):
    left = notifications([NOON + timedelta(microseconds=moment) for moment in moments])

    assert all(later - earlier >= QUICK for earlier, later in pairwise(left))


def test_when_the_load_is_over_the_pace_is_quick_again():
    heavy = Debounce().after(NOON, 1).after(NOON + QUICK, ENTRIES + 1)
    assert heavy.interval == SLOW

    calmer = heavy.after(NOON + QUICK + SLOW, ENTRIES * 10 // 2)

    assert calmer.interval == QUICK


def test_a_thousand_a_second_are_told_quickly_before_and_after_a_burst():
    """The pace follows the rate, not how full a long interval has become: else it would never come back."""
    calm = every(MILLISECOND, 100)
    burst = every(timedelta(microseconds=100), 1_000, calm[-1])
    after = every(MILLISECOND, 500, burst[-1])

    left = notifications([*calm, *burst, *after])

    for part in (calm, after):
        gaps = [later - earlier for earlier, later in pairwise(left) if part[-100] <= earlier]
        assert QUICK in gaps
    assert left[-1] - left[-2] == QUICK


def test_between_two_paces_neither_changes():
    for interval in (QUICK, SLOW):
        wakes = int(ENTRIES * 0.75 * (interval / BUSY))
        assert Debounce(NOON, interval).after(NOON + interval, wakes).interval == interval


def test_a_clock_that_was_set_back_delays_a_notification_by_one_interval_only():
    assert Debounce(NOON + timedelta(hours=1)).ready_at(NOON) == NOON + QUICK

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import examples

from horai.time.wheel import Wheel

MICROSECOND = timedelta(microseconds=1)
YEAR_US = 365 * 86_400_000_000
NOW_US = 1_790_000_000_123_456

Step = tuple[str, int, int]


def wheel(now_us: int = NOW_US, tick: timedelta = MICROSECOND) -> Wheel[str]:
    return Wheel(tick, now_us)


def test_a_key_is_handed_out_once_at_its_time_and_not_before():
    timers = wheel()
    timers.put("job", NOW_US + 1_000)

    assert timers.advance(NOW_US + 999) == []
    assert timers.advance(NOW_US + 1_000) == ["job"]
    assert timers.advance(NOW_US + 1_001) == []
    assert len(timers) == 0


def test_keys_of_all_levels_are_returned_in_order_of_time():
    timers = wheel()
    delays = [YEAR_US, 5, 70, 5_000, 300_000, 20_000_000, 6, 4_097, 0]
    for delay in delays:
        timers.put(str(delay), NOW_US + delay)

    assert timers.advance(NOW_US + 2 * YEAR_US) == [str(delay) for delay in sorted(delays)]


def test_a_key_put_again_is_moved_earlier_or_later():
    timers = wheel()
    timers.put("job", NOW_US + 50)
    timers.put("job", NOW_US + 5_000_000)

    assert timers.advance(NOW_US + 4_999_999) == []
    timers.put("job", NOW_US + 5_000_000 + YEAR_US)
    timers.put("job", NOW_US + 5_000_001)
    assert len(timers) == 1
    assert timers.advance(NOW_US + 5_000_001) == ["job"]


def test_a_discarded_key_never_comes_and_discarding_it_twice_is_harmless():
    timers = wheel()
    timers.put("job", NOW_US + 50)
    timers.discard("job")
    timers.discard("job")

    assert len(timers) == 0
    assert timers.next_at() is None
    assert timers.advance(NOW_US + YEAR_US) == []


def test_a_key_in_the_past_is_due_at_the_next_advance():
    timers = wheel()
    timers.put("late", NOW_US - YEAR_US)

    assert timers.next_at() == NOW_US - YEAR_US
    assert timers.advance(NOW_US) == ["late"]


def test_time_that_goes_backwards_is_taken_as_standing_still():
    timers = wheel()
    timers.advance(NOW_US + 1_000)
    timers.put("due", NOW_US + 900)
    timers.put("later", NOW_US + 1_001)

    assert timers.advance(NOW_US) == ["due"]
    assert timers.advance(NOW_US + 1_000) == []
    assert timers.advance(NOW_US + 1_001) == ["later"]


def test_a_coarse_tick_keeps_times_exact():
    timers = wheel(tick=timedelta(seconds=1))
    timers.put("second", NOW_US + 20)
    timers.put("first", NOW_US + 10)

    assert timers.next_at() == NOW_US + 10
    assert timers.advance(NOW_US + 9) == []
    assert timers.advance(NOW_US + 10) == ["first"]
    assert timers.advance(NOW_US + 20) == ["second"]


def test_a_tick_of_no_time_is_refused():
    with pytest.raises(ValueError, match="at least a microsecond"):
        wheel(tick=timedelta(0))


def test_a_hundred_thousand_keys_of_one_instant_come_together():
    timers: Wheel[int] = Wheel(MICROSECOND, NOW_US)
    for key in range(100_000):
        timers.put(key, NOW_US + 3_600_000)

    assert timers.advance(NOW_US + 3_599_999) == []
    assert len(timers.advance(NOW_US + 3_600_000)) == 100_000


class SortedOracle:
    """The same promises, kept the slow way."""

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us
        self.times: dict[str, int] = {}

    def advance(self, now_us: int) -> list[tuple[int, str]]:
        self.now_us = max(self.now_us, now_us)
        due = sorted((at, key) for key, at in self.times.items() if at <= self.now_us)
        for _, key in due:
            del self.times[key]
        return due


distances = st.one_of(
    st.integers(-100, 200),
    st.integers(-10_000, 10_000_000),
    st.sampled_from([63, 64, 65, 4_095, 4_096, 262_143, 262_144, 16_777_215, 16_777_216, 16_777_217]),
    st.integers(0, 20 * YEAR_US),
)
steps: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(["put", "put", "put", "discard", "advance", "advance"]), st.integers(0, 12), distances
)


@settings(max_examples=examples(400), deadline=None)
@given(st.integers(0, 2**41), st.sampled_from([1, 7, 64, 1_000]), st.lists(steps, max_size=60))
def test_the_wheel_does_what_a_sorted_dictionary_does(now_us: int, tick_us: int, script: list[Step]):
    timers, oracle = wheel(now_us, timedelta(microseconds=tick_us)), SortedOracle(now_us)
    for action, number, distance in script:
        key = str(number)
        if action == "put":
            timers.put(key, oracle.now_us + distance)
            oracle.times[key] = oracle.now_us + distance
        elif action == "discard":
            timers.discard(key)
            oracle.times.pop(key, None)
        else:
            times = dict(oracle.times)
            target = oracle.now_us + distance
            due = timers.advance(target)
            assert sorted((times[key], key) for key in due) == oracle.advance(target)
            assert [times[key] for key in due] == sorted(times[key] for key in due)
        assert timers.next_at() == min(oracle.times.values(), default=None)
        assert len(timers) == len(oracle.times)

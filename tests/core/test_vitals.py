import math
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.vitals import BOUNDS, BUCKET_SECONDS, Vitals, Window


@given(
    delays=st.lists(st.floats(-1.0, 5000.0), min_size=1, max_size=200),
    share=st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]),
)
def test_a_quantile_is_the_class_of_the_delay_that_sorting_finds(delays: list[float], share: float):
    vitals = Vitals()
    for delay in delays:
        vitals.observe_delay(100.0, delay)

    exact = max(sorted(delays)[math.ceil(len(delays) * share) - 1], 0.0)
    found = vitals.delay_quantile(100.0, share)

    assert found == BOUNDS[min(bisect_right(BOUNDS, exact), len(BOUNDS) - 1)]
    if BOUNDS[0] <= exact < BOUNDS[-1]:
        assert exact < found <= exact * 1.25 * (1 + 1e-9)


def test_without_attempts_delay_is_zero_and_success_is_whole():
    vitals = Vitals()

    assert vitals.delay_quantile(0.0, 0.95) == 0.0
    assert vitals.success_rate(0.0) == 1.0


def test_delays_are_forgotten_after_five_minutes():
    vitals = Vitals()
    vitals.observe_delay(0.0, 60.0)
    vitals.observe_delay(200.0, 0.001)

    assert vitals.delay_quantile(250.0, 1.0) > 50
    assert vitals.delay_quantile(301.0, 1.0) < 0.01
    assert vitals.started == 2


def test_the_success_rate_is_of_the_last_ten_minutes():
    vitals = Vitals()
    vitals.observe_outcome(0.0, is_success=False)
    for _ in range(3):
        vitals.observe_outcome(300.0, is_success=True)

    assert vitals.success_rate(300.0) == 0.75
    assert vitals.success_rate(601.0) == 1.0
    assert vitals.settled == 4


@given(times=st.lists(st.floats(0, 2000), max_size=100), now=st.floats(2000, 2600))
def test_a_window_counts_what_lies_inside_it_give_or_take_a_bucket(times: list[float], now: float):
    window = Window(300.0, 1)
    for at in sorted(times):
        window.count(at, 0)

    (counted,) = window.totals(now)

    surely = sum(at >= now - 300.0 + BUCKET_SECONDS for at in times)
    at_most = sum(at >= now - 300.0 for at in times)
    assert surely <= counted <= at_most


def test_a_loop_is_overdue_when_its_promise_has_passed():
    vitals = Vitals()
    vitals.beat("trigger", 100.0, 30.0)
    vitals.beat("settler", 100.0, 90.0)

    assert vitals.overdue(130.0) == []
    assert vitals.overdue(130.1) == ["trigger"]
    vitals.beat("trigger", 131.0, 30.0)
    assert vitals.overdue(140.0) == []


@pytest.mark.parametrize("delay", [0.0, -5.0])
def test_an_attempt_before_its_time_counts_as_no_delay(delay: float):
    vitals = Vitals()
    vitals.observe_delay(0.0, delay)

    assert vitals.delay_quantile(0.0, 1.0) == BOUNDS[0]

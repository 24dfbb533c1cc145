"""The retry budget: a share of the first tries of the last minute, once enough tries were seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.retry_budget import SPAN, RetryBudget

SHARE, FREE = 0.2, 100


def budget_after(firsts: int, retries: int, now: float = 1000.0) -> RetryBudget:
    budget = RetryBudget(SHARE, FREE)
    for _ in range(firsts):
        budget.count(now, is_retry=False)
    for _ in range(retries):
        budget.count(now, is_retry=True)
    return budget


@pytest.mark.parametrize(
    ("firsts", "retries", "permits"),
    [
        (0, 0, True),
        (0, 99, True),
        (1, 98, True),
        (0, 100, False),
        (99, 0, True),
        (100, 0, True),
        (100, 19, True),
        (100, 20, False),
        (50, 50, False),
        (1000, 199, True),
        (1000, 200, False),
    ],
)
def test_C60_retries_are_a_fifth_of_first_tries_once_100_tries_were_seen(firsts: int, retries: int, permits: bool):
    assert budget_after(firsts, retries).permits(1000.0) is permits


def test_C60_tries_older_than_a_minute_do_not_count():
    budget = budget_after(100, 20)

    assert not budget.permits(1000.0 + SPAN)
    assert budget.permits(1000.0 + SPAN + 2)
    assert budget.is_idle(1000.0 + SPAN + 2)


def test_a_try_that_was_not_sent_is_taken_back():
    budget = budget_after(100, 20)
    budget.withdraw(is_retry=True)
    assert budget.permits(1000.0)

    budget = budget_after(100, 19)
    for _ in range(5):
        budget.withdraw(is_retry=False)
    assert (budget.firsts, budget.retries) == (95, 19)
    assert not budget.permits(1000.0)


def test_taking_back_more_than_was_counted_does_nothing():
    budget = RetryBudget(SHARE, FREE)
    budget.withdraw(is_retry=True)
    budget.withdraw(is_retry=False)
    assert (budget.firsts, budget.retries) == (0, 0)


def test_the_pace_is_measured_over_the_time_that_was_seen():
    budget = RetryBudget(SHARE, FREE)
    assert budget.pace(0.0) == 0.0
    for second in range(10):
        for _ in range(50):
            budget.count(float(second), is_retry=False)

    assert budget.pace(10.0) == 50.0
    assert budget.retry_pace() == FREE / SPAN, "the free tries of a minute, while the share is less"


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(0, 30), st.integers(0, 30)), max_size=80))
def test_C60_no_admitted_retry_exceeds_the_budget_of_the_minute_before_it(moves: list[tuple[float, int, int]]):
    """At each admitted retry, the minute before it is within the share or below the free tries."""
    budget, now = RetryBudget(SHARE, FREE), 0.0
    firsts: list[float] = []
    retries: list[float] = []
    for pause, new, failed in moves:
        now += pause
        for _ in range(new):
            budget.count(now, is_retry=False)
            firsts.append(now)
        for _ in range(failed):
            if not budget.permits(now):
                continue
            budget.count(now, is_retry=True)
            retries.append(now)
            in_minute = sum(at > now - SPAN for at in retries)
            lately = sum(at >= now - SPAN - 2 for at in firsts)  # buckets of a second
            assert in_minute <= SHARE * lately or in_minute + sum(at > now - SPAN for at in firsts) <= FREE

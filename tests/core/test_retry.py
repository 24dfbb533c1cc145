import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.retry import Jitter, RetryPolicy, backoff, loss_backoff

MS = timedelta(milliseconds=1)
DEFAULT = RetryPolicy()


def lowest(low: float, high: float) -> float:
    return low


def highest(low: float, high: float) -> float:
    return high


@pytest.mark.parametrize(
    ("failure", "base_ms"),
    [
        (1, 1000),
        (2, 2000),
        (3, 4000),
        (4, 8000),
        (5, 16_000),
        (6, 32_000),
        (7, 64_000),
        (8, 128_000),
        (9, 128_000),
        (1000, 128_000),
    ],
)
def test_C48_the_wait_is_500_ms_doubled_per_failure_up_to_the_eighth_plus_100_to_800_ms(failure: int, base_ms: int):
    assert backoff(DEFAULT, failure, lowest) == (base_ms + 100) * MS
    assert backoff(DEFAULT, failure, highest) == (base_ms + 800) * MS


@given(failure=st.integers(1, 50), seed=st.integers())
def test_C48_every_default_wait_lies_within_its_bounds(failure: int, seed: int):
    wait = backoff(DEFAULT, failure, random.Random(seed).uniform)

    base = 500 * 2 ** min(failure, 8)
    assert (base + 100) * MS <= wait <= min(base + 800, 300_000) * MS


def test_C48_a_wait_is_never_longer_than_five_minutes():
    patient = RetryPolicy(base=timedelta(seconds=2))

    assert backoff(patient, 7, lowest) == 256_100 * MS
    assert backoff(patient, 8, lowest) == 300_000 * MS
    assert backoff(patient, 8, highest) == 300_000 * MS


def test_C48_the_jitter_is_part_of_what_the_cap_cuts():
    policy = RetryPolicy(base=timedelta(milliseconds=500), cap=timedelta(milliseconds=1500))

    assert backoff(policy, 1, lowest) == 1100 * MS
    assert backoff(policy, 1, highest) == 1500 * MS


def test_C48_C56_an_instance_dies_at_the_sixth_failure_by_default():
    assert [failures for failures in range(1, 10) if DEFAULT.is_spent(failures)] == [6, 7, 8, 9]


def test_without_retries_the_first_failure_is_the_last():
    assert RetryPolicy(max_retry=0).is_spent(1)
    assert not RetryPolicy(max_retry=0).is_spent(0)


def test_C48_C56_the_example_waits_one_two_four_and_eight_seconds_and_the_jitter():
    waits = [backoff(DEFAULT, failure, lowest) for failure in (1, 2, 3, 4)]

    assert waits == [(seconds * 1000 + 100) * MS for seconds in (1, 2, 4, 8)]


@pytest.mark.parametrize(("failure", "limit_ms"), [(1, 1000), (4, 8000), (20, 128_000)])
def test_full_jitter_lies_between_nothing_and_the_whole_wait(failure: int, limit_ms: int):
    policy = RetryPolicy(jitter=Jitter.FULL)

    assert backoff(policy, failure, lowest) == timedelta(0)
    assert backoff(policy, failure, highest) == limit_ms * MS


def test_full_jitter_is_dealt_below_the_cap():
    policy = RetryPolicy(cap=timedelta(seconds=3), jitter=Jitter.FULL)

    assert backoff(policy, 8, highest) == timedelta(seconds=3)


def test_without_jitter_the_wait_is_exact():
    policy = RetryPolicy(jitter=Jitter.NONE, cap=timedelta(seconds=3))

    assert [backoff(policy, n, highest) / MS for n in (1, 2, 3, 4)] == [1000, 2000, 3000, 3000]


@pytest.mark.parametrize(
    ("loss", "longest_ms"),
    [(1, 4_000), (2, 8_000), (3, 16_000), (6, 128_000), (7, 256_000), (8, 300_000), (20, 300_000), (1000, 300_000)],
)
def test_the_wait_after_a_loss_is_the_upper_half_of_4_s_doubled_per_loss_up_to_five_minutes(loss: int, longest_ms: int):
    assert loss_backoff(DEFAULT, loss, lowest) == longest_ms / 2 * MS
    assert loss_backoff(DEFAULT, loss, highest) == longest_ms * MS


@given(count=st.integers(1, 50), seed=st.integers())
def test_a_loss_is_waited_for_longer_than_a_failure_of_the_same_number(count: int, seed: int):
    dice = random.Random(seed).uniform

    assert loss_backoff(DEFAULT, count, dice) > backoff(DEFAULT, count, dice)


@pytest.mark.parametrize(("jitter", "shortest"), [(Jitter.ADDITIVE, 40), (Jitter.FULL, 40), (Jitter.NONE, 80)])
def test_instances_that_were_lost_together_are_spread_unless_the_job_wants_no_jitter(jitter: Jitter, shortest: int):
    policy = RetryPolicy(base=10 * MS, jitter=jitter)

    assert (loss_backoff(policy, 1, lowest), loss_backoff(policy, 1, highest)) == (shortest * MS, 80 * MS)


def test_an_instance_is_dead_at_the_loss_after_maxLost():
    assert [DEFAULT.is_lost_for_good(lost) for lost in (1, 20, 21)] == [False, False, True]
    assert RetryPolicy(max_lost=0).is_lost_for_good(1)

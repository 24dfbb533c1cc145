import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.retry import Jitter, RetryPolicy, backoff

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

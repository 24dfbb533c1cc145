from collections import Counter
from datetime import timedelta
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.time.jitter import GOLDEN, LONGEST_JITTER, offset

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
jitters = st.integers(0, LONGEST_JITTER // timedelta(milliseconds=1)).map(lambda ms: timedelta(milliseconds=ms))


@given(st.integers(1, 2**62), jitters)
def test_an_offset_is_whole_milliseconds_from_nothing_to_just_under_the_jitter(job_id: int, jitter: timedelta):
    behind = offset(job_id, jitter)

    assert timedelta(0) <= behind < max(jitter, timedelta(milliseconds=1))
    assert behind % timedelta(milliseconds=1) == timedelta(0)
    assert behind == offset(job_id, jitter), "the same for all slots of a job, at every start"


def test_without_jitter_nothing_is_moved():
    assert {offset(job_id, timedelta(0)) for job_id in range(1_000)} == {timedelta(0)}


@given(st.integers(1, 2**62))
def test_a_thousand_jobs_in_a_row_fill_each_second_of_a_minute_alike(first: int):
    per_second = Counter(offset(job_id, MINUTE) // SECOND for job_id in range(first, first + 1_000))

    assert per_second.keys() == set(range(60))
    assert all(14 <= jobs <= 18 for jobs in per_second.values())


@pytest.mark.parametrize("count", [2, 3, 5, 10, 60, 100])
def test_any_few_jobs_in_a_row_keep_apart(count: int):
    """By the golden ratio no gap is wider than 2.7 times an even one.

    This holds for any number of jobs, as if it had been known before.
    """
    for first in range(1, 2_000, 37):
        starts = sorted(offset(job_id, MINUTE) for job_id in range(first, first + count))
        around = [later - earlier for earlier, later in zip(starts, [*starts[1:], starts[0] + MINUTE], strict=True)]
        assert max(around) <= 2.7 * MINUTE / count


@given(st.integers(1, 2**62), jitters)
def test_a_wider_jitter_stretches_the_same_place(job_id: int, jitter: timedelta):
    place = offset(job_id, LONGEST_JITTER) / LONGEST_JITTER

    assert abs(offset(job_id, jitter) - place * jitter) <= timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("job_id", "jitter_ms", "behind_ms"),
    [(1, 60_000, 37_082), (2, 60_000, 14_164), (1_000, 60_000, 2_039), (2**31, 60_000, 0), (7, 86_400_000, 28_186_956)],
)
def test_the_place_of_a_job_is_the_same_in_every_version(job_id: int, jitter_ms: int, behind_ms: int):
    assert offset(job_id, timedelta(milliseconds=jitter_ms)) == timedelta(milliseconds=behind_ms)


def test_the_multiplier_is_the_range_by_the_golden_ratio():
    assert round(2**31 * (sqrt(5) - 1) / 2) == GOLDEN
    assert GOLDEN % 2 == 1, "odd: no two of 2^31 ids in a row share a place"

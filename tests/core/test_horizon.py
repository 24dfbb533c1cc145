"""The horizon of the outbox: samples bound the time of rows that are not recorded yet."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from horai.core.horizon import MOST_SAMPLES, OVERLAP, HorizonSample, earliest_row, kept_samples, set_back_by

START = datetime(2026, 11, 17, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_samples_are_kept_while_a_transaction_that_they_bound_is_open() -> None:
    samples = tuple[HorizonSample, ...]()
    for number in range(10):
        samples = kept_samples(samples, HorizonSample(START + number * SECOND, 100 + number), horizon=103)
    assert samples[0] == HorizonSample(START + 3 * SECOND, 103)
    assert earliest_row(samples, OVERLAP) == START + 3 * SECOND - OVERLAP
    assert kept_samples(samples, HorizonSample(START + 60 * SECOND, 500), horizon=500) == (
        HorizonSample(START + 60 * SECOND, 500),
    )
    assert earliest_row((), OVERLAP) is None


def test_a_clock_that_was_set_back_moves_the_bound_back() -> None:
    samples = kept_samples((HorizonSample(START, 100),), HorizonSample(START - timedelta(hours=1), 110), horizon=105)
    assert earliest_row(samples, timedelta()) == START - timedelta(hours=1)
    assert set_back_by(5 * SECOND, -55 * SECOND) == timedelta(minutes=1)
    assert set_back_by(5 * SECOND, 10 * SECOND) == timedelta()


@given(st.lists(st.tuples(st.integers(-30, 90), st.integers(0, 5), st.integers(0, 50)), max_size=300))
def test_no_row_of_an_unrecorded_transaction_is_older_than_the_bound(steps: list[tuple[int, int, int]]) -> None:
    """Transactions get ids and write rows at the current time; the horizon follows the oldest open one."""
    clock, next_id, horizon = START, 1, 1
    samples: tuple[HorizonSample, ...] = (HorizonSample(clock, next_id),)
    rows: list[tuple[int, datetime]] = []
    for moved, begun, lag in steps:
        clock += timedelta(seconds=moved)
        for _ in range(begun):
            rows.append((next_id, clock))
            next_id += 1
        horizon = max(horizon, next_id - lag)
        samples = kept_samples(samples, HorizonSample(clock, next_id), horizon)
        assert len(samples) <= MOST_SAMPLES
        bound = earliest_row(samples, timedelta())
        assert bound is not None
        assert all(bound <= at for number, at in rows if number >= horizon)

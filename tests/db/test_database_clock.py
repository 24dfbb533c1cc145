"""The database clock as a node knows it: from answers that took their time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.db.clock import DRIFT, DatabaseClock
from horai.db.pool import Platform

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class HandClock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def answered(clock: DatabaseClock, hand: HandClock, there: float, back: float, ahead: timedelta = timedelta(0)) -> None:
    """Let an answer take `there` seconds until the database reads its clock, and `back` seconds from then on."""
    asked_at = hand.now
    hand.now += there
    told = MIDNIGHT + timedelta(seconds=hand.now) + ahead
    hand.now += back
    clock.observe(told, asked_at)


def behind(clock: DatabaseClock, hand: HandClock) -> timedelta:
    """Return how far the estimate is behind the database, which began at midnight."""
    return MIDNIGHT + timedelta(seconds=hand.now) - clock.now()


def test_a_clock_that_was_never_told_the_time_says_so():
    with pytest.raises(RuntimeError):
        DatabaseClock().now()
    with pytest.raises(RuntimeError):
        _ = DatabaseClock().width


def test_the_databases_time_runs_with_the_monotonic_clock():
    hand = HandClock()
    clock = DatabaseClock(hand)
    clock.observe(MIDNIGHT, hand())
    hand.now = 90.5

    assert clock.now() == datetime(2026, 1, 1, 0, 1, 30, 500_000, tzinfo=UTC)


def test_an_answer_that_waited_for_its_commit_does_not_set_the_clock_back():
    hand = HandClock()
    clock = DatabaseClock(hand)
    answered(clock, hand, 0.0002, 0.0002)

    answered(clock, hand, 0.0001, 0.031)

    assert behind(clock, hand) < MILLISECOND
    assert clock.width < 0.001


def test_a_faster_answer_corrects_a_slow_one():
    hand = HandClock()
    clock = DatabaseClock(hand)
    answered(clock, hand, 0.0001, 0.031)
    assert behind(clock, hand) > 30 * MILLISECOND

    answered(clock, hand, 0.0002, 0.0002)

    assert behind(clock, hand) < MILLISECOND


@pytest.mark.parametrize("step", [timedelta(hours=-1), -40 * MILLISECOND, 40 * MILLISECOND, timedelta(hours=1)])
def test_a_clock_that_was_set_is_followed_at_the_next_answer(step: timedelta):
    hand = HandClock()
    clock = DatabaseClock(hand)
    answered(clock, hand, 0.0002, 0.0002)

    answered(clock, hand, 0.001, 0.002, step)

    assert timedelta(0) <= behind(clock, hand) + step <= 2.1 * MILLISECOND


@given(st.lists(st.tuples(st.floats(0, 0.05), st.floats(0, 0.05), st.floats(0, 3)), min_size=1, max_size=30))
def test_the_estimate_is_never_ahead_and_behind_by_its_width_at_most(answers: list[tuple[float, float, float]]):
    hand = HandClock()
    clock = DatabaseClock(hand)
    for there, back, pause in answers:
        answered(clock, hand, there, back)
        rounding = timedelta(microseconds=2)
        assert -rounding <= behind(clock, hand) <= timedelta(seconds=clock.width) + rounding
        hand.now += pause


def test_a_clock_that_drifts_is_followed():
    hand = HandClock()
    clock = DatabaseClock(hand)
    for second in range(3_600):
        hand.now = float(second)
        answered(clock, hand, 0.0005, 0.0005, timedelta(seconds=-second * DRIFT))
        assert behind(clock, hand) - timedelta(seconds=second * DRIFT) < 2 * MILLISECOND


async def test_the_database_is_asked_for_its_time(connection: Platform):
    clock = DatabaseClock()
    before = await connection.fetchval("select clock_timestamp()")
    await clock.ask(connection)
    estimate = clock.now()

    assert before - timedelta(seconds=clock.width) < estimate < await connection.fetchval("select clock_timestamp()")

"""The circuit breaker: when it opens, when it tries, and how it recovers."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.circuit_breaker import (
    FEWEST_RESULTS,
    FIRST_PAUSE,
    FORGOTTEN_AFTER,
    LONGEST_PAUSE,
    PAUSE_SPREAD,
    PROBE_PATIENCE,
    PROBES,
    QUIET,
    WINDOW,
    BreakerState,
    CircuitBreaker,
)

NOW = 1000.0


def middle(low: float, high: float) -> float:
    return (low + high) / 2


def breaker_with(failed: int, succeeded: int, now: float = NOW) -> CircuitBreaker:
    breaker = CircuitBreaker(0.5, middle)
    for _ in range(succeeded):
        breaker.record(now, failed=False)
    for _ in range(failed):
        breaker.record(now, failed=True)
    return breaker


def opened() -> CircuitBreaker:
    return breaker_with(FEWEST_RESULTS, 0)


def ramping(now: float = NOW + FIRST_PAUSE) -> CircuitBreaker:
    breaker = opened()
    for _ in range(PROBES):
        assert breaker.admit(now)
    for _ in range(PROBES):
        breaker.record(now, failed=False)
    assert breaker.state is BreakerState.RAMPING
    return breaker


@pytest.mark.parametrize(
    ("failed", "succeeded", "state"),
    [
        (19, 0, BreakerState.CLOSED),
        (20, 0, BreakerState.OPEN),
        (10, 10, BreakerState.OPEN),
        (9, 11, BreakerState.CLOSED),
        (50, 51, BreakerState.CLOSED),
        (51, 51, BreakerState.OPEN),
        (0, 1000, BreakerState.CLOSED),
    ],
)
def test_C60_a_breaker_opens_when_half_of_at_least_20_results_failed(failed: int, succeeded: int, state: BreakerState):
    assert breaker_with(failed, succeeded).state is state


def test_a_share_above_one_never_opens():
    breaker = CircuitBreaker(1.1, middle)
    for _ in range(1000):
        breaker.record(NOW, failed=True)
    assert breaker.admit(NOW)


def test_results_older_than_the_window_do_not_count():
    breaker = breaker_with(19, 0)
    breaker.record(NOW + WINDOW, failed=True)
    assert breaker.state is BreakerState.CLOSED


def test_C60_an_open_breaker_admits_nothing_until_its_pause_is_over_and_then_three_probes():
    breaker = opened()
    assert not breaker.admit(NOW + FIRST_PAUSE - 0.01)

    admitted = [breaker.admit(NOW + FIRST_PAUSE) for _ in range(10)]

    assert breaker.state is BreakerState.HALF_OPEN
    assert admitted == [True] * PROBES + [False] * (10 - PROBES)


def test_C60_a_failed_probe_opens_the_breaker_for_twice_the_pause_up_to_the_longest():
    breaker, now, pauses = opened(), NOW, []
    for _ in range(6):
        pauses.append(breaker.next_try - now)
        now = breaker.next_try
        assert breaker.admit(now)
        breaker.record(now, failed=True)
        assert breaker.state is BreakerState.OPEN
    assert pauses == [FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4, *[LONGEST_PAUSE] * 3]


@pytest.mark.parametrize(("dice", "factor"), [(min, 1 - PAUSE_SPREAD), (max, 1 + PAUSE_SPREAD)])
def test_the_pause_is_spread_at_random(dice: object, factor: float):
    breaker = CircuitBreaker(0.5, dice)  # pyright: ignore[reportArgumentType] — `min` and `max` are dice of two numbers
    for _ in range(FEWEST_RESULTS):
        breaker.record(NOW, failed=True)
    assert breaker.next_try == NOW + FIRST_PAUSE * factor


def test_results_of_calls_that_began_before_the_opening_are_ignored_while_it_is_open():
    breaker = opened()
    until = breaker.next_try
    for failed in (True, False) * 50:
        breaker.record(NOW + 1, failed=failed)
    assert (breaker.state, breaker.next_try) == (BreakerState.OPEN, until)


def test_probes_without_a_result_are_replaced_after_a_while():
    breaker = opened()
    now = NOW + FIRST_PAUSE
    assert [breaker.admit(now) for _ in range(PROBES + 1)][-1] is False
    assert not breaker.admit(now + PROBE_PATIENCE - 0.01)
    assert [breaker.admit(now + PROBE_PATIENCE) for _ in range(PROBES + 1)] == [True] * PROBES + [False]


def test_a_probe_that_was_not_sent_gives_its_place_to_another():
    breaker = opened()
    now = NOW + FIRST_PAUSE
    for _ in range(PROBES + 5):
        breaker.admit(now)
    breaker.withdraw()
    assert [breaker.admit(now) for _ in range(2)] == [True, False]


def test_withdrawn_calls_of_before_do_not_add_probes():
    breaker = opened()
    breaker.admit(NOW + FIRST_PAUSE)
    for _ in range(50):
        breaker.withdraw()
    assert sum(breaker.admit(NOW + FIRST_PAUSE) for _ in range(50)) == PROBES


def admitted_in(breaker: CircuitBreaker, second: float, calls: int = 2000) -> int:
    """Return how many of so many calls in one second are admitted."""
    return sum(breaker.admit(second + n / calls) for n in range(calls))


def test_C60_recovery_doubles_the_calls_each_second_up_to_twice_the_pace_of_before():
    breaker, begun = ramping(), NOW + FIRST_PAUSE
    breaker.pace = 100.0

    per_second = [admitted_in(breaker, begun + second) for second in range(60)]

    wanted = [5, 10, 20, 40, 80, 160, *[200] * 24, *[400] * 30]
    assert all(rate * 0.9 - 1 <= seen <= rate * 1.3 + 1 for seen, rate in zip(per_second, wanted, strict=True))
    assert breaker.state is BreakerState.RAMPING


def test_C60_a_breaker_closes_when_the_ramp_turned_no_call_away_for_5_s():
    breaker, begun = ramping(), NOW + FIRST_PAUSE
    breaker.pace = 100.0
    admitted_in(breaker, begun)
    assert breaker.admit(begun + 1 + QUIET - 0.1)
    assert breaker.state is BreakerState.RAMPING

    assert breaker.admit(begun + 1 + QUIET)
    assert breaker.state is BreakerState.CLOSED


def test_C60_a_ramp_that_fails_opens_the_breaker_again():
    breaker, now = ramping(), NOW + FIRST_PAUSE
    for _ in range(4):
        breaker.record(now, failed=True)
    assert breaker.state is BreakerState.RAMPING
    breaker.record(now, failed=True)
    assert breaker.state is BreakerState.OPEN
    assert breaker.next_try == now + FIRST_PAUSE * 2


def test_after_closing_the_first_pause_applies_again():
    breaker, now = ramping(), NOW + FIRST_PAUSE + QUIET
    breaker.record(now, failed=False)
    assert breaker.state is BreakerState.CLOSED
    for _ in range(FEWEST_RESULTS):
        breaker.record(now, failed=True)
    assert breaker.next_try == now + FIRST_PAUSE


def test_a_breaker_is_over_when_closed_or_climbed_or_forgotten():
    assert CircuitBreaker(0.5, middle).is_over(NOW)
    assert not ramping().is_over(NOW + FIRST_PAUSE)
    assert ramping().is_over(NOW + FIRST_PAUSE + QUIET)
    assert not opened().is_over(NOW + FIRST_PAUSE + FORGOTTEN_AFTER - 1)
    assert opened().is_over(NOW + FIRST_PAUSE + FORGOTTEN_AFTER)


class Host:
    """A host that works or not, with calls that take a while; it counts what reaches it while it is down."""

    def __init__(self) -> None:
        self.breaker = CircuitBreaker(0.5, middle)
        self.under_way: list[float] = []
        self.reached = 0

    def tick(self, now: float, calls: int, *, is_down: bool) -> int:
        admitted = sum(self.breaker.admit(now) for _ in range(calls))
        for _ in range(admitted):
            self.breaker.record(now, failed=is_down)
        return admitted


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), min_size=1, max_size=400))
def test_C60_a_host_that_is_down_gets_few_calls_and_a_host_that_works_is_never_cut_off(spans: list[tuple[bool, int]]):
    host, now = Host(), NOW
    for is_down, calls in spans:
        now += 0.25
        was = host.breaker.state
        admitted = host.tick(now, calls, is_down=is_down)
        if is_down and was is BreakerState.OPEN:
            assert admitted <= PROBES
        if not is_down and was is BreakerState.CLOSED:
            assert admitted == calls
            assert host.breaker.state is BreakerState.CLOSED
    for _ in range(600):  # a host that works again is found out, after any history
        now += 0.25
        host.tick(now, 10, is_down=False)
    assert host.breaker.state is BreakerState.CLOSED


def test_C60_in_three_minutes_of_failures_a_host_is_probed_a_few_times():
    host, admitted = Host(), []
    for tick in range(180 * 10):
        admitted.append(host.tick(NOW + tick / 10, 5, is_down=True))
    assert sum(admitted[:10]) == FEWEST_RESULTS
    assert sum(admitted[10:]) <= 9 * PROBES
    gaps = [len([*group]) / 10 for key, group in itertools.groupby(admitted, bool) if not key]
    assert max(gaps) <= LONGEST_PAUSE

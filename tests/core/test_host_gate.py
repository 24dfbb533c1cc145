"""The gate of a host: its breaker and its budget together, and how calls that may not begin are lined up."""

import random

from horai.core.circuit_breaker import FEWEST_RESULTS, FIRST_PAUSE, PROBES, QUIET, CircuitBreaker
from horai.core.host_gate import LONGEST_LINE, SPREAD, GateState, HostGate
from horai.core.retry_budget import RetryBudget

NOW = 1000.0


def middle(low: float, high: float) -> float:
    return (low + high) / 2


def gate_of(dice=middle) -> HostGate:
    return HostGate(CircuitBreaker(0.5, dice), RetryBudget(0.2, 100), dice)


def open_gate(pace: int = 50, dice=middle) -> HostGate:
    """A gate that opened after a second at this pace."""
    gate = gate_of(dice)
    for n in range(pace):
        assert gate.admit(NOW - 1 + n / pace, is_retry=False) is None
    for _ in range(FEWEST_RESULTS):
        gate.record(NOW, failed=True)
    assert gate.state(NOW) is GateState.OPEN
    return gate


def test_C60_first_tries_and_retries_wait_while_the_breaker_is_open():
    gate = open_gate()
    for is_retry in (False, True):
        wait = gate.admit(NOW + 1, is_retry=is_retry)
        assert wait is not None
        assert wait >= FIRST_PAUSE - 1


def test_C60_only_retries_wait_for_the_budget():
    gate = gate_of()
    for _ in range(100):
        assert gate.admit(NOW, is_retry=False) is None
    admitted = [gate.admit(NOW, is_retry=True) for _ in range(40)]

    assert admitted[:20] == [None] * 20
    assert None not in admitted[20:]
    assert gate.state(NOW) is GateState.RETRIES_HELD
    assert gate.since == NOW
    assert gate.admit(NOW, is_retry=False) is None
    assert gate.state(NOW + 60) is None


def test_C60_waiting_calls_come_back_one_after_the_other_at_the_pace_of_before():
    gate = open_gate(pace=50)
    waits = [gate.admit(NOW, is_retry=False) for _ in range(500)]

    assert None not in waits
    backs = sorted(NOW + wait for wait in waits if wait is not None)
    assert backs[0] >= NOW + FIRST_PAUSE
    in_one_second = max(sum(at <= other < at + 1 for other in backs) for at in backs)
    assert in_one_second <= 51, "as many as were called before, not all at once"


def test_calls_that_come_back_while_it_is_still_open_go_to_the_end_of_the_line():
    gate = open_gate(pace=50)
    for _ in range(500):
        gate.admit(NOW, is_retry=False)
    again = gate.admit(NOW + 4, is_retry=False)
    assert again is not None
    assert again >= FIRST_PAUSE - 4 + 10


def test_C60_very_many_waiting_calls_are_spread_over_minutes():
    dice = random.Random(1).uniform
    gate = open_gate(pace=50, dice=dice)
    opens_at = gate.breaker.next_try
    waits = [wait for _ in range(100_000) if (wait := gate.admit(NOW, is_retry=False)) is not None]

    assert len(waits) == 100_000
    assert max(waits) <= opens_at - NOW + LONGEST_LINE + SPREAD
    late = waits[20_000:]
    per_second = [sum(second <= wait - (opens_at - NOW) < second + 1 for wait in late) for second in range(0, 300, 25)]
    assert max(per_second) < 2 * min(per_second), "beyond the line they are spread evenly"


def test_C60_a_gate_that_has_closed_is_recovering_until_its_line_is_through():
    gate = open_gate(pace=50)
    for _ in range(1000):
        gate.admit(NOW, is_retry=False)
    now = NOW + FIRST_PAUSE
    for _ in range(PROBES):
        assert gate.admit(now, is_retry=False) is None
    for _ in range(PROBES):
        gate.record(now, failed=False)
    assert gate.state(now) is GateState.RAMPING

    now += QUIET
    assert gate.admit(now, is_retry=False) is None
    assert gate.state(now) is GateState.RECOVERING
    assert gate.next_try(now) > now
    assert gate.state(NOW + FIRST_PAUSE + 1000 / 50 + 1) is None


def test_C60_a_retry_beyond_the_budget_is_no_probe():
    gate = gate_of()
    for _ in range(100):
        gate.admit(NOW, is_retry=False)
    for _ in range(20):
        gate.admit(NOW, is_retry=True)
    for _ in range(FEWEST_RESULTS):
        gate.record(NOW, failed=True)
    assert gate.admit(NOW + FIRST_PAUSE, is_retry=True) is not None
    assert gate.admit(NOW + FIRST_PAUSE, is_retry=False) is None


def test_since_is_the_beginning_of_the_present_hold():
    gate = open_gate()
    gate.admit(NOW + 3, is_retry=False)
    assert gate.since == NOW


def test_a_call_that_was_not_sent_counts_neither_as_a_try_nor_as_a_result():
    gate = gate_of()
    for _ in range(100):
        gate.admit(NOW, is_retry=False)
    for _ in range(20):
        gate.admit(NOW, is_retry=True)
    gate.withdraw(is_retry=True)
    assert gate.admit(NOW, is_retry=True) is None


def test_an_idle_gate_can_be_dropped_and_an_open_one_not():
    gate = gate_of()
    gate.admit(NOW, is_retry=False)
    assert not gate.is_idle(NOW)
    assert gate.is_idle(NOW + 120)
    assert not open_gate().is_idle(NOW + 120)


def test_a_gate_is_shut_during_the_pause_and_while_all_probes_are_under_way():
    gate = open_gate()
    assert gate.shut_for(NOW) == FIRST_PAUSE
    now = NOW + FIRST_PAUSE
    assert gate.shut_for(now) == 0.0
    for _ in range(PROBES):
        assert gate.shut_for(now) == 0.0
        gate.admit(now, is_retry=False)
    assert gate.shut_for(now) > 0.0
    for _ in range(PROBES):
        gate.record(now, failed=False)
    assert gate.shut_for(now) == 0.0
    assert gate_of().shut_for(now) == 0.0


def test_C60_a_call_that_was_admitted_before_the_breaker_opened_is_held_back():
    assert gate_of().hold_back(NOW) is None
    gate = open_gate()
    wait = gate.hold_back(NOW + 1)
    assert wait is not None
    assert wait >= FIRST_PAUSE - 1
    assert gate.hold_back(NOW + FIRST_PAUSE) is None


def test_C60_a_full_host_admits_no_call_until_its_line_has_shortened():
    gate = gate_of()
    assert gate.is_closed
    gate.fill(NOW, 3.0, is_silent=False)

    for is_retry in (False, True):
        wait = gate.admit(NOW + 1, is_retry=is_retry)
        assert wait is not None
        assert 2.0 <= wait <= 2.0 + SPREAD
    assert not gate.is_closed
    assert (gate.state(NOW + 1), gate.since, gate.next_try(NOW + 1)) == (GateState.FULL, NOW, NOW + 3)
    assert gate.shut_for(NOW + 1) == 2.0
    assert not gate.is_idle(NOW + 1)
    assert gate.admit(NOW + 3, is_retry=False) is None
    assert gate.is_closed
    assert gate.state(NOW + 3) is None


def test_C60_the_end_of_a_call_is_news_only_of_a_full_host_that_was_silent():
    gate = gate_of()
    assert not gate.waits_for_an_end
    gate.fill(NOW, 3.0, is_silent=False)
    assert not gate.waits_for_an_end
    gate.fill(NOW, 60.0, is_silent=True)
    assert gate.waits_for_an_end
    assert (gate.is_over(NOW + 59), gate.is_over(NOW + 60)) == (False, True)
    gate.empty()
    assert gate.state(NOW) is None
    assert not gate.is_over(NOW + 60)
    assert gate.admit(NOW, is_retry=False) is None

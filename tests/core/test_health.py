import math
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.health import (
    BOUNDS,
    BUCKET_SECONDS,
    MOST_HOSTS,
    EngineHealth,
    HeldHost,
    Reading,
    SlidingWindow,
    merged,
    reading_from,
)


@given(
    delays=st.lists(st.floats(-1.0, 5000.0), min_size=1, max_size=200),
    share=st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]),
)
def test_a_quantile_is_the_class_of_the_delay_that_sorting_finds(delays: list[float], share: float):
    health = EngineHealth()
    health.observe_delays(100.0, [1] * len(delays), delays)

    exact = max(sorted(delays)[math.ceil(len(delays) * share) - 1], 0.0)
    found = health.delay_quantile(100.0, share)

    assert found == BOUNDS[min(bisect_right(BOUNDS, exact), len(BOUNDS) - 1)]
    if BOUNDS[0] <= exact < BOUNDS[-1]:
        assert exact < found <= exact * 1.25 * (1 + 1e-9)


def test_without_attempts_delay_is_zero_and_success_is_whole():
    health = EngineHealth()

    assert health.delay_quantile(0.0, 0.95) == 0.0
    assert health.success_rate(0.0) == 1.0


def test_delays_are_forgotten_after_five_minutes():
    health = EngineHealth()
    health.observe_delays(0.0, [1], [60.0])
    health.observe_delays(200.0, [1], [0.001])

    assert health.delay_quantile(250.0, 1.0) > 50
    assert health.delay_quantile(301.0, 1.0) < 0.01
    assert health.started == 2


def test_the_success_rate_is_of_the_last_ten_minutes():
    health = EngineHealth()
    health.observe_outcomes(0.0, failed=[1])
    health.observe_outcomes(300.0, succeeded=[1, 1, 2])

    assert health.success_rate(300.0) == 0.75
    assert health.success_rate(601.0) == 1.0
    assert health.settled == 4


@given(times=st.lists(st.floats(0, 2000), max_size=100), now=st.floats(2000, 2600))
def test_a_window_counts_what_lies_inside_it_give_or_take_a_bucket(times: list[float], now: float):
    window = SlidingWindow(300.0, 1)
    for at in sorted(times):
        window.count(at, 0)

    (counted,) = window.totals(now)

    surely = sum(at >= now - 300.0 + BUCKET_SECONDS for at in times)
    at_most = sum(at >= now - 300.0 for at in times)
    assert surely <= counted <= at_most


def test_a_loop_is_overdue_when_its_promise_has_passed():
    health = EngineHealth()
    health.beat("trigger", 100.0, 30.0)
    health.beat("settler", 100.0, 90.0)

    assert health.overdue(130.0) == []
    assert health.overdue(130.1) == ["trigger"]
    health.beat("trigger", 131.0, 30.0)
    assert health.overdue(140.0) == []


@pytest.mark.parametrize("delay", [0.0, -5.0])
def test_an_attempt_before_its_time_counts_as_no_delay(delay: float):
    health = EngineHealth()
    health.observe_delays(0.0, [1], [delay])

    assert health.delay_quantile(0.0, 1.0) == BOUNDS[0]


def some_health(delays: list[float], failed: int) -> EngineHealth:
    health = EngineHealth(in_flight=len(delays), unsettled=1, late_results=2, released_claims=3, retry_backlog=failed)
    health.observe_delays(100.0, [1] * len(delays), delays)
    health.observe_outcomes(100.0, failed=[1] * failed, succeeded=[1] * len(delays))
    return health


@given(
    processes=st.lists(st.lists(st.floats(0, 100.0), max_size=50), min_size=1, max_size=5),
    share=st.sampled_from([0.5, 0.95, 0.99]),
)
def test_the_readings_of_all_processes_are_those_of_one_that_did_it_all(processes: list[list[float]], share: float):
    alone = some_health([delay for delays in processes for delay in delays], len(processes)).reading(100.0)

    told = [some_health(delays, 1).reading(100.0).to_text() for delays in processes]
    together = merged([reading_from(text, "n") for text in told])

    assert together.delay_quantile(share) == alone.delay_quantile(share)
    assert together.success_rate() == alone.success_rate()
    assert together.in_flight == alone.in_flight
    assert (together.unsettled, together.late_results) == (len(processes), 2 * len(processes))
    assert together.released_claims == 3 * len(processes)


def test_a_process_tells_its_overdue_loops_by_its_name():
    health = EngineHealth()
    health.beat("trigger", 100.0, 30.0)

    assert reading_from(health.reading(200.0).to_text(), "node-2").overdue == ("node-2: trigger",)


def test_a_health_reading_of_another_version_is_read_without_its_unknown_fields():
    told = reading_from('{"delays":[[3,2],[999,1]],"in_flight":4,"mood":"fine"}', "newer")

    assert told == Reading(delays=((3, 2),), in_flight=4)
    assert merged([]) == Reading()


def test_a_window_may_be_asked_by_another_thread_while_it_counts():
    health, stop, failures = EngineHealth(), Event(), list[BaseException]()

    def ask() -> None:
        try:
            while not stop.is_set():
                health.reading(1e9)
        except BaseException as error:
            failures.append(error)

    asking = Thread(target=ask)
    asking.start()
    for second in range(20_000):
        health.observe_delays(second * BUCKET_SECONDS, [1], [0.0])
    stop.set()
    asking.join()

    assert failures == []


def test_C60_held_hosts_travel_with_the_reading_and_name_their_node():
    at = datetime(2026, 11, 16, 9, tzinfo=UTC)
    held = HeldHost("acme", "http://shop.test", "OPEN", at, at + timedelta(seconds=5))
    health = EngineHealth(held_hosts=lambda: (held,))

    told = reading_from(health.reading(0.0).to_text(), "berlin-1")

    assert told.held_hosts == (replace(held, node="berlin-1"),)
    assert merged([told, Reading()]).held_hosts == told.held_hosts
    assert len(merged([replace(told, held_hosts=told.held_hosts * 40)] * 3).held_hosts) == MOST_HOSTS
    assert reading_from("{}", "old").held_hosts == ()

"""Hosts that fail: their rows are held without a try, without a loop of claims, and without delay for other hosts."""

import asyncio
import time
from collections import Counter
from datetime import timedelta
from typing import Any

import make
import pytest
from failing_hosts import BAD, DOWN, GOOD, MovedClock, open_breaker, run, with_bad_and_good
from http_calls import call_to, executor
from receiver import Answer, Receiver
from stages import workbench
from structlog.testing import capture_logs

from horai.core.calls import HttpTarget
from horai.core.circuit_breaker import FEWEST_RESULTS, FIRST_PAUSE, PROBES, QUIET
from horai.core.health import EngineHealth
from horai.core.job import Recipe
from horai.core.outcome import (
    TIMEOUT,
    Accepted,
    FailedRetryable,
    FailedUnrecoverable,
    NotSent,
    Outcome,
    Succeeded,
    outcome_of,
)
from horai.core.retry import RetryPolicy
from horai.core.settings import EngineSettings
from horai.db.claims import Claim, ClaimedRow
from horai.db.clock import DatabaseClock
from horai.db.jobs import Runnable
from horai.engine.dispatch import host_gates
from horai.engine.dispatch.host_gates import HostGates, is_host_failure
from horai.engine.executors.origins import origin_of


async def test_C60_rows_of_an_open_host_are_given_back_without_a_try_a_failure_or_an_event(url: str):
    async with workbench(url) as bench:
        _, hosts, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        ids = await make.many(bench.scope, 50, job="bad")

        await run(bench, dispatcher)

        assert hosts.called() == {"bad": FEWEST_RESULTS}
        held = await bench.connection.fetch("select * from horai.instance_live where id = any ($1)", ids)
        assert {(row["state"], row["retry_count"]) for row in held} == {(0, 0)}
        now = await bench.connection.fetchval("select clock_timestamp()")
        released = [row for row in held if row["due"] > now]
        assert all(row["due"] >= now + timedelta(seconds=FIRST_PAUSE * 0.5) for row in released)
        assert all(row["execute_time"] < now for row in held), "its own time does not move"
        events = await bench.connection.fetchval("select count(*) from horai.event where kind = 'INSTANCE_RELEASED'")
        assert events == 0


async def test_C60_a_held_host_causes_no_loop_of_claims(url: str):
    async with workbench(url) as bench:
        _, _, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        await make.many(bench.scope, 3000, job="bad")
        await run(bench, dispatcher)
        tap = await bench.tap(dispatcher.line)

        for _ in range(20):
            again = await dispatcher.step(bench.clock.now())
            assert again > bench.clock.now(), "it waits for the breaker, a timer or a wake"

        names = Counter(await tap.names())
        assert names["claim_due"] <= 2, names


async def test_C60_the_rows_of_a_host_that_works_again_all_run(url: str):
    async with workbench(url) as bench:
        clock, hosts, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        ids = await make.many(bench.scope, 300, job="bad")
        await run(bench, dispatcher)
        hosts.down.clear()

        for _ in range(100):
            clock.ahead += 5
            await bench.connection.execute("update horai.instance_live set due = clock_timestamp() where state = 0")
            dispatcher.rescan_all()
            await run(bench, dispatcher)
            left = await bench.connection.fetchval("select count(*) from horai.instance_live where id = any ($1)", ids)
            if not left:
                break

        assert hosts.called()["bad"] == FEWEST_RESULTS + 300
        assert not await bench.connection.fetchval(
            "select count(*) from horai.instance_live where id = any ($1)", ids
        ), "nothing is lost"


async def test_C60_retries_beyond_a_fifth_of_first_tries_wait(url: str):
    async with workbench(url, breaker_share=2.0) as bench:
        clock, hosts, dispatcher = await with_bad_and_good(bench, retry={"base": "1ms", "jitter": "none"})
        await make.many(bench.scope, 200, job="bad")
        await make.many(bench.scope, 200, job="good")
        for _ in range(30):
            await run(bench, dispatcher)
            clock.ahead += 0.01

        tries = Counter((call.job, call.retry_count > 0) for call in hosts.calls)
        assert tries["bad", False] == 200
        assert 0 < tries["bad", True] <= 40
        assert tries["good", False] == 200
        assert bench.gates is not None
        assert [(held.host, held.state) for held in bench.gates.held_hosts()] == [("http://bad.test", "RETRIES_HELD")]
        failures = await bench.connection.fetchval("select sum(retry_count) from horai.instance_live")
        assert failures == len(hosts.calls) - 200, "a retry that waits counts no failure"


async def test_a_held_row_of_a_limited_queue_gives_its_permit_back(url: str):
    async with workbench(url) as bench:
        _, _, dispatcher = await with_bad_and_good(bench, retry={"base": "1h"})
        await open_breaker(bench, dispatcher)
        await bench.set_queue(max_concurrency=5)
        await make.many(bench.scope, 20, job="bad")
        await run(bench, dispatcher)

        taken = await bench.connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")
        assert taken == 0
        assert len(bench.in_flight) == 0


@pytest.mark.parametrize(
    ("outcome", "is_failure"),
    [
        (Succeeded(), False),
        (Accepted(timedelta(seconds=1)), False),
        (FailedRetryable(TIMEOUT, ""), True),
        (FailedRetryable("CONNECTION", ""), True),
        (FailedRetryable("HTTP_500", ""), True),
        (FailedRetryable("HTTP_503", ""), True),
        (FailedRetryable("HTTP_429", ""), False),
        (FailedRetryable("HTTP_408", ""), False),
        (FailedRetryable("RESULT_RETRYABLE", ""), False),
        (FailedUnrecoverable("RESULT_UNRECOVERABLE", ""), False),
        (FailedUnrecoverable("HTTP_404", ""), False),
        (FailedUnrecoverable("ANSWER_UNREADABLE", ""), False),
    ],
)
def test_C60_only_a_host_that_did_not_work_has_failed(outcome: Outcome | Accepted, is_failure: bool):
    assert is_host_failure(outcome) is is_failure


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://Shop.Test/a?b=c#d", "https://shop.test"),
        ("http://user:secret@shop.test:8080/", "http://shop.test:8080"),
        ("http://shop.test:80/", "http://shop.test"),
        ("/relative", ""),
    ],
)
def test_a_host_is_scheme_name_and_port(url: str, origin: str):
    assert origin_of(url) == origin


def gates_of(clock: MovedClock, **settings: Any) -> HostGates:
    wall = DatabaseClock()
    wall.observe(make.LONG_AGO, time.monotonic())
    return HostGates(EngineSettings(**settings), EngineHealth(), wall, clock, lambda low, high: (low + high) / 2)


def admit(gates: HostGates, url: str = BAD, tenant: str = "default", retry_count: int = 0) -> timedelta | None:
    at = make.LONG_AGO
    row = ClaimedRow(Claim(1, 7, 1, 1, 1, retry_count), 3, at, 0, None, at, at, at, None, False)
    job = Runnable(7, 1, "job", tenant, False, False, Recipe(HttpTarget(url), RetryPolicy(), None, ""))
    return gates.admit([row], {7: job}).get(1)


def fail(gates: HostGates, times: int, url: str = BAD, tenant: str = "default", outcome: Outcome = DOWN) -> None:
    for _ in range(times):
        assert admit(gates, url, tenant) is None
        gates.ended(call_to(url, tenant=tenant), outcome)


def test_C60_tenants_and_hosts_do_not_share_a_gate():
    gates = gates_of(MovedClock())
    fail(gates, FEWEST_RESULTS)
    assert admit(gates) is not None
    assert admit(gates, tenant="other") is None
    assert admit(gates, GOOD) is None


@pytest.mark.parametrize("code", ["ADDRESS_REFUSED", "INVALID_TARGET"])
def test_calls_that_were_not_sent_neither_open_a_breaker_nor_count(code: str):
    gates = gates_of(MovedClock(), retry_free=10)
    fail(gates, 50, outcome=NotSent())
    fail(gates, 50, outcome=FailedUnrecoverable(code, ""))
    for _ in range(10):
        assert admit(gates, retry_count=1) is None
    assert admit(gates, retry_count=1) is not None


def test_C60_answers_of_the_business_do_not_open_a_breaker():
    gates = gates_of(MovedClock())
    fail(gates, 100, outcome=FailedUnrecoverable("HTTP_422", ""))
    fail(gates, 100, outcome=FailedRetryable("RESULT_RETRYABLE", ""))
    assert admit(gates) is None


def test_C60_a_breaker_logs_one_line_when_it_opens_and_one_when_it_has_closed():
    clock = MovedClock()
    gates = gates_of(clock)
    with capture_logs() as logs:
        fail(gates, FEWEST_RESULTS)
        for _ in range(3):  # probes that fail
            clock.ahead += 40
            fail(gates, 1)
        clock.ahead += 40
        for _ in range(PROBES):
            fail(gates, 1, outcome=Succeeded())
        clock.ahead += QUIET
        fail(gates, 1, outcome=Succeeded())

    assert [(line["event"], line["log_level"], line["host"], line["tenant"]) for line in logs] == [
        ("circuit breaker opened", "warning", "http://bad.test", "default"),
        ("circuit breaker closed", "info", "http://bad.test", "default"),
    ]


async def test_C60_calls_in_line_for_their_host_are_not_sent_after_its_breaker_has_opened():
    gates = gates_of(MovedClock())
    async with Receiver() as receiver, executor(per_host=1) as http:
        http.on_end, http.hold_back = gates.ended, gates.hold_back
        receiver.on("/hook", Answer(503, delay=0.05))
        url = receiver.url("/hook")
        for _ in range(60):
            assert admit(gates, url, "acme") is None
        outcomes = await asyncio.gather(*(outcome_of(http.run(call_to(url, instance_id=n))) for n in range(60)))

        assert len(receiver.hits) == FEWEST_RESULTS
        held = [outcome for outcome in outcomes if isinstance(outcome, NotSent)]
        assert len(held) == 60 - FEWEST_RESULTS
        assert all(outcome.delay >= timedelta(seconds=FIRST_PAUSE / 2) for outcome in held)


def test_a_state_that_changes_tells_the_dispatcher():
    gates = gates_of(MovedClock())
    told: list[bool] = []
    gates.on_change = lambda: told.append(True)
    fail(gates, FEWEST_RESULTS)
    assert told


def test_held_hosts_are_listed_with_state_and_times_up_to_a_limit():
    clock = MovedClock()
    gates = gates_of(clock)
    for n in range(60):
        fail(gates, FEWEST_RESULTS, f"http://h{n}.test/")
    clock.ahead += 1

    held = gates.held_hosts()

    assert len(held) == 50
    assert (held[0].tenant, held[0].host, held[0].state) == ("default", "http://h0.test", "OPEN")
    assert held[0].next_try - held[0].since == pytest.approx(timedelta(seconds=FIRST_PAUSE), abs=timedelta(seconds=1))


def test_gates_of_hosts_without_calls_are_dropped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host_gates, "MOST_GATES", 10)
    clock = MovedClock()
    gates = gates_of(clock)
    gates._most = 10
    for n in range(10):
        admit(gates, f"http://h{n}.test/")
    clock.ahead += 120
    admit(gates, GOOD)
    assert len(gates._gates) == 1

"""Calls under way: side by side where they wait, one after the other where they do not."""

import asyncio
import json
import math
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import make
import pytest
import rows
from stages import Workbench, workbench

from horai.core.calls import Call
from horai.core.limits import SHARDS
from horai.core.outcome import Accepted, FailedRetryable, Outcome, Succeeded
from horai.core.wakes import OutcomeWake
from horai.db import claim_lanes, claims, jobs
from horai.db.claims import ClaimedRow
from horai.engine.dispatch import attempts
from horai.engine.dispatch.attempts import STRETCH
from horai.engine.dispatch.dispatcher import DispatcherParts
from horai.operations.outcome import report_outcome

SLOW = STRETCH / 2.5
"""Not a whole part of a stretch: the sum of rounded seconds may be below it."""


@dataclass(slots=True)
class AtOnce:
    """An executor that never waits; it notes which task made each call."""

    tasks: list[object] = field(default_factory=list[object])

    async def run(self, _: Call) -> Outcome:
        self.tasks.append(asyncio.current_task())
        return Succeeded()


@dataclass(slots=True)
class Slow:
    """An executor that never waits, and the clock by which each of its calls takes `SLOW` seconds."""

    now: float
    turn: int = 0
    turns: list[int] = field(default_factory=list[int])
    """The turn of the event loop in which each call was made."""

    def monotonic(self) -> float:
        return self.now

    async def run(self, _: Call) -> Outcome:
        self.now += SLOW
        self.turns.append(self.turn)
        return FailedRetryable("HTTP_503", "busy")


@dataclass(slots=True)
class Gated:
    """An executor whose calls wait for a gate."""

    turn: int = 0
    turns: list[int] = field(default_factory=list[int])
    """The turn of the event loop in which each call was made."""
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, _: Call) -> Outcome:
        self.turns.append(self.turn)
        await self.gate.wait()
        return Succeeded()


@dataclass(slots=True)
class Raising:
    """An executor that breaks its promise for some."""

    bad: frozenset[int]
    calls: int = 0

    async def run(self, call: Call) -> Outcome:
        self.calls += 1
        if call.instance_id in self.bad:
            raise RuntimeError("an executor never raises")
        return Succeeded()


async def claimed(bench: Workbench, count: int, **executors: Any) -> tuple[DispatcherParts, list[ClaimedRow]]:
    """Rows in hand of the job `publish`, and what would run them."""
    await make.job(bench.scope)
    await make.many(bench.scope, count)
    return await in_hand(bench, **executors)


async def in_hand(bench: Workbench, **executors: Any) -> tuple[DispatcherParts, list[ClaimedRow]]:
    on = bench.parts(**executors)
    on.scans.own(frozenset(range(SHARDS)))
    on.scans.learn(await claim_lanes.lanes(bench.connection))
    claimed = await on.claimer.claim(bench.connection, [(place, 1000) for place in on.scans.all()])
    return on, claimed.rows


async def start(bench: Workbench, on: DispatcherParts, found: list[ClaimedRow]) -> None:
    await on.admission.start(bench.connection, found, bench.clock.now())


async def test_a_thousand_calls_that_never_wait_are_one_task(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        executor = AtOnce()
        on, found = await claimed(bench, 1000, **{"": executor})
        monkeypatch.setattr(attempts, "time", Slow(time.monotonic()))  # a clock that stands: no stretch ends

        await start(bench, on, found)
        await bench.settle()

        assert len(executor.tasks) == 1000
        assert len(set(executor.tasks)) == 1
        assert await bench.states() == {"SUCCESS": 1000}


async def test_calls_that_never_wait_let_the_event_loop_have_a_turn_after_every_stretch(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    """A thousand calls of a host that turns them away would otherwise keep every request of other tenants waiting."""
    async with workbench(url) as bench:
        executor = Slow(time.monotonic())
        on, found = await claimed(bench, 100, **{"": executor})
        monkeypatch.setattr(attempts, "time", executor)

        await start(bench, on, found)
        while len(executor.turns) < 100:
            executor.turn += 1
            await asyncio.sleep(0)
        await bench.settle()

        assert max(Counter(executor.turns).values()) <= math.ceil(STRETCH / SLOW)
        assert await bench.states() == {"FAIL": 100}


async def test_calls_that_end_together_are_followed_by_as_many_in_the_same_turn(url: str):
    async with workbench(url) as bench:
        executor = Gated()
        on, found = await claimed(bench, 40, **{"": executor})

        await start(bench, on, found)
        while len(executor.turns) < 40:
            executor.turn += 1
            if executor.turn == 15:
                executor.gate.set()
                executor.gate = asyncio.Event()  # the calls that follow wait, too
            await asyncio.sleep(0)
        executor.gate.set()
        await bench.settle()

        assert max(Counter(executor.turns).values()) >= 8
        assert await bench.states() == {"SUCCESS": 40}


async def test_calls_that_wait_run_side_by_side(url: str):
    async with workbench(url) as bench:
        on, found = await claimed(bench, 100)

        await start(bench, on, found)

        assert len(await bench.called(100)) == 100, "all of them wait at the gate"
        assert await bench.states() == {"RUNNING": 100}
        bench.executor.gate.set()
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 100}


async def test_rows_that_come_while_others_wait_do_not_wait_for_them(url: str):
    async with workbench(url) as bench:
        on, found = await claimed(bench, 3)
        await start(bench, on, found)
        await bench.called(3)
        await make.many(bench.scope, 3)
        more = await on.claimer.claim(bench.connection, [(place, 9) for place in on.scans.all()])

        await start(bench, on, more.rows)

        assert len(await bench.called(6)) == 6
        bench.executor.gate.set()
        await bench.settle()


async def test_an_executor_that_raises_does_not_stop_the_rows_behind_it(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        ids = await make.many(bench.scope, 9)
        executor = Raising(frozenset(ids[::4]))
        on, found = await in_hand(bench, **{"": executor})

        await start(bench, on, found)
        await bench.settle()

        assert executor.calls == 9
        assert await bench.states() == {"SUCCESS": 6, "FAIL": 3}


@pytest.mark.parametrize(("lost", "runs_alone"), [(0, 0), (1, 0), (2, 9), (7, 9)])
async def test_an_instance_that_was_lost_twice_runs_where_it_is_alone(url: str, lost: int, runs_alone: int):
    async with workbench(url) as bench:
        await make.job(bench.scope, payload="x" * 100_000)
        await make.many(bench.scope, 4)
        await make.job(bench.scope, "small")
        await make.many(bench.scope, 5, job="small")
        await bench.connection.execute("update horai.instance_live set lost = $1", lost)
        usual, alone = AtOnce(), AtOnce()
        on, found = await in_hand(bench, alone={"": alone}, **{"": usual})

        await start(bench, on, found)
        await rows.until(lambda: _is(len(usual.tasks) + len(alone.tasks) == 9))
        await bench.settle()

        assert (len(usual.tasks), len(alone.tasks)) == (9 - runs_alone, runs_alone)


async def test_an_instance_without_a_place_to_be_alone_runs_as_usual(url: str):
    async with workbench(url) as bench:
        usual, alone = AtOnce(), AtOnce()
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        await bench.connection.execute("update horai.instance_live set lost = 5")
        on, found = await in_hand(bench, alone={"another": alone}, **{"": usual})

        await start(bench, on, found)
        await bench.settle()

        assert (len(usual.tasks), len(alone.tasks)) == (3, 0)


async def _is(truth: bool) -> bool:
    return truth


async def test_breaking_off_fails_what_runs_and_gives_back_what_has_not_begun(url: str):
    async with workbench(url) as bench:
        on, found = await claimed(bench, 20)
        known = await jobs.jobs_to_run(bench.connection, {found[0].held.job_id: 0})
        recipe = known[0].recipe
        assert recipe is not None
        await start(bench, on, found[:5])
        await bench.called(5)
        on.attempts.start([(row, known[0], recipe) for row in found[5:]], bench.clock.now())

        await on.attempts.break_off()
        await bench.settle()

        assert len(bench.executor.calls) == 5
        assert await bench.states() == {"FAIL": 5, "INIT": 15}
        codes = await bench.connection.fetch("select distinct error_code from horai.instance_live where state = 3")
        assert [code for (code,) in codes] == ["NODE_STOPPED"]
        assert await bench.connection.fetchval("select max(retry_count) from horai.instance_live where state = 0") == 0


async def test_a_node_that_has_lost_its_lease_sends_nothing_and_gives_the_row_back(url: str):
    async with workbench(url) as bench:
        on, found = await claimed(bench, 4)
        bench.lease.trusted = False

        await start(bench, on, found)
        await bench.settle()

        assert bench.executor.calls == []
        assert await bench.states() == {"INIT": 4}


# Large payloads


async def incompressible(bench: Workbench, key: str) -> str:
    """An instance whose payload is large however it is stored."""
    text = await bench.connection.fetchval(
        "select string_agg(md5(n::text || random()::text), '') from generate_series(1, 1000) n"
    )
    await make.put(bench.scope, key, payload={"text": text})
    return text


async def test_C47_a_large_payload_is_read_when_its_call_is_made(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        text = await incompressible(bench, "large")
        await make.put(bench.scope, "small", payload={"n": 1})
        on, found = await in_hand(bench)
        by_key = {row.key: row for row in found}
        assert by_key["large"].has_large_payload
        assert by_key["large"].payload is None, "it does not travel with the claim"
        assert by_key["small"].payload == '{"n": 1}'
        bench.executor.gate.set()

        await start(bench, on, found)
        await bench.settle()

        sent = {call.key: json.loads(call.payload or "null") for call in bench.executor.calls}
        assert sent == {"large": {"text": text}, "small": {"n": 1}}


async def test_C47_the_payload_of_a_claim_that_is_over_is_not_sent(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await incompressible(bench, "large")
        on, found = await in_hand(bench)
        await claims.cancel_if_running(bench.connection, [row.held for row in found])

        await start(bench, on, found)
        await bench.settle()

        assert bench.executor.calls == []
        assert await bench.states() == {"CANCELLED": 1}
        assert bench.health.late_results == 0


async def test_C47_a_payload_whose_connection_is_lost_sends_its_row_back(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        await make.job(bench.scope)
        await incompressible(bench, "large")
        on, found = await in_hand(bench)
        reading = await bench.lines[-1].get()
        async with holder.transaction():
            await holder.execute("lock table horai.instance_live in access exclusive mode")
            await start(bench, on, found)
            await rows.until_blocked(bench.connection, reading)
            await bench.connection.execute("select pg_terminate_backend($1, 5000)", reading.get_server_pid())
        await bench.settle()

        assert bench.executor.calls == []
        assert await bench.states() == {"INIT": 1}
        await bench.connection.execute("update horai.instance_live set due = clock_timestamp()")  # the pause is over
        on, found = await in_hand(bench)
        bench.executor.gate.set()
        await start(bench, on, found)
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 1}, "and the line comes back by itself"


# 202 Accepted


async def accepted_call(bench: Workbench, within: timedelta) -> tuple[DispatcherParts, ClaimedRow]:
    on, found = await claimed(bench, 1)
    bench.scope.wakeups.subscribe(OutcomeWake, on.attempts.hear)
    bench.executor.answer = lambda _: Accepted(within)
    bench.executor.gate.set()
    await start(bench, on, found)
    await bench.called(1)
    await asyncio.sleep(0)
    return on, found[0]


async def test_an_accepted_call_leaves_in_flight_when_its_outcome_is_reported(url: str):
    async with workbench(url) as bench:
        _, row = await accepted_call(bench, timedelta(hours=1))
        assert len(bench.in_flight) == 1

        await report_outcome(bench.scope, row.held.id, row.held.fence, Succeeded())
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 1}
        assert bench.health.late_results == 0


async def test_an_accepted_call_that_is_cut_off_fails_as_stopped(url: str):
    async with workbench(url) as bench:
        on, _ = await accepted_call(bench, timedelta(hours=1))

        await on.attempts.break_off()
        await bench.settle()

        assert await bench.states() == {"FAIL": 1}
        assert await bench.connection.fetchval("select error_code from horai.instance_live") == "NODE_STOPPED"


async def test_the_outcome_of_another_attempt_ends_nobodys_wait(url: str):
    async with workbench(url) as bench:
        on, row = await accepted_call(bench, timedelta(hours=1))

        on.attempts.hear(OutcomeWake(row.held.id, row.held.fence + 1))
        on.attempts.hear(OutcomeWake(row.held.id + 1, row.held.fence))
        await asyncio.sleep(0)

        assert len(bench.in_flight) == 1
        await on.attempts.break_off()
        await bench.settle()


@pytest.mark.parametrize("failures", [0, 2])
async def test_started_attempts_are_counted_and_started_retries_leave_the_retry_backlog(url: str, failures: int):
    async with workbench(url) as bench:
        on, found = await claimed(bench, 4)
        bench.health.retry_backlog = 1
        retried = [row._replace(held=row.held._replace(retry_count=failures)) for row in found]
        bench.lease.trusted = False

        await start(bench, on, retried)

        assert bench.health.started == 4
        assert bench.health.retry_backlog == (0 if failures else 1), "and a retry that has begun waits no more"

"""The dispatcher, step by step on a real database: the rows that it claims, and the ends of its calls."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import make
import pytest
import rows
from stages import workbench

from horai.core.limits import SHARDS
from horai.core.outcome import Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Postponed, Succeeded
from horai.engine import loop


async def test_B6_a_claim_takes_no_more_than_there_is_room_for(url: str):
    async with workbench(url, in_flight=7, claim_batch=5, straggler=timedelta(seconds=20)) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 30)
        dispatcher = bench.dispatcher()

        await dispatcher.step(bench.clock.now())

        assert len(await bench.called(7)) == len(bench.in_flight) == bench.health.in_flight == 7
        assert await bench.states() == {"RUNNING": 7, "INIT": 23}
        later = await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 7, "INIT": 23}
        assert later > bench.clock.now() + timedelta(milliseconds=500), "with no room it waits for the signal"


async def test_B6_handlers_that_are_claimed_together_share_the_room(url: str):
    async with workbench(url, in_flight=7, claim_batch=100, straggler=timedelta(seconds=20)) as bench:
        await make.job(bench.scope)
        await make.job(bench.scope, "worker", target={"type": "worker", "handler": "h"})
        for job in ("publish", "worker"):
            await make.many(bench.scope, 30, job=job)

        await bench.dispatcher(h=bench.executor).step(bench.clock.now())

        assert len(await bench.called(7)) == len(bench.in_flight) == 7, "7 in all, and not 7 of each"
        assert await bench.states() == {"RUNNING": 7, "INIT": 53}


async def test_B6_room_that_is_freed_wakes_the_dispatcher(url: str):
    async with workbench(url, in_flight=3) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 9)
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        for _ in range(3):
            dispatcher.signal.clear()
            await dispatcher.step(bench.clock.now())
            await bench.settle()
            assert dispatcher.signal.is_set()

        assert await bench.states() == {"SUCCESS": 9}
        assert len({call.idempotency_key for call in bench.executor.calls}) == 9


async def test_a_dispatcher_that_may_not_trust_its_lease_claims_nothing(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        dispatcher = bench.dispatcher()
        bench.lease.trusted = False

        again = await dispatcher.step(bench.clock.now())

        assert await bench.states() == {"INIT": 1}
        assert again - bench.clock.now() < timedelta(seconds=1)


async def test_the_most_urgent_priority_is_claimed_first(url: str):
    async with workbench(url, in_flight=4) as bench:
        for priority in ("low", "normal", "core", "high"):
            await make.job(bench.scope, priority, priority=priority)
            await make.many(bench.scope, 4, job=priority)
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        for _ in range(4):
            await dispatcher.step(bench.clock.now())
            await bench.settle()

        order = [call.job for call in bench.executor.calls]
        assert order == ["core"] * 4 + ["high"] * 4 + ["normal"] * 4 + ["low"] * 4


async def test_between_tenants_the_claim_is_shared_by_weight(url: str):
    async with workbench(url, in_flight=40) as bench:
        second = await bench.connection.fetchval(
            "insert into horai.tenant (name, weight) values ('second', 3) returning id"
        )
        other = make.of_tenant(bench.scope, second, "second")
        for scope in (bench.scope, other):
            await make.job(scope)
            await make.many(scope, 200)

        await bench.dispatcher().step(bench.clock.now())

        shares = Counter(call.tenant for call in await bench.called(40))
        assert shares == {"default": 10, "second": 30}


async def test_a_row_that_becomes_urgent_during_a_long_step_is_claimed_before_the_step_ends(url: str):
    """A backlog of low priority that settles as fast as it is claimed would otherwise be drained first."""
    async with workbench(url, in_flight=10_000, claim_batch=50) as bench:
        await make.job(bench.scope, "low", priority="low")
        await make.job(bench.scope, "core", priority="core")
        await make.many(bench.scope, 3000, job="low")
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        running = [asyncio.create_task(loop.run(s, bench.clock, bench.health)) for s in (bench.settler, dispatcher)]
        await bench.called(100)

        await make.many(bench.scope, 1, job="core")
        await bench.called(3001)

        place = [call.job for call in bench.executor.calls].index("core")
        assert place < 2000, f"the urgent one was call number {place}"
        await rows.until(lambda: bench.connection.fetchval("select count(*) = 0 from horai.instance_live"))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


OUTCOMES: dict[str, tuple[Outcome, str]] = {
    "success": (Succeeded('{"n": 1}'), "SUCCESS"),
    "retryable": (FailedRetryable("X", "x"), "FAIL"),
    "unrecoverable": (FailedUnrecoverable("X", "x"), "DEAD"),
    "not sent": (NotSent(timedelta(hours=1)), "INIT"),
    "postponed": (Postponed(timedelta(hours=1)), "INIT"),
}


@pytest.mark.parametrize(("outcome", "state"), OUTCOMES.values(), ids=OUTCOMES.keys())
async def test_B9_an_outcome_becomes_the_state_it_means(url: str, outcome: Outcome, state: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.put(bench.scope, "k", payload={"a": 1})
        bench.executor.answer = lambda _: outcome
        bench.executor.gate.set()

        await bench.dispatcher().step(bench.clock.now())
        await bench.settle()

        assert await bench.states() == {state: 1}
        (call,) = bench.executor.calls
        assert (call.key, call.payload, call.unit, call.attempt) == ("k", '{"a": 1}', "default:publish:k", 1)
        assert len(call.secrets) == 1


async def test_an_accepted_call_that_is_never_reported_times_out(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        bench.executor.answer = lambda _: Accepted(timedelta(milliseconds=20))
        bench.executor.gate.set()

        await bench.dispatcher().step(bench.clock.now())
        await bench.settle()

        assert await bench.states() == {"FAIL": 1}
        assert await bench.connection.fetchval("select error_code from horai.instance_live") == "TIMEOUT"


async def test_stopping_waits_for_calls_and_fails_those_that_do_not_end_in_time(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 2)
        dispatcher = bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        await bench.called(2)

        await dispatcher.stop(timedelta(milliseconds=50))
        await bench.settle()

        assert await bench.states() == {"FAIL": 2}
        assert await bench.connection.fetchval("select min(error_code) from horai.instance_live") == "NODE_STOPPED"
        await make.many(bench.scope, 1)
        await dispatcher.step(bench.clock.now())
        assert len(bench.executor.calls) == 2, "nothing is claimed any more"


async def test_stopping_waits_for_a_claim_under_way(url: str):
    """Its rows would otherwise be left to the rescue, as if they had failed."""
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        claiming = await dispatcher.line.get()
        async with holder.transaction():
            await holder.execute("select from horai.node for update")
            stepping = asyncio.create_task(dispatcher.step(bench.clock.now()))
            await rows.until_blocked(bench.connection, claiming)
            stopping = asyncio.create_task(dispatcher.stop(timedelta(seconds=5)))
            await asyncio.sleep(0.05)
            assert not stopping.done()
        await stepping
        await bench.called(1)
        await bench.settle()
        await stopping

        assert await bench.states() == {"SUCCESS": 1}


async def test_two_dispatchers_share_the_work_and_call_nothing_twice(url: str):
    async with workbench(url) as one, workbench(url) as other:
        await make.job(one.scope)
        await make.many(one.scope, 400)
        one.executor.gate.set()
        other.executor.gate.set()

        await asyncio.gather(one.dispatcher().step(one.clock.now()), other.dispatcher().step(other.clock.now()))
        await one.settle()
        await other.settle()

        keys = [call.idempotency_key for bench in (one, other) for call in bench.executor.calls]
        assert len(keys) == len(set(keys)) == 400
        assert await one.states() == {"SUCCESS": 400}


async def test_the_delay_is_measured_from_the_execute_time(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 10, at=datetime.now(UTC) - timedelta(seconds=30))
        bench.executor.gate.set()

        await bench.dispatcher().step(bench.clock.now())
        await bench.settle()

        assert bench.health.started == 10
        assert 25 < bench.health.delay_quantile(time.monotonic(), 0.95) < 60


# Shards


async def test_C38_http_is_claimed_in_the_leased_shards_only(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 64)
        bench.lease.owned = frozenset(range(16))
        dispatcher = bench.dispatcher()

        await bench.until_idle(dispatcher)

        assert await bench.states() == {"RUNNING": 32, "INIT": 32}
        assert {call.instance_id % SHARDS for call in await bench.called(32)} == set(range(16))
        bench.lease.owned = frozenset(range(SHARDS))
        await bench.until_idle(dispatcher)
        assert await bench.states() == {"RUNNING": 64}, "a shard that is gained is looked at"
        bench.executor.gate.set()
        await bench.settle()


async def test_C38_a_shard_that_was_lost_is_not_claimed_from_though_it_was_in_line(url: str):
    async with workbench(url, in_flight=32) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 96)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        assert any(dispatcher.is_ready(place) for place in dispatcher.parts.scans.all())
        bench.lease.owned = frozenset({3})
        bench.executor.gate.set()
        await bench.settle()

        await bench.until_idle(dispatcher)
        await bench.settle()
        await make.many(bench.scope, 32)
        await bench.until_idle(dispatcher)
        await bench.settle()

        assert {call.instance_id % SHARDS for call in bench.executor.calls[32:]} == {3}
        assert await bench.states() == {"SUCCESS": 32 + 3, "INIT": 128 - 35}


async def test_the_lanes_of_a_handler_are_claimed_in_every_shard(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope, "worker", target={"type": "worker", "handler": "h"})
        await make.many(bench.scope, 64, job="worker")
        bench.lease.owned = frozenset()
        bench.executor.gate.set()

        await bench.until_idle(bench.dispatcher(h=bench.executor))
        await bench.settle()

        assert await bench.states() == {"SUCCESS": 64}

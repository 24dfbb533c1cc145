"""The dispatcher under the quota `concurrency`: the queues of the tenant share its permits and take turns."""

import asyncio
from collections import Counter
from datetime import timedelta

import make
from rows import until
from stages import Workbench, workbench

from horai.core.limits import SHARDS
from horai.db import claim_lanes
from horai.db.tenants import insert_tenant
from horai.engine.dispatch.dispatcher import LONGEST_EMPTY_PAUSE, Dispatcher
from horai.features.tenants.service import TenantChange, change_tenant


async def quota(bench: Workbench, most: int | None) -> None:
    platform = make.platform_scope(bench.scope)
    await change_tenant(platform, "default", TenantChange(quotas={"concurrency": most}))


async def queues_with(bench: Workbench, **instances: int) -> None:
    """A job in a queue of its own for each name, and due work in it."""
    for name, count in instances.items():
        await make.job(bench.scope, name, queue=name)
        await make.many(bench.scope, count, job=name)


async def permits_taken(bench: Workbench) -> int:
    return await bench.connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")


async def has_waited_long(bench: Workbench, dispatcher: Dispatcher) -> None:
    """Step until scans that found no permit look only twice a second."""
    async with asyncio.timeout(30):
        while (await bench.until_idle(dispatcher)) - bench.clock.now() < LONGEST_EMPTY_PAUSE * 0.6:
            await asyncio.sleep(0)


async def test_C2b_never_more_than_the_quota_run_over_two_queues_and_one_that_ends_lets_the_next_in(url: str):
    async with workbench(url) as bench:
        await queues_with(bench, one=12, two=12)
        await bench.set_queue("two", max_concurrency=2)
        await quota(bench, 5)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        assert len(await bench.called(5)) == len(bench.in_flight) == 5
        bench.executor.gate.set()
        most = 0
        async with asyncio.timeout(60):
            while (await bench.states()).get("SUCCESS") != 24:
                most = max(most, len(bench.in_flight))
                await bench.settle()
                await bench.until_idle(dispatcher)

        assert most == 5
        assert await permits_taken(bench) == 0


async def test_a_permit_that_one_queue_frees_starts_an_instance_of_another_at_once(url: str):
    async with workbench(url) as bench:
        await queues_with(bench, one=1, two=0)
        await quota(bench, 1)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        await bench.called(1)
        await make.many(bench.scope, 1, job="two")
        await has_waited_long(bench, dispatcher)
        assert len(bench.executor.calls) == 1

        bench.executor.gate.set()
        await bench.settle()
        await dispatcher.step(bench.clock.now())

        assert [call.job for call in await bench.called(2)] == ["one", "two"]


async def test_without_a_wake_a_waiting_queue_looks_again_within_half_a_second(url: str):
    async with workbench(url) as bench:
        await queues_with(bench, one=1, two=1)
        await quota(bench, 1)
        dispatcher = bench.deaf_dispatcher()
        again = await bench.until_idle(dispatcher)
        await bench.called(1)
        assert again <= bench.clock.now() + LONGEST_EMPTY_PAUSE
        bench.executor.gate.set()
        await bench.settle()

        async def both_ran() -> bool:
            await dispatcher.step(bench.clock.now())
            await bench.settle()
            return len(bench.executor.calls) == 2

        await until(both_ran, within=5)


async def test_a_raised_quota_starts_waiting_instances_at_once(url: str):
    async with workbench(url) as bench:
        await queues_with(bench, one=3, two=3)
        await quota(bench, 1)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        await has_waited_long(bench, dispatcher)
        assert len(bench.in_flight) == 1

        await quota(bench, 4)
        await dispatcher.step(bench.clock.now())

        assert len(bench.in_flight) == 4


async def test_the_queues_of_a_tenant_take_turns(url: str):
    async with workbench(url) as bench:
        await queues_with(bench, one=20, two=20, three=4)
        await quota(bench, 1)
        bench.executor.gate.set()
        dispatcher = bench.dispatcher()
        async with asyncio.timeout(30):
            while len(bench.executor.calls) < 12:
                await bench.until_idle(dispatcher)
                await bench.settle()

        assert Counter(call.job for call in bench.executor.calls[:12]) == {"one": 4, "two": 4, "three": 4}


async def test_a_tenant_without_the_quota_is_claimed_in_one_statement_beside_one_that_has_it(url: str):
    async with workbench(url) as bench:
        await queues_with(bench, one=40, two=40)
        made = await insert_tenant(bench.connection, "second")
        assert made is not None
        second = make.of_tenant(bench.scope, made.id, "second")
        for name in ("three", "four"):
            await make.job(second, name, queue=name)
            await make.many(second, 40, job=name)
        await quota(bench, 7)
        on = bench.parts()
        on.scans.own(frozenset(range(SHARDS)))
        on.scans.learn(await claim_lanes.lanes(bench.connection))
        line = bench.line("claimer")
        tap = await bench.tap(line)

        free = [(scan, 10) for scan in on.scans.all() if on.scans[scan.lane].tenant_id == made.id]
        claimed = await on.claimer.claim(await line.get(), free)
        assert await tap.names() == ["claim_due"]
        assert len(claimed.rows) == 80
        assert not any(row.held.has_slot for row in claimed.rows)

        pooled = [(scan, 10) for scan in on.scans.all() if on.scans[scan.lane].tenant_id == 1]
        claimed = await on.claimer.claim(await line.get(), pooled)
        assert (await tap.names())[1:] == ["claim_limited"] * 2
        assert len(claimed.rows) == await permits_taken(bench) == 7


async def test_calls_that_began_before_the_quota_give_their_permits_back_when_they_end(url: str):
    async with workbench(url) as bench:
        await queues_with(bench, one=3, two=3)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        await bench.called(6)

        await quota(bench, 2)
        dispatcher.learn(await claim_lanes.lanes(bench.connection))
        assert await permits_taken(bench) == 6
        assert dispatcher.parts.scans.has_new_limit
        bench.executor.gate.set()
        await bench.settle()
        await sweeper.step(bench.clock.now() + timedelta(milliseconds=1))

        assert await permits_taken(bench) == 0
        assert not dispatcher.parts.scans.has_new_limit

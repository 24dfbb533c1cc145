"""Seed 004 at the claimer: few questions, no polling, and nothing that is ever missed.

The dispatcher runs in its own loop, as it does in a process; what it asks is counted on its connection.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import make
import rows
from harness import FAST
from stages import Recorder, Workbench, workbench

from horai.core.health import EngineHealth
from horai.core.limits import SHARDS
from horai.db.wakeups import Wakeups
from horai.engine import loop
from horai.engine.dispatch.dispatcher import Dispatcher
from horai.engine.loop import Stage
from horai.stages import Engine

SECOND = timedelta(seconds=1)
EXACT = timedelta(0)
"""The lead of the bench's clock over the database's: these tests look at timers."""


class Counted(Dispatcher):
    """A dispatcher that counts its passes and says when it has made one."""

    passes = 0

    async def step(self, now: datetime) -> datetime:
        try:
            return await super().step(now)
        finally:
            self.passes += 1


def counted(bench: Workbench) -> Counted:
    """Make a dispatcher that only the test wakes."""
    return Counted(bench.line("dispatcher"), bench.parts())


@asynccontextmanager
async def running(bench: Workbench, *stages: Stage) -> AsyncGenerator[None]:
    """Their loops."""
    tasks = [asyncio.create_task(loop.run(stage, bench.clock, bench.health), name=stage.name) for stage in stages]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def settled(bench: Workbench, count: int, within: float = 30.0) -> None:
    """Returns when so many have succeeded."""

    async def is_done() -> bool:
        return (await bench.states()).get("SUCCESS", 0) >= count

    await rows.until(is_done, within)


async def at_rest(dispatcher: Counted, passes: int) -> None:
    """Returns when it has made so many passes and had time for more."""
    async with asyncio.timeout(30):
        while dispatcher.passes < passes:
            await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)


async def test_E1a_a_process_has_one_loop_however_many_tasks_it_has(url: str):
    async with AsyncExitStack() as stack:
        scope = await stack.enter_async_context(make.scope(url))
        wakeups = Wakeups()
        here = replace(scope, wakeups=wakeups)
        executor = Recorder()
        executor.gate.set()
        engine = Engine(url, "one", {"": executor}, wakeups, EngineHealth(), FAST)
        await engine.start()
        stack.push_async_callback(engine.stop)
        loops = sorted(task.get_name() for task in engine._tasks)
        for number in range(25):
            await make.job(here, f"job-{number}", queue=f"queue-{number}", priority=("low", "core")[number % 2])
            await make.many(here, 2, job=f"job-{number}")

        async with asyncio.timeout(30):
            while len(executor.calls) < 50:
                await asyncio.sleep(0.01)

        assert sorted(task.get_name() for task in engine._tasks) == loops
        assert loops.count("dispatcher") == 1
        named = [task.get_name() for task in asyncio.all_tasks()]
        assert named.count("dispatcher") == 1


async def test_E1b_a_queue_and_type_has_one_position_per_shard_however_many_tasks_it_has(url: str):
    async with workbench(url) as bench:
        types = [await make.job(bench.scope, f"job-{number}", queue=f"queue-{number}") for number in range(3)]
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        for job in types:
            await make.many(bench.scope, 200, job=job.name, at=bench.clock.now() + timedelta(hours=1))
        await bench.until_idle(dispatcher)

        positions = Counter(place.lane for place in dispatcher.parts.scans.all())
        assert positions == {job.lane_id: SHARDS for job in types}


async def test_E4_E5_twenty_wakes_before_the_loop_runs_are_one_pass(url: str):
    async with workbench(url) as bench, make.scope(url) as elsewhere:
        job = await make.job(bench.scope)
        dispatcher = counted(bench)
        await bench.until_idle(dispatcher)
        await make.many(elsewhere, 20)
        tap = await bench.tap(dispatcher.line)
        for _ in range(20):
            dispatcher.wake(None, job.lane_id, bench.clock.now())
        passes = dispatcher.passes
        async with running(bench, dispatcher):
            await bench.called(20)
            await at_rest(dispatcher, passes + 1)

            assert (await tap.names()).count("claim_due") == 1
            assert not dispatcher.signal.is_set(), "what is left of the signals was drained before the fetch"
            assert dispatcher.passes == passes + 1
        bench.executor.gate.set()
        await bench.settle()


async def test_E6_twenty_future_instances_and_twenty_wakes_are_at_most_two_questions(url: str):
    async with workbench(url, EXACT) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        tap = await bench.tap(dispatcher.line)
        due = bench.clock.now() + timedelta(minutes=5)
        async with running(bench, dispatcher):
            for _ in range(20):
                await make.many(bench.scope, 1, at=due)

            async def is_heard() -> bool:
                return not dispatcher.signal.is_set()

            await rows.until(is_heard)
            assert len(await tap.about("instance_live")) <= 2


async def test_E7b_E8a_E8c_the_dispatcher_makes_no_query_until_twenty_rows_are_due_and_then_few_statements(url: str):
    async with workbench(url, EXACT) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        taps = [await bench.tap(dispatcher.line), await bench.tap(bench.settler.line)]
        due = bench.clock.now() + timedelta(seconds=1.5)
        async with running(bench, dispatcher, bench.settler):
            for _ in range(20):
                await make.many(bench.scope, 1, at=due)

            async def is_nearly_due() -> bool:
                return bench.clock.now() > due - timedelta(milliseconds=200)

            await rows.until(is_nearly_due)
            assert await taps[0].names() == [], "a timer, and no polling"
            await settled(bench, 20)

        asked = [name for tap in taps for name in await tap.names()]
        assert len(asked) <= 12, "claims and settlements of all twenty"
        early = "select count(*) from horai.instance_history where claimed_at < execute_time"
        assert await bench.connection.fetchval(early) == 0
        late = await bench.connection.fetchval("select max(claimed_at - execute_time) from horai.instance_history")
        assert late < SECOND


async def test_E7a_the_next_look_is_at_the_next_due(url: str):
    async with workbench(url, EXACT) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        first = bench.clock.now() + timedelta(seconds=20)
        await make.many(bench.scope, 40, at=first + SECOND)
        await make.many(bench.scope, 1, at=first)

        again = await bench.until_idle(dispatcher)

        assert abs(again - first) <= timedelta(milliseconds=1)


async def test_E9_five_additions_and_one_wake_are_five_done(url: str):
    async with workbench(url) as bench, make.scope(url) as elsewhere:
        job = await make.job(bench.scope)
        dispatcher = counted(bench)
        bench.executor.gate.set()
        async with running(bench, dispatcher, bench.settler):
            await at_rest(dispatcher, 1)
            for _ in range(5):
                await make.many(elsewhere, 1)
            assert await bench.states() == {"INIT": 5}

            dispatcher.wake(None, job.lane_id, bench.clock.now())

            await settled(bench, 5)


async def test_E9_after_a_full_claim_it_fetches_again_at_once(url: str):
    """One wake, and more than a claim may take."""
    async with workbench(url, claim_batch=10, in_flight=20) as bench, make.scope(url) as elsewhere:
        job = await make.job(bench.scope)
        dispatcher = counted(bench)
        bench.executor.gate.set()
        async with running(bench, dispatcher, bench.settler):
            await at_rest(dispatcher, 1)
            await make.many(elsewhere, 300)

            dispatcher.wake(None, job.lane_id, bench.clock.now())

            await settled(bench, 300)


async def test_E10_without_any_wake_everything_runs_within_a_sweep(url: str):
    sweep = timedelta(seconds=1)
    async with workbench(url, EXACT, sweep=sweep) as bench, make.scope(url) as elsewhere:
        await make.job(bench.scope)
        dispatcher = counted(bench)
        bench.executor.gate.set()
        async with running(bench, dispatcher, bench.settler, bench.sweeper(dispatcher)):
            await at_rest(dispatcher, 1)
            await make.job(elsewhere, "new-lane", queue="new")
            for job in ("publish", "new-lane"):
                await make.many(elsewhere, 40, job=job)
                await make.many(elsewhere, 40, job=job, at=bench.clock.now() + timedelta(seconds=0.5))

            await settled(bench, 160, within=30)

        waits = "select max(claimed_at - execute_time) from horai.instance_history"
        assert await bench.connection.fetchval(waits) < sweep + 2 * SECOND
        early = "select count(*) from horai.instance_history where claimed_at < execute_time"
        assert await bench.connection.fetchval(early) == 0


async def test_E11_a_row_that_is_added_while_a_claim_is_under_way_is_not_missed(url: str):
    """The claim has looked before the row was there, and moves its cursor past it; the wake came in between."""
    async with workbench(url) as bench, rows.connections(url, 2) as (adder, holder):
        job = await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        claiming = await dispatcher.line.get()
        async with holder.transaction():
            await holder.execute("select from horai.node for update")
            async with adder.transaction():
                await adder.execute(
                    "insert into horai.instance_live"
                    " (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)"
                    " select n, $1, now(), now(), now(), now(), -n, 1, $2, n % 32 from generate_series(900000, 900031) n",
                    job.id,
                    job.lane_id,
                )
                due = await adder.fetchval("select now()")
                await make.many(bench.scope, 64)
                stepping = asyncio.create_task(dispatcher.step(bench.clock.now()))
                await rows.until_blocked(bench.connection, claiming)
            for shard in range(SHARDS):
                dispatcher.wake(shard, job.lane_id, due)
        await stepping
        await bench.until_idle(dispatcher)

        assert await bench.states() == {"RUNNING": 96}, "without any straggler pass"
        bench.executor.gate.set()
        await bench.settle()


async def test_E11_a_wake_during_a_pass_brings_one_more(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,), make.scope(url) as elsewhere:
        job = await make.job(bench.scope)
        dispatcher = counted(bench)
        bench.executor.gate.set()
        async with running(bench, dispatcher, bench.settler):
            await at_rest(dispatcher, 1)
            claiming = await dispatcher.line.get()
            async with holder.transaction():
                await holder.execute("select from horai.node for update")
                await make.many(elsewhere, 40)
                dispatcher.wake(None, job.lane_id, bench.clock.now())
                await rows.until_blocked(bench.connection, claiming)
                await make.many(elsewhere, 40)
                dispatcher.wake(None, job.lane_id, bench.clock.now())

            await settled(bench, 80)


async def test_E12_a_wake_for_one_lane_asks_nothing_of_another(url: str):
    async with workbench(url) as bench:
        six = await make.job(bench.scope, "six", queue="six")
        seven = await make.job(bench.scope, "seven", queue="seven")
        dispatcher = bench.dispatcher()
        await bench.until_idle(dispatcher)
        await make.many(bench.scope, 20, job="seven", at=bench.clock.now() + timedelta(hours=1))
        tap = await bench.tap(dispatcher.line)

        await make.many(bench.scope, 20, job="six")
        await bench.until_idle(dispatcher)

        await bench.called(20)
        asked = [query for query in tap.queries if "horai.instance_live" in query.query]
        lanes = {lane for query in asked for lane in query.args[3 if "/* claim_due */" in query.query else 1]}
        assert asked
        assert lanes == {six.lane_id}
        assert seven.lane_id != six.lane_id
        bench.executor.gate.set()
        await bench.settle()

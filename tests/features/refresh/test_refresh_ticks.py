"""Ticks of refresh jobs: what they load, how fast, and what they come to."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import entities as given
import make
import rows
from databases import Superuser
from entities import days
from stages import Workbench, workbench

from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import FailedRetryable, Postponed, Succeeded
from horai.core.refresh import LOOK, REFRESH_HANDLER, Status
from horai.db import nodes
from horai.db.jobs import JobRow, ticks_of
from horai.db.pool import acquire
from horai.features.refresh.executor import RefreshExecutor
from horai.operations import jobs as accepted


async def call_of(connection: Superuser, job: JobRow, at: datetime, instance_id: int = 1) -> Call:
    ticks = await ticks_of(connection, job.id)
    assert ticks is not None
    target = WorkerTarget(REFRESH_HANDLER)
    return Call(instance_id, ticks.id, ticks.name, "default", None, at, at, 1, 1, at, 0, None, target, None)


def refresher(bench: Workbench) -> RefreshExecutor:
    return RefreshExecutor(lambda: acquire(make.platform(bench.scope)), bench.scope.wakeups)


@asynccontextmanager
async def shop(url: str, count: int, **refresh: Any) -> AsyncGenerator[tuple[Workbench, JobRow, Call]]:
    """A refresh job with so many entities, and its tick, which is due now."""
    async with workbench(url) as bench:
        job = await given.refresh_job(bench.scope, refresh=refresh)
        if count:
            await given.add(bench.scope, *given.names(count))
        now = await nodes.database_time(bench.connection)
        yield bench, job, await call_of(bench.connection, job, now)


async def a_window_later(bench: Workbench, call: Call) -> Call:
    """The next tick, when every run has ended more than ten days ago."""
    await bench.connection.execute("update horai.entity set finish_time = finish_time - interval '11 days'")
    return call._replace(instance_id=2, fire_time=await nodes.database_time(bench.connection))


async def live(bench: Workbench) -> list[dict[str, Any]]:
    rows = await bench.connection.fetch("select * from horai.instance_live where key is not null order by due, key")
    return [dict(row) for row in rows]


async def work_off(bench: Workbench) -> None:
    """Everything that was loaded has ended."""
    for row in await live(bench):
        await given.end(bench.connection, row["key"])


async def test_D1_D14_a_tick_makes_an_instance_of_each_entity_that_is_due(url: str):
    async with shop(url, 3) as (bench, job, call):
        outcome = await refresher(bench).run(call)

        assert isinstance(outcome, Postponed)
        made = await live(bench)
        assert [row["key"] for row in made] == [*given.names(3)]
        assert {row["job_id"] for row in made} == {job.id}
        assert await given.keys_of_batch(bench.connection, call.instance_id) == [*given.names(3)]


async def test_D14_two_ticks_at_once_load_disjoint_batches_that_add_up_to_what_is_due(url: str):
    """Two nodes, each with a tick of its own for the same moment; one of them takes over what the other has left, be it all."""
    async with shop(url, 90, limit=7) as (bench, _, call), workbench(url) as other:
        long_ago = call.fire_time - timedelta(hours=20)
        await bench.connection.execute("update horai.entity set create_time = $1", given.LONG_AGO)
        await given.set_entity(bench.connection, "sku-00089", Status.SUCCESS, long_ago)
        ticks = [call._replace(instance_id=number, fire_time=long_ago) for number in (1, 2)]
        outcomes: list[Any] = [Postponed(LOOK)] * 2

        async with asyncio.timeout(30):
            while not all(isinstance(outcome, Succeeded) for outcome in outcomes):
                looks = (refresher(each).run(tick) for each, tick in zip((bench, other), ticks, strict=True))
                outcomes = await asyncio.gather(*looks)
                await work_off(bench)

        ran = await bench.connection.fetch("select key from horai.instance_history order by key")
        assert [row["key"] for row in ran] == [*given.names(89)], "each once, and not the one that was fresh"
        loaded = [await given.keys_of_batch(bench.connection, number) for number in (1, 2)]
        counted = await bench.connection.fetch("select loaded from horai.refresh_batch order by batch_no")
        assert [row["loaded"] for row in counted] == [len(keys) for keys in loaded]


async def test_its_result_is_told_when_all_that_it_loaded_has_ended(url: str):
    async with shop(url, 3) as (bench, _, call):
        run = refresher(bench).run
        await run(call)
        await given.end(bench.connection, "sku-00000")
        await given.end(bench.connection, "sku-00001", 4)
        waiting = await run(call)
        await given.end(bench.connection, "sku-00002")
        done = await run(call)

        assert isinstance(waiting, Postponed)
        assert isinstance(done, Succeeded)
        assert json.loads(done.output or "") == {"due": 3, "loaded": 3, "running": 0, "succeeded": 2, "failed": 1}


async def test_an_attempt_that_is_repeated_loads_nothing_twice(url: str):
    async with shop(url, 5) as (bench, _, call):
        await refresher(bench).run(call)
        before = await live(bench)
        await refresher(bench).run(call._replace(attempt=2, fence=2))

        assert await live(bench) == before
        assert await bench.connection.fetchval("select loaded from horai.refresh_batch") == 5


async def test_D7_no_more_than_the_limit_is_loaded_while_the_last_load_waits(url: str):
    async with shop(url, 25, limit=10) as (bench, _, call):
        late = call._replace(fire_time=call.fire_time - timedelta(hours=20))
        await bench.connection.execute("update horai.entity set create_time = $1", given.LONG_AGO)
        run = refresher(bench).run

        assert isinstance(first := await run(late), Postponed)
        crowded = await run(late)
        assert len(await live(bench)) == 10
        await work_off(bench)
        await run(late)
        second = await live(bench)

        assert first.delay == LOOK
        assert crowded == Postponed(timedelta(seconds=1), is_quiet=True)
        assert len(second) == 10
        await work_off(bench)
        await run(late)
        await work_off(bench)
        done = await run(late)
        assert isinstance(done, Succeeded)
        assert json.loads(done.output or "")["loaded"] == 25


async def test_runs_of_a_tick_are_spread_evenly_and_loads_wait_for_their_turn(url: str):
    async with shop(url, 30, limit=10) as (bench, _, call):
        outcome = await refresher(bench).run(call)
        again = await refresher(bench).run(call)

        made = await live(bench)
        assert len(made) == 10
        apart = [(row["execute_time"] - call.fire_time).total_seconds() for row in made]
        assert apart == [float(second) for second in range(10)]
        assert isinstance(outcome, Postponed)
        assert isinstance(again, Postponed)
        assert timedelta(seconds=8) < again.delay <= outcome.delay <= timedelta(seconds=10)


async def test_a_key_that_has_a_live_instance_is_left_alone_and_its_end_counts(url: str):
    async with shop(url, 2) as (bench, job, call):
        _, known = await make.put(bench.scope, "sku-00001", call.fire_time + days(1), job=job.name)

        await refresher(bench).run(call)
        bound = await given.entity(bench.connection, job, "sku-00001")
        await given.end(bench.connection, "sku-00001")
        await refresher(bench).run(call)

        assert (bound.status, bound.instance_id) == (Status.RUNNING, known.id)
        assert (await given.entity(bench.connection, job, "sku-00001")).status is Status.SUCCESS


async def test_the_fence_of_a_unit_goes_on_growing_and_a_dead_letter_is_superseded(url: str):
    async with shop(url, 1) as (bench, job, call):
        run = refresher(bench).run
        await run(call)
        dead = (await live(bench))[0]["id"]
        await given.end(bench.connection, "sku-00000", 4)
        await bench.connection.execute(
            "insert into horai.dead_letter (tenant_id, job_id, instance_id, error_code) values (1, $1, $2, 'X')",
            job.id,
            dead,
        )
        await run(call)
        await run(await a_window_later(bench, call))

        (again,) = await live(bench)
        assert again["fence"] == 1
        assert await bench.connection.fetchval("select replay_status from horai.dead_letter") == "SUPERSEDED"


async def test_a_tick_leaves_to_a_later_one_what_it_has_not_loaded(url: str):
    async with shop(url, 30, limit=10) as (bench, _, call):
        run = refresher(bench).run
        await run(call)
        await run(call._replace(instance_id=2, fire_time=call.fire_time + timedelta(microseconds=1)))

        earlier = await run(call)

        assert isinstance(earlier, Succeeded)
        assert json.loads(earlier.output or "")["loaded"] == 10
        assert await bench.connection.fetchval("select loaded from horai.refresh_batch where batch_no = 2") == 10


async def test_D2_a_removed_entity_is_never_loaded_and_what_waits_for_it_is_cancelled(url: str):
    async with shop(url, 4) as (bench, job, call):
        await refresher(bench).run(call)
        (running,) = [row for row in await live(bench) if row["key"] == "sku-00002"]
        claimed = await make.claim(bench.connection, await make.node(bench.connection))
        assert claimed[0].key == "sku-00000"
        drop = given.refreshes.remove_entity

        gone = [await drop(bench.scope, job.name, key) for key in ("sku-00000", "sku-00002", "nobody")]

        assert gone == [True, True, False]
        assert await make.state(bench.connection, claimed[0].held.id) == "RUNNING"
        assert await make.state(bench.connection, running["id"]) == "CANCELLED"
        for key in given.names(4):
            await given.end(bench.connection, key)
        await refresher(bench).run(call)
        await refresher(bench).run(await a_window_later(bench, call))
        assert await given.keys_of_batch(bench.connection, 2) == ["sku-00001", "sku-00003"]


async def test_D10_D11_a_new_entity_runs_at_once_where_the_job_says_so_and_else_with_the_next_tick(url: str):
    async with shop(url, 0) as (bench, job, call):
        await given.add(bench.scope, "later")
        assert await live(bench) == []
        await accepted.change_job(bench.scope, job.name, accepted.JobChange({"refresh": {"runOnAdd": True}}))

        await given.add(bench.scope, "now", payload={"code": 7})
        await given.add(bench.scope, "now", payload={"code": 8})

        (made,) = await live(bench)
        assert (made["key"], json.loads(made["payload"])) == ("now", {"code": 7})
        assert (await given.entity(bench.connection, job, "now")).status is Status.RUNNING
        assert json.loads((await given.entity(bench.connection, job, "now")).payload or "") == {"code": 8}
        outcome = await refresher(bench).run(call)
        assert await given.keys_of_batch(bench.connection, call.instance_id) == []
        assert isinstance(outcome, Succeeded), "what was added after the tick is for the next one"


async def test_a_tick_of_a_deleted_job_is_over_at_once(url: str):
    async with shop(url, 3) as (bench, job, call):
        await accepted.delete_job(bench.scope, job.name)

        assert await refresher(bench).run(call) == Succeeded("{}")
        assert await live(bench) == []


async def test_an_error_in_the_refresh_executor_is_an_outcome_and_no_exception(url: str):
    async with shop(url, 3) as (bench, _, call):

        @asynccontextmanager
        async def broken() -> AsyncGenerator[Superuser]:
            raise RuntimeError("no such luck")
            yield bench.connection

        outcome = await RefreshExecutor(broken, bench.scope.wakeups).run(call)

        assert isinstance(outcome, FailedRetryable)
        assert "no such luck" in outcome.message


async def test_D13_many_consumers_share_what_a_tick_has_loaded(url: str):
    async with workbench(url, in_flight=10) as one, workbench(url, in_flight=10) as other:
        job = await given.refresh_job(one.scope)
        await given.add(one.scope, *given.names(15))
        await given.age(one.connection)
        await given.tick(one.connection, job, await nodes.database_time(one.connection) - days(1))

        shares: list[set[str | None]] = []
        for bench, share in ((one, 10), (other, 5)):
            await bench.until_idle(bench.dispatcher())
            shares.append({call.key for call in await bench.called(share)})
        for bench in (one, other):
            bench.executor.gate.set()
            await bench.settle()
        done = await given.refreshes.freshness(one.scope, job.name)

        assert [len(share) for share in shares] == [10, 5]
        assert shares[0] | shares[1] == set(given.names(15))
        assert (done.counts.running, done.coverage) == (0, 1.0)


async def test_D13_the_executor_of_the_refresh_job_runs_the_instances_that_a_tick_makes(url: str):
    """From the schedule to the end of the last run, through every stage; a second tick finds nothing due."""
    async with workbench(url) as bench:
        job = await given.refresh_job(bench.scope, every="1m")
        await given.add(bench.scope, "a")
        await given.age(bench.connection)
        await bench.connection.execute("update horai.job set active_from = active_from - interval '1 hour'")
        await bench.connection.execute("update horai.schedule set fire_time = date_trunc('minute', now())")
        bench.executor.gate.set()
        dispatcher = bench.dispatcher(**{REFRESH_HANDLER: refresher(bench)})

        await bench.trigger().step(bench.clock.now())

        async def is_over() -> bool:
            await bench.until_idle(dispatcher)
            await bench.settle()
            return await bench.states() == {"SUCCESS": 2}

        await rows.until(is_over)
        assert [call.key for call in bench.executor.calls] == ["a"]
        assert await bench.states() == {"SUCCESS": 2}
        assert (await given.entity(bench.connection, job, "a")).status is Status.SUCCESS


async def test_a_tick_that_waits_writes_no_event_for_its_checks(url: str):
    async with shop(url, 3) as (bench, _, call):
        for _ in range(3):
            outcome = await refresher(bench).run(call)
            assert isinstance(outcome, Postponed)
            assert outcome.is_quiet

"""Whom the SQL functions wake: after the commit, once for each lane, and only where it helps."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
from ears import ear
from rows import connections

from horai.core.limits import SHARDS
from horai.core.outcome import Complete
from horai.core.settings import EngineSettings
from horai.core.wakes import ENTRIES, EverywhereWake, LaneWake, OutcomeWake
from horai.db import claims
from horai.db.claims import Claim
from horai.db.pool import Platform
from horai.operations import jobs

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@asynccontextmanager
async def rolled_back(connection: Platform) -> AsyncGenerator[None]:
    """A transaction, or a savepoint in one, that its caller does not want after all."""
    transaction = connection.transaction()
    await transaction.start()
    yield
    await transaction.rollback()


async def enqueue(connection: Platform, at: datetime | None = None, job: str = "publish") -> int:
    return await connection.fetchval("select instance_id from horai.enqueue($1, null, $2)", job, at)


async def running(url: str, connection: Platform) -> Claim:
    """Make a RUNNING instance before a listener is connected."""
    async with make.scope(url) as scope:
        await make.job(scope)
        return (await make.running(scope, connection)).held


async def put(connection: Platform, at: datetime | None = None, version: int | None = None) -> Any:
    return await connection.fetchrow(
        "select * from horai.put_instance('publish', 'article:42', $1, null, $2)", at, version
    )


async def test_E3_a_wake_comes_with_the_commit_and_names_the_place(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        job = await make.job(scope)
        async with connection.transaction():
            instance_id = await enqueue(connection)
            assert await listening.heard() == []

        due = await connection.fetchval("select due from horai.instance_live")
        assert await listening.wakes() == [LaneWake(instance_id % SHARDS, job.lane_id, due)]


async def test_E3_a_rolled_back_transaction_sends_no_wake(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        await make.job(scope)
        async with rolled_back(connection):
            await enqueue(connection)
            await put(connection)
            await connection.fetch("select horai.enqueue_many('publish', '{1,2}')")

        assert await listening.heard() == []


async def test_E3_an_instance_due_after_the_next_sweep_sends_no_wake(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        await make.job(scope)
        sweep = EngineSettings().sweep
        await enqueue(connection, datetime.now(UTC) + sweep + 5 * SECOND)
        assert await listening.heard() == []

        await enqueue(connection, datetime.now(UTC) + sweep - 5 * SECOND)
        assert len(await listening.heard()) == 1


async def test_E3_E9_a_transaction_that_adds_much_says_of_a_lane_two_things_at_most(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        await make.job(scope)
        async with connection.transaction():
            first = await enqueue(connection)
            for _ in range(SHARDS + 8):
                await enqueue(connection)
        one, two = await listening.wakes()
        assert isinstance(one, LaneWake)
        assert isinstance(two, LaneWake)
        assert (one.shard, two.shard) == (first % SHARDS, None)

        async with connection.transaction():
            await enqueue(connection)
        assert len(await listening.heard()) == 3, "the next transaction speaks for itself"


async def test_a_transaction_says_more_when_something_is_due_earlier(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        await make.job(scope)
        now = datetime.now(UTC)
        async with connection.transaction():
            for seconds in (20, 21, 10, 15, 25):
                await enqueue(connection, now + seconds * SECOND)
            for _ in range(SHARDS):
                await enqueue(connection, now + 22 * SECOND)

        wakes = await listening.wakes()
        assert all(isinstance(wake, LaneWake) for wake in wakes)
        dues = [round((wake.due - now) / SECOND) for wake in wakes if isinstance(wake, LaneWake)]
        assert dues[0] == 20
        assert dues[-1] == 10
        assert len(dues) <= 3


async def test_many_at_once_are_one_wake_of_the_whole_lane(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        job = await make.job(scope)
        await connection.fetch(
            "select horai.enqueue_many('publish', array_agg(to_json(n))) from generate_series(1, 99) n"
        )

        due = await connection.fetchval("select min(due) from horai.instance_live")
        assert await listening.wakes() == [LaneWake(None, job.lane_id, due)]


async def test_more_lanes_than_a_payload_holds_are_said_at_once(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        names = [f"job{n}" for n in range(ENTRIES + 5)]
        for name in names:
            await make.job(scope, name, queue=name)
        async with connection.transaction():
            for name in names:
                await enqueue(connection, job=name)

        wakes = await listening.wakes()
        assert len(wakes) == ENTRIES + 1
        assert wakes[-1] == EverywhereWake()


async def test_E3_a_wake_that_was_rolled_back_to_a_savepoint_is_sent_again(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        await make.job(scope)
        async with connection.transaction():
            async with rolled_back(connection):
                await enqueue(connection)
            instance_id = await enqueue(connection)

        (wake,) = await listening.wakes()
        assert isinstance(wake, LaneWake)
        assert wake.shard == instance_id % SHARDS


async def test_E3_an_instance_of_a_paused_job_sends_no_wake(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        await make.job(scope)
        await jobs.pause_job(scope, "publish", None)
        await enqueue(connection)
        await put(connection)

        assert await listening.heard() == []


async def test_A10_an_ignored_put_sends_no_wake(url: str, connection: Platform):
    held = await running(url, connection)
    await claims.finish_if_running(connection, held.node, [(held, Complete())])
    async with ear(url) as listening:
        assert (await put(connection))["decision"] == "IGNORED"

        assert await listening.heard() == []


async def test_a_row_that_was_locked_while_it_was_looked_at_is_looked_at_again(url: str, connection: Platform):
    """A claimer may have passed it over."""
    async with make.scope(url) as scope, ear(url) as listening:
        await make.job(scope)
        await put(connection, version=2)
        assert (await put(connection, version=1))["decision"] == "IGNORED"

        first, again = await listening.wakes()
        assert first == again


@pytest.mark.parametrize("verb", ["put", "cancel"])
async def test_a_put_or_cancel_of_a_running_instance_sends_an_outcome_wake_at_commit(
    url: str, connection: Platform, verb: str
):
    held = await running(url, connection)
    async with ear(url) as listening:
        async with connection.transaction():
            if verb == "put":
                await put(connection, datetime.now(UTC) + HOUR)
            else:
                await connection.fetch("select horai.cancel_instance('publish', 'article:42')")
            assert await listening.heard() == []

        assert await listening.wakes() == [OutcomeWake(held.id, held.fence)]


async def test_a_database_that_is_too_busy_for_notifications_can_do_without(url: str, connection: Platform):
    await running(url, connection)
    async with ear(url) as listening:
        await connection.execute(
            "do $$ begin execute format('alter database %I set horai.sql_wakeup = poll', current_database()); end $$"
        )
        async with connections(url, 1) as (caller,):
            await enqueue(caller)
            await put(caller)
            await caller.fetch("select horai.cancel_instance('publish', 'article:42')")

        assert await listening.heard() == []


async def test_garbage_that_a_caller_writes_into_the_wake_setting_suppresses_no_wake(url: str, connection: Platform):
    async with make.scope(url) as scope, ear(url) as listening:
        await make.job(scope)
        for told in ("'", "w:3:1:99999999999999999999 w:::", "w:*:1:x", "\\", "w:(:1:("):
            await connection.fetchval("select set_config('horai.told', $1, false)", told)
            await enqueue(connection)

        assert len(await listening.wakes()) == 5

"""Seed 004 from end to end: who is woken by what, and who is not."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

import make
from ears import ear
from horai.accept import instances, jobs
from horai.accept.instances import Item
from horai.accept.scope import Scope
from horai.core.errors import Invalid, NotFound
from horai.core.reschedule import Verdict
from horai.core.settings import SHARDS
from horai.core.wakes import LaneWake
from horai.db import callers
from horai.db.pool import Dedicated
from rows import connections

HOUR = timedelta(hours=1)
PAYLOAD = json.dumps({"article": 42})


@asynccontextmanager
async def rolled_back(connection: Dedicated) -> AsyncGenerator[None]:
    """A transaction, or a savepoint in one, that its caller does not want after all."""
    transaction = connection.transaction()
    await transaction.start()
    yield
    await transaction.rollback()


async def live(connection: Dedicated) -> list[Any]:
    return await connection.fetch("select id, key, lane, due, execute_time from horai.instance_live order by id")


async def add(connection: Dedicated, scope: Scope, *items: Item) -> list[int]:
    made = await instances.insert_within(connection, scope, "publish", items or [Item(None, PAYLOAD)])
    return [answer.instance_id for answer in made]


async def test_E2_E3_an_instance_is_there_and_its_wake_sent_with_the_callers_commit(
    url: str, connection: Dedicated, runner: asyncio.Runner
):
    async with make.scope(url) as scope, ear(url) as listening, connections(url, 1) as (caller,):
        job = await make.job(scope)
        async with caller.transaction():
            (instance_id,) = await add(caller, scope)
            assert await live(connection) == []
            assert await listening.heard() == []

        (row,) = await live(connection)
        assert row["id"] == instance_id
        assert await listening.wakes() == [LaneWake(instance_id % SHARDS, job.lane_id, row["due"])]


async def test_E2_E3_a_rolled_back_transaction_leaves_no_row_and_wakes_nobody(
    url: str, connection: Dedicated, runner: asyncio.Runner
):
    async with make.scope(url) as scope, ear(url) as listening, connections(url, 1) as (caller,):
        await make.job(scope)
        async with rolled_back(caller):
            await add(caller, scope, Item(None, PAYLOAD), Item(None, None, "article:42"))

        assert await live(connection) == []
        assert await listening.heard() == []


async def test_E2_a_scheduled_instance_has_the_time_it_was_given(
    url: str, connection: Dedicated, runner: asyncio.Runner
):
    async with make.scope(url) as scope, connections(url, 1) as (caller,):
        await make.job(scope)
        at = datetime.now(UTC).replace(microsecond=0) + HOUR
        async with caller.transaction():
            await add(caller, scope, Item(at, None), Item(at, None, "article:42"))

        assert [(row["execute_time"], row["due"]) for row in await live(connection)] == [(at, at)] * 2


async def test_E2_a_key_follows_the_rules_of_put_in_the_callers_transaction(
    url: str, connection: Dedicated, runner: asyncio.Runner
):
    async with make.scope(url) as scope, connections(url, 1) as (caller,):
        await make.job(scope)
        _, planned = await make.put(scope, "article:42", datetime.now(UTC) + HOUR)
        async with caller.transaction():
            (answer,) = await instances.insert_within(caller, scope, "publish", [Item(None, None, "article:42")])

        assert (answer.verdict, answer.instance_id) == (Verdict.UPDATED, planned.id)


async def test_E3_what_is_due_after_the_next_sweep_wakes_nobody(url: str, runner: asyncio.Runner):
    async with make.scope(url) as scope, ear(url) as listening, connections(url, 1) as (caller,):
        await make.job(scope)
        async with caller.transaction():
            await add(caller, scope, Item(datetime.now(UTC) + HOUR, None))

        assert await listening.heard() == []


async def test_E3_E9_a_transaction_that_adds_much_wakes_little(url: str, runner: asyncio.Runner):
    async with make.scope(url) as scope, ear(url) as listening, connections(url, 1) as (caller,):
        await make.job(scope)
        async with caller.transaction():
            for _ in range(20):
                await add(caller, scope)
        assert len(await listening.heard()) <= 2

        async with caller.transaction():
            await add(caller, scope)
        assert len(await listening.heard()) <= 3, "the next transaction speaks for itself"


async def test_E3_a_wake_that_was_rolled_back_to_a_savepoint_is_sent_again(url: str, runner: asyncio.Runner):
    async with make.scope(url) as scope, ear(url) as listening, connections(url, 1) as (caller,):
        await make.job(scope)
        async with caller.transaction():
            async with rolled_back(caller):
                await add(caller, scope)
            (instance_id,) = await add(caller, scope)

        (wake,) = await listening.wakes()
        assert isinstance(wake, LaneWake)
        assert wake.shard == instance_id % SHARDS


async def test_E2_a_failed_addition_leaves_the_callers_transaction_as_it_was(
    url: str, connection: Dedicated, runner: asyncio.Runner
):
    async with make.scope(url) as scope, ear(url) as listening, connections(url, 1) as (caller,):
        await make.job(scope)
        async with caller.transaction():
            (first,) = await add(caller, scope)
            with pytest.raises(asyncpg.PostgresError):
                await add(caller, scope, Item(None, None), Item(None, "this is no json"))
            with pytest.raises(NotFound):
                await instances.insert_within(caller, scope, "nobody", [Item(None, None)])
            (last,) = await add(caller, scope)

        assert [row["id"] for row in await live(connection)] == [first, last]
        assert len(await listening.heard()) <= 2


async def test_E2_a_transaction_begun_by_hand_will_do(url: str, connection: Dedicated, runner: asyncio.Runner):
    async with make.scope(url) as scope, connections(url, 1) as (caller,):
        await make.job(scope)
        await caller.execute("begin")
        await add(caller, scope)
        await caller.execute("commit")

        assert len(await live(connection)) == 1


@pytest.mark.parametrize("isolation", ["repeatable_read", "serializable"])
async def test_E2_another_isolation_is_refused_with_a_clear_word(isolation: Any, url: str, runner: asyncio.Runner):
    async with make.scope(url) as scope, connections(url, 1) as (caller,):
        await make.job(scope)
        async with caller.transaction(isolation=isolation):
            with pytest.raises(Invalid, match="READ COMMITTED"):
                await add(caller, scope)
            assert await caller.fetchval("select 1"), "the transaction can go on"


async def test_E2_without_a_transaction_nothing_is_added(url: str, connection: Dedicated, runner: asyncio.Runner):
    async with make.scope(url) as scope, connections(url, 1) as (caller,):
        await make.job(scope)
        with pytest.raises(Invalid, match="no open transaction"):
            await add(caller, scope)

        assert await live(connection) == []


async def test_E2_a_connection_that_decodes_json_itself_is_refused_with_a_clear_word(url: str, runner: asyncio.Runner):
    async with make.scope(url) as scope, connections(url, 1) as (caller,):
        await make.job(scope)
        await caller.set_type_codec("json", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
        async with caller.transaction():
            with pytest.raises(Invalid, match="codec"):
                await add(caller, scope)


async def test_E3_an_instance_of_a_paused_job_wakes_nobody(url: str, connection: Dedicated, runner: asyncio.Runner):
    async with make.scope(url) as scope, ear(url) as listening, connections(url, 1) as (caller,):
        await make.job(scope)
        await jobs.pause_job(scope, "publish", None)
        async with caller.transaction():
            await add(caller, scope)

        assert [row["lane"] for row in await live(connection)] == [0]
        assert await listening.heard() == []


async def test_E3_what_a_transaction_has_told_is_forgotten_with_it(url: str, runner: asyncio.Runner):
    async with make.scope(url) as scope, connections(url, 1) as (caller,):
        await make.job(scope)
        async with caller.transaction():
            await add(caller, scope)
            assert len((await callers.caller_transaction(caller)).told) == 1
        async with caller.transaction():
            assert (await callers.caller_transaction(caller)).told == []


async def test_a_relane_that_does_not_fit_into_an_answer_is_asked_of_the_engine(
    url: str, monkeypatch: pytest.MonkeyPatch, runner: asyncio.Runner
):
    monkeypatch.setattr("horai.accept.relanes.BATCH", 2)
    async with make.scope(url) as scope:
        asked = list[None]()
        scope.wakeups.listen_to_relanes(lambda: asked.append(None))
        await make.job(scope)
        await make.many(scope, 5)
        await jobs.pause_job(scope, "publish", None)
        await jobs.change_job(scope, "publish", jobs.Change({"tags": ["seen"]}))
        assert asked == [], "five rows fit into one answer"

        await make.many(scope, 30)
        await jobs.resume_job(scope, "publish", None)
        assert asked == [None]

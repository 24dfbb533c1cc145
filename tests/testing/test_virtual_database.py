"""The database of a harness: real SQL that goes by the virtual time, and nothing of an earlier test in it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import audits
import pytest

from horai import Horai, Instance
from horai.core.queue import QueueSettings, parse_rate
from horai.db.pool import connect
from horai.db.verify import verify
from horai.operations import jobs, queues
from horai.testing import Harness
from horai.testing.server import Server

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
app = Horai("database")


@app.job
async def charge(instance: Instance[Any]) -> None: ...


@app.job(queue="slow")
async def crawl() -> None: ...


async def test_the_time_functions_of_the_database_return_the_virtual_time() -> None:
    async with Harness(app, START) as time:
        connection = await asyncpg.connect(time.database_url)
        await time.advance("90m")
        asked = await connection.fetchrow("select now(), clock_timestamp(), statement_timestamp()")
        created = await connection.fetchval("select created_at from horai.job where name = 'charge'")
        await connection.execute("create table mine (at timestamptz default now())")
        await connection.execute("insert into mine default values")
        mine = await connection.fetchval("select at from public.mine")
        await connection.close()

        assert asked is not None
        assert {*asked.values(), mine} == {START + timedelta(minutes=90)}
        assert created == START


async def test_a_claim_is_planned_as_in_production() -> None:
    """An index condition, not a filter: the virtual statement_timestamp() is as stable as the real one."""
    async with Harness(app, START) as time:
        connection = await asyncpg.connect(time.database_url)
        await connection.execute("set enable_seqscan = off")
        plan = await connection.fetch(
            "explain select id from horai.instance_live"
            " where shard = 1 and lane = 1 and due <= statement_timestamp() order by due, id limit 1"
        )
        await connection.close()

        assert any("Index Cond" in line[0] and "statement_timestamp" in line[0] for line in plan)


async def test_the_caller_s_own_transaction_adds_what_the_harness_runs() -> None:
    async with Harness(app, START) as time:
        connection = await asyncpg.connect(time.database_url)
        async with connection.transaction():
            await charge.put("order:7", delay="1h", conn=connection)
        rolled_back = connection.transaction()
        await rolled_back.start()
        await charge.put("order:8", delay="1h", conn=connection)
        await rolled_back.rollback()
        await connection.execute("select horai.enqueue('charge', '7')")
        await connection.close()
        await time.advance("1d")

        assert [(fired.key, fired.payload, fired.ran_at) for fired in time.fired(charge)] == [
            (None, 7, START),
            ("order:7", None, START + timedelta(hours=1)),
        ]


async def test_a_rate_spreads_what_is_due_over_the_time() -> None:
    async with Harness(app, START) as time:
        scope = (await app.client()).scope
        await queues.set_queue(scope, "slow", QueueSettings(rate=parse_rate("6/m")))
        await crawl.enqueue_many([None] * 3)
        await time.advance("1m")

        gaps = [later.ran_at - earlier.ran_at for earlier, later in zip(time.fired(), time.fired()[1:], strict=False)]
        assert len(gaps) == 2
        assert all(timedelta(seconds=10) <= gap < timedelta(seconds=10.1) for gap in gaps)


async def test_a_paused_job_is_not_run_and_a_resumed_one_is_at_once() -> None:
    async with Harness(app, START) as time:
        scope = (await app.client()).scope
        await charge.enqueue(delay="1h")
        await jobs.pause_job(scope, "charge", None)
        assert await time.advance("2h") == []
        await jobs.resume_job(scope, "charge", None)
        assert len(await time.drain()) == 1


async def test_the_rows_agree_with_each_other_afterwards() -> None:
    async with Harness(app, START) as time:
        time.crash(charge)
        time.fail(charge, ValueError("no"))
        await charge.enqueue_many([1, 2, 3])
        await charge.put("order:7", delay="1h")
        await time.advance("1d")
        connection = await connect(time.database_url, "horai test")
        findings = await verify(connection)
        await connection.close()

        broken = [finding for finding in findings if not finding.holds]
        assert [finding.invariant for finding in broken] == ["S4"]  # virtual days have no partitions of their own


@pytest.mark.parametrize("turn", range(3))
async def test_every_test_begins_with_nothing(turn: int) -> None:
    async with Harness(app, START) as time:
        connection = await asyncpg.connect(time.database_url)
        assert await connection.fetchval("select count(*) from horai.job_instance") == 0
        assert await connection.fetchval("select count(*) from pg_tables where schemaname = 'public'") == 0
        handle = await charge.enqueue()
        await time.drain()
        assert handle.id == "1"
        if turn == 1:
            await connection.execute("create table left_behind ()")
        await connection.close()


async def test_a_full_queue_lets_the_others_wait_for_their_turn() -> None:
    async with Harness(app, START) as time:
        scope = (await app.client()).scope
        await queues.set_queue(scope, "slow", QueueSettings(max_concurrency=1))
        await crawl.enqueue_many([None] * 3)
        assert len(await time.drain()) == 3

        time.crash(crawl)
        await crawl.enqueue_many([None] * 2)
        await time.advance("1m")

        *_, crashed, waited, again = time.fired(crawl)
        assert (crashed.ran_at, crashed.error) == (START, "NODE_LOST")
        assert waited.ran_at == START + timedelta(seconds=8)  # its slot is free when the dead worker is found out
        assert again.ran_at == START + timedelta(seconds=12)


async def test_a_server_of_one_s_own_is_left_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORAI_TEST_DATABASE_URL", url)
    connection = await asyncpg.connect(url)
    before = await connection.fetch("select datname from pg_database order by datname")
    server = Server()

    async with server.database() as first:
        pass
    async with server.database() as second:
        used = await connect(second, "horai test")
        assert await used.fetchval("select count(*) from horai.tenant") == 1
        await used.close()
    await asyncio.to_thread(server.stop)

    assert first == second
    assert await connection.fetch("select datname from pg_database order by datname") == before
    await connection.close()


async def test_audit_rows_of_an_earlier_test_are_gone_and_the_log_is_append_only_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_TEST_DATABASE_URL", url)
    server = Server()
    async with server.database() as first:
        used = await connect(first, "horai test")
        await audits.write(used)
        await used.close()
    async with server.database() as second:
        used = await connect(second, "horai test")
        assert await used.fetchval("select count(*) from horai.audit") == 0
        await audits.write(used)
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
            await used.execute("delete from horai.audit")
        await used.close()
    await asyncio.to_thread(server.stop)

    assert first == second, "it was emptied, not dropped"

"""Puts that share a transaction: each is decided as if it had come alone."""

import asyncio
from contextvars import ContextVar
from datetime import UTC, datetime

import asyncpg
import make
import pytest
from databases import Superuser

from horai.core.errors import HoraiError, NotFound
from horai.core.put import PutDecision, PutOptions
from horai.db.pool import LOCK_TIMEOUT
from horai.operations.instances import AskedPut
from horai.operations.put_batches import PutBatches
from horai.operations.scope import Scope

LATER = datetime(2050, 1, 1, tzinfo=UTC)
request: ContextVar[str] = ContextVar("request")
"""The request that a task serves."""
LOCKED_OUT = (
    "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
)
WRITERS = "select count(distinct xmin::text) from horai.instance_live"


def asked(key: str, version: int | None = None, at: datetime | None = LATER) -> AskedPut:
    return AskedPut(key, at, None, PutOptions(version))


async def put_together(scope: Scope, batches: PutBatches, *puts: AskedPut, job: str = "publish") -> list[PutDecision]:
    answers = await asyncio.gather(*(batches.put_instance(scope, job, put) for put in puts))
    assert [row.key for _, row in answers] == [put.key for put in puts]
    return [verdict for verdict, _ in answers]


async def test_puts_that_arrive_together_share_a_transaction(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        puts = [asked(f"order-{number}") for number in range(50)]
        assert set(await put_together(scope, PutBatches(), *puts)) == {PutDecision.INSERTED}
    assert await connection.fetchval("select count(*) from horai.instance_live") == 50
    assert await connection.fetchval(WRITERS) == 1


async def test_puts_that_move_instances_share_a_transaction(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        batches, puts = PutBatches(), [asked(f"order-{number}") for number in range(10)]
        await put_together(scope, batches, *puts)
        before = await connection.fetchval("select max(xmin::text::bigint) from horai.instance_live")
        assert set(await put_together(scope, batches, *puts)) == {PutDecision.UPDATED}
    assert await connection.fetchval(WRITERS) == 1
    assert await connection.fetchval("select min(xmin::text::bigint) from horai.instance_live") > before


async def test_a_put_without_a_time_gets_that_of_the_database(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        before = await connection.fetchval("select clock_timestamp()")
        await put_together(scope, PutBatches(), *(asked(f"order-{number}", at=None) for number in range(3)))
        after = await connection.fetchval("select clock_timestamp()")
    times = await connection.fetch("select fire_time from horai.instance_live")
    assert all(before <= row["fire_time"] <= after for row in times)


async def test_puts_of_one_key_are_decided_in_the_order_of_their_arrival(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        found = await put_together(
            scope, PutBatches(), asked("other"), asked("order", 3), asked("order", 2), asked("order", 4)
        )
    assert found == [PutDecision.INSERTED, PutDecision.INSERTED, PutDecision.IGNORED, PutDecision.UPDATED]


@pytest.mark.parametrize("beside", [(), ("order-0",), ("moved",)])
async def test_a_locked_key_does_not_hold_up_the_others(
    beside: tuple[str, ...], url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        batches = PutBatches()
        await put_together(scope, batches, asked("locked"), asked("moved"))
        first = [asked(key) for key in beside]  # so that the locked key is in a batch with a new one, or one to move
        async with connection.transaction():
            await connection.execute("select from horai.instance_live where key = 'locked' for update")
            waiting = [
                asyncio.create_task(batches.put_instance(scope, "publish", put)) for put in (*first, asked("locked"))
            ]
            async with asyncio.timeout(LOCK_TIMEOUT.total_seconds() / 2):
                while not await connection.fetchval(LOCKED_OUT):
                    await connection.execute("select pg_stat_clear_snapshot()")
                others = [asked(f"order-{number}") for number in range(1, 5)]
                assert set(await put_together(scope, batches, *others)) == {PutDecision.INSERTED}
                for task in waiting[:-1]:
                    await task
            assert not waiting[-1].done()
        assert (await waiting[-1])[0] is PutDecision.UPDATED


async def test_a_refused_put_does_not_refuse_the_others(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        batches = PutBatches()
        bad = AskedPut("order-bad", LATER, '{"a": "\\u0000"', PutOptions())
        puts = [asked("order-1"), asked("order-2"), bad, asked("order-3")]
        found = await asyncio.gather(
            *(batches.put_instance(scope, "publish", put) for put in puts), return_exceptions=True
        )
    assert [isinstance(each, Exception) for each in found] == [False, False, True, False]
    assert isinstance(found[2], (asyncpg.PostgresError, HoraiError))


async def test_every_put_of_a_missing_job_is_refused(url: str) -> None:
    async with make.scope(url) as scope:
        batches = PutBatches()
        found = await asyncio.gather(
            *(batches.put_instance(scope, "nothing", asked(f"order-{number}")) for number in range(4)),
            return_exceptions=True,
        )
        assert all(isinstance(each, NotFound) for each in found)
        await make.job(scope, "nothing")
        assert await put_together(scope, batches, asked("order-1"), job="nothing") == [PutDecision.INSERTED]


async def test_a_cancelled_request_leaves_the_others_of_its_batch(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        batches = PutBatches()
        first, gone, last = (
            asyncio.create_task(batches.put_instance(scope, "publish", asked(f"order-{number}"))) for number in range(3)
        )
        await asyncio.sleep(0)
        gone.cancel()
        assert [(await task)[0] for task in (first, last)] == [PutDecision.INSERTED] * 2
        with pytest.raises(asyncio.CancelledError):
            await gone


async def test_the_fire_of_each_instance_is_recorded_in_the_context_of_its_own_request(url: str) -> None:
    recorded: dict[str, list[int]] = {}
    async with make.scope(url) as scope:
        await make.job(scope)
        scope.wakeups.on_made = lambda ids: recorded.setdefault(request.get(), []).extend(ids)
        batches = PutBatches()

        async def serve(key: str) -> int:
            request.set(key)
            return (await batches.put_instance(scope, "publish", asked(key)))[1].id

        keys = [f"order-{number}" for number in range(5)]
        made = await asyncio.gather(*(serve(key) for key in keys))
        assert recorded == {key: [instance_id] for key, instance_id in zip(keys, made, strict=True)}
        await asyncio.gather(*(serve(key) for key in keys))  # moves them: no instance is new
        assert sum(map(len, recorded.values())) == len(keys)

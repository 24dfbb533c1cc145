"""Callers at the same time share a statement, and none suffers for another."""

import asyncio
from typing import Any

import make
import pytest
from stages import Tap

from horai.core.errors import NotFound
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.sdk.enqueue_batcher import EnqueueBatcher


async def inserts(url: str, scope: Any) -> tuple[EnqueueBatcher, Tap]:
    line, tap = StageConnection(url, "horai inserts"), Tap()
    (await line.get()).add_query_logger(tap.queries.append)
    return EnqueueBatcher(line, scope.wakeups, scope.tenant_id), tap


async def test_a_thousand_callers_cost_a_few_statements(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope, "publish")
        adding, tap = await inserts(url, scope)
        ids = await asyncio.gather(*(adding.add("publish", None, str(n)) for n in range(1_000)))
        assert len(await tap.names()) <= 3
        stored = {
            row["id"]: row["payload"] for row in await connection.fetch("select id, payload from horai.instance_live")
        }
        assert [stored[id_] for id_ in ids] == [str(n) for n in range(1_000)]
        await adding.close()


async def test_an_unknown_job_is_its_callers_own_trouble(url: str):
    async with make.scope(url) as scope:
        await make.job(scope, "publish")
        adding, _ = await inserts(url, scope)
        answers = await asyncio.gather(
            *(adding.add(job, None, None) for job in ("publish", "nothing", "publish")), return_exceptions=True
        )
        assert isinstance(answers[1], NotFound)
        assert all(isinstance(answers[n], int) for n in (0, 2))
        await adding.close()


async def test_a_row_that_the_database_refuses_does_not_fail_its_neighbours(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope, "publish")
        adding, _ = await inserts(url, scope)
        answers = await asyncio.gather(
            *(adding.add("publish", None, text) for text in ('"fine"', "{broken", '"as well"')), return_exceptions=True
        )
        assert [isinstance(answer, int) for answer in answers] == [True, False, True]
        assert await connection.fetchval("select count(*) from horai.instance_live") == 2
        await adding.close()


async def test_a_caller_who_gives_up_leaves_the_others_alone(url: str):
    async with make.scope(url) as scope:
        await make.job(scope, "publish")
        adding, _ = await inserts(url, scope)
        first = asyncio.create_task(adding.add("publish", None, None))
        second = asyncio.create_task(adding.add("publish", None, None))
        await asyncio.sleep(0)
        first.cancel()
        assert await second > 0
        with pytest.raises(asyncio.CancelledError):
            await first
        await adding.close()


async def test_a_paused_jobs_instances_are_parked(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope, "publish", status="PAUSED")
        adding, _ = await inserts(url, scope)
        await asyncio.gather(*(adding.add("publish", None, None) for _ in range(3)))  # one alone, two together
        assert [row["lane"] for row in await connection.fetch("select lane from horai.instance_live")] == [0, 0, 0]
        await adding.close()


async def test_a_busy_job_does_not_keep_another_waiting(url: str):
    async with make.scope(url) as scope:
        await make.job(scope, "busy")
        await make.job(scope, "rare")
        adding, _ = await inserts(url, scope)
        others = [asyncio.create_task(adding.add("busy", None, None)) for _ in range(3_500)]
        rare = asyncio.create_task(adding.add("rare", None, None))
        await rare
        assert not all(task.done() for task in others)
        await asyncio.gather(*others)
        await adding.close()


async def test_those_who_wait_are_served_though_the_first_gives_up(url: str):
    async with make.scope(url) as scope:
        await make.job(scope, "publish")
        adding, _ = await inserts(url, scope)
        first = asyncio.create_task(adding.add("publish", None, None))
        await asyncio.sleep(0)
        second = asyncio.create_task(adding.add("publish", None, None))
        await asyncio.sleep(0)
        first.cancel()
        async with asyncio.timeout(30):
            assert await second > 0
            assert await adding.add("publish", None, None) > 0
        await adding.close()

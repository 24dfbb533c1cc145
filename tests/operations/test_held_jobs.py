"""A job that is changed while another transaction waits for its row."""

import asyncio
from collections.abc import Awaitable, Callable

import make
import pytest
import rows
from databases import Superuser

from horai.core.job import Priority
from horai.db import jobs
from horai.db.jobs import JobRow
from horai.operations.jobs import rewrite_job


@pytest.mark.parametrize("hold", [jobs.lock_job, jobs.share_job])
async def test_a_transaction_that_waits_for_a_job_sees_the_priority_of_a_lane_created_meanwhile(
    url: str, connection: Superuser, hold: Callable[[Superuser, int], Awaitable[JobRow | None]]
) -> None:
    async with make.scope(url) as scope, rows.connections(url, 2) as (changing, waiting):
        job = await make.job(scope)
        async with changing.transaction():
            held = await jobs.lock_job(changing, job.id)
            assert held is not None
            await rewrite_job(changing, scope, held, {**held.document, "queue": "brand-new", "priority": "core"}, None)

            async def wait() -> JobRow | None:
                async with waiting.transaction():
                    return await hold(waiting, job.id)

            seen = asyncio.create_task(wait())
            await rows.until_blocked(connection, waiting)

        found = await seen
        assert found is not None
        assert (found.document["queue"], found.priority) == ("brand-new", Priority.core)

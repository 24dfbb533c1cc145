"""Jobs that a transaction holds and writes."""

import make
import pytest
import rows
from databases import Superuser

from horai.core.job import JobStatus
from horai.core.states import State
from horai.db import jobs
from horai.operations import jobs as accepted


async def test_C2a_jobs_of_another_tenant_are_not_held(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        mine, theirs = await make.job(scope, "mine"), await make.job(scope, "theirs")
    tenant = await connection.fetchval("insert into horai.tenant (name) values ('other') returning id")
    await connection.execute("update horai.job set tenant_id = $2 where id = $1", theirs.id, tenant)
    async with connection.transaction():
        held = await jobs.lock_jobs(connection, 1, [mine.id, theirs.id], JobStatus.PAUSED)
    assert [job.name for job in held] == ["mine"]


@pytest.mark.parametrize(
    ("state", "is_marked"), [(State.INIT, True), (State.FAIL, True), (State.RUNNING, False), (None, False)]
)
async def test_a_paused_job_is_marked_for_a_move_when_it_has_waiting_instances(
    url: str, connection: Superuser, state: State | None, is_marked: bool
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
        if state is not None:
            await rows.instance(connection, state)
        async with connection.transaction():
            held = await jobs.lock_job(connection, job.id)
            assert held is not None
            await accepted.pause_held(connection, held, None)
    assert await connection.fetchval("select relane from horai.job where id = $1", job.id) is is_marked

"""The jobs that a dispatcher reads: each once, and again when it has changed."""

from collections.abc import Awaitable, Callable

import make
import pytest

from horai.core.calls import HttpTarget, WorkerTarget
from horai.core.retry import RetryPolicy
from horai.db import jobs, signing_secrets
from horai.db.jobs import Runnable
from horai.db.pool import Platform
from horai.operations import jobs as accepting
from horai.operations.jobs import JobChange
from horai.operations.scope import Scope

PRESS = {"type": "worker", "handler": "press"}


async def told(connection: Platform, job_id: int, known: int = 0) -> Runnable:
    (job,) = await jobs.jobs_to_run(connection, {job_id: known})
    return job


async def test_a_job_that_the_dispatcher_does_not_know_is_returned_with_its_target_timeout_and_retry_policy(
    url: str, connection: Platform
):
    async with make.scope(url) as scope:
        http = await make.job(scope, "http", timeout="7s", retry={"maxRetry": 2})
        worker = await make.job(scope, "worker", target=PRESS)

        first, second = [await told(connection, job.id) for job in (http, worker)]

        assert (first.name, first.tenant, first.version) == ("http", "default", http.version)
        assert (first.is_paused, first.is_deleted) == (False, False)
        assert first.recipe is not None
        assert second.recipe is not None
        assert (first.recipe.target, first.recipe.handler) == (HttpTarget("http://127.0.0.1:9/hook"), "")
        assert first.recipe.timeout is not None
        assert (first.recipe.timeout.total_seconds(), first.recipe.retry.max_retry) == (7, 2)
        assert (second.recipe.target, second.recipe.handler) == (WorkerTarget("press"), "press")
        assert (second.recipe.timeout, second.recipe.retry) == (None, RetryPolicy())


async def test_a_worker_job_that_names_no_handler_is_run_by_the_one_of_its_own_name(url: str, connection: Platform):
    async with make.scope(url) as scope:
        job = await make.job(scope, "coupons", target=None)

        found = await told(connection, job.id)

        assert found.recipe is not None
        assert found.recipe.handler == "coupons"


async def test_a_job_that_is_known_as_it_is_is_not_told_again(url: str, connection: Platform):
    async with make.scope(url) as scope:
        one, other = await make.job(scope, "one"), await make.job(scope, "other")

        found = await jobs.jobs_to_run(connection, {one.id: one.version, other.id: 0, 10**9: 0})

        assert [job.id for job in found] == [other.id], "nor one that never was"


CHANGES: dict[str, Callable[[Scope], Awaitable[object]]] = {
    "pause": lambda scope: accepting.pause_job(scope, "publish", None),
    "resume": lambda scope: accepting.resume_job(scope, "publish", None),
    "delete": lambda scope: accepting.delete_job(scope, "publish"),
    "patch": lambda scope: accepting.change_job(scope, "publish", JobChange({"target": PRESS})),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_every_change_of_a_job_is_told(url: str, connection: Platform, change: str):
    async with make.scope(url) as scope:
        job = await make.job(scope, status="PAUSED" if change == "resume" else "ACTIVE")
        await CHANGES[change](scope)

        now = await told(connection, job.id, job.version)

        assert now.version > job.version
        assert now.is_paused == (change == "pause")
        assert now.is_deleted == (change == "delete")
        assert now.recipe is not None
        assert (now.recipe.handler == "press") == (change == "patch")


async def test_jobs_that_say_the_same_share_one_recipe(url: str, connection: Platform):
    async with make.scope(url) as scope:
        same = [await make.job(scope, f"job-{n}", payload=n, tags=[f"t{n}"]) for n in range(3)]
        other = await make.job(scope, "other", timeout="1s")

        found = await jobs.jobs_to_run(connection, {job.id: 0 for job in (*same, other)})

        recipes = {job.name: job.recipe for job in found}
        assert recipes["job-0"] is recipes["job-1"] is recipes["job-2"]
        assert recipes["other"] != recipes["job-0"]


BROKEN = [
    "{}",
    '{"target": {"type": "http"}}',
    '{"target": {"type": "worker", "handler": "press"}, "retry": {"maxRetry": -1}}',
    '{"target": 7}',
]


@pytest.mark.parametrize("definition", BROKEN)
async def test_a_definition_that_cannot_be_read_has_no_recipe_and_spoils_no_other(
    url: str, connection: Platform, definition: str
):
    async with make.scope(url) as scope:
        broken, sound = await make.job(scope, "broken"), await make.job(scope, "sound")
        await connection.execute("update horai.job set definition = $2 where id = $1", broken.id, definition)

        found = {job.id: job for job in await jobs.jobs_to_run(connection, {broken.id: 0, sound.id: 0})}

        assert found[broken.id].recipe is None
        assert found[sound.id].recipe is not None


async def test_the_secrets_in_force_are_told_newest_first_tenant_by_tenant(connection: Platform):
    await connection.execute("insert into horai.tenant (name) values ('second'), ('bare')")
    await connection.execute("delete from horai.signing_secret")
    for tenant, secret, retired in (("default", "old", False), ("default", "gone", True), ("default", "new", False)):
        await _secret(connection, tenant, secret, retired=retired)
    await _secret(connection, "second", "theirs", retired=False)

    found = await signing_secrets.callback_settings(connection)
    assert {each.tenant: each.secrets for each in found} == {"default": ("new", "old"), "second": ("theirs",)}


async def _secret(connection: Platform, tenant: str, secret: str, *, retired: bool) -> None:
    await connection.execute(
        "insert into horai.signing_secret (tenant_id, secret, retired_at)"
        " select id, $2, case when $3 then now() end from horai.tenant where name = $1",
        tenant,
        secret,
        retired,
    )

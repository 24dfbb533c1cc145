"""A worker: it declares its jobs, claims its own lanes, and gives back what it cannot end."""

import asyncio
from datetime import timedelta
from typing import Any

import harness
import make
import pytest
from ears import ear
from rows import until
from working import working

from horai import Horai, Instance, Retry, RetryLater, Unrecoverable
from horai.core.errors import Invalid
from horai.core.wakes import EverywhereWake
from horai.db.pool import Platform

QUICK = Retry(max=2, base="10ms", jitter="none")


async def test_a_failing_function_is_tried_again_and_then_buried(url: str, connection: Platform):
    app, attempts = Horai("shop", database_url=url), list[int]()

    @app.job(retry=QUICK)
    async def flaky(instance: Instance[Any]) -> None:
        attempts.append(instance.attempt)
        raise ConnectionError("gone")

    async with working(app):
        handle = await flaky.enqueue()
        with pytest.raises(Exception, match="gone"):
            await handle.result(timeout=30)
    assert attempts == [1, 2, 3]
    letter = await connection.fetchrow("select error_code, tags from horai.dead_letter")
    assert letter is not None
    assert (letter["error_code"], letter["tags"]) == ("ConnectionError", ["transient_error"])


async def test_later_is_later_and_no_failure(url: str, connection: Platform):
    app = Horai("shop", database_url=url)

    @app.job
    async def patient(instance: Instance[Any]) -> int:
        if instance.attempt < 3:
            raise RetryLater("10ms")
        return instance.attempt

    async with working(app):
        handle = await patient.enqueue()
        assert await handle.result(timeout=30) == 3
    assert await connection.fetchval("select retry_count from horai.instance_history") == 0


async def test_unrecoverable_is_buried_at_the_first_attempt(url: str):
    app = Horai("shop", database_url=url)

    @app.job
    def hopeless() -> None:
        raise Unrecoverable("no such article")

    async with working(app):
        with pytest.raises(Exception, match="no such article"):
            await (await hopeless.enqueue()).result(timeout=30)


async def test_a_worker_beside_a_node_runs_what_the_api_puts(url: str):
    app = Horai("shop", database_url=url)

    @app.job
    async def double(number: int) -> int:
        return number * 2

    async with harness.node(url) as api, working(app):
        made = (await api("PUT", "/api/v1/jobs/double/instances/k", {"payload": 21})).json
        ended = await api.until_state(made["instance"]["id"], "SUCCESS")
        assert ended["result"] == 42
        nodes = (await api("GET", "/api/v1/scheduler/nodes")).json["items"]
        assert ["worker"] in [node["roles"] for node in nodes]
        shards = (await api("GET", "/api/v1/scheduler/shards")).json["items"]
        assert {shard["nodeName"] for shard in shards} == {"test-node"}


async def test_a_schedule_made_by_code_fires(url: str):
    app, fired = Horai("shop", database_url=url), asyncio.Event()

    @app.job(every="1s")
    async def tick() -> None:
        fired.set()

    async with harness.node(url, horizon=timedelta(hours=1)), working(app):  # only a wake tells the trigger in time
        async with asyncio.timeout(30):
            await fired.wait()


async def test_a_worker_start_sends_a_wake_for_the_declarations_of_an_interrupted_start(url: str):
    app = Horai("shop", database_url=url)

    @app.job(every="1s")
    async def tick() -> None:
        """Do nothing; the test does not wait for it."""

    async with make.scope(url) as scope:  # as a worker that is killed before its engine runs: no wake is sent
        await app.declare_to(scope)
    async with ear(url) as listening, working(app):

        async def are_told() -> bool:
            return EverywhereWake() in await listening.wakes()

        await until(are_told)


async def test_only_the_queues_that_were_named_are_served(url: str):
    app = Horai("shop", database_url=url)

    @app.job(queue="fast")
    async def fast() -> int:
        return 1

    @app.job(queue="slow")
    async def slow() -> int:
        return 2

    async with working(app, queues=frozenset({"fast"})):
        waiting = await slow.enqueue()
        assert await (await fast.enqueue()).result(timeout=30) == 1
        with pytest.raises(TimeoutError):
            await waiting.result(timeout="100ms")


async def test_another_tenants_job_of_the_same_name_is_not_run(url: str, connection: Platform):
    app = Horai("shop", database_url=url)

    @app.job
    async def send() -> int:
        return 1

    await app.declare()
    await connection.execute(
        """
        with t as (insert into horai.tenant (name) values ('other') returning id),
        l as (insert into horai.lane (tenant_id, queue, priority, handler, inherits) select id, 'default', 2, 'send', true from t returning id, tenant_id),
        j as (insert into horai.job (tenant_id, name, lane_id, definition)
            select l.tenant_id, 'send', l.id, (select definition from horai.job where name = 'send') from l returning id, tenant_id, lane_id)
        insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot)
        select 999999, id, tenant_id, lane_id, 999999 % 32, now(), now(), now(), now(), -999999 from j
        """
    )
    async with working(app):
        assert await (await send.enqueue()).result(timeout=30) == 1
    assert await connection.fetchval("select state from horai.instance_live where id = 999999") == 0


async def test_a_stopping_worker_lets_what_runs_end(url: str):
    app, began, gate = Horai("shop", database_url=url), asyncio.Event(), asyncio.Event()

    @app.job
    async def slow() -> str:
        began.set()
        await gate.wait()
        return "done"

    async with working(app):
        await slow.enqueue()
        await began.wait()
        asyncio.get_running_loop().call_later(0.1, gate.set)
    handle = slow._handle(1)
    assert await handle.result(timeout=30) == "done"
    await app.close()


async def test_a_function_that_outlasts_the_grace_period_is_a_failed_attempt(url: str, connection: Platform):
    app, began = Horai("shop", database_url=url), asyncio.Event()

    @app.job
    async def endless() -> None:
        began.set()
        await asyncio.Event().wait()

    async with working(app, harness.replace(harness.FAST, grace=timedelta(milliseconds=50))):
        await endless.enqueue()
        await began.wait()
    row = await connection.fetchrow("select state, error_code from horai.instance_live")
    assert row is not None
    assert (row["state"], row["error_code"]) == (3, "NODE_STOPPED")


async def test_an_application_without_jobs_is_refused(url: str):
    with pytest.raises(Invalid, match="No job is declared"):
        async with working(Horai("empty", database_url=url)):
            pass


async def test_a_worker_holds_no_more_long_calls_than_it_can_run(url: str, connection: Platform):
    app, gate, running = Horai("shop", database_url=url), asyncio.Event(), 0

    @app.job
    async def long() -> None:
        nonlocal running
        running += 1
        await gate.wait()

    async with working(app, concurrency=5):
        await long.enqueue_many([None] * 50)
        async with asyncio.timeout(30):
            while running < 5:
                await asyncio.sleep(0.01)
        assert await connection.fetchval("select count(*) from horai.instance_live where state = 1") == 5
        gate.set()


async def test_progress_and_log_are_shown_with_the_attempt(url: str):
    app = Horai("shop", database_url=url)

    @app.job
    async def telling(instance: Instance[Any]) -> None:
        instance.progress(0.5, "half way")
        instance.log("and on")

    async with harness.node(url) as api, working(app):
        handle = await telling.enqueue()
        await handle.result(timeout=30)
        async with asyncio.timeout(30):
            while not (told := (await api("GET", f"/api/v1/instances/{handle.id}")).json["attempts"][0]["log"]):
                await asyncio.sleep(0.02)
    assert [line["message"] for line in told] == ["half way", "and on"]


async def test_a_function_is_told_that_its_instance_was_cancelled(url: str):
    app, began, stopped = Horai("shop", database_url=url), asyncio.Event(), asyncio.Event()

    @app.job
    async def long(instance: Instance[Any]) -> None:
        began.set()
        await instance.cancelled()
        stopped.set()
        instance.raise_if_cancelled()

    async with harness.node(url) as api, working(app):
        handle = await long.put("k")
        await began.wait()
        assert (await api("DELETE", "/api/v1/jobs/long/instances/k")).status == 200
        async with asyncio.timeout(30):
            await stopped.wait()
        ended = await api.until_state(handle.id, "CANCELLED")
    assert ended["reason"] == "USER"

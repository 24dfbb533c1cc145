"""Quotas on the paths that do not pass the REST API: Python, the caller's transaction, SQL, streams, replays and stages."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import flows
import letters
import make
import pytest
from orchestra import Orchestra
from stages import workbench

from horai import Horai
from horai.core.errors import Invalid, RetryLimited, TooLarge
from horai.core.quotas import SELDOM, SOON, next_count
from horai.db import quotas, tenants
from horai.db.dead_letters import LetterFilter
from horai.db.pool import Platform, connect
from horai.features.events.change import parse_change
from horai.features.events.service import Arrival, NotNow, PutAside, accept_changes
from horai.features.refresh.service import add_entities
from horai.features.tenants.service import TenantChange, change_tenant
from horai.features.workflow.rerun import rerun
from horai.operations.letter_replay import ReplayRequest, replay_matching
from horai.operations.scope import Scope

FAR = datetime(2999, 1, 1, tzinfo=UTC)
LIVE = "select count(*) from horai.instance_live"


async def limit(scope: Scope, **limits: Any) -> None:
    """Set quotas of the tenant, as the platform does."""
    await change_tenant(make.platform_scope(scope), "default", TenantChange(quotas=limits))


def shop(url: str) -> tuple[Horai, Any]:
    app = Horai("shop", database_url=url)

    @app.job
    async def send(text: str) -> None: ...

    return app, send


# Python


async def test_C2b_python_callers_stay_within_each_quota(url: str, connection: Platform):
    app, send = shop(url)
    await app.declare()
    async with make.scope(url) as scope:
        await limit(scope, liveInstances=3, payloadBytes=20)
        await send.enqueue("one")
        with pytest.raises(RetryLimited, match="has 1 live instances, and its quota liveInstances allows 3; 3 more"):
            await send.enqueue_many(["a", "b", "c"])
        await send.enqueue_many(["a", "b"])
        for refused in (send.enqueue("two"), send.put("k", payload="two", at=FAR)):
            with pytest.raises(RetryLimited, match="has 3 live") as told:
                await refused
            assert told.value.extra == {"retryAfter": "1"}
        assert await connection.fetchval(LIVE) == 3
        await connection.execute("delete from horai.instance_live")
        await limit(scope, liveInstances=None)
        for refused in (send.enqueue("x" * 19), send.enqueue_many(["", "x" * 19]), send.put("k", payload="x" * 19)):
            with pytest.raises(TooLarge, match="has 21 bytes, and the quota payloadBytes of the tenant allows 20"):
                await refused
        assert await connection.fetchval(LIVE) == 0
    await app.close()


async def test_C2b_callers_that_share_a_statement_are_refused_one_by_one(url: str, connection: Platform):
    app, send = shop(url)
    await app.declare()
    async with make.scope(url) as scope:
        await limit(scope, liveInstances=7)
        answers = await asyncio.gather(*(send.enqueue("x") for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(answer, RetryLimited) for answer in answers) == 13
    assert await connection.fetchval(LIVE) == 7
    await app.close()


async def test_C2b_the_jobs_that_code_declares_count(url: str, connection: Platform):
    app, _ = shop(url)
    async with make.scope(url) as scope:
        await limit(scope, jobs=0)
        with pytest.raises(Invalid, match="has 0 jobs, and its quota jobs allows 0"):
            await app.declare()
        assert await connection.fetchval("select count(*) from horai.job") == 0
    await app.close()


async def test_C2b_an_instance_in_the_callers_transaction_is_charged_and_a_rollback_returns_it(
    url: str, connection: Platform
):
    app, send = shop(url)
    await app.declare()
    async with make.scope(url) as scope:
        await limit(scope, liveInstances=1, payloadBytes=20)
    undone = connection.transaction()
    await undone.start()
    await send.enqueue("one", conn=connection)
    for refused in (
        lambda: send.enqueue("two", conn=connection),
        lambda: send.put("k", payload="two", conn=connection),
        lambda: send.enqueue_many(["a", "b"], conn=connection),
    ):
        with pytest.raises(RetryLimited, match="has 1 live"):
            await refused()
    await undone.rollback()
    async with connection.transaction():
        await send.enqueue("one", conn=connection)
        with pytest.raises(TooLarge, match="21 bytes"):
            await send.enqueue("x" * 19, conn=connection)
    assert await connection.fetchval(LIVE) == 1
    await app.close()


# SQL


async def refused(connection: Platform, statement: str, *arguments: object) -> asyncpg.PostgresError:
    with pytest.raises(asyncpg.PostgresError) as told:
        await connection.fetch(statement, *arguments)
    return told.value


async def test_C2b_the_sql_functions_stay_within_the_quota_of_live_instances(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "watched", every="1h", refresh={"window": "10d", "runOnAdd": True})
        await limit(scope, liveInstances=1)
    await connection.execute("select horai.put_instance('publish', 'k', $1)", FAR)
    for statement in (
        "select horai.put_instance('publish', 'other')",
        "select horai.enqueue('publish')",
        "select horai.enqueue_many('publish', array['1', '2'])",
        "select horai.add_entity('watched', 'e')",
        "select horai.add_entities('watched', array['e', 'f'])",
    ):
        error = await refused(connection, statement)
        assert error.sqlstate == "HR429"
        assert "has 1 live instances, and its quota liveInstances allows 1" in str(error)
        assert error.hint is not None
        assert json.loads(error.detail or "")["retryAfter"] == 1
    assert await connection.fetchval(LIVE) == 1
    assert await connection.fetchval("select count(*) from horai.entity") == 0
    await connection.execute("select horai.put_instance('publish', 'k', $1)", FAR + timedelta(days=1))


async def test_C2b_the_sql_functions_refuse_payloads_beyond_the_quota(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "watched", every="1h", refresh={"window": "10d"})
        await limit(scope, payloadBytes=10)
    await connection.execute("select horai.put_instance('publish', 'k', $1, '1')", FAR)
    large = json.dumps("x" * 9)
    for statement in (
        "select horai.put_instance('publish', 'k', payload => $1)",
        "select horai.put_instance('publish', 'other', payload => $1)",
        "select horai.enqueue('publish', $1)",
        "select horai.enqueue_many('publish', array['1', $1])",
        "select horai.add_entity('watched', 'e', $1)",
        "select horai.add_entities('watched', array['e'], array[$1]::json[])",
    ):
        assert (await refused(connection, statement, large)).sqlstate == "HR413"
    assert await connection.fetchval(LIVE) == 1


async def test_C2b_the_sql_functions_stay_within_the_rate(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await limit(scope, enqueuePerSecond=5)
    await connection.execute("select horai.enqueue_many('publish', array_fill('1'::text, array[1000]))")
    error = await refused(connection, "select horai.enqueue('publish')")
    assert error.sqlstate == "HR429"
    assert 195 <= json.loads(error.detail or "")["retryAfter"] <= 200


async def test_C2b_rows_of_a_followed_table_stay_within_the_quota(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope, "watched", every="1h", refresh={"window": "10d", "runOnAdd": True})
        await limit(scope, liveInstances=1, payloadBytes=20)
    await connection.execute("create table public.article (id text primary key, title text)")
    await connection.execute("select horai.follow_table('public.article', 'watched', 'id', array['title'])")
    assert (await refused(connection, "insert into public.article values ('a', repeat('x', 20))")).sqlstate == "HR413"
    await connection.execute("insert into public.article values ('a', 'one')")
    assert (await refused(connection, "insert into public.article values ('b', 'two')")).sqlstate == "HR429"
    assert await connection.fetchval(LIVE) == 1


async def test_C2b_entities_of_a_request_stay_within_the_quota(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope, "watched", every="1h", refresh={"window": "10d", "runOnAdd": True})
        await limit(scope, liveInstances=1, payloadBytes=20)
        with pytest.raises(RetryLimited, match="2 more were requested"):
            await add_entities(scope, "watched", {"a": None, "b": None})
        with pytest.raises(TooLarge, match="quota payloadBytes"):
            await add_entities(scope, "watched", {"a": json.dumps("x" * 20)})
        assert await add_entities(scope, "watched", {"a": None}) == 1
    assert await connection.fetchval(LIVE) == 1


# Streams and replays


def arrivals(*documents: dict[str, Any]) -> list[Arrival]:
    bodies = [json.dumps({"job": "publish", "executeTime": FAR.isoformat(), **one}).encode() for one in documents]
    return [Arrival(str(n), "articles", {}, body, parse_change(body, {})) for n, body in enumerate(bodies)]


async def test_C2b_a_stream_waits_for_the_quota_and_parks_payloads_beyond_it(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await limit(scope, liveInstances=1, payloadBytes=10)
        told = arrivals({"key": "a", "payload": "x" * 20}, {"key": "b"}, {"key": "c"})
        fates = await accept_changes(scope, "test", told)
    assert [type(fate) for fate in fates[:1]] == [PutAside]
    assert "quota payloadBytes" in str(fates[0])
    assert sum(isinstance(fate, NotNow) and "liveInstances" in fate.reason for fate in fates) == 1
    assert await connection.fetchval(LIVE) == 1


async def test_C2b_a_rerun_stays_within_the_quota_and_leaves_the_run_as_it_was(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        await limit(bench.scope, liveInstances=1)
        with pytest.raises(RetryLimited, match="allows 1; 2 more were requested"):
            await rerun(bench.scope, "nightly", run, "left")
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert await bench.connection.fetchval(LIVE) == 0
        await rerun(bench.scope, "nightly", run, "report")
        assert await bench.connection.fetchval("select live_charged from horai.tenant_quota") == 1


async def test_C2b_a_replay_stays_within_the_quota_and_leaves_its_letters_new(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await letters.of_keys(scope, connection, ["a", "b"])
        await limit(scope, liveInstances=1)
        with pytest.raises(RetryLimited, match="2 more were requested"):
            await replay_matching(scope, ReplayRequest(LetterFilter()))
        assert await letters.statuses(connection) == ["NEW", "NEW"]
        done = await replay_matching(scope, ReplayRequest(LetterFilter(), limit=1))
    assert done.replayed == 1


# Two nodes


async def test_C2b_two_processes_that_race_for_the_last_places_stay_within_the_quota(url: str, connection: Platform):
    async with make.scope(url) as scope, make.scope(url) as other:
        await make.job(scope)
        await limit(scope, liveInstances=50)
        writers = [make.many(one, 3, at=FAR) for one in (scope, other) for _ in range(20)]
        answers = await asyncio.gather(*writers, return_exceptions=True)
    assert await connection.fetchval(LIVE) == 48
    assert sum(isinstance(answer, RetryLimited) for answer in answers) == 24


async def test_a_count_during_writes_never_makes_the_estimate_too_low(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        await limit(scope, liveInstances=1000)
        stop = asyncio.Event()

        async def count() -> None:
            counting = await connect(url, "horai test")
            while not stop.is_set():
                await quotas.begin_count(counting, scope.tenant_id)
                await quotas.finish_count(counting, scope.tenant_id)
            await counting.close()

        counter = asyncio.create_task(count())
        for _ in range(40):
            await asyncio.gather(*(make.many(scope, 2, at=FAR) for _ in range(4)))
            estimate = 1000 - (await quotas.room(connection, scope.tenant_id) or 0)
            assert estimate >= await connection.fetchval(LIVE)
        stop.set()
        await counter


async def test_a_job_that_is_created_while_a_quota_is_set_is_metered(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope, "first")  # it makes the queue, whose creation waits for the lock as well
        async with connection.transaction():
            held = await tenants.lock_tenant(connection, "default")
            assert held is not None
            creating = asyncio.create_task(make.job(scope))
            await asyncio.wait({creating}, timeout=0.1)
            assert not creating.done()
            await quotas.write_quotas(connection, held.id, (await quotas.read_quotas(connection, held.id)))
            await connection.execute("update horai.tenant_quota set live_instances = 1")
        assert (await creating).is_metered


def test_a_tenant_near_its_limit_is_counted_every_second_and_a_slow_count_seldom():
    assert next_count(90, 100, timedelta(milliseconds=1)) == SOON
    assert next_count(89, 100, timedelta(milliseconds=1)) == SELDOM
    assert next_count(100, 100, timedelta(seconds=2)) == timedelta(seconds=40)


async def test_a_tenant_with_another_quota_has_room_without_a_limit(connection: Platform):
    await connection.execute("insert into horai.tenant_quota (tenant_id, jobs) values (1, 5)")
    assert await quotas.room(connection, 1) is None
    await connection.execute("update horai.tenant_quota set live_instances = 7 where tenant_id = 1")
    assert await quotas.room(connection, 1) == 7

"""The quota `concurrency` of a running server: set, seen, explained and removed."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import harness
from aiohttp import web
from harness import Client
from rows import until
from working import working

from horai import Horai
from horai.db.pool import Platform

TENANT = "/api/v1/tenants/default"


@asynccontextmanager
async def hanging() -> AsyncGenerator[tuple[str, list[str], asyncio.Event]]:
    """A target whose calls end when the event is set: its URL, the path of each call, and the event."""
    calls, gate = list[str](), asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        calls.append(request.path)
        await gate.wait()
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", calls, gate
    finally:
        gate.set()
        await runner.cleanup()


async def concurrency(api: Client, most: int | None) -> Any:
    changed = await api("PATCH", TENANT, {"quotas": {"concurrency": most}})
    assert changed.status == 200, changed.json
    assert changed.json["quotas"]["concurrency"] == most
    return changed.json


async def work(api: Client, url: str, queue: str, count: int) -> list[str]:
    """Due instances of a job in a queue of its own; their ids."""
    body = {"name": queue, "queue": queue, "target": {"type": "http", "url": f"{url}/{queue}"}}
    assert (await api("POST", "/api/v1/jobs", body)).status == 201
    added = await api("POST", f"/api/v1/jobs/{queue}/instances/batch", {"items": [{}] * count})
    assert added.status == 200, added.json
    listed = await api("GET", f"/api/v1/instances?job={queue}&limit=100")
    return [instance["id"] for instance in listed.json["items"]]


async def reached(calls: list[str], count: int) -> None:
    async def are_there() -> bool:
        return len(calls) >= count

    await until(are_there)


async def test_C2b_two_nodes_run_no_more_than_the_quota_and_why_says_so(url: str, connection: Platform):
    async with (
        hanging() as (target, calls, gate),
        harness.node(url) as api,
        harness.node(url, name="second-node") as other,
    ):
        await concurrency(api, 3)
        for queue in ("one", "two"):
            await work(api if queue == "one" else other, target, queue, 10)
        await reached(calls, 3)
        own = (await other("GET", "/api/v1/tenant")).json
        assert (own["quotas"]["concurrency"], own["usage"]["running"]) == (3, 3)
        waiting = (await api("GET", "/api/v1/instances?state=INIT&limit=100")).json["items"]
        assert len(waiting) == 17
        why = (await api("GET", f"/api/v1/instances/{waiting[0]['id']}/why")).json
        assert why["verdict"] == "HELD"
        assert [hold["kind"] for hold in why["holds"]] == ["TENANT_CONCURRENCY"]
        assert why["holds"][0]["detail"] == "Its tenant runs 3 at once, and 3 is its quota."
        assert (await api("GET", "/api/v1/queues/*")).status == 404
        assert {queue["name"] for queue in (await api("GET", "/api/v1/queues")).json["items"]} == {"one", "two"}
        assert (await api("PUT", "/api/v1/queues/*", {"maxConcurrency": 1})).status == 422

        await concurrency(api, 5)
        await reached(calls, 5)
        assert await connection.fetchval("select count(*) from horai.instance_live where state = 1") == 5
        await concurrency(api, None)
        await reached(calls, 20)
        gate.set()

        async def all_ended() -> bool:
            return not await connection.fetchval("select exists (select from horai.instance_live)")

        await until(all_ended)

        async def no_permit_is_left() -> bool:
            return not await connection.fetchval("select exists (select from horai.queue_slot)")

        await until(no_permit_is_left)


async def test_C43_a_change_of_the_quota_is_recorded(url: str, connection: Platform):
    async with harness.node(url) as api:
        await concurrency(api, 3)
        await concurrency(api, 3)
    rows = await connection.fetch("select before, after from horai.audit where verb = 'tenant.change' order by id")
    assert [(json.loads(row["before"]), json.loads(row["after"])) for row in rows][:1] == [
        ({"concurrency": None}, {"concurrency": 3})
    ]


async def test_C2b_a_worker_runs_no_more_of_its_tenant_than_the_quota(url: str, connection: Platform):
    app, gate, begun = Horai("shop", database_url=url), asyncio.Event(), list[str]()

    async def hang(name: str) -> None:
        begun.append(name)
        await gate.wait()

    @app.job(queue="one")
    async def first() -> None:
        await hang("first")

    @app.job(queue="two")
    async def second() -> None:
        await hang("second")

    async with harness.node(url) as api, working(app, concurrency=8):
        await concurrency(api, 2)
        try:
            await first.enqueue_many([None] * 5)
            await second.enqueue_many([None] * 5)
            await reached(begun, 2)
            assert (await api("GET", TENANT)).json["usage"]["running"] == 2
            assert await connection.fetchval("select count(*) from horai.instance_live where state = 1") == 2
            assert len(begun) == 2
        finally:
            gate.set()
        await reached(begun, 10)


async def test_a_deleted_tenant_leaves_no_pool(url: str, connection: Platform):
    async with harness.node(url) as api:
        assert (await api("POST", "/api/v1/tenants", {"name": "north"})).status == 201
        await connection.execute(
            "insert into horai.queue (tenant_id, name)"
            " select id, 'q' || n from horai.tenant cross join generate_series(1, 1500) n where name = 'north'"
        )
        assert (await api("PATCH", "/api/v1/tenants/north", {"quotas": {"concurrency": 4}})).status == 200
        assert (await api("POST", "/api/v1/tenants/north/pause")).status == 200
        assert (await api("DELETE", "/api/v1/tenants/north?confirm=north")).status == 202

        async def is_gone() -> bool:
            return (await api("GET", "/api/v1/tenants/north")).status == 404

        await until(is_gone)
    assert await connection.fetchval("select count(*) from horai.queue where is_pool") == 0

"""The database is gone, or full, or slow: a problem that says so, and nothing half done."""

import contextlib
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import aiohttp
import harness
import make
import pytest
from harness import Client

from api import expect, given
from horai.api.context import Context
from horai.core.health import EngineHealth
from horai.core.settings import ServerAccess
from horai.db.pool import Platform
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.engine_node import NodeSettings
from horai.node import _address, _server

GONE = "SCH_503_DATABASE_UNAVAILABLE"


@asynccontextmanager
async def refusing(db: Platform, table: str, sqlstate: str) -> AsyncGenerator[None]:
    """Every write to `table` fails like this."""
    await db.execute(
        f"create function horai.trouble() returns trigger language plpgsql as "
        f"$$ begin raise exception 'trouble' using errcode = '{sqlstate}'; end $$"
    )
    await db.execute(
        f"create trigger trouble before insert or update or delete on horai.{table} execute function horai.trouble()"
    )
    try:
        yield
    finally:
        await db.execute("drop function horai.trouble() cascade")


@pytest.mark.parametrize(
    "sqlstate", ["53100", "53200", "53300", "25006", "55P03", "57014", "58030", "57P01", "40P01", "40001"]
)
async def test_a_database_that_cannot_write_is_told_and_leaves_nothing(
    api: Client, db: Platform, sqlstate: str
) -> None:
    job = await given.job(api, status="PAUSED")
    waiting = (await given.put(api, job, "waits")).json["instance"]
    path = f"/api/v1/jobs/{job['id']}"
    before = await expect.contents(db)

    async with refusing(db, "event", sqlstate):
        replies = [
            await api("POST", "/api/v1/jobs", {"name": "full", "every": "7s", "queue": "full"}, Idempotency_Key="full"),
            await api("PATCH", path, {"priority": "core"}),
            await api("POST", f"{path}/pause"),
            await api("DELETE", path),
            await api("POST", f"/api/v1/instances/{waiting['id']}/cancel"),
            await given.put(api, job, "waits", "2999-05-05T00:00:00Z"),
        ]
    async with refusing(db, "instance_live", sqlstate):
        replies += [
            await given.put(api, job, "new"),
            await api("POST", f"{path}/trigger", Idempotency_Key="full"),
            await api("POST", f"{path}/instances/batch", {"items": [{"executeTime": given.FAR}] * 3}),
            await api("POST", "/api/v1/jobs", {"name": "full", "at": given.FAR}, Idempotency_Key="full"),
        ]

    for reply in replies:
        expect.problem(reply, 503, GONE, "Try again")
        assert int(reply.headers["Retry-After"]) > 0
    assert await expect.contents(db) == before
    assert (await api("POST", f"{path}/trigger", Idempotency_Key="full")).status == 201


async def test_an_unexpected_database_error_gets_500_without_its_details(api: Client, db: Platform) -> None:
    job = await given.job(api)
    before = await expect.contents(db)

    async with refusing(db, "instance_live", "P0001"):
        reply = await given.put(api, job, "new")

    told = expect.problem(reply, 500, "SCH_500_INTERNAL")
    assert "trouble" not in str(told)
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert await expect.contents(db) == before


async def test_an_error_of_our_own_making_is_a_problem_with_all_its_marks(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object) -> None:
        raise KeyError("a payload that must not be shown")

    monkeypatch.setattr("horai.db.nodes.live_nodes", fails)

    reply = await api("GET", "/api/v1/scheduler/nodes", X_Request_Id="trace-9")

    told = expect.problem(reply, 500, "SCH_500_INTERNAL")
    assert "payload" not in str(told)
    assert reply.headers["X-Request-Id"] == "trace-9"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_lost_database_is_told_and_requests_go_on_when_it_is_back(short_place: Path) -> None:
    server = EmbeddedPostgres(EmbeddedSettings(short_place / "lost"))
    await server.start()
    try:
        async with harness.node(server.url, lease=timedelta(seconds=60)) as api:
            job = await given.job(api)
            await server.stop()
            for method, path, body in (
                ("GET", "/api/v1/jobs", None),
                ("POST", "/api/v1/jobs", {"name": "lost"}),
                ("GET", f"/api/v1/jobs/{job['id']}/instances", None),
                ("PUT", f"/api/v1/jobs/{job['id']}/instances/a", {}),
                ("GET", "/api/v1/scheduler/health", None),
                ("GET", "/readyz", None),
            ):
                reply = await api(method, path, body)
                expect.problem(reply, 503, GONE, "Try again")
                assert int(reply.headers["Retry-After"]) > 0
            assert (await api("GET", "/healthz")).status == 200

            await server.start()

            expect.problem(await api("GET", "/api/v1/jobs/lost"), 404, "SCH_404_NOT_FOUND")
            assert (await given.put(api, job, "a")).json["decision"] == "INSERTED"
    finally:
        await server.stop()


@asynccontextmanager
async def api_alone(url: str) -> AsyncGenerator[Client]:
    """The REST surface over a database that no node works on."""
    async with make.scope(url) as scope, contextlib.AsyncExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        context = Context(
            make.platform(scope), scope.wakeups, EngineHealth(), scope.tenant_id, scope.tenant, scope.hooks
        )
        await stack.enter_async_context(_server(context, listening, NodeSettings(Path("/nonexistent"))))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Client(_address(listening, ServerAccess()), session)


async def test_C24_without_a_live_dispatcher_a_trigger_is_refused_and_the_rest_is_served(
    url: str, connection: Platform
) -> None:
    async with api_alone(url) as api:
        job = await given.job(api)
        before = await expect.contents(connection)

        refused = await api("POST", f"/api/v1/jobs/{job['id']}/trigger", Idempotency_Key="nobody")

        expect.problem(refused, 503, "SCH_503_DISPATCHER_DOWN", "dispatcher")
        assert int(refused.headers["Retry-After"]) > 0
        assert await expect.contents(connection) == before
        assert (await given.put(api, job, "a")).json["decision"] == "INSERTED"
        assert (await api("GET", "/api/v1/scheduler/health")).json["status"] == "DEGRADED"
    async with harness.node(url) as api:
        assert (await api("POST", f"/api/v1/jobs/{job['id']}/trigger", Idempotency_Key="nobody")).status == 201

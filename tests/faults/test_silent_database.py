"""A database that stops answering: every request gets 503 within five seconds, and a slow one is left its time."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import harness
import psutil
import pytest
from harness import Client, Reply

from faults.outside import BUSY, violations
from faults.proxy import Proxy, Trap
from horai.core.errors import DatabaseUnavailable
from horai.db.pool import Platform, close_pool, open_pool
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.process import await_database

MOST_SECONDS = 5.0 + BUSY
LATER = {"executeTime": "2100-01-01T00:00:00Z"}
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/readyz", None),
    ("GET", "/api/v1/scheduler/health", None),
    ("GET", "/api/v1/jobs", None),
    ("GET", "/api/v1/jobs/publish", None),
    ("GET", "/api/v1/instances", None),
    ("GET", "/api/v1/instances/1", None),
    ("GET", "/api/v1/scheduler/attention", None),
    ("GET", "/api/v1/dlq", None),
    ("GET", "/api/v1/workflows", None),
    ("GET", "/api/v1/search?q=publish", None),
    ("POST", "/api/v1/jobs", {"name": "another"}),
    ("PATCH", "/api/v1/jobs/publish", {"priority": "core"}),
    ("POST", "/api/v1/jobs/publish/trigger", {}),
    ("PUT", "/api/v1/jobs/publish/instances/later", LATER),
    ("PUT", "/api/v1/jobs/publish/instances/now", {}),
    ("POST", "/api/v1/jobs/publish/instances/batch", {"items": [{"key": "many", **LATER}]}),
    ("DELETE", "/api/v1/jobs/publish/instances/later", None),
)


@asynccontextmanager
async def behind_proxy(url: str, job: str = "publish") -> AsyncGenerator[tuple[Client, Proxy]]:
    async with Proxy(url).listening() as proxy, harness.node(proxy.url, name=f"node-{job}") as api:
        assert (await api("POST", "/api/v1/jobs", {"name": job, "every": "30d"})).status == 201
        yield api, proxy


async def timed(api: Client, method: str, path: str, body: Any) -> tuple[str, Reply, float]:
    began = time.monotonic()
    reply = await api(method, path, body, Idempotency_Key="once")
    return f"{method} {path}", reply, time.monotonic() - began


async def all_are_refused_in_time(api: Client) -> None:
    """Send every request at once, more than there are connections to the database."""
    answered = await asyncio.gather(*(timed(api, *request) for request in REQUESTS))
    print(*(f"{took:5.2f} s  {reply.status}  {what}" for what, reply, took in answered), sep="\n")
    for what, reply, took in answered:
        assert reply.status == 503, what
        assert took <= MOST_SECONDS, (what, took)
    refused = {reply.json["code"] for _, reply, _ in answered}
    assert refused == {"SCH_503_DATABASE_UNAVAILABLE"}


async def test_while_the_network_swallows_everything_each_route_answers_503_within_five_seconds(url: str) -> None:
    async with behind_proxy(url) as (api, proxy):
        await asyncio.gather(*(api("GET", "/api/v1/jobs") for _ in range(5)))  # connections that are open and idle
        proxy.set_mode("blackhole")
        await all_are_refused_in_time(api)
        await all_are_refused_in_time(api)
        proxy.set_mode("pass")


async def test_a_request_in_a_transaction_answers_503_within_five_seconds_and_can_be_repeated(
    url: str, connection: Platform
) -> None:
    async def put_and_stalled(job: str, stall: Callable[[Proxy, str], Trap]) -> None:
        async with behind_proxy(url, job) as (api, proxy):
            put = ("PUT", f"/api/v1/jobs/{job}/instances/article:42", LATER)
            trap = stall(proxy, "insert_keyed")
            _, reply, took = await timed(api, *put)
            assert trap.sprung.is_set()
            assert (reply.status, reply.json["hintSaid"]["code"]) == (503, "TRY_AGAIN_BY_KEY")
            assert took <= MOST_SECONDS
            proxy.break_all()
            proxy.set_mode("pass")

            async with asyncio.timeout(30):
                while (again := await api(*put)).status == 503:
                    await asyncio.sleep(0.1)
            assert again.status in {200, 201}

    await asyncio.gather(
        put_and_stalled("before-commit", Proxy.stall_before_commit), put_and_stalled("after", Proxy.stall_after)
    )
    counts = await connection.fetch("select count(*) as instances from horai.job_instance group by job_id")
    assert [row["instances"] for row in counts] == [1, 1]
    assert await violations(connection) == []


async def test_a_slow_statement_is_left_its_time_while_the_database_answers(url: str, connection: Platform) -> None:
    await connection.execute(
        "create function horai.slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(6); return new; end $$"
    )
    async with behind_proxy(url) as (api, _):
        await connection.execute(
            "create trigger slowly before insert on horai.instance_live execute function horai.slowly()"
        )
        _, reply, took = await timed(api, "PUT", "/api/v1/jobs/publish/instances/slow", LATER)
    assert reply.status == 201
    assert took > 5.5


@pytest.mark.timeout(120)
async def test_while_postgresql_is_suspended_each_route_answers_503_within_five_seconds(short_place: Path) -> None:
    server = EmbeddedPostgres(EmbeddedSettings(short_place / "suspended"))
    await server.start()
    try:
        async with harness.node(server.url) as api:
            assert (await api("POST", "/api/v1/jobs", {"name": "publish"})).status == 201
            pid = int((short_place / "suspended" / "pgdata" / "postmaster.pid").read_text().split()[0])
            postmaster = psutil.Process(pid)
            suspended = [*postmaster.children(recursive=True), postmaster]
            for process in suspended:
                process.suspend()
            try:
                await all_are_refused_in_time(api)
            finally:
                for process in suspended:
                    process.resume()
    finally:
        await server.stop()


async def test_a_process_that_starts_asks_again_for_its_first_connection(url: str) -> None:
    async with Proxy(url).listening() as proxy:
        lost = proxy.cut_after("describe_server")
        pool = await open_pool(proxy.url, "horai test", 1)
        try:
            await await_database(pool)

            assert lost.sprung.is_set()
            assert pool.get_idle_size() == 1
        finally:
            await close_pool(pool)


async def test_a_process_gives_up_if_the_database_never_answers(url: str) -> None:
    async with Proxy(url).listening() as proxy:
        proxy.set_mode("reset")
        pool = await open_pool(proxy.url, "horai test", 1)
        try:
            with pytest.raises(DatabaseUnavailable):
                await await_database(pool)
        finally:
            await close_pool(pool)

"""Lists are read from a standby that shows what the reader must see; everything else, and every failure, goes to the primary."""

import asyncio
import re
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import asyncpg
import harness
import pytest
from databases import as_node, url_for
from drill_reports import drill_report
from harness import Client, Reply
from keys import KeyHolder, created, holder, holding

from faults.outside import BUSY, until
from faults.replicas import Replicas, caught_up, replicas
from horai.api.authentication import COOKIE
from horai.api.replica_reads import HEADER, WROTE
from horai.core.settings import ReplicaSettings
from horai.db import patience, standby
from horai.db import replicas as reads
from horai.db.isolation import make_login
from horai.db.pool import Plans, acquire, close_pool, connect, open_pool
from horai.embedded import EmbeddedPostgres
from horai.embedded.sockets import NODE_LOGIN
from horai.process import StartError

JOBS = "/api/v1/jobs"
HEALTH = "/api/v1/scheduler/health"
LONG = timedelta(minutes=10)
"""A lag that a test does not reach: only own writes decide."""
QUERY = "select key, execute_time from article where key > $1 order by key limit $2"
EXAMPLES = {
    "/api/v1/drills/{drill}": "/api/v1/drills/1",
    "/api/v1/workflows/{workflow}/grid": "/api/v1/workflows/flow/grid",
    "/api/v1/workflows/{workflow}/nodes/{node}/runs": "/api/v1/workflows/flow/nodes/a/runs",
    "/api/v1/forecast/what-if": "/api/v1/forecast/what-if?every=1h",
    "/api/v1/jobs/{job}/instances": "/api/v1/jobs/plain/instances",
    "/api/v1/jobs/{job}/instances/{key}/history": "/api/v1/jobs/plain/instances/a/history",
    "/api/v1/jobs/{job}/days": "/api/v1/jobs/plain/days",
    "/api/v1/workflows/{workflow}/runs": "/api/v1/workflows/flow/runs",
    "/api/v1/workflows/{workflow}/runs/count": "/api/v1/workflows/flow/runs/count",
    "/api/v1/reconcilers/{reconciler}/reports": "/api/v1/reconcilers/compared/reports",
    "/api/v1/search": "/api/v1/search?q=plain",
}
pytestmark = pytest.mark.usefixtures("postgres")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask a standby that failed again soon."""
    monkeypatch.setattr(reads, "RETRY_AFTER", 0.2)


@asynccontextmanager
async def pair(place: Path) -> AsyncGenerator[Replicas]:
    """A primary and its standby, with the login of nodes, which owns nothing."""
    async with replicas(place) as cluster:
        connection = await connect(cluster.first.url, "horai test")
        await make_login(connection, NODE_LOGIN)
        await connection.close()
        await caught_up(cluster.first, cluster.second)
        yield cluster


@asynccontextmanager
async def served(cluster: Replicas, lag: timedelta = LONG, url: str | None = None) -> AsyncGenerator[Client]:
    """A node on the first server that reads from the second."""
    replica = ReplicaSettings(as_node(url or cluster.second.url), lag)
    async with harness.node(cluster.first.url, replica=replica) as api:
        yield api


def is_by_replica(reply: Reply) -> bool:
    assert reply.status == 200, reply.json
    return re.fullmatch(r"replica; lag=\d+\.\d{3}", reply.headers.get(HEADER, "")) is not None


async def until_by_replica(api: Client, path: str = JOBS) -> None:
    async def by_replica() -> bool:
        return is_by_replica(await api("GET", path))

    await until(by_replica, 10, f"the standby answers {path}")


async def until_by_primary(api: Client, path: str = JOBS) -> None:
    async def by_primary() -> bool:
        return not is_by_replica(await api("GET", path))

    await until(by_primary, 10, f"the primary answers {path}")


async def add_job(api: Client, name: str, **fields: Any) -> None:
    body = {"name": name, "target": {"type": "http", "url": "http://127.0.0.1:9/hook"}, **fields}
    made = await api("POST", JOBS, body)
    assert made.status == 201, made.json


async def names(api: Client) -> tuple[set[str], bool]:
    """The listed jobs, and whether a standby has listed them."""
    reply = await api("GET", JOBS)
    return {job["name"] for job in reply.json["items"]}, is_by_replica(reply)


async def health_of(api: Client) -> Any:
    (found,) = (await api("GET", HEALTH)).json["readReplicas"]
    return found


async def test_lists_are_read_from_the_standby_and_all_else_from_the_primary(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as keyless:
        api = await holder(keyless, "admin")
        await cluster.second.log_statements()
        await add_job(api, "probe")
        await until_by_replica(api)

        started = await api("POST", f"{JOBS}/probe/trigger", None, Idempotency_Key="k1")
        await api.until_state(started.json["instance"]["id"], "DEAD")
        await until_by_replica(api, "/api/v1/instances")
        point = await api("GET", f"{JOBS}/probe")

        assert HEADER not in point.headers
        log = cluster.second.log
        logged = set(re.findall(r"/\* (\w+) \*/", log))
        assert {"replayed_position", "list_jobs", "list_live"} <= logged
        assert not {name for name in logged if re.search("claim|settle|lease|take_key|key_in_force|find_job$", name)}
        assert "ERROR" not in log


async def test_a_caller_sees_its_own_writes_while_others_read_the_standby(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as keyless:
        writer = await holder(keyless, "admin")
        other = await holder(writer, "admin")
        await add_job(writer, "before")
        await until_by_replica(other)
        await until_by_replica(writer)
        await cluster.second.pause_replay()

        await add_job(writer, "after")

        assert await names(writer) == ({"before", "after"}, False)
        assert await names(other) == ({"before"}, True)
        await cluster.second.resume_replay()
        await until_by_replica(writer)
        assert await names(writer) == ({"before", "after"}, True)


async def test_a_write_that_fails_counts_as_a_write(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as api:
        await until_by_replica(api)
        await cluster.second.pause_replay()
        await cluster.first.execute("create table public.noise ()")
        assert is_by_replica(await api("GET", JOBS))

        assert (await api("POST", JOBS, {"name": "?"})).status == 422

        assert not is_by_replica(await api("GET", JOBS))


async def test_a_list_that_a_client_loads_after_a_change_was_announced_shows_the_change(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as keyless:
        writer = await holder(keyless, "admin")
        watcher = await holder(writer, "admin")
        await until_by_replica(watcher)
        headers = {"Authorization": f"Bearer {watcher.key}"}
        async with watcher.session.get(f"{watcher.base}/api/v1/events", headers=headers) as stream:
            assert await stream.content.readuntil(b"\n\n") == b"retry: 2000\n\n"
            await cluster.second.pause_replay()
            await add_job(writer, "announced")
            async with asyncio.timeout(10 + BUSY):
                while b'"jobs"' not in await stream.content.readuntil(b"\n\n"):
                    continue

            assert await names(watcher) == ({"announced"}, False)


async def test_a_standby_that_lags_too_much_is_not_used_until_it_has_caught_up(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster, timedelta(seconds=1)) as api:
        await until_by_replica(api)
        assert (await health_of(api))["used"] is True
        await cluster.second.pause_replay()

        await until_by_primary(api)

        async def tells_lag() -> bool:
            told = await health_of(api)
            return told["lag"] > 1 and told["used"] is False and told["problem"] == "lags more than 1 s"

        await until(tells_lag, 10, "health shows the lag")
        await cluster.second.resume_replay()
        await until_by_replica(api)
        assert (await health_of(api))["lag"] <= 1


async def test_a_standby_that_lags_answers_no_error_for_a_row_that_it_lacks(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as keyless:
        writer = await holder(keyless, "admin")
        other = await holder(writer, "admin")
        await until_by_replica(other)
        await cluster.second.pause_replay()
        await add_job(writer, "new")

        found = await other("GET", f"{JOBS}/new/instances")

        assert (found.status, found.json["items"]) == (200, [])
        assert HEADER not in found.headers


async def test_a_promoted_standby_is_not_used(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as api:
        await until_by_replica(api)

        await cluster.second.promote()
        await add_job(api, "on-the-primary")

        assert await names(api) == ({"on-the-primary"}, False)
        told = await health_of(api)
        assert (told["used"], told["lag"]) == (False, None)
        assert "not a standby" in told["problem"]


@asynccontextmanager
async def waiting_on_standby(
    cluster: Replicas, api: Client
) -> AsyncGenerator[tuple["asyncio.Task[Reply]", Callable[[], Awaitable[None]]]]:
    """A list whose statement waits on the standby for a lock of the primary, and a function that frees the lock."""
    holding_lock = await cluster.first.connect()
    transaction = holding_lock.transaction()
    await transaction.start()
    await holding_lock.execute("lock table horai.job in access exclusive mode")
    second = await cluster.second.connect()

    async def is_locked() -> bool:
        found = "select count(*) from pg_locks where relation = 'horai.job'::regclass and mode = 'AccessExclusiveLock'"
        return await second.fetchval(found) > 0

    async def waits() -> bool:
        found = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '/* list_jobs%'"
        return await second.fetchval(found) > 0

    await until(is_locked, 10, "the standby has replayed the lock")
    asked = asyncio.create_task(api("GET", JOBS))
    await until(waits, 10, "the list waits on the standby")
    second.terminate()

    async def free() -> None:
        await transaction.rollback()

    yield asked, free
    await holding_lock.close()


async def test_a_standby_killed_in_the_middle_of_a_list_is_replaced_by_the_primary(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as api:
        await add_job(api, "probe")
        await until_by_replica(api)

        async with waiting_on_standby(cluster, api) as (asked, free):
            await cluster.second.stop(signal.SIGKILL)
            await free()
            reply = await asked

        assert not is_by_replica(reply)
        assert [job["name"] for job in reply.json["items"]] == ["probe"]
        assert await names(api) == ({"probe"}, False)
        await cluster.second.start()
        await until_by_replica(api)


async def test_a_standby_frozen_in_the_middle_of_a_list_is_replaced_by_the_primary(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as api:
        await add_job(api, "probe")
        await until_by_replica(api)

        async with waiting_on_standby(cluster, api) as (asked, free), cluster.second.frozen():
            await free()
            async with asyncio.timeout(patience.CALM + patience.PROBE + 2 + BUSY):
                reply = await asked

        assert not is_by_replica(reply)
        assert [job["name"] for job in reply.json["items"]] == ["probe"]


async def test_a_frozen_standby_delays_one_list_by_a_second_and_no_other(
    short_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "CALM", 60.0)
    async with pair(short_place) as cluster, served(cluster) as api:
        await add_job(api, "probe")
        await until_by_replica(api)

        async with cluster.second.frozen():
            began = time.monotonic()
            assert await names(api) == ({"probe"}, False)
            assert time.monotonic() - began < 2.5 + BUSY
            began = time.monotonic()
            for _ in range(30):
                assert await names(api) == ({"probe"}, False)
            assert time.monotonic() - began < 10.0 + BUSY
            assert "does not answer" in (await health_of(api))["problem"]

        await until_by_replica(api)


async def test_a_standby_that_is_down_at_the_start_is_used_once_it_answers(short_place: Path) -> None:
    async with pair(short_place) as cluster:
        await cluster.second.stop(signal.SIGINT)
        async with served(cluster) as api:
            assert not is_by_replica(await api("GET", JOBS))
            assert (await health_of(api))["used"] is False

            await cluster.second.start()

            await until_by_replica(api)


async def test_the_first_host_of_the_url_that_is_a_standby_is_used(short_place: Path) -> None:
    async with pair(short_place) as cluster:
        home = cluster.second.place
        url = f"postgresql://{NODE_LOGIN}@/horai?host={home},{home},{home}&port=5999,{cluster.first.port},{cluster.second.port}"
        async with served(cluster, url=url) as api:
            await until_by_replica(api)
            told = (await api("GET", HEALTH)).json["readReplicas"]

            assert [one["used"] for one in told] == [False, False, True]
            assert "not a standby" in told[1]["problem"]


async def test_a_primary_as_the_replica_is_not_used_and_the_node_starts(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster, url=cluster.first.url) as api:
        assert not is_by_replica(await api("GET", JOBS))
        assert "not a standby: it accepts writes" in (await health_of(api))["problem"]


async def test_a_server_of_another_cluster_is_refused_at_the_start(
    short_place: Path, postgres: EmbeddedPostgres
) -> None:
    async with pair(short_place) as cluster:
        with pytest.raises(StartError, match="belongs to the cluster with the system identifier") as refused:
            async with served(cluster, url=url_for(postgres, "postgres")):
                pass

        assert refused.value.hint == "Give the URL of a streaming standby of the database that --database-url names."


async def test_another_database_of_the_standby_is_refused_at_the_start(short_place: Path) -> None:
    async with pair(short_place) as cluster:
        await cluster.first.execute("create database other", "postgres")
        await caught_up(cluster.first, cluster.second)

        with pytest.raises(StartError, match="has a database of another number"):
            async with served(cluster, url=cluster.second.url.replace("/horai?", "/other?")):
                pass


async def test_a_tenant_reads_its_own_rows_from_the_standby(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as keyless:
        platform = await holder(keyless, "platform-admin")
        callers: dict[str, KeyHolder] = {}
        for tenant in ("one", "two"):
            assert (await platform("POST", "/api/v1/tenants", {"name": tenant})).status == 201
            callers[tenant] = await holder(platform, "admin", tenant)
            await add_job(callers[tenant], f"job-of-{tenant}")
        for tenant, caller in callers.items():
            await until_by_replica(caller)
            assert await names(caller) == ({f"job-of-{tenant}"}, True)


async def test_lists_of_a_tenant_are_read_with_the_role_of_tenants(short_place: Path) -> None:
    async with pair(short_place) as cluster:
        await cluster.second.log_statements()
        async with served(cluster) as api:
            await until_by_replica(api)

            served_tenant = cluster.second.log.partition("/* set_session */")[2].partition("/* list_jobs")[0]
            assert "$3 = '1'" in served_tenant


async def test_a_connection_to_the_standby_has_the_role_of_its_tenant_and_cannot_write(short_place: Path) -> None:
    async with pair(short_place) as cluster, opened(cluster) as (replicas_of, _):
        await cluster.first.execute("insert into horai.tenant (name) values ('second')")
        reader = replicas_of.reader("caller")
        assert reader is not None

        async def reads_own() -> bool:
            await replicas_of.renew_position(replicas_of.monotonic())
            try:
                async with reader.acquire(Plans.FRESH, 1) as connection:
                    assert await connection.fetchval("select array_agg(name) from horai.tenant") == ["default"]
                    assert await connection.fetchval("select current_user") == "horai_api"
                    assert await connection.fetchval("show default_transaction_read_only") == "on"
                    with pytest.raises(asyncpg.InsufficientPrivilegeError):
                        await connection.fetchval("select * from horai.access_key")
            except reads.StandbyLags:
                return False
            async with reader.acquire(Plans.FRESH, None) as connection:
                return await connection.fetchval("show default_transaction_read_only") == "on"

        await until(reads_own, 10, "the standby has replayed the lease")


async def test_a_standby_whose_connections_are_all_in_use_has_not_failed(
    short_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "CONNECTIONS", 1)
    async with pair(short_place) as cluster, opened(cluster) as (replicas_of, _):
        reader = replicas_of.reader("caller")
        assert reader is not None
        async with acquire(reader.host.pool):
            with pytest.raises(reads.StandbyBusy):
                async with reader.acquire(Plans.FRESH, 1):
                    pass
            (told,) = await replicas_of.statuses()

        assert (told.is_used, told.problem) == (True, None)
        assert replicas_of.reader("caller") is not None


@asynccontextmanager
async def opened(cluster: Replicas) -> AsyncGenerator[tuple[reads.ReadReplicas, int]]:
    """The standby of a process whose lease is a row that nothing renews."""
    made = "insert into horai.node (name, host, pid, version, lease_until) values ('n', 'h', 1, '0', now()) returning incarnation"
    incarnation = await cluster.first.fetchval(made)
    assert isinstance(incarnation, int)
    primary = await open_pool(as_node(cluster.first.url), "horai test", 3)
    try:
        settings = ReplicaSettings(as_node(cluster.second.url), LONG)
        async with reads.opened_replicas(settings, primary, lambda: incarnation) as found:
            yield found, incarnation
    finally:
        await close_pool(primary)


async def test_a_client_may_ask_for_the_primary(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as api:
        await until_by_replica(api)

        assert not is_by_replica(await api("GET", JOBS, Horai_Read="primary"))
        assert is_by_replica(await api("GET", JOBS))


async def test_a_browser_that_has_written_tells_other_nodes_by_a_cookie(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster, timedelta(seconds=7)) as api:
        key = await created(api, "admin")
        reply = await api("POST", "/api/v1/session", {"key": key["key"]})
        cookie = f"{COOKIE}={SimpleCookie(reply.headers['Set-Cookie'])[COOKIE].value}"
        wrote = await api("POST", JOBS, {"name": "?"}, Cookie=cookie)
        assert "Set-Cookie" not in wrote.headers, "a write that was refused"
        body = {"name": "probe", "target": {"type": "http", "url": "http://127.0.0.1:9/hook"}}
        wrote = await api("POST", JOBS, body, Cookie=cookie)
        morsel = SimpleCookie(wrote.headers["Set-Cookie"])[WROTE]
        assert (morsel["path"], morsel["secure"], morsel["httponly"], morsel["samesite"]) == ("/", True, True, "strict")
        assert morsel["max-age"] == "7"
        await until_by_replica(holding(api, key["key"]))

        assert is_by_replica(await api("GET", JOBS, Cookie=cookie))
        assert not is_by_replica(await api("GET", JOBS, Cookie=f"{cookie}; {WROTE}=1"))


async def test_an_idle_node_asks_its_standby_nothing(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as api:
        await until_by_replica(api)
        await cluster.second.log_statements()
        before = cluster.second.log.count("/* ")
        beats = "select extract(epoch from max(lease_until)) from horai.node"
        beat = await cluster.first.fetchval(beats)

        async def is_renewed() -> bool:
            return await cluster.first.fetchval(beats) != beat

        await until(is_renewed, 10, "the node has renewed its lease")

        assert cluster.second.log.count("/* ") == before


async def test_every_marked_route_can_be_answered_by_a_standby(short_place: Path) -> None:
    async with pair(short_place) as cluster, served(cluster) as api:
        await add_job(api, "plain")
        put = await api("PUT", f"{JOBS}/plain/instances/a", {"executeTime": "2999-01-01T00:00:00Z"})
        assert put.status == 201, put.json
        flow = {"name": "flow", "nodes": [{"name": "a", "job": "plain"}]}
        assert (await api("POST", "/api/v1/workflows", flow)).status == 201
        source = {"type": "sql", "databaseUrl": "postgresql://reader@db.example/shop", "query": QUERY}
        body = {"name": "compared", "job": "plain", "source": source, "every": "1h"}
        assert (await api("POST", "/api/v1/reconcilers", body)).status == 201
        assert (await api("POST", "/api/v1/drills", drill_report())).status == 201
        document: Any = (await api("GET", "/openapi.json")).json
        marked: set[str] = {
            path for path, methods in document["paths"].items() if methods.get("get", {}).get("x-may-lag")
        }

        coming = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:00Z")
        minute = {"/api/v1/forecast/minute": f"/api/v1/forecast/minute?at={coming}"}

        instance = put.json["instance"]["id"]
        steps = {"/api/v1/instances/{instance}/steps": f"/api/v1/instances/{instance}/steps"}

        examples = {**EXAMPLES, **minute, **steps}
        asked: dict[str, str] = {path: examples.get(path) or path for path in marked}

        assert len(asked) == 48
        assert not [path for path in asked.values() if "{" in path]
        for path in sorted(asked.values()):
            await until_by_replica(api, path)
        for path in marked:
            described = document["paths"][path]["get"]
            assert HEADER in described["responses"]["200"]["headers"]
            assert HEADER in {each["name"] for each in described["parameters"]}

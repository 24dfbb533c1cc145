"""Health, for the console, for load balancers and for people."""

from datetime import UTC, datetime, timedelta
from typing import Any

import harness
import make
import pytest
from harness import Client
from keys import holder
from receiver import Answer, Receiver
from structlog.testing import capture_logs

from api import given
from horai.core.health import EngineHealth
from horai.core.shards import EVERY_ROLE, Role
from horai.db import nodes
from horai.db.isolation import Isolation
from horai.db.migrate import migrate
from horai.db.pool import connect

NUMBERS = (
    "triggerDelayP50Ms",
    "triggerDelayP95Ms",
    "triggerDelayP99Ms",
    "runSuccessRate10m",
    "retryBacklog",
    "dlqGrowthPerMin",
    "inFlight",
    "unsettled",
    "lateResults",
)


async def test_C23_health_tells_the_trigger_delay_and_the_other_signs_of_life(api: Client, receiver: Receiver) -> None:
    quiet = (await api("GET", "/api/v1/scheduler/health")).json
    assert (quiet["status"], quiet["modes"], quiet["actions"]) == ("UP", ["NORMAL"], [])
    assert (quiet["triggerDelayP95Ms"], quiet["runSuccessRate10m"]) == (0, 1)
    done = await given.scripted(api, receiver, Answer(200))
    dead = await given.scripted(api, receiver, Answer(400))
    for job, state in ((done, "SUCCESS"), (dead, "DEAD")):
        await api.until_state((await given.triggered(api, job))["id"], state)

    health = await given.until(lambda: _settled(api, 0.5))

    assert all(isinstance(health[name], int | float) and health[name] >= 0 for name in NUMBERS)
    assert 0 < health["triggerDelayP95Ms"] < 10_000
    assert health["triggerDelayP50Ms"] <= health["triggerDelayP95Ms"] <= health["triggerDelayP99Ms"]
    assert health["dlqGrowthPerMin"] == 1
    (node,) = health["nodes"]
    assert node["name"] == "test-node"
    assert datetime.fromisoformat(node["leaseUntil"]) > datetime.now(UTC)
    assert health["notices"]
    assert health["overdueLoops"] == []


async def _settled(api: Client, rate: float) -> Any:
    health = (await api("GET", "/api/v1/scheduler/health")).json
    return health if health["runSuccessRate10m"] == rate else None


async def test_health_counts_the_retries_that_wait(api: Client, receiver: Receiver) -> None:
    before = (await api("GET", "/api/v1/scheduler/health")).json["retryBacklog"]
    job = await given.scripted(api, receiver, Answer(503, headers={"Retry-After": "3600"}))
    await api.until_state((await given.triggered(api, job))["id"], "FAIL")

    async def has_grown() -> bool:
        return (await api("GET", "/api/v1/scheduler/health")).json["retryBacklog"] == before + 1

    assert await given.until(has_grown)


async def test_the_nodes_are_listed(api: Client) -> None:
    reply = await api("GET", "/api/v1/scheduler/nodes")

    assert reply.json["nextCursor"] is None
    (node,) = reply.json["items"]
    assert (node["name"], node["roles"]) == ("test-node", ["api", "scheduler", "executor"])
    assert (node["shards"], node["draining"]) == ({"dispatch": 32, "trigger": 32}, False)


async def test_C47_the_shards_are_listed_by_the_names_of_their_leases(api: Client) -> None:
    (node,) = (await api("GET", "/api/v1/scheduler/nodes")).json["items"]

    reply = await api("GET", "/api/v1/scheduler/shards")

    assert reply.json["nextCursor"] is None
    shards = {shard["name"]: shard for shard in reply.json["items"]}
    assert set(shards) == {f"{duty}:{shard}" for duty in ("dispatch", "trigger") for shard in range(32)}
    seven = shards["dispatch:7"]
    assert (seven["duty"], seven["shard"], seven["epoch"]) == ("dispatch", 7, 1)
    assert (seven["node"], seven["nodeName"]) == (node["incarnation"], "test-node")
    assert datetime.fromisoformat(seven["leaseUntil"]) > datetime.now(UTC)


async def test_probes_answer_without_being_kept(api: Client) -> None:
    for path, status in (("/healthz", "ok"), ("/livez", "ok"), ("/readyz", "ready")):
        reply = await api("GET", path)
        assert (reply.status, reply.json["status"]) == (200, status)
        assert reply.headers["Cache-Control"] == "no-store"


async def test_a_node_that_cannot_renew_its_lease_is_not_ready_and_says_so(url: str) -> None:
    """Its loops go on and the database answers, but it may claim nothing: health must not say that all is well."""
    async with harness.node(url, lease=timedelta(seconds=1)) as api:
        holder = await connect(url, "horai test")
        held = holder.transaction()
        await held.start()
        await holder.execute("select from horai.node for update")

        ready = await given.until(lambda: _ready_with(api, 503))
        health = (await api("GET", "/api/v1/scheduler/health")).json
        assert (ready["status"], ready["holdsLease"]) == ("degraded", False)
        assert (health["status"], health["holdsLease"]) == ("DEGRADED", False)

        await held.rollback()
        assert (await given.until(lambda: _ready_with(api, 200)))["holdsLease"] is True
        holder.terminate()


async def _ready_with(api: Client, status: int) -> Any:
    reply = await api("GET", "/readyz")
    return reply.json if reply.status == status else None


# Several nodes


async def test_health_is_that_of_all_nodes_together(url: str, receiver: Receiver) -> None:
    """Every node answers alike: with its renewals each node tells the others how it is doing."""
    async with harness.node(url, name="one") as one, harness.node(url, name="two") as other:
        job = await given.scripted(one, receiver, *[Answer(200)] * 39, Answer(400))
        for _ in range(40):
            await given.triggered(one, job)

        async def agree() -> Any:
            told = [(await node("GET", "/api/v1/scheduler/health")).json for node in (one, other)]
            rates = {health["runSuccessRate10m"] for health in told}
            return told[0] if rates == {0.975} else None

        health = await given.until(agree)

        assert sorted(node["name"] for node in health["nodes"]) == ["one", "two"]
        assert {node["shards"]["dispatch"] for node in health["nodes"]} == {16}


async def test_a_loop_that_is_stuck_on_another_node_degrades_the_health_of_all(url: str) -> None:
    async with harness.node(url, name="one") as one:
        connection = await connect(url, "horai test")
        stuck = EngineHealth()
        stuck.beat("trigger", 0.0, 30.0)
        incarnation = await make.node(connection, name="two")
        await nodes.renew_node(connection, incarnation, timedelta(seconds=60), stuck.reading(100.0).to_text())

        health = (await one("GET", "/api/v1/scheduler/health")).json

        assert (health["status"], health["overdueLoops"]) == ("DEGRADED", ["two: trigger"])
        assert (await one("GET", "/readyz")).status == 200, "a probe is about the node it asks"
        connection.terminate()


@pytest.mark.parametrize("missing", [Role.scheduler, Role.executor])
async def test_a_cluster_without_a_scheduler_or_an_executor_is_degraded(url: str, missing: Role) -> None:
    async with harness.node(url, roles=EVERY_ROLE - {missing}) as api:
        health = (await api("GET", "/api/v1/scheduler/health")).json

    assert health["status"] == "DEGRADED"


async def test_readyz_gives_503_with_the_reason_when_the_database_fails_in_an_unforeseen_way(url: str) -> None:
    breaking = "create function public.clock_timestamp() returns timestamptz language plpgsql as 'begin raise no_data_found; end'"
    connection = await connect(url, "horai test")
    async with harness.node(url, roles=frozenset({Role.api})) as api:
        try:
            database = await connection.fetchval("select current_database()")
            await connection.execute(breaking)
            await connection.execute(f"alter database {database} set search_path = public, pg_catalog")
            await connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'horai api'"
            )

            async def answered() -> Any:
                reply = await api("GET", "/readyz")
                return reply if reply.json.get("detail", "").endswith("NoDataFoundError.") else None

            reply = await given.until(answered)
            assert reply.status == 503
        finally:
            await connection.execute("drop function public.clock_timestamp()")
            await connection.close()


async def test_a_database_with_a_single_role_serves_requests_and_health_says_so(url: str) -> None:
    connection = await connect(url, "horai test")
    await migrate(connection, isolation=Isolation(single_role=True))
    await connection.close()

    with capture_logs() as said:
        async with harness.node(url, roles=frozenset({Role.api})) as api:
            job = {"name": "publish", "target": {"type": "http", "url": "http://127.0.0.1:9/hook"}}
            assert (await api("POST", "/api/v1/jobs", job)).status == 201
            health = (await api("GET", "/api/v1/scheduler/health")).json

    assert [notice for notice in health["notices"] if "single role" in notice]
    assert [entry["hint"] for entry in said if "single role" in entry["event"]]


async def test_C2a_a_tenant_sees_its_own_figures_and_the_platform_those_of_all(
    url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horai.engine.minute_stats.OFTEN", timedelta(milliseconds=50))
    async with harness.node(url) as api:
        root = await holder(api, "platform-admin")
        assert (await root("POST", "/api/v1/tenants", {"name": "shop"})).status == 201
        await given.loopback_targets(root, "default", "shop")
        shop, press = await holder(root, "admin", "shop"), await holder(root, "admin", "default")
        receiver.on("/fails", Answer(400))
        for own, path in ((shop, "/fails"), (press, "/works")):
            job = {"name": "publish", "target": {"type": "http", "url": receiver.url(path)}}
            assert (await own("POST", "/api/v1/jobs", job)).status == 201
            assert (await own("PUT", "/api/v1/jobs/publish/instances/a", {})).status == 201

        async def figures(caller: Client) -> dict[str, Any]:
            return (await caller("GET", "/api/v1/scheduler/health")).json

        async def is_counted() -> bool:
            return (await figures(shop))["runSuccessRate10m"] == 0 and (await figures(root))["runSuccessRate10m"] == 0.5

        await given.until(is_counted)
        mine, theirs, all_ = await figures(shop), await figures(press), await figures(root)
        assert (mine["runSuccessRate10m"], theirs["runSuccessRate10m"], all_["runSuccessRate10m"]) == (0, 1, 0.5)
        assert (mine["nodes"], mine["unsettled"], mine["lateResults"], mine["overdueLoops"]) == ([], None, None, [])
        assert all_["nodes"]
        assert all_["unsettled"] is not None
        minutes = (await shop("GET", "/api/v1/scheduler/stats?minutes=10")).json["minutes"]
        assert (sum(m["failed"] for m in minutes), sum(m["succeeded"] for m in minutes)) == (1, 0)

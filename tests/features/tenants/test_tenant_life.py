"""The life of a tenant: paused and resumed by the platform, then deleted with everything but its audit log."""

import asyncio
import os
from datetime import UTC, datetime
from typing import Any

import asyncpg
import harness
import make
import pytest
from harness import Client
from keys import created, holder, holding
from receiver import Answer, Receiver

from api import expect
from horai.core.limits import SHARDS
from horai.core.queue import QueueSettings
from horai.core.shards import Role
from horai.db import queues, tenants
from horai.db.claims import ClaimedBy, Position
from horai.db.pool import Platform
from horai.operations import queues as operations

NORTH = "/api/v1/tenants/north"


async def platform(api: Client) -> Client:
    return holding(api, (await created(api, "platform-admin"))["key"])


async def north(root: Client) -> Client:
    """A new tenant that may call this machine, and its admin."""
    assert (await root("POST", "/api/v1/tenants", {"name": "north"})).status == 201
    networks = {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}}
    assert (await root("PATCH", NORTH, networks)).status == 200
    return await holder(root, "admin", "north")


async def trigger(api: Client, job: str) -> Any:
    made = await api("POST", f"/api/v1/jobs/{job}/trigger", Idempotency_Key=os.urandom(8).hex())
    assert made.status == 201, made.json
    return made.json["instance"]


async def http_job(api: Client, url: str, **fields: Any) -> None:
    body = {"name": "call", "target": {"type": "http", "url": url}, **fields}
    reply = await api("POST", "/api/v1/jobs", body)
    assert reply.status == 201, reply.json


# Pause


async def test_a_pause_of_the_platform_holds_every_queue_of_the_tenant_until_the_platform_resumes_it(url: str):
    async with Receiver() as receiver, harness.node(url) as api:
        receiver.on("/hook", *[Answer(200)] * 9)
        root = await platform(api)
        admin, other = await north(root), await holder(root, "admin", "default")
        await root("PATCH", "/api/v1/tenants/default", {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}})
        await http_job(admin, receiver.url("/hook"))
        await http_job(other, receiver.url("/hook"))
        await admin("PUT", "/api/v1/queues/limited", {"maxConcurrency": 1})
        limited = {"name": "limited", "target": {"type": "http", "url": receiver.url("/hook")}, "queue": "limited"}
        assert (await admin("POST", "/api/v1/jobs", limited)).status == 201

        paused = await root("POST", f"{NORTH}/pause")
        assert (paused.status, paused.json["status"]) == (200, "paused")
        late = {"name": "late", "target": limited["target"], "queue": "new-queue"}
        assert (await admin("POST", "/api/v1/jobs", late)).status == 201
        held = [await trigger(admin, job) for job in ("call", "limited", "late")]
        free = await trigger(other, "call")
        await other.until_state(free["id"], "SUCCESS")
        for instance in held:
            why = (await admin("GET", f"/api/v1/instances/{instance['id']}/why")).json
            assert "TENANT_PAUSED" in str(why), why
            assert "the platform has paused its tenant" in str(why)
        assert len(receiver.hits) == 1

        expect.problem(await admin("POST", f"{NORTH}/resume"), 403, "SCH_403_FORBIDDEN")
        await admin("PUT", "/api/v1/queues/new-queue", {"paused": False})
        assert (await admin("GET", f"/api/v1/instances/{held[2]['id']}")).json["state"] == "INIT"
        assert (await admin("GET", "/api/v1/tenant")).json["status"] == "paused"

        resumed = await root("POST", f"{NORTH}/resume")
        assert (resumed.json["status"], resumed.json["pausedAt"]) == ("active", None)
        for instance in held:
            await admin.until_state(instance["id"], "SUCCESS")


async def test_C43_pause_resume_and_delete_are_recorded_once(url: str, connection: Platform):
    async with harness.node(url) as api:
        root = await platform(api)
        await north(root)
        for verb in ("pause", "pause", "resume", "resume", "pause"):
            assert (await root("POST", f"{NORTH}/{verb}")).status == 200
        for _ in range(2):
            assert (await root("DELETE", f"{NORTH}?confirm=north")).status in {202, 404}
        await gone(root)
    rows = await connection.fetch(
        "select verb from horai.audit where object_name = 'north' and verb like 'tenant.%' order by id"
    )
    verbs = [row["verb"].removeprefix("tenant.") for row in rows]
    assert verbs == ["create", "change", "pause", "resume", "pause", "delete", "deleted"]


# The tenant's own view


async def test_C2b_a_tenant_reads_its_own_quotas_and_use_and_no_other(url: str):
    async with harness.node(url) as api:
        root = await platform(api)
        admin = await north(root)
        viewer, stranger = await holder(root, "viewer", "north"), await holder(root, "admin", "default")
        await http_job(admin, "http://127.0.0.1:9/", at="2999-01-01T00:00:00Z")
        await root("PATCH", NORTH, {"quotas": {"liveInstances": 5}})
        for reader in (admin, viewer):
            own = (await reader("GET", "/api/v1/tenant")).json
            assert (own["name"], own["quotas"]["liveInstances"]) == ("north", 5)
            assert own["usage"] == {"jobs": 1, "liveInstances": 1, "running": 0}
            expect.problem(await reader("GET", NORTH), 403, "SCH_403_FORBIDDEN")
            expect.problem(await reader("PATCH", NORTH, {"weight": 9}), 403, "SCH_403_FORBIDDEN")
        assert (await stranger("GET", "/api/v1/tenant")).json["usage"]["jobs"] == 0
        expect.problem(await root("GET", "/api/v1/tenant"), 403, "SCH_403_FORBIDDEN")


# Delete


async def gone(root: Client) -> None:
    async with asyncio.timeout(60):
        while (await root("GET", NORTH)).status != 404:
            await asyncio.sleep(0.02)


TABLES = """
select class.oid::regclass::text from pg_class class
join pg_attribute member on member.attrelid = class.oid and member.attname = 'tenant_id'
where class.relnamespace = 'horai'::regnamespace and class.relkind = 'r' and class.relname not like 'audit%'
"""
CHILDREN = ("entity", "refresh_batch", "catchup", "skip", "source_event", "workflow_node")


async def rows_of(connection: Platform, tenant_id: int) -> int:
    """The rows of a tenant in all tables but those of the audit log; each table without a tenant is read whole."""
    tables = [row[0] for row in await connection.fetch(TABLES)]
    counts = [
        await connection.fetchval(f"select count(*) from {name} where tenant_id = $1", tenant_id) for name in tables
    ]
    return sum(counts)


async def orphans(connection: Platform) -> dict[str, int]:
    """The rows whose job is gone, by table."""
    lost = "select count(*) from horai.{} own where not exists (select from horai.job where job.id = own.job_id)"
    counts = {name: await connection.fetchval(lost.format(name)) for name in CHILDREN}
    return {name: count for name, count in counts.items() if count}


async def test_a_tenant_is_deleted_only_when_it_is_paused_and_its_name_repeated(url: str):
    async with harness.node(url) as api:
        root = await platform(api)
        admin = await north(root)
        expect.problem(await root("DELETE", f"{NORTH}?confirm=north"), 409, "SCH_409_CONFLICT", "not paused")
        await root("POST", f"{NORTH}/pause")
        for query in ("", "?confirm=", "?confirm=North"):
            expect.problem(await root("DELETE", NORTH + query), 422, "SCH_422_INVALID", "not confirmed")
        expect.problem(await admin("DELETE", f"{NORTH}?confirm=north"), 403, "SCH_403_FORBIDDEN")
        await root("POST", "/api/v1/tenants/default/pause")
        refused = await root("DELETE", "/api/v1/tenants/default?confirm=default")
        expect.problem(refused, 409, "SCH_409_CONFLICT", "default")
        expect.problem(await root("DELETE", "/api/v1/tenants/none?confirm=none"), 404, "SCH_404_NOT_FOUND")
        assert (await admin("GET", "/api/v1/jobs")).status == 200


async def test_a_deleted_tenant_leaves_no_row_but_its_audit_log_and_its_name_is_free(url: str, connection: Platform):
    async with Receiver() as receiver, harness.node(url) as api:
        receiver.on("/hook", *[Answer(200), Answer(500)] * 9)
        root = await platform(api)
        admin, other = await north(root), await holder(root, "admin", "default")
        await fill(admin, receiver)
        await root("PATCH", "/api/v1/tenants/default", {"quotas": {"callbackNetworks": ["127.0.0.0/8"]}})
        await fill(other, receiver)
        tenant_id = int((await root("GET", NORTH)).json["id"])
        theirs = await rows_of(connection, 1)
        assert await rows_of(connection, tenant_id) > 20
        await root("POST", f"{NORTH}/pause")
        started = await root("DELETE", f"{NORTH}?confirm=north")
        assert (started.status, started.json["status"]) == (202, "deleting")
        assert (await admin("GET", "/api/v1/jobs")).status == 401
        again = await root("POST", "/api/v1/tenants", {"name": "north"})
        assert again.status in {201, 409}
        if again.status == 409:
            await gone(root)
            again = await root("POST", "/api/v1/tenants", {"name": "north"})
        assert int(again.json["id"]) != tenant_id
        assert await rows_of(connection, tenant_id) == 0
        assert await orphans(connection) == {}
        assert await connection.fetchval("select count(*) from horai.audit where tenant_id = $1", tenant_id) > 3
        assert await rows_of(connection, 1) >= theirs
        assert (await (await holder(root, "admin", "north"))("GET", "/api/v1/jobs")).json["items"] == []


async def fill(admin: Client, receiver: Receiver) -> None:
    """Jobs, queues, a workflow, a reconciler, entities, live, ended and dead instances, a backfill and a repeat key."""
    url = receiver.url("/hook")
    await http_job(admin, url, retry={"maxRetry": 0})
    for _ in range(2):
        made = await trigger(admin, "call")
        await admin.until_state(made["id"], "SUCCESS", "DEAD")
    await admin("PUT", "/api/v1/queues/limited", {"maxConcurrency": 2})
    target = {"type": "http", "url": url}
    every = {"name": "every", "target": target, "every": "1h", "startAt": "2026-01-01T00:00:00Z", "queue": "limited"}
    watched = {"name": "watched", "target": target, "every": "1h", "refresh": {"window": "10d"}}
    for job in (every, watched):
        assert (await admin("POST", "/api/v1/jobs", job)).status == 201
    wishes: list[tuple[str, str, Any]] = [
        ("POST", "/api/v1/jobs/every/backfill", {"from": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z"}),
        ("PUT", "/api/v1/jobs/watched/entities/e1", {"payload": 1}),
        ("PUT", "/api/v1/jobs/call/instances/k", {"executeTime": "2999-01-01T00:00:00Z"}),
        (
            "POST",
            "/api/v1/workflows",
            {"name": "flow", "nodes": [{"name": "a", "job": "call"}, {"name": "b", "job": "call", "after": ["a"]}]},
        ),
        (
            "POST",
            "/api/v1/reconcilers",
            {"name": "watch", "job": "call", "every": "1h", "source": {"type": "http", "url": url}},
        ),
    ]
    for method, path, body in wishes:
        reply = await admin(method, path, body)
        assert reply.status < 300, reply.json
    run = await admin("POST", "/api/v1/workflows/flow/trigger", Idempotency_Key=os.urandom(8).hex())
    assert run.status == 202, run.json


async def test_nothing_is_added_to_a_tenant_that_is_being_deleted(url: str, connection: Platform):
    async with harness.node(url, roles=frozenset({Role.api})) as api:
        root = await platform(api)
        admin = await north(root)
        await http_job(admin, "http://127.0.0.1:9/")
        async with connection.transaction():
            tenant_id = await connection.fetchval("select tenant_id from horai.job for key share")
            await root("POST", f"{NORTH}/pause")
            assert (await root("DELETE", f"{NORTH}?confirm=north")).json["status"] == "deleting"
            late = "select horai.charge($1, 1, null)"
            with pytest.raises(asyncpg.PostgresError, match="being deleted"):
                await connection.execute(late, tenant_id)
        expect.problem(
            await root("POST", "/api/v1/tenants", {"name": "north"}), 409, "SCH_409_DUPLICATE", "being deleted"
        )
        expect.problem(await root("PATCH", NORTH, {"weight": 2}), 409, "SCH_409_CONFLICT", "being deleted")
        expect.problem(await root("POST", f"{NORTH}/resume"), 409, "SCH_409_CONFLICT", "being deleted")
        expect.problem(
            await root("POST", "/api/v1/keys", {"role": "admin", "tenant": "north"}), 404, "SCH_404_NOT_FOUND"
        )


async def test_a_deletion_ends_the_roles_of_groups_and_the_sessions_of_their_users(url: str, connection: Platform):
    async with harness.node(url, roles=frozenset({Role.api})) as api:
        root = await platform(api)
        await north(root)
        mapping = {"group": "north-ops", "tenant": "north", "role": "operator"}
        assert (await root("POST", "/api/v1/groups", mapping)).status == 201
        tenant_id = int((await root("GET", NORTH)).json["id"])
        await connection.execute(
            "insert into horai.access_session (hash, subject, user_name, groups, chosen_tenant_id, expires_at)"
            " values (sha256('s'), 'ann', 'Ann', '{north-ops}', $1, clock_timestamp() + interval '1 hour')",
            tenant_id,
        )
        await root("POST", f"{NORTH}/pause")
        assert (await root("DELETE", f"{NORTH}?confirm=north")).status == 202
        assert (await root("GET", "/api/v1/groups")).json["items"] == []
        expect.problem(await root("POST", "/api/v1/groups", mapping), 404, "SCH_404_NOT_FOUND")
    async with harness.node(url) as api:
        await gone(holding(api, root.key))  # type: ignore[attr-defined]
    assert await connection.fetchval("select count(*) from horai.access_session where subject = 'ann'") == 0


async def test_a_deletion_that_a_crash_interrupted_is_finished_by_the_next_node(url: str, connection: Platform):
    async with harness.node(url, roles=frozenset({Role.api})) as api:
        root = await platform(api)
        admin = await north(root)
        await http_job(admin, "http://127.0.0.1:9/")
        items = {"items": [{"executeTime": "2999-01-01T00:00:00Z"}] * 500}
        assert (await admin("POST", "/api/v1/jobs/call/instances/batch", items)).status == 200
        await root("POST", f"{NORTH}/pause")
        tenant_id = int((await root("DELETE", f"{NORTH}?confirm=north")).json["id"])
    assert await tenants.erase_some(connection, tenant_id, 200) > 0  # then the node dies
    assert await connection.fetchval("select count(*) from horai.instance_live") == 300
    async with harness.node(url) as api:
        await gone(holding(api, root.key))  # type: ignore[attr-defined]
    assert await rows_of(connection, tenant_id) == 0


async def test_no_row_of_a_tenant_that_is_not_being_deleted_is_erased(url: str, connection: Platform):
    with pytest.raises(asyncpg.PostgresError, match="not being deleted"):
        await tenants.erase_some(connection, 1, 10)
    await tenants.erase_tenant(connection, 1)
    assert await connection.fetchval("select count(*) from horai.tenant") == 1


async def test_no_claim_takes_a_row_of_a_held_queue_with_or_without_a_limit(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope, "free")
        bound = await make.job(scope, "bound", queue="bound")
        queue = await operations.set_queue(scope, "bound", QueueSettings(max_concurrency=5))
        for job in ("free", "bound"):
            await make.put(scope, "k", datetime(2026, 1, 1, tzinfo=UTC), job=job)
    node = await make.node(connection)
    positions = [Position(shard, bound.lane_id, make.LONG_AGO, -1) for shard in range(SHARDS)]

    async def claimed() -> list[int]:
        free = await make.claim(connection, node)
        limited = await queues.claim_limited(connection, ClaimedBy(node, 2, datetime.now(UTC)), queue.id, positions, 5)
        return [len(free), len(limited)]

    await connection.execute("update horai.tenant set paused_at = clock_timestamp() where id = 1")
    await tenants.hold_queues(connection, 1)
    assert await claimed() == [0, 0]
    await connection.execute("update horai.tenant set paused_at = null where id = 1")
    await tenants.hold_queues(connection, 1)
    assert await claimed() == [1, 1]

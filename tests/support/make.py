"""Builds what tests start from, through the product's own functions."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from databases import as_node

from horai.core.actor import ActorKind
from horai.core.limits import SHARDS
from horai.core.put import PutDecision, PutOptions
from horai.db import claims, nodes
from horai.db.claims import ClaimedBy, ClaimedRow, Position
from horai.db.instance_queries import InstanceRow
from horai.db.jobs import JobRow
from horai.db.pool import Platform, Pool, TenantPool, open_pool
from horai.db.wakeups import Wakeups
from horai.features.registry import JOB_HOOKS
from horai.operations import instances, jobs
from horai.operations.instances import Item
from horai.operations.job_rows import JobDocument
from horai.operations.process_actor import process_actor
from horai.operations.scope import PlatformScope, Scope

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def scope(url: str, size: int = 10, sources: Sequence[str] = ()) -> AsyncGenerator[Scope]:
    """The tenant `default`, served without a node."""
    pool = await open_pool(as_node(url), "horai test", size)
    try:
        own = TenantPool(pool, 1)
        yield Scope(own, Wakeups(), 1, "default", process_actor(ActorKind.SDK), JOB_HOOKS, sources=frozenset(sources))
    finally:
        pool.terminate()


def platform(scope: Scope) -> Pool:
    """The connections of the scope with the rights of the platform, as stages have them."""
    assert isinstance(scope.pool, TenantPool)
    return scope.pool.pool


def platform_scope(scope: Scope) -> PlatformScope:
    """The platform, served by the same connections."""
    return PlatformScope(platform(scope), scope.wakeups, scope.tenant_id, scope.tenant, scope.actor, scope.hooks)


def of_tenant(scope: Scope, tenant_id: int, tenant: str) -> Scope:
    """Another tenant, served by the same connections."""
    assert isinstance(scope.pool, TenantPool)
    return replace(scope, pool=replace(scope.pool, tenant_id=tenant_id), tenant_id=tenant_id, tenant=tenant)


async def job(scope: Scope, name: str = "publish", **fields: Any) -> JobRow:
    """A job; without further fields an HTTP one that only runs what it is told."""
    payload = fields.pop("payload", None)
    document: Mapping[str, Any] = {"name": name, "target": {"type": "http", "url": "http://127.0.0.1:9/hook"}, **fields}
    return await jobs.create_job(scope, JobDocument(document, None if payload is None else json.dumps(payload)))


async def node(connection: Platform, lease: timedelta = timedelta(seconds=60), name: str = "test-node") -> int:
    """A registered incarnation."""
    incarnation, _ = await nodes.register_node(connection, name, "test", 1, "test", lease)
    return incarnation


async def put(
    scope: Scope, key: str, at: datetime | None = None, *, job: str = "publish", payload: Any = None, **intent: Any
) -> tuple[PutDecision, InstanceRow]:
    """Put an instance as `PUT …/instances/{key}` does."""
    text = None if payload is None else json.dumps(payload)
    return await instances.put_instance(
        scope, job, instances.AskedPut(key, at or datetime.now(UTC), text, PutOptions(**intent))
    )


async def many(scope: Scope, count: int, *, job: str = "publish", at: datetime | None = None) -> list[int]:
    """Instances without a key."""
    answers = await instances.insert_batch(scope, job, [Item(at, None)] * count)
    return [answer.instance_id for answer in answers]


async def lanes(connection: Platform) -> Sequence[int]:
    """Every lane there is."""
    return [row["id"] for row in await connection.fetch("select id from horai.lane order by id")]


async def claim(connection: Platform, incarnation: int, per_lane: int = 1000, claim_id: int = 1) -> list[ClaimedRow]:
    """Claim the due instances of all lanes."""
    positions = [Position(shard, lane, LONG_AGO, -1) for lane in await lanes(connection) for shard in range(SHARDS)]
    by = ClaimedBy(incarnation, claim_id, datetime.now(UTC))
    return await claims.claim_due(connection, by, positions, [per_lane] * len(positions))


async def running(scope: Scope, connection: Platform, key: str = "article:42") -> ClaimedRow:
    """A RUNNING instance of job `publish`, held by a node of its own."""
    await put(scope, key)
    (claimed,) = await claim(connection, await node(connection))
    return claimed


async def state(connection: Platform, instance_id: int) -> str | None:
    """The state of an instance, wherever it lives."""
    return await connection.fetchval("select state from horai.job_instance where instance_id = $1", instance_id)

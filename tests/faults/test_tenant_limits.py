"""The quota `concurrency` of a tenant holds at every instant, over two queues: kills, take-overs, a frozen node, changes."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from faults.cluster import cluster
from faults.gauge import Gauge
from faults.load import RETRY
from faults.outside import BUSY, IS_LONG, job_document, lost_attempts, until, violations
from faults.test_limits import (
    BACKLOG,
    LEASE,
    LIMIT,
    NODES,
    ROUNDS,
    SEED,
    Field,
    busy,
    claims,
    freeze,
    kill,
    looking,
)
from horai.db.pool import Platform

QUEUES = {"wide": None, "narrow": 3}
"""The queues of the tenant, and the limit of each."""


@dataclass
class TenantField(Field):
    """A cluster whose tenant has more to do, in two queues, than its quota lets through."""

    async def limit(self, most: int) -> None:
        """In force from the time that the database has written."""
        changed = await self.api("PATCH", "/api/v1/tenants/default", {"quotas": {"concurrency": most}})
        assert changed.status == 200, changed.json
        at = await self.connection.fetchval("select updated_at from horai.queue where is_pool")
        self.limits.changes.append((at, most))

    async def feed(self, url: str) -> None:
        """Keeps the backlog of both queues up, until cancelled."""
        async with looking(url) as connection:
            while True:
                for queue in QUEUES:
                    waiting: int = await connection.fetchval(
                        "select count(*) from horai.instance_live live join horai.job on job.id = live.job_id where job.name = $1",
                        queue,
                    )
                    if waiting < BACKLOG:
                        with suppress(aiohttp.ClientError):  # it was killed a moment ago
                            fed = await self.api(
                                "POST", f"/api/v1/jobs/{queue}/instances/batch", {"items": [{}] * BACKLOG}
                            )
                            assert fed.status in {200, 503}
                await asyncio.sleep(0.1)

    async def sample(self, url: str) -> None:
        """The database's own count, again and again until cancelled: more than the quota only of what was there before."""
        async with looking(url) as connection:
            while True:
                for row in await connection.fetch(
                    "select queue.name, queue.max_concurrency as most, queue.updated_at, count(instance_id) as taken,"
                    " max(taken_at) filter (where instance_id is not null) as last_at"
                    " from horai.queue join horai.queue_slot on queue_id = queue.id group by queue.id"
                ):
                    if row["taken"] > row["most"] and row["last_at"] > row["updated_at"]:
                        self.sampled.append(
                            f"{row['name']}: {row['taken']} of {row['most']}, the last at {row['last_at']}"
                        )
                self.samples += 1
                await asyncio.sleep(0.01)


@asynccontextmanager
async def field_of(place: Path, url: str, connection: Platform) -> AsyncGenerator[TenantField]:
    async with (
        Gauge(random.Random(SEED)).listening() as gauge,
        cluster(place, url, *NODES, lease=LEASE) as nodes,
        aiohttp.ClientSession() as session,
    ):
        on = TenantField(nodes, gauge, connection, session)
        await on.limit(LIMIT)
        for queue, limit in QUEUES.items():
            assert (await on.api("PUT", f"/api/v1/queues/{queue}", {"maxConcurrency": limit})).status == 200
            document = job_document(queue, gauge.url, queue=queue, timeout="10s", retry=RETRY)
            assert (await on.api("POST", "/api/v1/jobs", document)).status == 201
        yield on


@pytest.mark.timeout(900 if IS_LONG else 180)
async def test_C2b_the_concurrency_of_a_tenant_is_never_exceeded_over_kills_take_overs_freezes_and_changes(
    short_place: Path, url: str, connection: Platform
) -> None:
    print(f"\nHORAI_TEST_SEED={SEED}")
    async with field_of(short_place, url, connection) as on:
        async with busy(on, url):
            await on.is_used_to_the_full(LIMIT, "in the beginning")
            for number in range(ROUNDS):
                await kill(on, NODES[number % len(NODES)])
                for most in (2, 8, LIMIT):
                    await on.limit(most)
                    await on.is_used_to_the_full(most, f"after a change to {most}")
                await freeze(on, NODES[(number + 1) % len(NODES)])

        async def nothing_is_live() -> bool:
            return not await connection.fetchval("select exists (select from horai.instance_live)")

        await until(nothing_is_live, 90, "0 rows in a state that is not final")
        lost = await lost_attempts(connection)
        taken: int = await connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")
        found = await violations(connection)
    gauge = on.gauge
    print(
        f"{ROUNDS} kills and freezes: {len(gauge.entries)} calls, {len(lost)} lost their node, no more than"
        f" {gauge.peak_since(0)} at once, {on.samples} samples, longest pause {gauge.longest_pause():.2f} s",
        flush=True,
    )
    assert on.limits.exceeded(gauge.entries, await claims(connection)) == []
    assert (on.sampled, found, taken) == ([], [], 0)  # no permit is leaked
    assert lost  # else no permit was taken back, and this would prove nothing
    assert gauge.longest_pause() < LEASE + 2 + BUSY

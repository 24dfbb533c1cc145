"""A queue's limit holds at every instant: over kills, take-overs, a frozen node, and changes of the limit."""

import asyncio
import os
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import aiohttp
import pytest
from harness import Client

from faults.cluster import Cluster, cluster, incarnation_of
from faults.gauge import ClaimSeen, Gauge, Limits
from faults.load import RETRY
from faults.outside import BUSY, IS_LONG, job_document, lost_attempts, until, violations
from horai.db.pool import Platform, connect

NODES = ("one", "two", "three") if IS_LONG else ("one", "two")
LIMIT = 5
ROUNDS = 6 if IS_LONG else 1
LEASE = 8.0 if IS_LONG else 2.0
BACKLOG = 200 if IS_LONG else 80
"""So many wait at any time: what holds them back is the limit."""
SEED = int(os.environ.get("HORAI_TEST_SEED") or random.SystemRandom().randrange(2**32))


@dataclass
class Field:
    """A cluster with one limited queue that has more to do than its limit lets through."""

    nodes: Cluster
    gauge: Gauge
    connection: Platform
    session: aiohttp.ClientSession
    limits: Limits = field(default_factory=Limits)
    sampled: list[str] = field(default_factory=list[str])
    samples: int = 0

    @property
    def api(self) -> Client:
        return Client(next(iter(self.nodes.doors.values())), self.session)

    async def limit(self, most: int) -> None:
        """`PUT /queues`; in force from the time in its answer on."""
        put = await self.api("PUT", "/api/v1/queues/narrow", {"maxConcurrency": most})
        assert put.status == 200, put.json
        self.limits.changes.append((datetime.fromisoformat(put.json["updatedAt"]), most))

    async def feed(self, url: str) -> None:
        """Keeps the backlog up, until cancelled."""
        async with looking(url) as connection:
            while True:
                waiting: int = await connection.fetchval("select count(*) from horai.instance_live")
                if waiting < BACKLOG:
                    with suppress(aiohttp.ClientError):  # it was killed a moment ago
                        body = {"items": [{}] * BACKLOG}
                        fed = await self.api("POST", "/api/v1/jobs/narrow/instances/batch", body)
                        assert fed.status in {
                            200,
                            503,
                        }  # a node that was frozen in the middle of it has lost its transaction
                await asyncio.sleep(0.1)

    async def sample(self, url: str) -> None:
        """The database's own count, again and again until cancelled: more than the limit only of what was there before."""
        async with looking(url) as connection:
            while True:
                row = await connection.fetchrow(
                    "select queue.max_concurrency as most, queue.updated_at, count(instance_id) as taken,"
                    " max(taken_at) filter (where instance_id is not null) as last_at"
                    " from horai.queue join horai.queue_slot on queue_id = queue.id where name = 'narrow' group by queue.id"
                )
                if row is not None and row["taken"] > row["most"] and row["last_at"] > row["updated_at"]:
                    self.sampled.append(f"{row['taken']} of {row['most']} taken, the last at {row['last_at']}")
                self.samples += 1
                await asyncio.sleep(0.01)

    async def is_used_to_the_full(self, most: int, what: str) -> None:
        """Exactly so many at once are reached, from now on."""
        first = len(self.gauge.entries)

        async def reached() -> bool:
            return self.gauge.peak_since(first) >= most

        await until(reached, LEASE + 2, f"{most} at once {what}")

    async def slots_of(self, incarnation: int) -> int:
        return await self.connection.fetchval("select count(*) from horai.queue_slot where node = $1", incarnation)

    async def holding(self, name: str) -> int:
        """The incarnation of this node, at a moment when it holds slots."""
        incarnation = await incarnation_of(self.connection, name)
        await until(lambda: self.slots_of(incarnation), 10, f"{name} holds a slot")
        return incarnation


@asynccontextmanager
async def looking(url: str) -> AsyncGenerator[Platform]:
    """Open a connection for a test that looks on."""
    connection = await connect(url, "horai test")
    try:
        yield connection
    finally:
        connection.terminate()


@asynccontextmanager
async def busy(on: Field, url: str) -> AsyncGenerator[None]:
    """Fed and watched meanwhile."""
    tasks = [asyncio.create_task(on.feed(url)), asyncio.create_task(on.sample(url))]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert all(task.cancelled() for task in tasks), [task.exception() for task in tasks if not task.cancelled()]


@asynccontextmanager
async def field_of(place: Path, url: str, connection: Platform) -> AsyncGenerator[Field]:
    async with (
        Gauge(random.Random(SEED)).listening() as gauge,
        cluster(place, url, *NODES, lease=LEASE) as nodes,
        aiohttp.ClientSession() as session,
    ):
        on = Field(nodes, gauge, connection, session)
        await on.limit(LIMIT)
        document = job_document("narrow", gauge.url, queue="narrow", timeout="10s", retry=RETRY)
        assert (await on.api("POST", "/api/v1/jobs", document)).status == 201
        yield on


async def claims(connection: Platform) -> dict[ClaimSeen, datetime]:
    """Return the claim time of each claim that led to a call."""
    rows = await connection.fetch(
        "select horai.idem_key(job_id, born_for, slot) as key, fence, claimed_at from horai.instance_history"
        " union all select idem_key, attempt.fence, started_at from horai.attempt join horai.job_instance using (instance_id)"
        " where not late"
    )
    return {(row["key"], row["fence"]): row["claimed_at"] for row in rows}


async def kill(on: Field, name: str) -> None:
    """While it holds slots; they come free with its lease, and are all used again."""
    incarnation = await on.holding(name)
    await on.nodes.kill(name)

    async def are_free() -> bool:
        return not await on.slots_of(incarnation)

    await until(are_free, LEASE + 2, "the slots of a killed node are free again")
    await on.is_used_to_the_full(LIMIT, "after a kill")
    await on.nodes.start(name)


async def freeze(on: Field, name: str) -> None:
    """While it holds slots, until they are others'; when it comes back it begins nothing in them."""
    incarnation = await on.holding(name)
    with on.nodes.frozen(name):

        async def are_free() -> bool:
            return not await on.slots_of(incarnation)

        await until(are_free, LEASE + 2, "the slots of a frozen node are free again")
        await on.is_used_to_the_full(LIMIT, "without the frozen node")

    async def is_back() -> object:
        return await on.slots_of(await incarnation_of(on.connection, name))

    await until(is_back, 2 * LEASE, f"{name} works again")


@pytest.mark.timeout(900 if IS_LONG else 180)
async def test_a_queue_limit_is_never_exceeded_over_kills_take_overs_freezes_and_changes(
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

        await until(nothing_is_live, 60, "0 rows in a state that is not final")
        lost = await lost_attempts(connection)
        taken: int = await connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")
        found = await violations(connection)
    gauge = on.gauge
    print(
        f"{ROUNDS} kills and freezes with leases of {LEASE:g} s: {len(gauge.entries)} calls, {len(lost)} lost their node,"
        f" no more than {gauge.peak_since(0)} at once, {on.samples} samples, longest pause {gauge.longest_pause():.2f} s",
        flush=True,
    )
    assert on.limits.exceeded(gauge.entries, await claims(connection)) == []
    assert (on.sampled, found, taken) == ([], [], 0)  # no slot is leaked
    assert lost  # else no slot was taken back, and this would prove nothing
    assert gauge.longest_pause() < LEASE + 2 + BUSY

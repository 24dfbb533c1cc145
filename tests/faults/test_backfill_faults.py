"""A backfill with four nodes, two of which are killed: no slot twice, none missing, and never more than the cap."""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from harness import Client
from sizes import IS_LONG

from faults.cluster import cluster
from faults.gauge import Gauge
from faults.outside import job_document, until, violations
from horai.core.limits import SHARDS
from horai.db.pool import Platform, connect

NODES = ("one", "two", "three", "four")
KILLS = 2
SLOTS = 5_000 if IS_LONG else 160
CAP = 8
LEASE = 8.0 if IS_LONG else 2.0
SECONDS = "* * * 10 1 ? 2026,2036"
"""Every second of two days, neither of which is today: no slot of now counts towards the cap."""
WISH = {"from": "2026-01-10T00:00:00Z", "maxConcurrency": CAP}


async def sample(url: str, seen: Counter[int]) -> None:
    """Count the live instances, again and again until cancelled."""
    connection = await connect(url, "horai test")
    try:
        while True:
            seen[await connection.fetchval("select count(*) from horai.instance_live where slot >= 0")] += 1
            await asyncio.sleep(0.005)
    finally:
        connection.terminate()


@pytest.mark.timeout(1800 if IS_LONG else 180)
async def test_C21_C62_a_backfill_survives_the_deaths_of_its_nodes_and_keeps_its_cap(
    short_place: Path, url: str, connection: Platform
) -> None:
    seen: Counter[int] = Counter()
    async with Gauge(random.Random(1)).listening() as gauge, aiohttp.ClientSession() as session:
        async with cluster(short_place, url, *NODES, lease=LEASE) as nodes:
            api = Client(next(iter(nodes.doors.values())), session)
            document = job_document("filled", gauge.url, cron=SECONDS, startAt="2026-01-10T00:00:00Z", timeout="10s")
            assert (await api("POST", "/api/v1/jobs", document)).status == 201
            job_id: int = await connection.fetchval("select id from horai.job")
            sampling = asyncio.create_task(sample(url, seen))
            end = f"2026-01-10T{SLOTS // 3600:02}:{SLOTS // 60 % 60:02}:{SLOTS % 60:02}Z"
            made = await api("POST", "/api/v1/jobs/filled/backfill", {**WISH, "to": end})
            assert (made.status, made.json["progress"]["total"]) == (202, SLOTS)
            for kill in range(1, KILLS + 1):
                part = SLOTS * kill // (KILLS + 2)
                await until(lambda part=part: _ended(connection, part), 60, f"{part} have ended")
                await nodes.kill(await _owner(connection, job_id))
            api = Client(next(iter(nodes.doors.values())), session)
            await until(lambda: _is_done(connection), 600 if IS_LONG else 90, "the backfill is done")
            sampling.cancel()
            with suppress(asyncio.CancelledError):
                await sampling
            told = (await api("GET", f"/api/v1/backfills/{made.json['id']}")).json
        slots = await connection.fetch("select fire_time, slot, state from horai.instance_history order by fire_time")
        broken = await violations(connection)
    peak = gauge.peak_since(0)
    print(
        f"{SLOTS} slots, {len(gauge.entries)} calls, of {CAP} at most {max(seen)} under way in {seen.total()} looks,"
        f" at most {peak} at the target"
    )
    assert [(row["slot"], row["state"]) for row in slots] == [(0, 2)] * SLOTS
    assert len({row["fire_time"] for row in slots}) == SLOTS
    assert max(seen) <= CAP
    assert peak <= CAP
    assert (told["status"], told["progress"]["succeeded"]) == ("DONE", SLOTS)
    assert broken == []


async def _ended(connection: Platform, count: int) -> bool:
    return await connection.fetchval("select count(*) >= $1 from horai.instance_history", count)


async def _is_done(connection: Platform) -> bool:
    return await connection.fetchval("select bool_and(finished_at is not null) from horai.backfill")


async def _owner(connection: Platform, job_id: int) -> str:
    """The node that makes the slots of the job's backfills."""
    return await connection.fetchval(
        "select node.name from horai.shard_lease lease join horai.node on node.incarnation = lease.node"
        " where lease.duty = 'trigger' and lease.shard = $1",
        job_id % SHARDS,
    )

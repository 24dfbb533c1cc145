"""Seed 002 §18, example 1: coupons that are handed out every 5 minutes keep p95 < 1.8 s on the day of the sale."""

import asyncio
import math
from datetime import datetime, timedelta
from pathlib import Path

import aiohttp
from harness import Client

from faults.cluster import cluster, database_now
from faults.load import load
from faults.outside import job_document, receiving, until, violations
from horai.db.pool import Platform

CITIES = 100
AT_ONCE = 10
SALE = 150
"""Other calls a second, all the while."""
RAMP = timedelta(seconds=8)
"""For declaring the jobs, and for the sale to begin."""
SPREAD = timedelta(seconds=4)
"""From the first city's slot to the last one's: the test waits for one slot of each, not for five minutes."""
P95 = timedelta(seconds=1.8)


async def test_C59a_coupons_every_5_minutes_begin_within_1_8_seconds_while_the_sale_is_on(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "coupons.hits") as receiver:
        async with cluster(short_place, url, "east", "west", lease=8.0) as nodes:
            first = await database_now(connection) + RAMP
            await declare(nodes.doors["east"], first, receiver.url("/coupon"))
            async with load(nodes.doors, SALE, receiver.url("/order?delay=0.02")) as sale:
                assert await database_now(connection) < first, "the sale is on before the first slot"
                await until(lambda: has_run(connection), 30, "every city has had its slot")
                sold = len(sale.acknowledged)
            waits = await connection.fetch(
                "select claimed_at - execute_time as wait, fire_time from horai.instance_history h"
                " join horai.job on job.id = h.job_id where job.name like 'coupon-%' and h.state = 2 order by 1"
            )
    p95 = waits[math.ceil(0.95 * len(waits)) - 1]["wait"]
    print(f"{len(waits)} slots beside {sold} orders: p95 {p95}, worst {waits[-1]['wait']}", flush=True)
    assert len(waits) == len({row["fire_time"] for row in waits}) == CITIES
    assert min(row["wait"] for row in waits) >= timedelta(0), "never early"
    assert p95 < P95
    assert sold > SALE * SPREAD.total_seconds() / 2, "else there was no sale"
    assert await violations(connection) == []


async def declare(door: str, first: datetime, target: str) -> None:
    """A job for each city, whose next slot is its share of the spread after `first`."""
    async with aiohttp.ClientSession() as session:
        api = Client(door, session)
        slots = [first + city * SPREAD / CITIES for city in range(CITIES)]
        jobs = [
            job_document(f"coupon-{city}", target, every="5m", anchor=slot.isoformat(timespec="milliseconds"))
            for city, slot in enumerate(slots)
        ]
        few = [jobs[n : n + AT_ONCE] for n in range(0, CITIES, AT_ONCE)]
        replies = [await asyncio.gather(*(api("POST", "/api/v1/jobs", job) for job in some)) for some in few]
    assert {reply.status for some in replies for reply in some} == {201}, replies


async def has_run(connection: Platform) -> bool:
    ended: int = await connection.fetchval(
        "select count(*) from horai.instance_history h join horai.job on job.id = h.job_id where job.name like 'coupon-%'"
    )
    return ended >= CITIES

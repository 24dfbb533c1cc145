"""A target that fails every call: retries stay within their budget, other targets are not delayed, recovery is gentle.

The short form fails for 5 s, the long form (HORAI_LONG=1) for 3 minutes.
"""

import asyncio
import statistics
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import harness
import pytest
from harness import Client
from receiver import Answer, Hit, Receiver

from faults.cluster import cluster
from faults.outside import IS_LONG, until, violations
from horai.db.pool import Platform

CALM = 30.0 if IS_LONG else 3.0
"""Seconds in which only the healthy target is called, and then in which both work."""
OUTAGE = 180.0 if IS_LONG else 5.0
PATIENCE = 600.0 if IS_LONG else 90.0
RATE = 60
"""First tries per second of the target that fails."""
OTHER_RATE = 20
AHEAD = timedelta(seconds=0.5)
"""Instances are created this long before their time, so that a delay is not that of their creation."""
SLACK = 0.02 if IS_LONG else 0.5
"""Seconds that a delay may grow beside its 1.2 times: what a busy machine adds in the short form."""
SHARE, FREE = 0.2, 100
RETRY = {"maxRetry": 50, "base": "100ms"}


@dataclass
class Stage:
    """A node, a target that fails when told, and one that works."""

    api: Client
    bad: Receiver
    good: Receiver
    made: dict[str, int] = field(default_factory=lambda: defaultdict[str, int](int))

    async def create_jobs(self) -> None:
        for name, receiver in (("bad", self.bad), ("good", self.good)):
            target = {"type": "http", "url": receiver.url("/hook")}
            made = await self.api("POST", "/api/v1/jobs", {"name": name, "target": target, "retry": RETRY})
            assert made.status == 201, made.json

    async def feed(self, seconds: float, **rates: int) -> None:
        """Create the instances of so many seconds at these rates, due one after the other; on a busy machine it takes longer."""
        begun = time.monotonic()
        for tick in range(round(seconds * 10)):
            at = datetime.now(UTC) + AHEAD
            for job, rate in rates.items():
                count = rate // 10
                items = [{"executeTime": (at + timedelta(seconds=n * 0.1 / count)).isoformat()} for n in range(count)]
                fed = await self.api("POST", f"/api/v1/jobs/{job}/instances/batch", {"items": items})
                assert fed.status == 200, fed.json
                self.made[job] += count
            await asyncio.sleep(max(begun + (tick + 1) * 0.1 - time.monotonic(), 0))


def delays(hits: Sequence[Hit], since: float, until: float) -> list[float]:
    """Return how late each call was whose time lies between these."""
    found = [(datetime.fromisoformat(hit.json["executeTime"]).timestamp(), hit.at) for hit in hits]
    return [at - wanted for wanted, at in found if since <= wanted < until]


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def tries_of(hits: Sequence[Hit]) -> tuple[list[float], list[float]]:
    """Return the times of first tries and of retries: a unit's first call, and all others."""
    seen: set[str] = set()
    firsts: list[float] = []
    retries: list[float] = []
    for hit in hits:
        (retries if hit.unit in seen else firsts).append(hit.at)
        seen.add(hit.unit)
    return firsts, retries


def beyond_budget(hits: Sequence[Hit]) -> list[str]:
    """Return the minutes with more retries than a fifth of first tries, unless they had few tries at all."""
    firsts, retries = tries_of(hits)
    found: list[str] = []
    for at in retries:
        retried = bisect_right(retries, at) - bisect_left(retries, at - 60)
        most, fewest = (bisect_right(firsts, at) - bisect_left(firsts, at - span) for span in (62, 59))  # whole seconds
        if retried > SHARE * most + 3 and retried + fewest > FREE + 3:  # calls overtake one another on their way
            found.append(f"{retried} retries and {fewest} to {most} first tries in the minute before {at}")
    return found


def busiest_second(hits: Sequence[Hit], since: float) -> int:
    times = sorted(hit.at for hit in hits if hit.at >= since)
    return max((bisect_left(times, at + 1) - n for n, at in enumerate(times)), default=0)


async def is_drained(connection: Platform) -> bool:
    return not await connection.fetchval("select count(*) from horai.instance_live")


async def has_tried_all(connection: Platform) -> bool:
    return not await connection.fetchval("select count(*) from horai.instance_live where retry_count = 0")


@asynccontextmanager
async def staged(api: Client) -> AsyncGenerator[Stage]:
    async with Receiver() as bad, Receiver() as good:
        stage = Stage(api, bad, good)
        await stage.create_jobs()
        yield stage


@pytest.mark.early
@pytest.mark.timeout(1800)
async def test_C60_a_target_that_fails_delays_no_other_and_recovers_without_a_second_wave(
    tmp_path: Path, url: str, connection: Platform
) -> None:
    async with (
        cluster(tmp_path, url, "one", lease=8.0) as nodes,
        aiohttp.ClientSession() as session,
        staged(Client(nodes.doors["one"], session)) as stage,
    ):
        await stage.feed(1.0, good=OTHER_RATE)  # connections are open, statements are planned
        alone_from = time.time() + 1
        await stage.feed(CALM + 1, good=OTHER_RATE)
        alone_until = time.time()
        await stage.feed(CALM, good=OTHER_RATE, bad=RATE)

        stage.bad.on("/hook", Answer(503))
        fails_from = time.time()
        await stage.feed(OUTAGE, good=OTHER_RATE, bad=RATE)
        stage.bad.on("/hook", Answer(200))
        works_from = time.time()
        opened_by = fails_from + (15 if IS_LONG else 4)
        probes = [hit for hit in stage.bad.hits if opened_by <= hit.at < works_from]
        await stage.feed(CALM, good=OTHER_RATE, bad=RATE)
        works_until = time.time()
        is_over = is_drained if IS_LONG else has_tried_all  # without first tries, retries have but 100 calls a minute
        await until(lambda: is_over(connection), PATIENCE, "all instances have succeeded")
        took = time.time() - works_from

        alone = p95(delays(stage.good.hits, alone_from, alone_until))
        beside = p95(delays(stage.good.hits, fails_from, works_from))
        recovering = p95(delays(stage.good.hits, works_from, works_until))
        wave = busiest_second(stage.bad.hits, works_from)
        firsts, retries = tries_of(stage.bad.hits)
        print(
            f"p95 alone {alone * 1000:.1f} ms, beside the outage {beside * 1000:.1f} ms, beside the recovery"
            f" {recovering * 1000:.1f} ms; {len(firsts)} first tries, {len(retries)} retries, {len(probes)} probes"
            f" in the outage, at most {wave} in a second after it, drained {took:.1f} s after it"
        )
        assert beyond_budget(stage.bad.hits) == []
        assert len(probes) <= 3 + OUTAGE / 5, "the breaker is open: few calls reach the target"
        assert beside <= 1.2 * alone + SLACK
        assert recovering <= 1.2 * alone + SLACK
        assert wave <= 3 * RATE, "what waited comes back beside the calls of now, not all at once"
        left = await connection.fetchval("select count(*) from horai.instance_live")
        assert stage.made["bad"] - left <= len(stage.bad.effective) <= stage.made["bad"]
        assert len(stage.good.effective) == stage.made["good"]
        assert stage.bad.duplicates == stage.good.duplicates == []
    assert await violations(connection) == []


@pytest.mark.early
@pytest.mark.timeout(1800)
async def test_C60_without_a_breaker_retries_stay_within_a_fifth_of_first_tries(url: str, connection: Platform) -> None:
    seconds = 130.0 if IS_LONG else 6.0
    async with harness.node(url, harness.GUARDED, breaker_share=2.0) as api, staged(api) as stage:
        stage.bad.on("/hook", Answer(503))
        await stage.feed(seconds, bad=RATE, good=OTHER_RATE)
        await until(lambda: has_tried_all(connection), PATIENCE, "every instance has had its first try")

        firsts, retries = tries_of(stage.bad.hits)
        print(f"{len(firsts)} first tries, {len(retries)} retries")
        assert len(firsts) == stage.made["bad"] == RATE * seconds, "the budget holds no first try"
        assert retries
        assert beyond_budget(stage.bad.hits) == []
        held = await connection.fetchval(
            "select count(*) from horai.instance_live where state = 0 and retry_count > 0 and due > clock_timestamp()"
        )
        assert held > 0, "retries wait, and are not failed"
        assert await connection.fetchval("select count(*) from horai.dead_letter") == 0


@pytest.mark.early
async def test_C60_nothing_is_lost_when_the_node_that_holds_a_host_dies(
    tmp_path: Path, url: str, connection: Platform
) -> None:
    async with (
        cluster(tmp_path, url, "first", lease=2.0) as nodes,
        aiohttp.ClientSession() as session,
        staged(Client(nodes.doors["first"], session)) as stage,
    ):
        stage.bad.on("/hook", Answer(503))
        await stage.feed(2.0, bad=RATE)

        async def is_open() -> Any:
            return (await stage.api("GET", "/api/v1/scheduler/health")).json["heldHosts"]

        await until(is_open, 30, "the breaker is open")
        await nodes.kill("first")
        stage.bad.on("/hook", Answer(200))
        await nodes.start("second")
        await until(lambda: is_drained(connection), 90, "all instances have succeeded")

        assert len(stage.bad.effective) == stage.made["bad"]
        assert stage.bad.duplicates == []
    assert await violations(connection) == []

"""Nodes come back after six hours: each job gets the late slots that its misfire policy names, no more and no fewer.

The hours are simulated: while no node runs, the cursors of the schedules and the births of the jobs are put back. The
expected result is computed here by plain arithmetic on seconds. No slot lies within two minutes of an edge where the
instant of the first look would matter.
"""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import make
import pytest
from harness import Client
from sizes import IS_LONG

from faults.cluster import Cluster, cluster, database_now
from faults.outside import receiving, until, violations
from horai.db.pool import Platform

STEP, OUTAGE = 600, 6 * 3600
MISSED = OUTAGE // STEP
PHASES = range(180, 481, 30 if IS_LONG else 150)
"""Seconds from now to the coming slots; those before them are two to seven minutes past."""
COPIES = 55 if IS_LONG else 4
YOUNG = 3 * 3600
"""So many seconds ago each fifth job was made: in the middle of the outage."""
FRESH_EVERY = 0.05
LEASE = 2.0
SLOW_HOOK = "/hook?delay=0.5" if IS_LONG else "/hook?delay=0.3"
"""For those who want to be there while late slots are made."""
PATIENCE = 600.0 if IS_LONG else 90.0

COPY = """
insert into horai.job (tenant_id, name, schedule_id, lane_id, active_from, definition)
select tenant_id, name || '.' || n, schedule_id, lane_id, active_from,
    jsonb_set(definition::jsonb, '{name}', to_jsonb(name || '.' || n))::json
from horai.job, generate_series(1, $1::integer) n
where schedule_id is not null
"""
IS_DRAINED = """
select not exists (select from horai.schedule where fire_time <= clock_timestamp())
    and not exists (select from horai.catchup) and not exists (select from horai.instance_live)
"""


@dataclass(frozen=True)
class Policy:
    """A misfire policy as a definition writes it.

    As numbers: `most` newest late slots, at most `window` seconds old.
    """

    written: str | dict[str, Any]
    most: int
    window: int = OUTAGE

    def kept(self, ages: list[int]) -> list[int]:
        """Of late slots that are so many seconds old, those that are made, newest first."""
        return sorted(age for age in ages if age <= self.window)[: self.most]


POLICIES = (
    Policy("skip", 0),
    Policy("once", 1),
    Policy({"policy": "once", "window": "15m"}, 1, 900),
    Policy({"policy": "once", "window": "110s"}, 1, 110),
    Policy("all", MISSED),
    Policy({"policy": "all", "maxCatchup": 5}, 5),
    Policy({"policy": "all", "window": "2h"}, MISSED, 7200),
    Policy({"policy": "all", "window": "30m", "maxCatchup": 20}, 20, 1800),
)


@dataclass(frozen=True)
class Outage:
    """It ended at `over_at`. Jobs are named after their policy and their phase: `5-180`, and their copies `5-180.1`."""

    over_at: datetime

    def expected(self, name: str, job_id: int) -> list[int]:
        """The late slots that such a job must get, as seconds before the end."""
        policy, phase = map(int, name.partition(".")[0].split("-"))
        ages = [STEP * number - phase for number in range(1, MISSED + 1)]
        return POLICIES[policy].kept([age for age in ages if age < YOUNG or not is_young(job_id)])


def is_young(job_id: int) -> bool:
    return job_id % 5 == 0


async def go_down(url: str, connection: Platform, target: str) -> Outage:
    """Make jobs of every policy on schedules out of step, with six hours behind them in which no node ran."""
    now = (await database_now(connection)).replace(microsecond=0)
    fields: dict[str, Any] = {"target": {"type": "http", "url": target}, "retry": {"maxRetry": 30, "base": "20ms"}}
    async with make.scope(url) as scope:
        await make.job(scope, "fresh", **fields)
        for (number, policy), phase in itertools.product(enumerate(POLICIES), PHASES):
            when = {"every": f"{STEP}s", "anchor": now + timedelta(seconds=phase), "misfire": policy.written}
            await make.job(scope, f"{number}-{phase}", **when, **fields)
    await connection.execute(COPY, COPIES)
    await connection.execute(
        "update horai.job set active_from = case when id % 5 = 0 then $1::timestamptz else $2::timestamptz end",
        now - timedelta(seconds=YOUNG),
        now - timedelta(seconds=OUTAGE),
    )
    await connection.execute(
        "update horai.schedule set fire_time = fire_time - $1::interval, wall = wall - $1::interval",
        timedelta(seconds=OUTAGE),
    )
    return Outage(now)


async def made_late(connection: Platform, outage: Outage) -> dict[tuple[int, str], list[int]]:
    """By job: how many seconds before the end of the outage its late slots lie, newest first."""
    rows = await connection.fetch(
        "select job.id, job.name, extract(epoch from $1 - fire_time)::integer as age from horai.job"
        " left join horai.job_instance slot on slot.job_id = job.id and slot.fire_time < $1 and slot.state = 'SUCCESS'"
        " where job.schedule_id is not null order by fire_time desc, instance_id",
        outage.over_at,
    )
    made: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for row in rows:
        made[row["id"], row["name"]] += [] if row["age"] is None else [row["age"]]
    return made


async def every_slot_is_accounted_for(connection: Platform, outage: Outage) -> int:
    """Made where the formula says so, and told as skipped where not; how many were made."""
    made = await made_late(connection, outage)
    assert len(made) == len(POLICIES) * len(PHASES) * (1 + COPIES)
    wrong = {job: ages for job, ages in made.items() if ages != outage.expected(job[1], job[0])}
    assert wrong == {}
    skipped = await connection.fetch(
        "select min(job.name) as name, coalesce((select sum(slots) from horai.skip where schedule_id = schedule.id), 0)"
        " as slots from horai.schedule join horai.job on job.schedule_id = schedule.id group by schedule.id"
    )
    old = 1  # no multiple of five
    assert {row["name"]: row["slots"] for row in skipped} == {
        row["name"]: MISSED - len(outage.expected(row["name"], old)) for row in skipped
    }
    assert await violations(connection) == []
    return sum(map(len, made.values()))


async def drained(connection: Platform) -> None:
    async def is_drained() -> bool:
        return await connection.fetchval(IS_DRAINED)

    await until(is_drained, PATIENCE, "nothing is late any more")


@asynccontextmanager
async def fresh_work(nodes: Cluster) -> AsyncGenerator[None]:
    """Twenty one-shots a second on the same queue, whether or not the answers keep up."""
    stop = asyncio.Event()
    async with aiohttp.ClientSession() as session:
        api = Client(next(iter(nodes.doors.values())), session)

        async def write() -> None:
            loop, waiting = asyncio.get_running_loop(), list[asyncio.Task[Any]]()
            beat = loop.time()
            while not stop.is_set():
                waiting.append(asyncio.create_task(api("POST", "/api/v1/jobs/fresh/instances/batch", {"items": [{}]})))
                beat += FRESH_EVERY
                await asyncio.sleep(max(beat - loop.time(), 0))
            assert {reply.status for reply in await asyncio.gather(*waiting)} == {200}

        writing = asyncio.create_task(write())
        try:
            yield
        finally:
            stop.set()
            await writing


@pytest.mark.timeout(900 if IS_LONG else 150)
async def test_fires_after_an_outage_equal_the_formula_and_fresh_work_is_not_held_up(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "outage.hits") as receiver:
        outage = await go_down(url, connection, receiver.url("/hook"))
        async with cluster(short_place, url, "one", lease=LEASE) as nodes:
            began = await database_now(connection)
            async with fresh_work(nodes):
                await until(lambda: is_caught_up(connection), PATIENCE, "nothing is left to be made")
            seconds = (await database_now(connection) - began).total_seconds()
            await drained(connection)
        late = await every_slot_is_accounted_for(connection, outage)
    delays = await connection.fetch(
        "select extract(epoch from claimed_at - execute_time)::float8 as delay from horai.instance_history"
        " where job_id = (select id from horai.job where name = 'fresh') order by 1"
    )
    p95 = delays[int(len(delays) * 0.95)]["delay"]
    print(f"{late} late slots in {seconds:.1f} s; {len(delays)} fresh ones beside them, p95 {p95:.3f} s", flush=True)
    assert len(delays) > seconds / FRESH_EVERY / 2  # else there was no fresh work to speak of
    assert p95 < 2


async def is_caught_up(connection: Platform) -> bool:
    return await connection.fetchval(
        "select not exists (select from horai.schedule where fire_time <= clock_timestamp())"
        " and not exists (select from horai.catchup)"
    )


@pytest.mark.timeout(900 if IS_LONG else 150)
async def test_fires_after_an_outage_equal_the_formula_though_nodes_are_killed_as_they_catch_up(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "outage-killed.hits") as receiver:
        outage = await go_down(url, connection, receiver.url(SLOW_HOOK))
        async with cluster(short_place, url, "one", "two", lease=LEASE) as nodes:
            kills = [victim async for victim in kill_while_behind(nodes, connection)]
            await drained(connection)
        late = await every_slot_is_accounted_for(connection, outage)
    print(f"{late} late slots, {len(kills)} kills while they were made", flush=True)
    assert kills  # else they were made in peace


async def kill_while_behind(nodes: Cluster, connection: Platform) -> AsyncGenerator[str]:
    """Kills one node, then the other, whenever some more late slots are made and some are not; starts them again."""
    for victim in ("one", "two", "one"):
        known: int = await connection.fetchval("select count(*) from horai.job_instance")

        async def has_come_further(known: int = known) -> bool:
            made = await connection.fetchval("select count(*) from horai.job_instance")
            return made > known or await is_caught_up(connection)

        await until(has_come_further, PATIENCE, f"more than {known} late slots are made")
        if await is_caught_up(connection):
            return
        await nodes.kill(victim)
        yield victim
        await nodes.start(victim)

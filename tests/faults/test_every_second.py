"""A cron of every second while its nodes are killed: as many slots as seconds, as many rows as slots, each in its time.

The job's `startAt` and `endAt` say how many there are. In turn, the node that makes the slots is killed as it makes one,
and a node that runs one while its call is under way: the former may not lose or double a slot, the latter ends in a
second call with the same key.
"""

from datetime import datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from harness import Client
from sizes import IS_LONG

from faults.cluster import Cluster, cluster, database_now
from faults.outside import ReceiverProcess, job_document, lost_attempts, receiving, until, violations
from horai.core.limits import SHARDS
from horai.db.pool import Platform

SECONDS, KILL_EVERY = (600, 20) if IS_LONG else (9, 3)
LEASE = 8.0 if IS_LONG else 2.0
LEAD = timedelta(seconds=2)
"""From the making of the job to its first slot."""
HOOK = "/hook?delay=1.5"
RETRY = {"maxRetry": 30, "base": "20ms", "cap": "1s"}
"""Nothing here fails by itself: an instance is tried again only because its node was taken away."""
NEVER_LATE = "1h"
"""However slow the machine: a slot that comes late is no misfire here."""
SECOND = timedelta(seconds=1)

MAKER = """
select node.name from horai.schedule join horai.shard_lease lease on lease.shard = schedule.id % $1 and lease.duty = 'trigger'
join horai.node on node.incarnation = lease.node
where lease.lease_until > clock_timestamp()
"""
RUNNER = """
select node.name from horai.instance_live join horai.node on node.incarnation = instance_live.node
where instance_live.state = 1 and claimed_at > clock_timestamp() - interval '0.3 s' and fire_time >= $1
"""


def whole_second(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)


async def make_job(node: str, target: str, slots: list[datetime]) -> None:
    bounds = {"startAt": slots[0].isoformat(), "endAt": slots[-1].isoformat()}
    document = job_document("every-second", target, cron="* * * * * *", misfireAfter=NEVER_LATE, retry=RETRY, **bounds)
    async with aiohttp.ClientSession() as session:
        made = await Client(node, session)("POST", "/api/v1/jobs", document)
    assert made.status == 201, made.json


async def kill_in_turn(nodes: Cluster, connection: Platform, first: datetime) -> int:
    """Each `KILL_EVERY` seconds a node, which is started again at once; how many kills there were."""
    kills = range(1, SECONDS // KILL_EVERY)
    for number in kills:
        victim = await next_victim(nodes, connection, first + number * KILL_EVERY * SECOND, number)
        await nodes.kill(victim)
        killed_at = await database_now(connection)
        await nodes.start(victim)
        gone = (await database_now(connection) - killed_at).total_seconds()
        print(f"kill {number}: {victim} is back after {gone:.1f} s", flush=True)
    return len(kills)


async def next_victim(nodes: Cluster, connection: Platform, at: datetime, number: int) -> str:
    """At this time, the maker of the slots; or the first that runs one of them from then on."""
    found: list[str] = []

    async def is_found() -> bool:
        if await database_now(connection) < at:
            return False
        name = await (connection.fetchval(RUNNER, at) if number % 2 else connection.fetchval(MAKER, SHARDS))
        found[:] = [name] if name in nodes.nodes else []
        return bool(found)

    await until(is_found, 2 * KILL_EVERY + 4 * LEASE, f"somebody to kill at {at}")
    return found[0]


@pytest.mark.timeout(900 if IS_LONG else 150)
@pytest.mark.parametrize("names", [("one",), ("one", "two")], ids=["one-node", "two-nodes"])
async def test_a_cron_of_every_second_makes_each_slot_once_while_its_nodes_are_killed(
    names: tuple[str, ...], short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / f"every-second-{len(names)}.hits") as receiver:
        async with cluster(short_place, url, *names, lease=LEASE) as nodes:
            first = whole_second(await database_now(connection) + LEAD)
            slots = [first + number * SECOND for number in range(SECONDS)]
            await make_job(next(iter(nodes.doors.values())), receiver.url(HOOK), slots)
            kills = await kill_in_turn(nodes, connection, first)
            await everything_has_run(connection, slots[-1])
        await each_slot_was_made_once(connection, slots)
        recovered = await each_call_came_in_its_time(connection, receiver)
        assert await violations(connection) == []
    lateness = await connection.fetchval("select max(claimed_at - fire_time) from horai.instance_history")
    print(
        f"{len(names)} nodes, {kills} kills: {len(slots)} slots, {len(slots)} rows, {len(receiver.hits())} calls,"
        f" {recovered} recovered from a lost node, the latest {lateness.total_seconds():.1f} s after its time",
        flush=True,
    )
    assert recovered > 0  # else nothing was in flight, and half of the kills would prove nothing


async def everything_has_run(connection: Platform, last: datetime) -> None:
    """Wait until no job follows the schedule any more, and no instance that it made is left."""

    async def is_over() -> bool:
        return await connection.fetchval(
            "select clock_timestamp() > $1 and not exists (select from horai.schedule where fire_time is not null)"
            " and not exists (select from horai.instance_live)",
            last,
        )

    await until(is_over, 2 * KILL_EVERY + 4 * LEASE, f"the slots until {last} are made, and have ended")


async def each_slot_was_made_once(connection: Platform, slots: list[datetime]) -> None:
    """Live and history together: one row for each second from the first to the last, all of them successes."""
    rows = await connection.fetch("select fire_time, state from horai.job_instance order by fire_time, instance_id")
    assert [row["fire_time"] for row in rows] == slots
    assert {row["state"] for row in rows} == {"SUCCESS"}
    assert await connection.fetchval("select count(*) from horai.skip") == 0


async def each_call_came_in_its_time(connection: Platform, receiver: ReceiverProcess) -> int:
    """None before its slot, and more than one only for what lost its node; how many did."""
    early = await connection.fetch("select id from horai.instance_history where claimed_at < fire_time")
    assert early == []
    rows = await connection.fetch("select idem_key, fire_time from horai.job_instance")
    due = {row["idem_key"]: row["fire_time"].timestamp() for row in rows}
    hits, lost = receiver.by_key(), await lost_attempts(connection)
    assert hits.keys() == due.keys()
    assert [hit for key, of_key in hits.items() for hit in of_key if hit.at < due[key]] == []
    assert {key: len(of_key) for key, of_key in hits.items() if len(of_key) > 1 + lost.get(key, 0)} == {}
    return len(lost)

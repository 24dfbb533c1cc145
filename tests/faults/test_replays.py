"""Dead letters by the thousand: replayed at their rate, and replayed once though nodes are killed on the way."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import letters
import make
import pytest
from harness import Client, Reply

from faults.accountant import SUCCESS
from faults.cluster import Cluster, cluster, is_balanced
from faults.outside import (
    IS_LONG,
    LoggedHit,
    lost_attempts,
    receiving,
    until,
    violations,
)
from horai.db import nodes
from horai.db.pool import Platform

JOB = "clear"
DIED_FOR = datetime(2026, 1, 1, tzinfo=UTC)
LETTERS = 5_000 if IS_LONG else 200
PER_SECOND = 100
TOLERANCE = 0.1
SECONDS = 5
"""Over how many seconds a rate is taken; one of them is as uneven as the machine."""
NODES = ("one", "two", "three") if IS_LONG else ("one", "two")
LEASE = 2.0
KILLS = 10 if IS_LONG else 1
PER_KILL = 1_500
"""Letters for each kill: three batches."""
RETRY = {"maxRetry": 30, "base": "20ms", "cap": "1s"}


@pytest.mark.timeout(300 if IS_LONG else 180)
async def test_C36_C17_dead_letters_are_replayed_at_the_rate_that_was_asked_for(
    short_place: Path, url: str, connection: Platform
) -> None:
    wish = {"tag": "transient_error", "rate": f"{PER_SECOND}/s", "limit": LETTERS}
    with receiving(short_place / "rated.hits") as receiver:
        await buried(url, connection, receiver.url("/clear"), LETTERS)
        async with cluster(short_place, url, *NODES[:2], lease=8.0) as running, operator() as session:
            doors = [Client(base, session) for base in running.doors.values()]
            done = await replay(doors[0], wish)
            again = await replay(doors[1], wish)
            await until(lambda: nothing_is_live(connection), 60 + LETTERS / PER_SECOND, "all replays have ended")
        hits = receiver.hits()
    plan = await planned(connection)
    rates = per_second(hits, min(plan.values()))
    took = hits[-1].at - min(plan.values())
    print(f"{len(hits)} replays in {took:.2f} s, {len(hits) / took:.1f}/s; over {SECONDS} s each: {rates}", flush=True)

    assert (done.json["matched"], done.json["replayed"], done.json["more"]) == (LETTERS, LETTERS, False)
    assert (again.json["matched"], again.json["replayed"]) == (0, 0)
    assert Counter(hit.unit for hit in hits) == {unit_of(number): 1 for number in range(LETTERS)}
    assert [hit for hit in hits if hit.at < plan[hit.key]] == [], "never before its time"
    assert gaps(plan.values()) == {1 / PER_SECOND}
    if IS_LONG:  # else it is over before a busy machine has caught up
        assert [rate for rate in rates if abs(rate / PER_SECOND - 1) > TOLERANCE] == []
    assert await violations(connection) == []


@pytest.mark.timeout(900 if IS_LONG else 180)
async def test_C36_I6_letters_that_are_replayed_while_nodes_are_killed_are_replayed_once_each(
    short_place: Path, url: str, connection: Platform
) -> None:
    total = KILLS * PER_KILL
    wish = {"tag": "transient_error"}
    with receiving(short_place / "replays.hits") as receiver:
        await buried(url, connection, receiver.url("/clear?delay=0.02"), total)
        await slow_down(connection)
        async with cluster(short_place, url, *NODES, lease=LEASE) as running, operator() as session:
            for number in range(KILLS):
                await until(lambda: is_balanced(connection, len(NODES)), 30, "the nodes share all shards")
                victim = NODES[number % len(NODES)]
                await killed_in_the_middle(connection, running, session, victim, wish)
                if number + 1 < KILLS:
                    await running.start(victim)
            door = Client(next(iter(running.doors.values())), session)
            await until(lambda: is_done(door, {**wish, "limit": 10_000}), 60, "a replay finds nothing more")
            again = await replay(door, wish)
            await until(lambda: nothing_is_live(connection), 60, "all replays have ended")
        hits = receiver.hits()
    lost = await lost_attempts(connection)
    print(f"{total} letters, {KILLS} kills: {len(hits)} calls, {len(lost)} in flight at a kill", flush=True)

    assert (again.json["matched"], again.json["replayed"], again.json["more"]) == (0, 0, False)
    assert await fates(connection) == {("REPLAYED", 1, SUCCESS): total}
    assert {hit.unit for hit in hits} == {unit_of(number) for number in range(total)}
    assert sum(hit.is_effective for hit in hits) == total
    calls = Counter(hit.key for hit in hits)
    assert {key: count for key, count in calls.items() if count - 1 > lost.get(key, 0)} == {}
    assert await violations(connection) == []


async def buried(url: str, connection: Platform, target: str, count: int) -> None:
    """So many instances that have died; the node they died with is gone when others come."""
    node = await make.node(connection)
    async with make.scope(url) as scope:
        await make.job(scope, JOB, target={"type": "http", "url": target}, timeout="30s", retry=RETRY)
        for first in range(0, count, 500):
            keys = [key_of(number) for number in range(first, min(first + 500, count))]
            await make.instances.insert_batch(scope, JOB, [make.Item(DIED_FOR, None, key) for key in keys])
            assert len(await letters.bury_due(connection, node=node)) == len(keys)
    await nodes.stop_node(connection, node)


def key_of(number: int) -> str:
    return f"batch:{number}"


def unit_of(number: int) -> str:
    return f"default:{JOB}:{key_of(number)}"


@asynccontextmanager
async def operator() -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:
        yield session


async def replay(door: Client, wish: Any) -> Reply:
    reply = await door("POST", "/api/v1/dlq/replay", wish)
    assert reply.status == 200, reply.json
    return reply


async def is_done(door: Client, wish: Any) -> bool:
    return not (await replay(door, wish)).json["more"]


async def nothing_is_live(connection: Platform) -> bool:
    return not await connection.fetchval("select exists (select from horai.instance_live)")


async def planned(connection: Platform) -> dict[str, float]:
    """When each replay is to start, by its Idempotency-Key."""
    rows = await connection.fetch(
        "select idem_key, execute_time from horai.job_instance"
        " where instance_id in (select id from horai.instance_history where replay_of is not null)"
    )
    return {row["idem_key"]: row["execute_time"].timestamp() for row in rows}


def gaps(times: Iterable[float]) -> set[float]:
    """The seconds between one and the next, to the millisecond."""
    return {round(later - earlier, 3) for earlier, later in itertools.pairwise(sorted(times))}


def per_second(hits: Sequence[LoggedHit], first: float) -> list[float]:
    """The rate in each stretch of so many seconds from the `first` time on, as long as there is to be a call."""
    counts = Counter(int((hit.at - first) // SECONDS) for hit in hits)
    return [counts[number] / SECONDS for number in range(LETTERS // PER_SECOND // SECONDS)]


async def slow_down(connection: Platform) -> None:
    """A batch of replays takes half a second: time enough to be killed in."""
    await connection.execute(
        "create function take_time() returns trigger language plpgsql as"
        " $$ begin perform pg_sleep(0.5); return null; end $$;"
        " create trigger take_time before update on horai.dead_letter for each statement execute function take_time()"
    )


async def killed_in_the_middle(
    connection: Platform, running: Cluster, session: aiohttp.ClientSession, victim: str, wish: Mapping[str, Any]
) -> None:
    """Two operators ask for the same, and the node that serves one of them dies at it."""
    before = await replayed(connection)

    async def has_begun() -> bool:
        return await replayed(connection) > before

    other = next(name for name in running.doors if name != victim)
    asked = asyncio.create_task(replay(Client(running.doors[victim], session), {**wish, "limit": PER_KILL}))
    beside = asyncio.create_task(replay(Client(running.doors[other], session), {**wish, "limit": PER_KILL // 3}))
    await until(has_begun, 30, "letters are replayed")
    await running.kill(victim)
    with pytest.raises(aiohttp.ClientError):  # else it was over before, and this proves nothing
        await asked
    await beside


async def replayed(connection: Platform) -> int:
    return await connection.fetchval("select count(*) from horai.dead_letter where replay_status = 'REPLAYED'")


async def fates(connection: Platform) -> Counter[tuple[str, int, int]]:
    """Count the letters by status, number of replays, and lowest final state of the replays."""
    rows = await connection.fetch(
        "select replay_status, count(replay.id) as replays, min(replay.state) as state"
        " from horai.dead_letter letter left join horai.instance_history replay on replay.replay_of = letter.instance_id"
        " group by letter.id"
    )
    return Counter((row["replay_status"], row["replays"], row["state"]) for row in rows)

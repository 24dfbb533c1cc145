"""Nodes, and the PostgreSQL under them, are killed under load: the others take over in time, and nothing is lost."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from harness import HoraiProcess, NodeProcess
from sizes import IS_LONG

from faults.cluster import TakeOver, cluster, database_now, incarnation_of, is_balanced, taken_over
from faults.load import load
from faults.outside import database, kill_postmaster, receiving, until
from faults.reckoning import reckon
from horai.db.pool import Platform
from horai.embedded import url_of

NODES = ("one", "two", "three")
ROUNDS = 20 if IS_LONG else 2
RATE = 500 if IS_LONG else 150
LEASE = 8.0 if IS_LONG else 2.0
TAKE_OVER = LEASE + 2.0
CALM = 2.0 if IS_LONG else 0.5
"""Seconds of load before each kill."""
DATABASE_KILLS = 5 if IS_LONG else 1
HOOK = "/hook?delay=0.1" if IS_LONG else "/hook?delay=0.3"


@pytest.mark.timeout(1800 if IS_LONG else 180)
async def test_C38_C35_a_killed_node_is_taken_over_within_a_lease_and_two_seconds_and_nothing_is_lost(
    short_place: Path, url: str, connection: Platform
) -> None:
    rounds: list[TakeOver] = []
    with receiving(short_place / "cluster.hits") as receiver:
        async with cluster(short_place, url, *NODES, lease=LEASE) as nodes:
            async with load(nodes.doors, RATE, receiver.url(HOOK)) as running:
                began = await database_now(connection)
                for number in range(ROUNDS):
                    await until(lambda: is_balanced(connection, len(NODES)), 2 * LEASE, "three nodes share all shards")
                    await running.until_more(CALM)
                    victim = NODES[number % len(NODES)]
                    incarnation = await incarnation_of(connection, victim)
                    killed_at = await database_now(connection)
                    await nodes.kill(victim)
                    rounds.append(await taken_over(connection, incarnation, killed_at, 3 * LEASE))
                    print(f"round {number + 1}: {victim} killed, {rounds[-1]}", flush=True)
                    if number + 1 < ROUNDS:
                        await nodes.start(victim)
            seconds = (await database_now(connection) - began).total_seconds()
            ended = await reckon(connection, receiver, running.acknowledged)
    print(
        f"{ROUNDS} kills with leases of {LEASE:g} s: shards taken over within {max(r.shards for r in rounds):.2f} s,"
        f" rescued within {max(r.rescue for r in rounds):.2f} s, {sum(r.in_flight for r in rounds)} in flight;"
        f" {ended.ended / seconds:.0f} fires/s over {seconds:.0f} s, {running.refused} refused; {ended}",
        flush=True,
    )
    assert ended.problems + ended.stale == []
    assert [each for each in rounds if max(each.shards, each.rescue) > TAKE_OVER] == []
    assert ended.recovered > 0  # else nothing was in flight, and this would prove nothing
    assert ended.ended > seconds * RATE / 2  # else the load was not what it says


@asynccontextmanager
async def pair(place: Path) -> AsyncGenerator[tuple[HoraiProcess, NodeProcess]]:
    """`horai up` with a PostgreSQL of its own, and a second node on it."""
    lease = ("--lease-ttl", f"{LEASE:g}s")
    home = HoraiProcess(place / "crashing", "--name", "home", *lease)
    await asyncio.to_thread(home.start)
    key = ("--encryption-key-file", str(home.data_dir / "encryption.key"))  # the secret that signs its calls is sealed
    guest = NodeProcess(place / "guest", url_of(home.data_dir), "--callback-allow", "127.0.0.0/8", *key, *lease)
    try:
        await asyncio.to_thread(guest.start)
        yield home, guest
    except BaseException:
        print("\n".join((home.log.read_text() + guest.log.read_text()).splitlines()[-200:]))
        guest.kill()
        home.kill()
        raise
    assert await asyncio.to_thread(guest.stop) == 0
    assert await asyncio.to_thread(home.stop) == 0


@pytest.mark.timeout(600 if IS_LONG else 180)
async def test_nodes_recover_by_themselves_when_their_postgresql_is_killed(short_place: Path) -> None:
    with receiving(short_place / "crashing.hits") as receiver:
        async with pair(short_place) as (home, guest):
            doors = {"home": home.base, "guest": guest.base}
            async with load(doors, RATE, receiver.url(HOOK)) as running:
                for _ in range(DATABASE_KILLS):
                    await running.until_more(CALM)
                    kill_postmaster(home.data_dir)
                await running.until_more(CALM)
            async with database(home.data_dir) as connection:
                ended = await reckon(connection, receiver, running.acknowledged)
                await until(lambda: is_balanced(connection, 2), 3 * LEASE, "both nodes have their shards again")
    print(f"PostgreSQL killed {DATABASE_KILLS} times: {running.refused} refused; {ended}", flush=True)
    assert ended.problems + ended.stale == []

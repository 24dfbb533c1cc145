"""Patroni hands the lead over, loses its primary to kill -9, and has it cut off from the network, under load.

The cluster is that of deploy/patroni: two PostgreSQL, one etcd, synchronous mode, `primary_start_timeout: 0`.
"""

from pathlib import Path

import pytest
from machines import why_not
from sizes import IS_LONG

from faults.beside import nodes_beside, writing_beside
from faults.cluster import cluster
from faults.outages import cut_off, p95, rounds, under_load
from faults.outside import BUSY, ReceiverProcess, receiving
from faults.patroni import PatroniCluster, patroni, require_patroni
from faults.patroni_reports import PatroniRun, store
from faults.reckoning import Reckoning, reckon

ROUNDS = 10 if IS_LONG else 1
RATE = 200 if IS_LONG else 100
CALM = 3.0 if IS_LONG else 1.0
LEASE = 8.0
KILLED, CUT_OFF = 15.0, 35.0
"""Promised seconds until writes resume, as clients see it: after a kill of the postmaster, and after the loss of a host."""


async def reckoned(database: PatroniCluster, receiver: ReceiverProcess, acknowledged: set[int]) -> Reckoning:
    await database.leader()
    connection = await database.connect()
    try:
        return await reckon(connection, receiver, acknowledged, within=120)
    finally:
        await connection.close()


@pytest.mark.timeout(3600 if IS_LONG else 300)
async def test_C39_switchovers_and_killed_primaries_of_a_patroni_cluster_lose_and_double_nothing(
    short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_STATE_DIR", str(tmp_path))
    async with patroni(short_place) as database:

        async def switchover(leader: str) -> None:
            await database.switch_over(leader)

        async def kill(leader: str) -> None:
            database.kill_postmaster(leader)

        with receiving(tmp_path / "patroni.hits") as receiver:
            async with cluster(short_place, database.url, "one", "two", lease=LEASE) as nodes:
                async with under_load(nodes.doors, RATE, receiver) as loaded:
                    switched = await rounds(database, loaded, switchover, [CALM] * ROUNDS)
                    killed = await rounds(database, loaded, kill, [CALM] * ROUNDS)
                running, _ = loaded
                ended = await reckoned(database, receiver, running.acknowledged)
    print(
        f"{RATE}/s: {ROUNDS} switchovers, writes paused p95 {p95(switched):.2f} s; {ROUNDS} kills, p95 {p95(killed):.2f} s;"
        f" {running.refused} refused; {ended}",
        flush=True,
    )
    assert ended.problems + ended.stale == []
    assert p95(switched) <= KILLED + BUSY
    assert p95(killed) <= KILLED + BUSY


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.timeout(3600 if IS_LONG else 600)
async def test_a_primary_that_is_cut_off_accepts_no_write_that_is_lost_and_the_other_side_goes_on(
    short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_STATE_DIR", str(tmp_path / "outside"))
    require_patroni()
    async with patroni(short_place, "--namespaces") as database:
        with receiving(tmp_path / "cut.hits") as receiver:
            async with (
                cluster(short_place, database.url, "outside", lease=LEASE) as nodes,
                nodes_beside(short_place, database.url, database.members, "--lease-ttl", f"{LEASE:g}s") as neighbours,
            ):
                async with under_load(nodes.doors, RATE, receiver) as (running, _):
                    async with writing_beside(neighbours, database.members) as beside:
                        outages = [await cut_off(database, running, beside, CALM) for _ in range(ROUNDS)]
                written = {each for client in beside.values() for each in client.acknowledged_at}
                ended = await reckoned(database, receiver, running.acknowledged | written)
    pauses = [outage.pause for outage in outages]
    store(
        PatroniRun(
            "network-cuts",
            "synchronous",
            RATE,
            tuple(outage.document() for outage in outages),
            figures={
                "pauseP95Seconds": round(p95(pauses), 2),
                "acknowledged": ended.acknowledged,
                "lost": len(ended.lost),
                "repeatedInFlight": ended.duplicated,
                "splitWrites": sum(len(outage.split) for outage in outages),
                "problems": len(ended.problems),
            },
        )
    )
    print(f"{ROUNDS} network cuts of the primary: writes outside paused p95 {p95(pauses):.2f} s; {ended}", flush=True)
    assert ended.problems + ended.stale == []
    assert [outage.split for outage in outages] == [[]] * ROUNDS
    assert p95(pauses) <= CUT_OFF + BUSY

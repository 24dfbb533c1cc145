"""The same cluster without synchronous replication: the recovery point is measured, and no write is split.

A planned switchover loses nothing: the old primary hands its last transaction over before the standby leads.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from machines import why_not
from sizes import IS_LONG

from faults.beside import nodes_beside, writing_beside
from faults.cluster import cluster
from faults.losses import Losses, reckon_losses
from faults.outages import cut_off, longest_pause, p95, under_load, until_moved
from faults.outside import BUSY, ReceiverProcess, receiving
from faults.patroni import PatroniCluster, patroni, require_patroni
from faults.patroni_reports import PatroniRun, store

ROUNDS = 10 if IS_LONG else 1
CUTS = 3
RATE = 200 if IS_LONG else 100
CALM = 3.0 if IS_LONG else 1.0
LEASE = 8.0
LOGINS = "select rolname from pg_roles where rolname = 'horai_node'"
KILLED, CUT_OFF, A_MINUTE = 15.0, 35.0, 60.0


def figures(pauses: list[float], ended: Losses) -> dict[str, float]:
    return {
        "pauseP95Seconds": round(p95(pauses), 2),
        "acknowledged": ended.acknowledged,
        "lost": len(ended.lost),
        "rpoSeconds": round(ended.rpo, 3),
        "lostAfterTheFailure": sum(write.age <= 0 for write in ended.lost.values()),
        "calledAndLost": ended.unknown,
        "repeated": ended.repeated,
        "problems": len(ended.problems),
    }


async def counted(
    database: PatroniCluster,
    receiver: ReceiverProcess,
    acknowledged_at: Mapping[int, float],
    failures: Sequence[tuple[float, float]],
) -> Losses:
    await database.leader()
    connection = await database.connect()
    try:
        return await reckon_losses(connection, receiver, acknowledged_at, failures)
    finally:
        await connection.close()


@pytest.mark.timeout(3600 if IS_LONG else 300)
async def test_C39_killed_primaries_without_synchronous_replication_lose_no_more_than_the_last_moments(
    short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_STATE_DIR", str(tmp_path))
    async with patroni(short_place, "--asynchronous") as database:
        # The script is ready once the standby has all that it wrote: without the login of nodes it could not take over.
        assert await database.names_on_the_standby(LOGINS) == {"horai_node"}
        with receiving(tmp_path / "asynchronous.hits") as receiver:
            async with cluster(short_place, database.url, "one", "two", lease=LEASE) as nodes:
                async with under_load(nodes.doors, RATE, receiver) as (running, _):
                    failures: list[tuple[float, float]] = []
                    told: list[dict[str, Any]] = []
                    for strike in (["switchover"] * ROUNDS if IS_LONG else []) + ["kill"] * ROUNDS:
                        leader = await database.leader()
                        await running.until_more(CALM)
                        failed_at = time.time()
                        if strike == "kill":
                            database.kill_postmaster(leader)
                        else:
                            await database.switch_over(leader)
                        await until_moved(database, leader)
                        await running.until_more(CALM)
                        pause, resumed_at = longest_pause(running, failed_at)
                        failures.append((failed_at, resumed_at))
                        told.append({"failure": strike, "leader": leader, "pauseSeconds": round(pause, 2)})
                        print(told[-1], flush=True)
                ended = await counted(database, receiver, running.acknowledged_at, failures)
    pauses = [each["pauseSeconds"] for each in told]
    document = tuple({**each, "lost": ended.of(number)} for number, each in enumerate(told))
    store(PatroniRun("failures", "asynchronous", RATE, document, figures(pauses, ended)))
    print(f"asynchronous: {figures(pauses, ended)}", flush=True)
    assert ended.problems == []
    assert ended.rpo <= A_MINUTE
    assert p95(pauses) <= KILLED + BUSY


@pytest.mark.skipif(not IS_LONG, reason="a failure like that of the synchronous cluster: in the long form only")
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.timeout(1800)
async def test_a_primary_without_synchronous_replication_that_is_cut_off_stops_before_the_other_side_writes(
    short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_STATE_DIR", str(tmp_path / "outside"))
    require_patroni()
    async with patroni(short_place, "--asynchronous", "--namespaces") as database:
        with receiving(tmp_path / "cut.hits") as receiver:
            async with (
                cluster(short_place, database.url, "outside", lease=LEASE) as nodes,
                nodes_beside(short_place, database.url, database.members, "--lease-ttl", f"{LEASE:g}s") as neighbours,
            ):
                async with under_load(nodes.doors, RATE, receiver) as (running, _):
                    async with writing_beside(neighbours, database.members) as beside:
                        outages = [await cut_off(database, running, beside, CALM) for _ in range(CUTS)]
                written = {each: at for client in beside.values() for each, at in client.acknowledged_at.items()}
                failures = [(outage.cut_at, outage.resumed_at) for outage in outages]
                ended = await counted(database, receiver, running.acknowledged_at | written, failures)
    pauses = [outage.pause for outage in outages]
    told = tuple({**outage.document(), "lost": ended.of(number)} for number, outage in enumerate(outages))
    split = {"splitWrites": sum(len(outage.split) for outage in outages)}
    store(PatroniRun("network-cuts", "asynchronous", RATE, told, figures(pauses, ended) | split))
    print(f"asynchronous: {figures(pauses, ended) | split}", flush=True)
    assert ended.problems == []
    assert [outage.split for outage in outages] == [[]] * CUTS
    assert p95(pauses) <= CUT_OFF + BUSY

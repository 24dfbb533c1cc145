"""Seed 002 §18, example 9: after a switch of the primary database, scheduling continues and no state is doubled."""

import signal
from datetime import datetime
from pathlib import Path

import pytest

from faults.cluster import cluster, database_now
from faults.load import load
from faults.outside import receiving
from faults.reckoning import reckon
from faults.replicas import Server, replicas
from horai.db.pool import Platform, connect

RATE = 60
LEASE = 3.0
CALM = 2.0
FIRES = """
    select job.name, max(instance.fire_time) as last from horai.job_instance instance join horai.job on job.id = instance.job_id
    where job.name like 'tick-%' group by job.name
"""
pytestmark = pytest.mark.usefixtures("postgres")


async def opened(server: Server) -> Platform:
    return await connect(server.url, "horai test")


async def last_fires(connection: Platform) -> dict[str, datetime]:
    return {row["name"]: row["last"] for row in await connection.fetch(FIRES)}


@pytest.mark.timeout(180)
async def test_C59i_C39_scheduling_continues_after_a_switch_of_the_primary_and_no_state_is_doubled(
    short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORAI_STATE_DIR", str(tmp_path / "state"))
    with receiving(tmp_path / "switch.hits") as receiver:
        async with (
            replicas(short_place) as database,
            cluster(short_place, database.url, "one", "two", lease=LEASE) as nodes,
        ):
            async with load(nodes.doors, RATE, receiver.url("/hook?delay=0.2")) as running:
                await running.until_more(CALM)
                before = await opened(database.first)
                switched_at, ticks = await database_now(before), await last_fires(before)
                before.terminate()
                known = len(running.acknowledged)
                await database.first.stop(signal.SIGINT)
                await database.second.promote()
                await running.until_more(CALM)
            after = await opened(database.second)
            try:
                ended = await reckon(after, receiver, running.acknowledged)
                fires = await last_fires(after)
            finally:
                after.terminate()
    print(f"switched: {known} acknowledged before, {running.refused} refused; {ended}", flush=True)
    assert known > 0
    assert ended.problems + ended.stale == []
    assert ticks.keys() == fires.keys() != set()
    assert {name for name, last in fires.items() if last <= switched_at} == set(), (
        "every schedule fires after the switch"
    )

"""Groups: slots of schedules with many jobs, from the fire to the settlement, as fast as they can be made.

The cursors stand some seconds back, less than what counts as a misfire: trigger, dispatcher and settler are all busy
until they have caught up. The denominator does the same with the same statements on three connections, with no engine.
"""

import asyncio
import time
from datetime import timedelta

from benchmarks.backlog import LONG
from benchmarks.engines import NoOp, running_engine, settled
from benchmarks.own_sql import Store, scans_of
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.schedule_groups import make_groups, set_back
from benchmarks.sitting import Sitting
from horai.core.settings import EngineSettings
from horai.db import schedules
from horai.db.pool import Dedicated, connect
from horai.db.schedules import LockedSchedule, Step
from horai.time.schedule import next_after

GROUPS, LATE = 20, timedelta(seconds=30)
EVERY = timedelta(seconds=1)
CHUNK = EngineSettings().slot_chunk


async def sample(sitting: Sitting) -> Sample:
    """The bare statements, then the engine."""
    return {"group SQL": await _bare(sitting), "groups": await _through_engine(sitting)}


def _jobs(rows: int) -> int:
    """Return the number of jobs whose late slots are the rows to settle, so that no slot is made ahead in vain."""
    return max(rows // int(LATE / EVERY), GROUPS)


async def _through_engine(sitting: Sitting) -> float:
    rows = sitting.size.rows
    async with sitting.database("groups") as url:
        setup = await connect(url, "bench")
        ids = await make_groups(url, setup, GROUPS, _jobs(rows), EVERY)
        await setup.execute("checkpoint", timeout=LONG)
        await set_back(setup, ids, EVERY, LATE)
        executor = NoOp()
        started = time.perf_counter()
        async with running_engine(url, executor) as health:
            await settled(health, rows)
            rate = health.settled / (time.perf_counter() - started)
        await _require_once(setup, executor.calls)
        await setup.close()
    return rate


async def _bare(sitting: Sitting) -> float:
    rows = sitting.size.rows
    async with sitting.database("group_sql") as url:
        setup, triggers, claims, settles = [await connect(url, "bench") for _ in range(4)]
        ids = await make_groups(url, setup, GROUPS, _jobs(rows), EVERY)
        await setup.execute("checkpoint", timeout=LONG)
        await set_back(setup, ids, EVERY, LATE)
        store = await Store.open(setup, claims, settles)
        cursors = await scans_of(setup)
        started = time.perf_counter()
        making = asyncio.create_task(_make(triggers, ids))
        while store.settled < rows:
            await store.drain(cursors)
        rate = store.settled / (time.perf_counter() - started)
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        await _require_once(setup, store.settled)
        for connection in (setup, triggers, claims, settles):
            await connection.close()
    return rate


async def _make(connection: Dedicated, ids: list[int]) -> None:
    """Make slots as a trigger does, without an engine around it."""
    while True:
        async with connection.transaction():
            locked = [row for row in await schedules.lock_schedules(connection, ids) if row.is_due]
            made = await schedules.make_slots(connection, [row.cursor for row in locked], CHUNK)
            steps = [_step(row) for row in locked]
            await schedules.advance_schedules(connection, steps)
        if not made:
            await asyncio.sleep(0.001)


def _step(row: LockedSchedule) -> Step:
    schedule = row.rhythm.schedule
    return Step(row.cursor, schedule, next_after(schedule, row.cursor.fire_time), row.now)


async def _require_once(connection: Dedicated, calls: int) -> None:
    """Each settled slot is one job's at one time, and nothing was called that is not settled."""
    row = await connection.fetchrow(
        "select count(*), count(distinct (job_id, fire_time)), count(*) filter (where state = 2 and attempt = 1)"
        " from horai.instance_history"
    )
    if row is None or set(row.values()) != {calls}:
        raise RuntimeError(f"{calls} calls, but history has {row}")


SCENARIO = Scenario(
    "groups",
    "schedule groups, from fire to settled",
    sample,
    (Line("group SQL", "/s"), Line("groups", "/s", per="group SQL", at_least=0.7)),
)

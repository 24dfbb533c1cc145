"""Drain: the engine itself claims and settles a backlog of no-op instances, with fences, leases, history and events on.

Until there is a worker, an executor in this process that does nothing stands in for one.
"""

import asyncio
import time

import asyncpg

from horai.accept import jobs
from horai.accept.jobs import Written
from horai.accept.scope import Scope
from horai.core.calls import Call
from horai.core.settings import SHARDS, EngineSettings
from horai.core.settlement import Outcome, Succeeded
from horai.core.vitals import Vitals
from horai.db.pool import open_pool
from horai.db.wakeups import Wakeups
from horai.engine.engine import Engine

LANES = 25

FILL = """
insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
select fresh.id, job.id, job.tenant_id, job.lane_id, fresh.id % $2, at, at, at, at, -fresh.id, json_build_object('x', repeat('x', 100))
from (select nextval('horai.instance_id') as id, n % $3 as n, clock_timestamp() - interval '10 s' * random() as at
      from generate_series(1, $1::integer) n) fresh
join (select *, row_number() over (order by id) - 1 as n from horai.job) job using (n)
"""


class NoOp:
    """An executor that does nothing."""

    def __init__(self) -> None:
        self.calls = 0

    async def run(self, call: Call) -> Outcome:
        self.calls += 1
        return Succeeded()


async def drain_rate(url: str, rows: int) -> float:
    """Instances claimed, run and settled per second."""
    pool = await open_pool(url, "bench", 4)
    connection = await asyncpg.connect(url)
    for lane in range(LANES):
        document = {"name": f"noop{lane}", "queue": f"q{lane}", "target": {"type": "worker", "handler": "noop"}}
        await jobs.create_job(Scope(pool, Wakeups(), 1, "default"), Written(document, None))
    await connection.execute(FILL, rows, SHARDS, LANES)
    await connection.execute("analyze horai.instance_live")
    await connection.execute("checkpoint")
    executor, vitals = NoOp(), Vitals()
    engine = Engine(url, "bench", {"noop": executor}, Wakeups(), vitals, EngineSettings(in_flight=4000))
    started = time.perf_counter()
    await engine.start()
    while vitals.settled < rows:
        await asyncio.sleep(0.005)
    rate = rows / (time.perf_counter() - started)
    await engine.stop()
    left = await connection.fetchval("select count(*) from horai.instance_live")
    if left or executor.calls != rows:
        raise RuntimeError(f"{left} left, {executor.calls} calls for {rows} rows")
    await connection.close()
    await pool.close()
    return rate

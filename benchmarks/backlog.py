"""The rows a sample starts from, and the check that each row was settled."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.engines import NOOP
from horai.core.actor import SYSTEM
from horai.core.limits import SHARDS
from horai.db.pool import Platform, open_pool
from horai.db.wakeups import Wakeups
from horai.features.registry import JOB_HOOKS
from horai.operations import jobs
from horai.operations.job_rows import JobDocument
from horai.operations.scope import Scope

LANES = 25
LONG = 600.0
"""Seconds that the making of rows may take: a million are not made within a loop's usual patience."""
WORKER = {"type": "worker", "handler": NOOP}

FILL = """
insert into horai.instance_live
    (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)
select fresh.id, job.id, job.tenant_id, job.lane_id, fresh.id % $2, at, at, at, at, -fresh.id,
    json_build_object('x', repeat('x', 100))
from (
    select nextval('horai.instance_id') as id, n % $3 as n,
        statement_timestamp() + interval '1 s'
            * ($4::float8 + $5::float8 * n / $1 + $7::float8 * random()) as at
    from generate_series(0, $1::integer - 1) n
) fresh
join (select *, row_number() over (order by id) - 1 as n from horai.job where tenant_id = $6) job using (n)
"""

ACCOUNT = """
select (select count(*) from horai.instance_live where lane > 0 and due <= clock_timestamp()) as due,
    count(*) as settled, count(distinct id) as once, count(*) filter (where state = 2 and attempt = 1) as at_first,
    count(*) filter (where claimed_at < execute_time) as early
from horai.instance_history
"""


async def make_jobs(
    url: str,
    count: int = LANES,
    tenant: tuple[int, str] = (1, "default"),
    target: Mapping[str, str] = WORKER,
) -> None:
    """Jobs for one target, each with a queue and so a lane of its own."""
    pool = await open_pool(url, "bench", 2)
    scope = Scope(pool, Wakeups(), *tenant, SYSTEM, JOB_HOOKS)
    for number in range(count):
        document = {"name": f"noop{number}", "queue": f"q{number}", "target": target}
        await jobs.create_job(scope, JobDocument(document, None))
    await pool.close()


@dataclass(frozen=True, slots=True)
class Spread:
    """When instances are due, in seconds: from `begin` on, evenly over `even`, and at random over `scatter`."""

    begin: float = -10.0
    even: float = 0.0
    scatter: float = 10.0


OF_THE_LAST_SECONDS = Spread()


async def fill(
    connection: Platform, rows: int, spread: Spread = OF_THE_LAST_SECONDS, lanes: int = LANES, tenant: int = 1
) -> None:
    """Instances over all lanes of a tenant, with the table in the state a measurement begins from."""
    await connection.execute(FILL, rows, SHARDS, lanes, spread.begin, spread.even, tenant, spread.scatter, timeout=LONG)
    await calm(connection)


async def calm(connection: Platform) -> None:
    """Fresh statistics and nothing left to write: every sample begins alike."""
    await connection.execute("analyze horai.instance_live", timeout=LONG)
    await connection.execute("checkpoint", timeout=LONG)


async def require_settled(connection: Platform, rows: int) -> None:
    """Every row a success at its first attempt, once, not before its time, and nothing left that is due."""
    row = await connection.fetchrow(ACCOUNT, timeout=LONG)
    found = dict(row) if row else {}
    if found != {"due": 0, "settled": rows, "once": rows, "at_first": rows, "early": 0}:
        raise RuntimeError(f"of {rows} rows: {found}")

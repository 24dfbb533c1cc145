"""Very many cron definitions, each with a schedule of its own, made by SQL from one job that the product itself wrote.

Definition number n fires once a year, at second n of the months that follow the coming one; each month counts 28 days. So
no two expressions are equal, each has its own row, cursor and fire, and none fires within the next four weeks.
"""

from datetime import UTC, datetime

from benchmarks.backlog import LONG, WORKER
from horai.core.actor import SYSTEM
from horai.db.pool import Dedicated, open_pool
from horai.db.wakeups import Wakeups
from horai.features.registry import JOB_HOOKS
from horai.operations import jobs
from horai.operations.job_rows import JobDocument
from horai.operations.scope import Scope

MOST = 10 * 28 * 86_400
PORTION = 250_000
"""Definitions of one statement."""

EXPRESSIONS = """
create temporary view expression as
select n, format('%s %s %s %s %s ?', n % 60, n / 60 % 60, n / 3600 % 24, day, month) as cron,
    month, day, make_interval(secs => n % 86400) as time_of_day
from generate_series(current_setting('bench.first')::integer, current_setting('bench.last')::integer) n
cross join lateral (select 1 + (current_setting('bench.month')::integer - 1 + n / 2419200) % 12 as month, 1 + n / 86400 % 28 as day) date
"""

DEFINITIONS = """
with known as (
    select job.tenant_id, job.lane_id, job.active_from, job.definition, schedule.identity, schedule.spec, schedule.passed, schedule.wall,
        schedule.tzdata, extract(year from schedule.passed at time zone 'UTC')::integer as year
    from horai.job join horai.schedule on schedule.id = job.schedule_id where job.name = 'definition-0'
), fire as (
    select n, cron, (make_date(year, month, day) + time_of_day) at time zone 'UTC' as this_year from known cross join expression
), schedule as (
    insert into horai.schedule (identity, spec, fire_time, passed, wall, tzdata)
    select replace(identity, $1, cron), replace(spec::text, $1, cron)::json,
        case when this_year > passed then this_year else this_year + interval '1 year' end, passed, wall, tzdata
    from known cross join fire
    returning id, identity
)
insert into horai.job (tenant_id, name, schedule_id, lane_id, active_from, definition)
select tenant_id, 'definition-' || n, schedule.id, lane_id, active_from,
    replace(replace(definition::text, $1, cron), '"definition-0"', '"definition-' || n || '"')::json
from known cross join fire join schedule on schedule.identity = replace(known.identity, $1, cron)
"""


async def make_definitions(url: str, connection: Dedicated, count: int) -> None:
    """Create `count` cron jobs of the default tenant. The connection is that of the superuser."""
    if not 1 <= count <= MOST:
        raise ValueError(f"1 to {MOST:,} definitions, not {count}")
    month = (datetime.now(UTC).month + 1) % 12 + 1
    known = f"0 0 0 1 {month} ?"
    pool = await open_pool(url, "bench", 2)
    try:
        scope = Scope(pool, Wakeups(), 1, "default", SYSTEM, JOB_HOOKS)
        document = {"name": "definition-0", "cron": known, "queue": "q0", "target": WORKER}
        await jobs.create_job(scope, JobDocument(document, None))
    finally:
        await pool.close()
    await connection.execute(f"set bench.month = {month}")
    await connection.execute(EXPRESSIONS)
    await connection.execute("set session_replication_role = replica")  # the rows are valid: no trigger checks them
    for first in range(1, count, PORTION):
        last = min(first + PORTION, count) - 1
        await connection.execute(f"set bench.first = {first}; set bench.last = {last}")
        await connection.execute(DEFINITIONS, known, timeout=LONG)
    await connection.execute("drop view expression; reset session_replication_role")
    for table in ("schedule", "job"):
        await connection.execute(f"vacuum (analyze) horai.{table}", timeout=LONG)

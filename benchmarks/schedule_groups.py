"""Schedules with many jobs each, made by SQL from one job that the product itself wrote."""

from datetime import UTC, datetime, timedelta

from benchmarks import backlog
from benchmarks.backlog import LONG
from horai.core.timing import Rhythm
from horai.db import schedules
from horai.db.pool import Dedicated
from horai.time.schedule import EPOCH, EverySchedule, next_after

COPIES = """
insert into horai.job (tenant_id, name, schedule_id, lane_id, active_from, definition)
select job.tenant_id, 'copy' || n, ($1::bigint[])[1 + n % cardinality($1::bigint[])], job.lane_id,
    clock_timestamp() - interval '1 day',
    jsonb_set(job.definition::jsonb || jsonb_build_object('every', $3::text), '{name}', to_jsonb('copy' || n))::json
from horai.job, generate_series(0, $2::integer - 1) n
where job.name = 'noop0'
"""


async def make_groups(url: str, connection: Dedicated, groups: int, jobs: int, every: timedelta) -> list[int]:
    """Distinct schedules of one interval, out of step with each other, with `jobs` in all; their ids."""
    await backlog.make_jobs(url, count=1)
    step = every / groups
    async with connection.transaction():
        made: list[int] = []
        for group in range(groups):
            anchor = EPOCH + timedelta(milliseconds=int(group * step / timedelta(milliseconds=1)))
            schedule = EverySchedule(every, anchor)
            now = datetime.now(UTC)
            coming = next_after(schedule, now + timedelta(minutes=10)) or now
            made.append((await schedules.join_schedule(connection, Rhythm(schedule), coming, now)).schedule_id)
    await connection.execute(COPIES, made, jobs, f"{int(every.total_seconds())}s", timeout=LONG)
    await connection.execute("analyze horai.job", timeout=LONG)
    return made


async def set_back(connection: Dedicated, ids: list[int], every: timedelta, by: timedelta) -> None:
    """Puts cursors to a fire of the past, so that the slots since then are all due at once."""
    await connection.execute(
        """
        update horai.schedule
        set fire_time = fire_time - $2::interval * ceil(extract(epoch from fire_time - clock_timestamp() + $3::interval)
            / extract(epoch from $2::interval))
        where id = any ($1::bigint[])
        """,
        ids,
        every,
        by,
    )

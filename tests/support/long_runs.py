"""Runs that take long, and a past that says how long they usually take."""

from datetime import datetime, timedelta

from horai.db.pool import Platform

MINUTE = timedelta(minutes=1)


async def past(
    connection: Platform,
    job_id: int,
    count: int,
    took: timedelta,
    *,
    ago: timedelta = timedelta(hours=1),
    final: int = 2,
    tenant: int = 1,
) -> None:
    """Insert ended runs of a job into the history: the last one ended `ago` before now, each took `took`."""
    await connection.execute(
        """insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at,
               fence, node, tenant_id, lane, attempt, retry_count, events, state, reason)
           select nextval('horai.instance_id'), $1, at, at, at, -currval('horai.instance_id'), at, at - $3::interval, at,
               1, 1, $6, (select lane_id from horai.job where id = $1), 1, 0, 0, $5::smallint, null
           from (select now() - $4::interval - n * interval '1 ms' as at from generate_series(1, $2::integer) n) r""",
        job_id,
        count,
        took,
        ago,
        final,
        tenant,
    )


async def claimed_at(connection: Platform, instance_id: int) -> datetime:
    """Return when an instance was claimed."""
    return await connection.fetchval("select claimed_at from horai.instance_live where id = $1", instance_id)


async def begun(connection: Platform, instance_id: int, ago: timedelta) -> None:
    """Set the clock of a running instance back: it was due, claimed and given its permit `ago`."""
    await connection.execute(
        "update horai.instance_live set claimed_at = clock_timestamp() - $2::interval, due = clock_timestamp() - $2::interval"
        " where id = $1 and state = 1",
        instance_id,
        ago,
    )
    await connection.execute(
        "update horai.queue_slot set taken_at = clock_timestamp() - $2::interval where instance_id = $1",
        instance_id,
        ago,
    )

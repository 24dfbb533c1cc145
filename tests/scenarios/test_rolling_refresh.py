"""Seed 003 over three months: the stock of every product is looked up again within a window and a tick."""

from datetime import timedelta

import entities as given
import make
import rows
from benchmarks.refresh import DAYS, START, TICK, WINDOW, fill, walk

from horai.db.pool import Platform

COUNT = 20_000


async def test_D4_D14_D16_over_ninety_days_no_entity_gets_older_than_a_window_and_a_tick(
    url: str, connection: Platform
):
    """At every tick and for every run. Two ticks come at once each day: what they load adds up to what the seed's statement
    selects, failed ones included.
    """
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
    await fill(connection, job.id, COUNT)

    async with rows.connections(url, 1) as (other,):
        told = await walk([connection, other], job.id, range(DAYS))

    assert timedelta(0) < told.greatest_age <= WINDOW + TICK
    assert told.runs >= COUNT * (DAYS // 11)
    failed = await connection.fetchval("select count(*) from horai.entity where status = 3")
    assert failed == COUNT // 10


async def test_D16_entities_that_come_and_go_do_not_make_others_wait(url: str, connection: Platform):
    async with make.scope(url) as scope:
        job = await given.refresh_job(scope)
    await fill(connection, job.id, 2_000)
    await walk([connection], job.id, range(15), limit=100)
    await connection.execute("delete from horai.entity where right(key, 1) in ('3', '4', '5')")
    await connection.execute(
        "insert into horai.entity (tenant_id, job_id, key, create_time) select 1, $1, 'late-' || n, $2 from generate_series(1, 500) n",
        job.id,
        START + 14.5 * TICK,
    )

    told = await walk([connection], job.id, range(15, 60), limit=100)

    assert told.greatest_age <= WINDOW + TICK
    assert await connection.fetchval("select count(*) from horai.entity where status = 0") == 0
    assert await connection.fetchval("select count(*) from horai.entity") == 1_900

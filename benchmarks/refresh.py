"""Rolling refresh: ninety days of ticks over a million entities, by the product's own statements, on a clock of their own.

No function runs: what a tick loads ends at the very moment the product would have begun it, one in ten as failed. What is
measured is what ticks cost; what is checked, at every tick and for every run, is that nothing gets older than a window and
a tick, and that every tick loads what the seed's statement selects.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks import backlog
from benchmarks.backlog import LONG
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.refresh import MOST, Pace
from horai.db import entities
from horai.db.entities import DueSet, Loaded
from horai.db.pool import Dedicated, connect

ENTITIES, QUICK_ENTITIES = 1_000_000, 2_000
DAYS, QUICK_DAYS = 90, 25
START = datetime(2023, 6, 4, 2, tzinfo=UTC)
TICK, WINDOW = timedelta(days=1), timedelta(days=10)

FILL = """
insert into horai.entity (job_id, key, create_time)
select $1, 'sku-' || lpad(n::text, 8, '0'), $3::timestamptz - interval '1 hour' from generate_series(0, $2::integer - 1) n
"""
END = """
update horai.entity set status = case when right(entity.key, 1) = '7' then 3 else 2 end, finish_time = done.at, fresh_at = done.at
from unnest($2::text[], $3::timestamptz[]) as done(key, at) where entity.job_id = $1 and entity.key = done.key
"""
OLDEST = "select min(coalesce(fresh_at, create_time)) from horai.entity where job_id = $1"
STILL_DUE = """
select count(*) from horai.entity
where job_id = $1 and (status = 0 or (status in (2, 3) and finish_time <= $2::timestamptz - $3::interval))
"""
"""The seed's condition."""


class TooOld(RuntimeError):
    """Something was not refreshed in time, or not loaded by its tick."""


@dataclass(slots=True)
class Walk:
    """What ticks came to: runs, loads, the greatest age there was, and the most runs of one tick."""

    runs: int = 0
    loads: int = 0
    greatest_age: timedelta = timedelta(0)
    busiest_tick: int = 0
    seconds: float = 0.0


async def walk(connection: Dedicated, job_id: int, days: range, limit: int = MOST) -> Walk:
    """Tick after tick of these days, counted from the start; `TooOld` at the first that breaks the promise."""
    told, started = Walk(), time.perf_counter()
    for day in days:
        tick = START + day * TICK
        oldest = await connection.fetchval(OLDEST, job_id, timeout=LONG)
        _hold(told, tick - oldest, f"at the tick of {tick:%F}")
        await _tick(connection, told, DueSet(job_id, tick, WINDOW), day, limit)
    told.seconds = time.perf_counter() - started
    return told


async def _tick(connection: Dedicated, told: Walk, due: DueSet, batch_no: int, limit: int) -> None:
    count = await entities.count_due_entities(connection, due)
    pace, position = Pace(due.tick, TICK, WINDOW, count), 0
    while loaded := await entities.load_entities(connection, due, limit, batch_no):
        times = pace.spread(position, [entity.due for entity in loaded])
        _hold_all(told, loaded, times)
        await connection.execute(END, due.job_id, [entity.due.key for entity in loaded], times, timeout=LONG)
        position += len(loaded)
        told.loads += 1
    if position != count or await connection.fetchval(STILL_DUE, due.job_id, due.tick, WINDOW, timeout=LONG):
        raise TooOld(f"{position} of {count} were loaded at {due.tick}")
    told.runs += position
    told.busiest_tick = max(told.busiest_tick, position)


def _hold_all(told: Walk, loaded: Sequence[Loaded], times: Sequence[datetime]) -> None:
    ages = [at - entity.due.finished_at for entity, at in zip(loaded, times, strict=True) if entity.due.finished_at]
    if ages:
        _hold(told, max(ages), "when it was run")


def _hold(told: Walk, age: timedelta, when: str) -> None:
    told.greatest_age = max(told.greatest_age, age)
    if age > WINDOW + TICK:
        raise TooOld(f"an entity was {age} old {when}")


async def fill(connection: Dedicated, job_id: int, count: int) -> None:
    """So many entities, added an hour before the first tick."""
    await connection.execute(FILL, job_id, count, START, timeout=LONG)
    await connection.execute("vacuum analyze horai.entity", timeout=LONG)


async def sample(sitting: Sitting) -> Sample:
    """The table is vacuumed by the server itself, as anywhere."""
    count, days = (QUICK_ENTITIES, QUICK_DAYS) if sitting.size.quick else (ENTITIES, DAYS)
    async with sitting.database("refresh") as url:
        await backlog.make_jobs(url, count=1)
        connection = await connect(url, "bench")
        job_id = await connection.fetchval("select id from horai.job limit 1")
        await fill(connection, job_id, count)
        told = await walk(connection, job_id, range(days))
        asked = time.perf_counter()
        await entities.refresh_counts(connection, job_id, START + days * TICK, WINDOW)
        asked = time.perf_counter() - asked
        await connection.close()
    return {
        "refresh: greatest age": told.greatest_age / timedelta(days=1),
        "refresh: loaded and ended": told.runs / told.seconds,
        "refresh: counting for a report": asked,
    }


SCENARIO = Scenario(
    "refresh",
    f"{ENTITIES:,} entities, {DAYS} days of ticks, a window of {WINDOW.days} days",
    sample,
    (
        Line("refresh: greatest age", "d", at_most=(WINDOW + TICK) / timedelta(days=1)),
        Line("refresh: loaded and ended", "/s"),
        Line("refresh: counting for a report", "s"),
    ),
    by_name_only=True,
)

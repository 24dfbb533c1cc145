"""Rolling refresh: ninety days of ticks over a million entities, by the product's own statements, on a clock of their own.

No function runs: what a tick loads ends at the very moment the product would have begun it, one in ten as failed. Two ticks
come at once, every time. What is measured is what they cost; what is checked, at every tick and for every run, is that
nothing gets older than a window and a tick, and that the two take what the seed's statement selects: as many as were due,
and nothing is left, so no entity was taken by both.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.backlog import LONG
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.actor import SYSTEM
from horai.core.refresh import MOST, RefreshPace
from horai.db.instances import InsertTarget
from horai.db.pool import Dedicated, connect, open_pool
from horai.db.wakeups import Wakeups
from horai.features.refresh import store as entities
from horai.features.refresh.store import DueSet, Loaded
from horai.features.registry import JOB_HOOKS
from horai.operations import jobs
from horai.operations.job_rows import JobDocument
from horai.operations.scope import Scope

ENTITIES, QUICK_ENTITIES = 1_000_000, 2_000
DAYS, QUICK_DAYS = 90, 25
START = datetime(2123, 6, 4, 2, tzinfo=UTC)
"""A time after every entity that is added now."""
BATCH = 10_000
TICK, WINDOW = timedelta(days=1), timedelta(days=10)

JOB = {"name": "refresh_stock", "every": "1d", "refresh": {"window": "10d"}}
END = """
update horai.entity set status = case when right(entity.key, 1) = '7' then 3 else 2 end, finish_time = done.at, fresh_at = done.at
from unnest($2::text[], $3::timestamptz[]) as done(key, at) where entity.job_id = $1 and entity.key = done.key
"""
OLDEST = "select min(fresh_at) from horai.entity where job_id = $1"
STILL_DUE = """
select count(*) from horai.entity
where job_id = $1 and (status = 0 or (status in (2, 3) and finish_time <= $2::timestamptz - $3::interval))
"""
"""The seed's condition."""


class TooOld(RuntimeError):
    """Something was not refreshed in time, or not loaded by its tick."""


@dataclass(slots=True)
class Walk:
    """The result of the ticks: runs, loads, the greatest age there was, and the most runs of one tick."""

    runs: int = 0
    loads: int = 0
    greatest_age: timedelta = timedelta(0)
    busiest_tick: int = 0
    seconds: float = 0.0


async def walk(loaders: Sequence[Dedicated], job_id: int, days: range, limit: int = MOST) -> Walk:
    """Tick after tick of these days, counted from the start, each of them made by every loader at once.

    `TooOld` at the first that breaks the promise.
    """
    told, started = Walk(), time.perf_counter()
    for day in days:
        tick = START + day * TICK
        oldest = await loaders[0].fetchval(OLDEST, job_id, timeout=LONG)
        if oldest is not None:
            _hold(told, tick - oldest, f"at the tick of {tick:%F}")
        await _tick(loaders, told, DueSet(job_id, tick, WINDOW), limit)
    told.seconds = time.perf_counter() - started
    return told


async def _tick(loaders: Sequence[Dedicated], told: Walk, due: DueSet, limit: int) -> None:
    count = await entities.count_due_entities(loaders[0], due)
    pace, position = RefreshPace(due.tick, TICK, WINDOW, count), 0

    async def drain(loader: Dedicated, batch_no: int) -> None:
        nonlocal position
        while loaded := await entities.load_entities(loader, due, limit, batch_no):
            times = pace.spread(position, [entity.due for entity in loaded])
            position += len(loaded)
            told.loads += 1
            _hold_all(told, loaded, times)
            await loader.execute(END, due.job_id, [entity.due.key for entity in loaded], times, timeout=LONG)

    await asyncio.gather(*(drain(loader, number) for number, loader in enumerate(loaders, 1)))
    if position != count or await loaders[0].fetchval(STILL_DUE, due.job_id, due.tick, WINDOW, timeout=LONG):
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


async def fill(connection: Dedicated, job_id: int, count: int) -> float:
    """So many entities, as a batch of the API adds them; the seconds that it took."""
    started = time.perf_counter()
    for first in range(0, count, BATCH):
        keys = [f"sku-{number:08}" for number in range(first, min(first + BATCH, count))]
        await entities.keep_entities(connection, InsertTarget(job_id, 1, 0, None), dict.fromkeys(keys))
    seconds = time.perf_counter() - started
    await connection.execute("vacuum analyze horai.entity", timeout=LONG)
    return seconds


async def _make_job(url: str) -> int:
    pool = await open_pool(url, "bench", 1)
    job = await jobs.create_job(Scope(pool, Wakeups(), 1, "default", SYSTEM, JOB_HOOKS), JobDocument(JOB, None))
    await pool.close()
    return job.id


async def sample(sitting: Sitting) -> Sample:
    """The table is vacuumed by the server itself, as anywhere."""
    count, days = (QUICK_ENTITIES, QUICK_DAYS) if sitting.size.quick else (ENTITIES, DAYS)
    async with sitting.database("refresh") as url:
        job_id = await _make_job(url)
        loaders = [await connect(url, "bench") for _ in range(2)]
        filled = await fill(loaders[0], job_id, count)
        told = await walk(loaders, job_id, range(days))
        now = START + days * TICK
        asked = time.perf_counter()
        await entities.refresh_counts(loaders[0], job_id, now - WINDOW, now - WINDOW - TICK)
        asked = time.perf_counter() - asked
        for loader in loaders:
            await loader.close()
    return {
        "refresh: added in batches": count / filled,
        "refresh: greatest age": told.greatest_age / timedelta(days=1),
        "refresh: loaded and ended": told.runs / told.seconds,
        "refresh: counting for a report": asked,
    }


SCENARIO = Scenario(
    "refresh",
    f"{ENTITIES:,} entities, {DAYS} days of ticks, a window of {WINDOW.days} days",
    sample,
    (
        Line("refresh: added in batches", "/s"),
        Line("refresh: greatest age", "d", at_most=(WINDOW + TICK) / timedelta(days=1)),
        Line("refresh: loaded and ended", "/s"),
        Line("refresh: counting for a report", "s"),
    ),
    by_name_only=True,
)

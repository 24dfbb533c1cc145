"""Forecast: seconds until the coming day, and the coming week, are known of very many jobs on very many schedules."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, product

from benchmarks import backlog
from benchmarks.backlog import LONG
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.actor import SYSTEM
from horai.db.pool import Dedicated, connect, open_pool
from horai.db.wakeups import Wakeups
from horai.features.forecast import store as forecast
from horai.features.forecast.routes import compute
from horai.features.registry import JOB_HOOKS
from horai.operations.scope import Scope
from horai.time.schedule import EPOCH, CronSchedule, EverySchedule, Schedule, to_spec

SCHEDULES, QUICK_SCHEDULES = 2_000, 200
JOBS, QUICK_JOBS = 3_000_000, 10_000
TENANT = 1
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Asia/Shanghai", "Asia/Kolkata", "America/Sao_Paulo", "Africa/Cairo"),
    *("Australia/Lord_Howe", "Pacific/Auckland", "Asia/Tehran", "Europe/London", "America/Los_Angeles"),
)
CRONS = (
    *("{m} * * * *", "{m} {h} * * *", "*/{s} * * * *", "{m},{n} 8-18 * * 1-5", "{m} {h} 1,15 * *", "0 0 * * *"),
    *("{s} {m} {h} * * ?", "0 {m} {h} L * ?", "*/{s} {m} * * * ?", "0 {m} {h} ? * FRI#2", "{m} {h} LW * *"),
)
JITTERS_MS = (0, 0, 0, 0, 0, 0, 30_000, 120_000, 600_000, 3_600_000)

MAKE_SCHEDULES = """
insert into horai.schedule (identity, spec, fire_time)
select spec, spec::json, clock_timestamp() + interval '1 day' from unnest($1::text[]) as made(spec) returning id
"""
MAKE_JOBS = """
insert into horai.job (tenant_id, name, schedule_id, lane_id, definition, active_from, jitter_ms, start_at, end_at)
select job.tenant_id, 'copy' || n, ($1::bigint[])[1 + n % cardinality($1)], job.lane_id, job.definition,
    clock_timestamp() - interval '1 day', ($3::integer[])[1 + n / cardinality($1) % cardinality($3)],
    case when n % 1000 = 1 then date_trunc('hour', clock_timestamp()) + n % 48 * interval '1 hour' end,
    case when n % 1000 = 2 then date_trunc('hour', clock_timestamp()) + n % 48 * interval '1 hour' end
from horai.job, generate_series(0, $2::integer - 1) n
where job.name = 'noop0'
"""


def schedules() -> Iterator[Schedule]:
    """Distinct ones without end: of four, three crons of many kinds in many zones, and one interval."""
    seen: set[Schedule] = set()
    for number, (zone, form) in enumerate(product(range(10**6), CRONS)):
        numbers = {"m": number * 7 % 60, "n": number * 11 % 60, "h": number * 5 % 24, "s": 2 + number % 29}
        cron = CronSchedule(form.format(**numbers), ZONES[zone % len(ZONES)])
        interval = timedelta(seconds=30 + number * 37 % 7_200)
        every = EverySchedule(interval, EPOCH + timedelta(milliseconds=number * 977))
        for schedule in (cron, every) if number % 3 == 0 else (cron,):
            if schedule not in seen:
                seen.add(schedule)
                yield schedule


async def sample(sitting: Sitting) -> Sample:
    """Without the answers that are kept for a minute: each figure is a forecast that is made."""
    is_quick = sitting.size.quick
    many, jobs = (QUICK_SCHEDULES, QUICK_JOBS) if is_quick else (SCHEDULES, JOBS)
    async with sitting.database("forecast") as url:
        await backlog.make_jobs(url, count=1)
        connection = await connect(url, "bench")
        await _fill(connection, many, jobs)
        await connection.close()
        pool = await open_pool(url, "bench", 2)
        scope = Scope(pool, Wakeups(), TENANT, "default", SYSTEM, JOB_HOOKS)
        first = await _timed(scope, 24, many, jobs)
        again = await _timed(scope, 24, many, jobs)
        week = await _timed(scope, 7 * 24, many, jobs)
        started = time.perf_counter()
        await forecast.followers(await pool.acquire(), TENANT)
        counting = time.perf_counter() - started
        pool.terminate()
    return {
        "forecast: the first of a day": first,
        "forecast: a day": again,
        "forecast: a week": week,
        "forecast: counting the jobs": counting,
    }


async def _fill(connection: Dedicated, many: int, jobs: int) -> None:
    """Nothing here reads a cron: the first forecast of the process is the one that meets them all for the first time."""
    specs = [json.dumps(to_spec(schedule)) for schedule in islice(schedules(), many)]
    made = await connection.fetch(MAKE_SCHEDULES, specs)
    await connection.execute(MAKE_JOBS, [row["id"] for row in made], jobs, list(JITTERS_MS), timeout=LONG)
    await connection.execute("vacuum analyze horai.job, horai.schedule", timeout=LONG)


async def _timed(scope: Scope, hours: int, many: int, jobs: int) -> float:
    started = time.perf_counter()
    answer = json.loads(await compute(scope, hours))
    took = time.perf_counter() - started
    if not (answer["schedules"] == many and 0.99 * jobs <= answer["jobs"] <= jobs and answer["total"]):
        raise RuntimeError(f"{answer['jobs']} jobs on {answer['schedules']} schedules, not {jobs} on {many}")
    begins = datetime.fromisoformat(answer["from"]) - datetime.now(UTC)
    if len(answer["perMinute"]) != hours * 60 or begins > timedelta(minutes=1):
        raise RuntimeError(f"{len(answer['perMinute'])} minutes from {answer['from']} on")
    return took


SCENARIO = Scenario(
    "forecast",
    f"a forecast of {JOBS:,} jobs on {SCHEDULES:,} schedules",
    sample,
    (
        Line("forecast: the first of a day", "s", at_most=2.0),
        Line("forecast: a day", "s", at_most=2.0),
        Line("forecast: a week", "s"),
        Line("forecast: counting the jobs", "s"),
    ),
    by_name_only=True,
)

"""Forecasts with hypothetical jobs: their fires are added to those of the existing jobs, and nothing is saved."""

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import make
import pytest
from harness import Client

from api import expect, given
from horai.db.pool import Platform, acquire
from horai.engine.janitor import MINUTES_KEPT
from horai.features.forecast.routes import MEASURED, compute
from horai.operations.scope import Scope
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, fires_between

WHAT_IF = "/api/v1/forecast/what-if"
MOMENT = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)
STORED = "select (select count(*) from horai.job), (select count(*) from horai.schedule)"


async def asked(api: Client, **fields: Any) -> Any:
    reply = await api("GET", f"{WHAT_IF}?{urlencode(fields)}")
    assert reply.status == 200, reply.json
    return reply.json


def walked(answer: Any, schedule: Schedule, jobs: int) -> list[int]:
    """Count the fires of so many jobs per minute, fire by fire."""
    start = datetime.fromisoformat(answer["from"])
    fires = [0] * answer["minutes"]
    for fire in fires_between(schedule, start - MOMENT, start + answer["minutes"] * MINUTE - MOMENT, 10**6):
        fires[(fire - start) // MINUTE] += jobs
    return fires


@pytest.mark.parametrize(
    ("fields", "schedule"),
    [
        ({"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, CronSchedule("0 9 * * *", "Europe/Berlin")),
        ({"cron": "*/20 * * * * ?"}, CronSchedule("*/20 * * * * ?")),
        ({"every": "90s"}, EverySchedule(timedelta(seconds=90))),
    ],
)
async def test_the_added_fires_are_those_that_so_many_jobs_of_the_schedule_would_have(
    api: Client, fields: dict[str, str], schedule: Schedule
) -> None:
    answer = await asked(api, **fields, jobs=5_000, hours=48)

    assert answer["minutes"] == len(answer["perMinute"]) == 48 * 60
    assert answer["addedPerMinute"] == walked(answer, schedule, 5_000)
    assert (answer["jobs"], answer["total"]) == (5_000, sum(answer["addedPerMinute"]))


async def test_the_added_fires_stand_beside_those_of_the_forecast_with_the_peak_before_and_after(api: Client) -> None:
    await given.job(api, cron="30 3 * * *")
    forecast = (await api("GET", "/api/v1/forecast?hours=30")).json

    answer = await asked(api, cron="15 4 * * *", timezone="Asia/Kolkata", jobs=1_000_000, hours=30)

    assert answer["perMinute"] == forecast["perMinute"]
    assert (answer["from"], answer["computedAt"]) == (forecast["from"], forecast["computedAt"])
    assert answer["peakBefore"] == forecast["peak"]
    both = [old + new for old, new in zip(answer["perMinute"], answer["addedPerMinute"], strict=True)]
    assert answer["peakAfter"]["fires"] == max(both) >= 1_000_000
    assert datetime.fromisoformat(answer["peakAfter"]["at"]).strftime("%H:%M") == "22:45"
    assert answer["schedule"] == {"cron": "15 4 * * *", "timezone": "Asia/Kolkata"}


async def test_jitter_spreads_the_added_fires(api: Client) -> None:
    answer = await asked(api, cron="0 * * * *", jobs=600, jitter="10m")

    assert max(answer["addedPerMinute"]) == 60


async def test_a_what_if_saves_nothing(api: Client, db: Platform) -> None:
    before = await db.fetchrow(STORED)

    await asked(api, cron="11 11 11 11 *", jobs=7)

    assert await db.fetchrow(STORED) == before


async def test_a_what_if_is_refused_in_the_words_of_a_create(api: Client) -> None:
    for fields in (
        {"cron": "0 0 30 2 *"},
        {"cron": "* * * *"},
        {"cron": "0 0 * * MOO"},
        {"cron": "0 0 * * *", "timezone": "Europe/Berln"},
        {"cron": "0 0 * * *", "every": "1h"},
        {"every": "1 fortnight"},
        {"every": "1h", "jitter": "2 moons"},
    ):
        refused = await api("POST", "/api/v1/jobs", {"name": given.name(), **fields})
        reply = await api("GET", f"{WHAT_IF}?{urlencode(fields)}")

        assert (reply.status, reply.json) == (422, refused.json)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "cron"),
        ("timezone=UTC", "cron"),
        ("every=1h&jobs=0", "jobs"),
        ("every=1h&jobs=10000001", "jobs"),
        ("every=1h&jobs=1.5", "jobs"),
        ("every=1h&hours=169", "hours"),
        ("every=1h&everyFrom=finish", "everyFrom"),
        ("every=1h&name=x", "name"),
    ],
)
async def test_a_what_if_without_a_schedule_or_beyond_its_limits_is_refused_at_its_field(
    api: Client, query: str, field: str
) -> None:
    told = expect.invalid(await api("GET", f"{WHAT_IF}?{query}"))

    assert [error["field"] for error in told["errors"]] == [field]


# The highest measured number of starts

STARTS = """
insert into horai.minute (at, node, tenant_id, started, succeeded, failed, dead, delays)
select date_trunc('minute', now() - $3::interval), node, $1, $2, 0, 0, 0, '[]' from generate_series(1, 2) node
"""


async def measured(scope: Scope) -> Any:
    return json.loads(await compute(scope, 1))["highestMeasured"]


def test_minutes_are_kept_for_the_period_in_which_the_highest_is_looked_for() -> None:
    assert MEASURED == MINUTES_KEPT


async def test_the_highest_measured_minute_is_that_of_all_nodes_of_the_tenant_in_two_days(url: str) -> None:
    async with make.scope(url) as scope:
        assert await measured(scope) is None
        async with acquire(make.platform(scope)) as connection:
            other = await connection.fetchval("insert into horai.tenant (name) values ('other') returning id")
            for tenant, starts, age in (
                (scope.tenant_id, 40, timedelta(minutes=1)),
                (scope.tenant_id, 70, timedelta(hours=47)),
                (scope.tenant_id, 900, timedelta(hours=49)),
                (other, 8_000, timedelta(hours=1)),
            ):
                await connection.execute(STARTS, tenant, starts, age)
            at = await connection.fetchval("select min(at) from horai.minute where started = 70")

        found = await measured(scope)

    assert (found["starts"], found["days"]) == (140, 2)
    assert datetime.fromisoformat(found["at"]) == at


async def test_minutes_above_the_highest_measured_number_are_counted_without_and_with_the_jobs(
    api: Client, db: Platform
) -> None:
    tenant = await db.fetchval("select id from horai.tenant where name = 'default'")
    await db.execute(STARTS, tenant, 25_000_000, timedelta(hours=3))
    try:
        below = await asked(api, cron="41 * * * *", jobs=1_000, hours=26)
        equal = await asked(api, cron="*/12 41 * * * ?", jobs=10_000_000, hours=26)
        above = await asked(api, cron="*/10 41 * * * ?", jobs=10_000_000, hours=26)
    finally:
        await db.execute("delete from horai.minute where started = 25000000")

    assert below["highestMeasured"]["starts"] == 50_000_000
    assert max(equal["addedPerMinute"]) == 50_000_000
    assert [each["minutesAboveBefore"] for each in (below, equal, above)] == [0, 0, 0]
    assert [each["minutesAboveAfter"] for each in (below, equal, above)] == [0, 0, 26]

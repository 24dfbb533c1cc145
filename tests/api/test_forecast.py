"""The forecast over REST: it counts what the jobs' schedules say, and answers are shared for a minute."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
from harness import Client

from api import expect, given
from horai.db.catalog import sql
from horai.db.pool import acquire
from horai.features.forecast.routes import KEPT, Forecasts, compute
from horai.features.forecast.routes_minute import compute_minute
from horai.operations import jobs
from horai.operations.scope import Scope
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, fires_between

FORECAST = "/api/v1/forecast"
MOMENT = timedelta(microseconds=1)
MINUTE = timedelta(minutes=1)

COPIES = """
insert into horai.job (tenant_id, name, schedule_id, lane_id, definition, active_from, jitter_ms)
select tenant_id, name || n, schedule_id, lane_id, definition, active_from, jitter_ms
from horai.job, generate_series(2, $2::integer) n where name = $1
"""


async def made(scope: Scope, hours: int = 24) -> Any:
    return json.loads(await compute(scope, hours))


async def crowd(scope: Scope, name: str, many: int, **fields: Any) -> None:
    """So many jobs that are alike but for their names."""
    await make.job(scope, name, **fields)
    async with acquire(make.platform(scope)) as connection:
        await connection.execute(COPIES, name, many)


def expected(answer: Mapping[str, Any], schedules: Mapping[Schedule, int]) -> list[int]:
    """The same, fire by fire."""
    start = datetime.fromisoformat(answer["from"])
    fires = [0] * answer["minutes"]
    for schedule, many in schedules.items():
        for fire in fires_between(schedule, start - MOMENT, start + answer["minutes"] * MINUTE - MOMENT, 10**6):
            fires[(fire - start) // MINUTE] += many
    return fires


async def test_every_minute_has_the_fires_that_the_schedules_of_all_jobs_say(url: str) -> None:
    async with make.scope(url) as scope:
        await crowd(scope, "report", 5, cron="30 2 * * *", timezone="Europe/Berlin")
        await crowd(scope, "poll", 2, cron="*/7 * * * *")
        await make.job(scope, "beat", every="90s")
        await make.job(scope, "by-hand")

        answer = await made(scope, 48)

    assert answer["perMinute"] == expected(
        answer,
        {
            CronSchedule("30 2 * * *", "Europe/Berlin"): 5,
            CronSchedule("*/7 * * * *"): 2,
            EverySchedule(timedelta(seconds=90)): 1,
        },
    )
    assert (answer["minutes"], answer["schedules"], answer["jobs"]) == (2_880, 3, 8)
    assert answer["total"] == sum(answer["perMinute"]) == 5 * 2 + answer["busiest"][1]["fires"] + 1920
    assert answer["average"] == round(answer["total"] / 2_880, 3)
    assert answer["peak"]["fires"] == max(answer["perMinute"])
    assert [entry["schedule"] for entry in answer["busiest"]] == [
        {"every": "1m30s", "timezone": "UTC"},
        {"cron": "*/7 * * * *", "timezone": "UTC"},
        {"cron": "30 2 * * *", "timezone": "Europe/Berlin"},
    ]
    assert answer["note"] is None


async def test_jobs_with_one_calendar_count_as_one_schedule_despite_different_misfire_policies(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope, "a", cron="0 0 * * *")
        await make.job(scope, "b", cron="0 0 * * *", misfire="skip")

        answer = await made(scope)

    (busiest,) = answer["busiest"]
    assert (answer["schedules"], busiest["jobs"], busiest["fires"]) == (1, 2, 2)


async def test_each_schedule_that_is_told_names_some_of_its_jobs_to_change(url: str) -> None:
    async with make.scope(url) as scope:
        await crowd(scope, "report", 40, cron="0 * * * *")
        await make.job(scope, "report-late", cron="0 * * * *", misfire="skip")
        await make.job(scope, "stock", cron="30 3 * * *", refresh={"window": "10d"})

        answer = await made(scope)

    by_cron = {entry["schedule"]["cron"]: entry["examples"] for entry in answer["busiest"]}
    assert by_cron["0 * * * *"] == ["report", "report2", "report3"]
    assert by_cron["30 3 * * *"] == ["stock"], "its ticks follow the schedule, but the job is what is changed"


async def test_paused_and_deleted_jobs_and_those_of_others_do_not_count(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope, "kept", cron="0 * * * *")
        for name in ("paused", "deleted", "foreign"):
            await make.job(scope, name, cron="0 * * * *")
        async with acquire(make.platform(scope)) as connection:
            other = await connection.fetchval("insert into horai.tenant (name) values ('other') returning id")
            await connection.execute("update horai.job set tenant_id = $1 where name = 'foreign'", other)
            await connection.execute("update horai.job set status = 1 where name = 'paused'")
        await jobs.delete_job(scope, "deleted", None)

        answer = await made(scope)
        theirs = await made(make.of_tenant(scope, other, "other"))

    assert (answer["jobs"], answer["total"]) == (1, 24)
    assert (theirs["jobs"], theirs["total"]) == (1, 24)


async def test_a_beginning_and_an_end_within_the_time_cut_to_the_moment(url: str) -> None:
    def near(hours: float) -> datetime:
        return (datetime.now(UTC) + timedelta(hours=hours)).replace(microsecond=0)

    bounds = {
        "starts": {"startAt": near(3)},
        "ends": {"endAt": near(5.5)},
        "both": {"startAt": near(2), "endAt": near(4)},
        "over": {"startAt": near(1), "endAt": near(99)},
        "later": {"startAt": near(100)},
    }
    async with make.scope(url) as scope:
        await make.job(scope, "always", every="10s")
        for name, fields in bounds.items():
            await make.job(scope, name, every="10s", **fields)

        answer = await made(scope, 6)

    start = datetime.fromisoformat(answer["from"])
    fires = [0] * 360
    for fire in fires_between(
        EverySchedule(timedelta(seconds=10)), start - MOMENT, start + 360 * MINUTE - MOMENT, 10**6
    ):
        within = [f.get("startAt", start) <= fire <= f.get("endAt", near(99)) for f in bounds.values()]
        fires[(fire - start) // MINUTE] += 1 + sum(within)
    assert answer["perMinute"] == fires
    assert answer["jobs"] == 5, "the one that begins later is not there yet"


async def test_jitter_is_spread_over_the_minutes_that_it_may_take(url: str) -> None:
    async with make.scope(url) as scope:
        await crowd(scope, "spread", 60, cron="0 * * * *", jitter="30m")

        answer = await made(scope)

    assert set(answer["perMinute"]) == {0, 2}
    assert answer["perMinute"].count(2) == 720
    assert answer["hotSpots"] == []


async def test_jobs_that_count_from_the_end_of_their_last_run_are_said_to_be_missing(url: str) -> None:
    async with make.scope(url) as scope:
        await make.job(scope, "poll", every="5m", everyFrom="finish")

        answer = await made(scope)

    assert (answer["total"], answer["jobs"], answer["peak"]) == (0, 0, None)
    assert answer["note"].startswith("1 job counts from the end of its last run (everyFrom finish)")


async def test_everything_at_midnight_is_a_hot_spot_with_a_jitter_that_would_level_it(url: str) -> None:
    async with make.scope(url) as scope:
        await crowd(scope, "nightly", 600, cron="0 0 * * *", timezone="Asia/Kolkata")
        await crowd(scope, "steady", 20, cron="* * * * *")

        answer = await made(scope)

    (spot,) = answer["hotSpots"]
    assert datetime.fromisoformat(spot["at"]).strftime("%H:%M") == "18:30"
    assert spot["at"] == answer["peak"]["at"]
    assert (spot["fires"], spot["times"]) == (620, round(620 / (20 + 600 / 1440), 1))
    schedule = {"cron": "0 0 * * *", "timezone": "Asia/Kolkata"}
    some = ["nightly", "nightly2", "nightly3"]
    assert spot["schedules"] == [{"schedule": schedule, "jobs": 600, "fires": 600, "examples": some}]
    assert spot["concerned"] == {"schedules": 1, "jobs": 600, "fires": 600}
    assert spot["suggestedJitter"] in {"30m", "1h"}
    assert spot["peakWithJitter"] == 20 + 600 // {"30m": 30, "1h": 60}[spot["suggestedJitter"]]


async def test_counting_the_followers_looks_at_an_index_and_at_no_job(url: str) -> None:
    async with make.scope(url) as scope:
        await crowd(scope, "nightly", 5_000, cron="0 0 * * *")
        async with acquire(make.platform(scope)) as connection:
            await connection.execute("vacuum analyze horai.job")
            plan = "\n".join([row[0] for row in await connection.fetch(f"explain {sql('followers')}", 1)])
            bounded = await connection.fetch(f"explain {sql('bounded_followers')}", 1, *(datetime.now(UTC),) * 2)

    assert "Index Only Scan using job_schedule" in plan, plan
    assert any("job_bounded" in row[0] for row in bounded), bounded


async def test_the_answer_has_its_age_and_is_the_same_for_a_minute(api: Client) -> None:
    await given.job(api, cron="0 0 * * *")
    first = await api("GET", FORECAST)
    await given.job(api, cron="0 1 * * *")
    second, other = await api("GET", FORECAST), await api("GET", f"{FORECAST}?hours=25")

    assert (first.status, first.headers["Cache-Control"], first.headers["Age"]) == (200, "private, max-age=60", "0")
    assert int(second.headers["Age"]) >= 0
    assert second.json == first.json
    assert other.json["jobs"] == first.json["jobs"] + 1
    assert other.json["minutes"] == 25 * 60
    computed, begins = (datetime.fromisoformat(first.json[name]) for name in ("computedAt", "from"))
    assert timedelta(0) <= begins - computed < MINUTE
    assert begins.second == begins.microsecond == 0


@pytest.mark.parametrize("query", ["hours=0", "hours=169", "hours=a", "hours=1.5", "hours=", "days=1"])
async def test_a_time_that_is_none_is_refused_at_its_field(api: Client, query: str) -> None:
    told = expect.invalid(await api("GET", f"{FORECAST}?{query}"))

    assert told["errors"][0]["field"] == query.partition("=")[0]


async def test_a_week_is_answered_in_whole_minutes(api: Client) -> None:
    week = (await api("GET", f"{FORECAST}?hours=168")).json

    assert len(week["perMinute"]) == week["minutes"] == 7 * 24 * 60


class Kitchen:
    """Makes answers one at a time, when it is told to."""

    def __init__(self) -> None:
        self.served = 0
        self.now = 1_000.0
        self.at_work = 0
        self.most_at_work = 0
        self.may_serve = asyncio.Event()
        self.forecasts = Forecasts(lambda: self.now)

    async def make(self) -> bytes:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        await self.may_serve.wait()
        self.at_work -= 1
        self.served += 1
        return str(self.served).encode()

    async def ask(self, hours: int = 24) -> bytes:
        return (await self.forecasts.get((1, hours), self.make)).body


async def test_many_who_ask_at_once_wait_for_one_answer() -> None:
    kitchen = Kitchen()
    asking = [asyncio.create_task(kitchen.ask()) for _ in range(20)]
    others = [asyncio.create_task(kitchen.ask(48)) for _ in range(20)]
    await asyncio.sleep(0)

    kitchen.may_serve.set()

    assert await asyncio.gather(*asking, *others) == [b"1"] * 20 + [b"2"] * 20
    assert kitchen.most_at_work == 1


async def test_a_cached_forecast_is_computed_again_after_a_minute() -> None:
    kitchen = Kitchen()
    kitchen.may_serve.set()
    answers: list[bytes] = []
    for seconds in (0, KEPT - 1, 1):
        kitchen.now += seconds
        answers.append(await kitchen.ask())

    assert answers == [b"1", b"1", b"2"]


async def test_a_request_that_disconnects_does_not_cancel_the_answer_of_another_request() -> None:
    kitchen = Kitchen()
    gone, patient = asyncio.create_task(kitchen.ask()), asyncio.create_task(kitchen.ask())
    await asyncio.sleep(0)
    gone.cancel()
    kitchen.may_serve.set()

    assert await patient == b"1"
    assert gone.cancelled()


async def test_an_error_is_told_to_those_who_wait_and_not_kept() -> None:
    kitchen = Kitchen()

    async def burnt() -> bytes:
        raise OSError("the database is away")

    asking = [kitchen.forecasts.get((1, 24), burnt) for _ in range(2)]
    failed = await asyncio.gather(*asking, return_exceptions=True)
    kitchen.may_serve.set()

    assert all(isinstance(failure, OSError) for failure in failed)
    assert await kitchen.ask() == b"1"


# One minute


async def test_a_minute_names_the_schedules_that_fire_in_it_and_their_jobs(url: str) -> None:
    async with make.scope(url) as scope:
        await crowd(scope, "report", 5, cron="30 2 * * *")
        await crowd(scope, "poll", 2, cron="*/30 * * * *", jitter="10s")
        await make.job(scope, "other", cron="31 2 * * *")
        await make.job(scope, "by-hand")
        whole = await made(scope, 24)
        start = datetime.fromisoformat(whole["from"])
        index = whole["perMinute"].index(7)

        told = json.loads(await compute_minute(scope, start + index * MINUTE))

    assert (told["fires"], told["at"]) == (7, (start + index * MINUTE).isoformat().replace("+00:00", "Z"))
    first, second = told["schedules"]
    assert (first["schedule"]["cron"], first["jobs"], first["fires"]) == ("30 2 * * *", 5, 5)
    assert first["names"] == [
        {"name": name, "jitter": None} for name in ("report", *(f"report{n}" for n in range(2, 6)))
    ]
    assert [(one["name"], one["jitter"]) for one in second["names"]] == [("poll", "10s"), ("poll2", "10s")]


@pytest.mark.parametrize("at", ["2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "noon", ""])
async def test_a_minute_outside_the_forecast_or_an_invalid_time_is_refused(api: Client, at: str) -> None:
    expect.invalid(await api("GET", f"{FORECAST}/minute?at={at}"))


async def test_the_minute_under_way_and_the_last_of_the_week_can_be_asked_for(api: Client) -> None:
    whole = (await api("GET", f"{FORECAST}?hours=168")).json
    start = datetime.fromisoformat(whole["from"])
    for at in (start - MINUTE, start, start + (whole["minutes"] - 1) * MINUTE):
        reply = await api("GET", f"{FORECAST}/minute?at={at.isoformat().replace('+00:00', 'Z')}")
        assert (reply.status, reply.headers["Cache-Control"]) == (200, "private, max-age=60"), reply.json

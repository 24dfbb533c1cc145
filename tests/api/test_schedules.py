"""Coming fires over REST: of a job, and before there is one."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from harness import Client

from api import expect, given
from horai.db.pool import Platform
from horai.time.jitter import offset

SPRING = "2026-03-28T00:00:00+01:00"
DAILY = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
PREVIEW = "/api/v1/schedules/preview"


async def preview(api: Client, **fields: Any) -> list[Any]:
    reply = await api("POST", PREVIEW, fields)
    assert reply.status == 200, reply.json
    return reply.json["fires"]


async def coming(api: Client, job: Any, query: str = "") -> Any:
    reply = await api("GET", f"/api/v1/jobs/{job['id']}/next{query}")
    assert reply.status == 200, reply.json
    return reply.json


async def test_X15_a_preview_tells_each_fire_in_utc_and_by_its_own_clock_and_what_the_clock_did(api: Client) -> None:
    fires = await preview(api, **DAILY, **{"from": SPRING, "count": 3})
    said = [fire.pop("noteSaid", None) for fire in fires]

    assert fires == [
        {"fireTime": "2026-03-28T01:30:00Z", "local": "2026-03-28T02:30:00+01:00", "note": None},
        {
            "fireTime": "2026-03-29T01:00:00Z",
            "local": "2026-03-29T03:00:00+02:00",
            "note": "02:30 does not exist on 2026-03-29: the clock jumps from 02:00 to 03:00",
        },
        {"fireTime": "2026-03-30T00:30:00Z", "local": "2026-03-30T02:30:00+02:00", "note": None},
    ]
    assert [each and (each["code"], each["text"]) for each in said] == [None, ("TIMES_LOST", fires[1]["note"]), None]
    assert said[1]["params"]["jump"]["params"] == {"since": "02:00", "until": "03:00"}


async def test_a_preview_shows_ten_fires_from_now_on(api: Client, db: Platform) -> None:
    now = await db.fetchval("select clock_timestamp()")

    fires = [datetime.fromisoformat(fire["fireTime"]) for fire in await preview(api, every="1h")]

    assert len(fires) == 10
    assert now < fires[0] <= now + timedelta(hours=1, minutes=1)
    assert all(later - earlier == timedelta(hours=1) for earlier, later in pairwise(fires))


async def test_from_is_the_first_instant_that_counts(api: Client) -> None:
    fires = await preview(api, cron="0 0 * * *", **{"from": "2026-01-01T00:00:00Z", "count": 1})

    assert fires[0]["fireTime"] == "2026-01-01T00:00:00Z"


async def test_a_preview_takes_every_field_that_says_when(api: Client) -> None:
    fires = await preview(
        api,
        cron="0 30 2 * * ?",
        dialect="quartz",
        timezone="Europe/Berlin",
        dst={"gap": "skip", "overlap": "both"},
        calendar=["03-30"],
        startAt="2026-03-28T00:00:00Z",
        endAt="2026-03-31T12:00:00Z",
        **{"from": "2026-01-01T00:00:00Z"},
    )

    assert [fire["fireTime"] for fire in fires] == ["2026-03-28T01:30:00Z", "2026-03-31T00:30:00Z"]
    assert fires[1]["note"] == (
        "2026-03-30 is excluded; "
        "02:30 does not exist on 2026-03-29 and is left out: the clock jumps from 02:00 to 03:00"
    )
    anchored = await preview(api, every="1d", anchor="2026-01-01T09:00:00Z", everyFrom="anchor", count=1)
    assert anchored[0]["fireTime"][11:] == "09:00:00Z"


async def test_of_a_fixed_delay_a_preview_knows_the_first_fire(api: Client) -> None:
    (only,) = await preview(api, every="10m", everyFrom="finish", **{"from": "2026-01-01T00:00:01Z"})

    assert only["fireTime"] == "2026-01-01T00:10:00Z"
    assert only["note"] == "then 10m after each run has ended"


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({}, "cron", "is missing"),
        ({"timezone": "Europe/Berlin"}, "cron", "is missing"),
        ({"cron": "0 0 30 2 *"}, "cron", "cron has no next fire time"),
        ({"cron": "61 * * * *"}, "cron", "61"),
        ({"cron": "0 0 * * *", "every": "1h"}, "every", "cannot be combined with cron"),
        ({"cron": "0 0 * * *", "timezone": "Europe/Berln"}, "timezone", "Europe/Berlin"),
        ({"cron": "0 0 * * *", "calendar": ["Christmas"]}, "calendar", "Christmas"),
        ({"cron": "0 0 * * *", "dst": {"gap": "jump"}}, "dst.gap", "shift"),
        ({"every": "1h", "count": 0}, "count", "is less than 1"),
        ({"every": "1h", "count": 1001}, "count", "is more than 1000"),
        ({"every": "1h", "from": "tomorrow"}, "from", "is not an instant"),
        ({"every": "1h", "overlap": "skip"}, "overlap", "unknown field"),
    ],
)
async def test_an_invalid_preview_is_refused_at_its_field(
    api: Client, fields: dict[str, Any], field: str, words: str
) -> None:
    told = expect.invalid(await api("POST", PREVIEW, fields), words)

    assert [error["field"] for error in told["errors"]] == [field]


async def test_a_preview_of_a_cron_is_refused_in_the_words_of_a_create(api: Client) -> None:
    for cron in ("0 0 30 2 *", "* * * *", "0 0 1 1 1 1", "@reboot", "0 0 * * MOO", "0 " * 200):
        refused = await api("POST", "/api/v1/jobs", {"name": given.name(), "cron": cron})
        previewed = await api("POST", PREVIEW, {"cron": cron})

        assert (previewed.status, previewed.json) == (422, refused.json)


async def test_a_preview_leaves_nothing_behind(api: Client, db: Platform) -> None:
    counted = "select (select count(*) from horai.job), (select count(*) from horai.schedule)"
    before = await db.fetchrow(counted)

    await preview(api, cron="7 7 7 7 *", count=1_000)

    assert await db.fetchrow(counted) == before


async def test_next_is_what_the_preview_of_the_same_fields_has_promised(api: Client) -> None:
    job = await given.job(api, **DAILY, calendar=["04-01"], endAt="2026-12-01T00:00:00Z")
    asked = {"from": SPRING, "count": 7}

    promised = await preview(api, **DAILY, calendar=["04-01"], endAt="2026-12-01T00:00:00Z", **asked)

    assert len(promised) == 7
    query = "?from=2026-03-27T23:00:00Z&count=7"
    assert await coming(api, job, query) == {"fires": promised, "note": None}
    assert await coming(api, {"id": job["name"]}, query) == {"fires": promised, "note": None}


async def test_next_begins_now_by_the_clock_of_the_database(api: Client, db: Platform) -> None:
    job = await given.job(api, every="1d")

    first, *others = (await coming(api, job))["fires"]

    assert len(others) == 9
    now = await db.fetchval("select clock_timestamp()")
    assert now - timedelta(minutes=1) < datetime.fromisoformat(first["fireTime"]) <= now + timedelta(days=1)


async def test_a_jitter_is_told_beside_each_fire(api: Client) -> None:
    job = await given.job(api, cron="0 0 * * *", jitter="1h")

    put_off = offset(int(job["id"]), timedelta(hours=1))
    assert put_off
    for fire in (await coming(api, job, "?count=3"))["fires"]:
        assert datetime.fromisoformat(fire["executeTime"]) - datetime.fromisoformat(fire["fireTime"]) == put_off


async def test_a_paused_job_shows_what_it_would_do(api: Client) -> None:
    job = await given.job(api, every="1h")
    awake = await coming(api, job, "?from=2030-01-01T00:00:00Z")
    await api("POST", f"/api/v1/jobs/{job['id']}/pause", {})

    paused = await coming(api, job, "?from=2030-01-01T00:00:00Z")

    assert awake["note"] is None
    assert paused["fires"] == awake["fires"]
    assert paused["note"] == "the job is paused"
    assert paused["noteSaid"]["code"] == "JOB_PAUSED"


async def test_a_job_without_a_schedule_has_no_fires_and_says_why(api: Client) -> None:
    job = await given.job(api)

    told = await coming(api, job)

    assert told["fires"] == []
    assert told["note"] == "the job has no schedule: it runs only on request"


async def test_of_a_fixed_delay_the_run_that_waits_is_what_comes(api: Client) -> None:
    job = await given.job(api, every="10m", everyFrom="finish", startAt="2999-01-01T00:05:00Z")

    told = await coming(api, job)

    note = "then 10m after each run has ended"
    assert told["note"] == note
    (fire,) = told["fires"]
    assert (fire["fireTime"], fire["local"], fire["note"]) == ("2999-01-01T00:10:00Z", "2999-01-01T00:10:00Z", note)
    assert (await coming(api, job, "?from=2999-01-01T00:10:01Z"))["fires"] == []


async def test_a_schedule_that_has_ended_answers_fewer_fires(api: Client) -> None:
    end = (datetime.now(UTC) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    job = await given.job(api, every="1h", endAt=end)

    assert len((await coming(api, job))["fires"]) == 2
    assert (await coming(api, job, "?from=2999-01-01T00:00:00Z"))["fires"] == []


async def test_next_of_no_job_and_with_no_sense_is_refused(api: Client) -> None:
    job = await given.job(api, every="1h")

    expect.problem(await api("GET", "/api/v1/jobs/none/next"), 404, "SCH_404_NOT_FOUND")
    for query in ("count=0", "count=1001", "count=x", "from=now", "until=2026-01-01T00:00:00Z"):
        expect.invalid(await api("GET", f"/api/v1/jobs/{job['id']}/next?{query}"))

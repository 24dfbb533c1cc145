"""Named calendars over REST: put, read, delete; jobs that follow them; and the notes that name them."""

import asyncio
from datetime import datetime
from typing import Any

import make
import pytest
from harness import Client

from api import expect, given
from horai.core.errors import Invalid
from horai.db.pool import Platform
from horai.operations.declarations import DeclaredJob, declare

CN = {
    "holidays": [{"date": "2026-10-01/2026-10-07", "name": "National Day"}],
    "workdays": ["2026-09-27", "2026-10-10"],
}
DAILY = {"cron": "0 9 * * *", "timezone": "Asia/Shanghai"}
FIRST = {"cron": "0 9 1 * *", "timezone": "Asia/Shanghai"}
OCTOBER = {"from": "2026-09-30T00:00:00+08:00", "count": 3}
PREVIEW = "/api/v1/schedules/preview"


async def calendar(api: Client, **fields: Any) -> str:
    name = given.name("calendar")
    made = await api("PUT", f"/api/v1/calendars/{name}", {**CN, **fields})
    assert made.status == 201, made.json
    return name


async def fires(api: Client, **wish: Any) -> list[tuple[str, str | None]]:
    reply = await api("POST", PREVIEW, {**OCTOBER, **wish})
    assert reply.status == 200, reply.json
    return [(fire["local"][:16], fire["note"]) for fire in reply.json["fires"]]


async def test_a_calendar_is_put_read_changed_with_its_etag_and_deleted(api: Client) -> None:
    name = given.name("calendar")
    path = f"/api/v1/calendars/{name}"

    made = await api("PUT", path, {**CN, "hours": "09:00-18:00"})
    read = await api("GET", path)

    assert (made.status, made.headers["etag"]) == (201, '"1"')
    assert read.json == {**made.json, "jobs": 0}
    assert read.json["holidays"] == CN["holidays"]
    assert (read.json["weekend"], read.json["hours"]) == (["sat", "sun"], {"default": "09:00-18:00"})
    assert name in [item["name"] for item in (await api("GET", "/api/v1/calendars?limit=200")).json["items"]]
    other = await api("PUT", path, {"weekend": []}, If_Match='"7"')
    expect.problem(other, 412, "SCH_412_PRECONDITION", name)
    changed = await api("PUT", path, {"weekend": []}, If_Match='"1"')
    assert (changed.status, changed.json["version"], changed.json["holidays"]) == (200, 2, [])
    again = await api("PUT", path, {"weekend": []})
    assert (again.status, again.json["version"]) == (200, 2), "nothing changed"
    assert (await api("DELETE", path, If_Match='"1"')).status == 412
    assert (await api("DELETE", path)).status == 204
    expect.problem(await api("GET", path), 404, "SCH_404_NOT_FOUND", name, "/api/v1/calendars")
    assert (await api("PUT", path, {}, If_Match='"1"')).status == 412, "it is new"


@pytest.mark.parametrize(
    ("fields", "field", "word"),
    [
        ({"holidays": ["2026-13-01"]}, "holidays", "2026-13-01"),
        ({"workdays": ["monday"]}, "workdays", "monday"),
        ({"weekend": ["someday"]}, "weekend.0", "mon"),
        ({"hours": "9-18"}, "hours", "09:00-18:00"),
        ({"hours": "18:00-09:00"}, "hours", "18:00-09:00"),
        ({"hours": "09:00-12:00,11:00-18:00"}, "hours", "overlap"),
        ({"hours": {"fri": "09:00-12:00"}}, "hours", "default"),
        ({"hours": {"default": "09:00-12:00", "xyz": "09:00-12:00"}}, "hours", "xyz"),
        ({"ics": "hello"}, "ics", "iCalendar"),
        ({"color": "red"}, "color", ""),
    ],
)
async def test_a_malformed_calendar_is_refused_at_its_field(
    api: Client, fields: dict[str, Any], field: str, word: str
) -> None:
    reply = await api("PUT", f"/api/v1/calendars/{given.name('calendar')}", fields)

    told = expect.problem(reply, 422, "SCH_422_INVALID")
    assert field in [error["field"] for error in told["errors"]]
    assert word in str(told["errors"])
    expect.problem(await api("PUT", "/api/v1/calendars/a%20b", {}), 422, "SCH_422_INVALID", "name")


async def test_the_days_of_a_calendar_say_what_they_are(api: Client) -> None:
    name = await calendar(api, hours={"default": "09:00-18:00", "fri": "09:00-16:00"})

    reply = await api("GET", f"/api/v1/calendars/{name}/days?from=2026-10-07&days=5")

    assert [(day["date"], day["kind"], day["hours"], day["name"]) for day in reply.json["days"]] == [
        ("2026-10-07", "HOLIDAY", None, "National Day"),
        ("2026-10-08", "WORKDAY", "09:00-18:00", None),
        ("2026-10-09", "WORKDAY", "09:00-16:00", None),
        ("2026-10-10", "MAKE_UP", "09:00-18:00", None),
        ("2026-10-11", "WEEKEND", None, None),
    ]
    assert (await api("GET", f"/api/v1/calendars/{name}/days?days=401")).status == 422


async def test_a_preview_names_the_calendar_that_moved_or_skipped_a_fire(api: Client) -> None:
    name = await calendar(api)

    skipped = await fires(api, **DAILY, calendar={"name": name})
    after = await fires(api, **FIRST, calendar={"name": name, "onHoliday": "after"})
    before = await fires(api, **FIRST, calendar={"name": name, "onHoliday": "before"})

    assert skipped == [
        ("2026-09-30T09:00", None),
        ("2026-10-08T09:00", f"7 days from 2026-10-01 to 2026-10-07 are days off of the calendar {name}"),
        ("2026-10-09T09:00", None),
    ]
    holiday = f"2026-10-01 (National Day) is a day off of the calendar {name}"
    assert after[0] == ("2026-10-08T09:00", f"moved from 2026-10-01 09:00: {holiday}")
    assert before[0] == ("2026-09-30T09:00", f"moved from 2026-10-01 09:00: {holiday}")
    expect.problem(
        await api("POST", PREVIEW, {**DAILY, "calendar": {"name": "nowhere"}}), 422, "SCH_422_INVALID", "nowhere"
    )


async def test_a_preview_with_business_hours_says_where_a_time_came_from(api: Client) -> None:
    name = await calendar(api, hours="09:00-18:00")
    late = {"cron": "0 20 8 * *", "timezone": "Asia/Shanghai"}

    assert (await fires(api, **late, calendar={"name": name, "onHoliday": "after"}))[0] == (
        "2026-10-09T09:00",
        f"moved from 2026-10-08 20:00: 20:00 on 2026-10-08 is outside the business hours of the calendar {name}",
    )
    hourly = await fires(api, every="1h", timezone="Asia/Shanghai", calendar={"name": name})
    assert hourly[0] == ("2026-09-30T09:00", f"times outside the business hours of the calendar {name} are skipped")


async def test_a_job_follows_a_calendar_and_shows_it(api: Client, db: Platform) -> None:
    name = await calendar(api)

    job = await given.job(api, **DAILY, calendar={"name": name})
    listed = (await api("GET", f"/api/v1/jobs?name={job['name']}&recent=1")).json["items"][0]
    coming = (await api("GET", f"/api/v1/jobs/{job['name']}/next?from=2026-10-01T00:00:00Z&count=1")).json["fires"][0]

    assert job["calendar"] == {"name": name, "onHoliday": "skip"}
    assert listed["calendar"] == job["calendar"]
    assert listed["nextFire"] is not None
    assert (coming["local"][:16], name in coming["note"]) == ("2026-10-08T09:00", True)
    spec = await db.fetchval("select spec -> 'calendar' from horai.schedule s join horai.job on job.schedule_id = s.id "
                             "where job.name = $1", job["name"])  # fmt: skip
    assert name not in spec, "tenants share the schedules of equal calendars"
    assert (await api("GET", f"/api/v1/calendars/{name}")).json["jobs"] == 1


async def test_a_calendar_that_does_not_exist_or_cannot_move_an_interval_is_refused(api: Client) -> None:
    name = await calendar(api)

    async def refused(**fields: Any) -> Any:
        body = {"name": given.name(), "target": {"type": "http", "url": "http://127.0.0.1:9/"}, **fields}
        return expect.problem(await api("POST", "/api/v1/jobs", body), 422, "SCH_422_INVALID")["errors"]

    assert "does not exist" in str(await refused(**DAILY, calendar={"name": "nowhere"}))
    assert "use skip" in str(await refused(every="1h", calendar={"name": name, "onHoliday": "after"}))
    assert "onHoliday" in str(await refused(**DAILY, calendar={"name": name, "onHoliday": "never"}))
    assert "only accepted together" in str(await refused(at=given.FAR, calendar={"name": name}))
    closed = await calendar(api, weekend=["mon", "tue", "wed", "thu", "fri", "sat", "sun"], workdays=[])
    assert "no next fire" in str(await refused(**DAILY, calendar={"name": closed}))


async def test_a_calendar_in_use_is_not_deleted_and_the_jobs_are_named(api: Client) -> None:
    name = await calendar(api)
    job = await given.job(api, **DAILY, calendar={"name": name})
    path = f"/api/v1/calendars/{name}"

    expect.problem(await api("DELETE", path), 409, "SCH_409_CONFLICT", name, job["name"])
    assert (await api("PATCH", f"/api/v1/jobs/{job['name']}", {"calendar": ["12-25"]})).status == 200

    assert (await api("DELETE", path)).status == 204


async def test_a_change_of_a_calendar_moves_all_of_its_jobs_at_once(api: Client, db: Platform) -> None:
    name = await calendar(api)
    use = {"name": name, "onHoliday": "after"}
    jobs = [await given.job(api, **DAILY, calendar=use) for _ in range(3)]
    jobs.append(await given.job(api, cron="0 10 * * *", timezone="Asia/Shanghai", calendar=use))
    refresh = await given.job(api, **DAILY, calendar=use, refresh={"window": "1d"})
    paused = await given.job(api, **DAILY, calendar=use, status="PAUSED")
    other = await given.job(api, **DAILY)
    names = [job["name"] for job in [*jobs, paused]]
    before = await cursors(db, [*names, other["name"]])

    changed = await api("PUT", f"/api/v1/calendars/{name}", {**CN, "holidays": ["2026-10-01"], "weekend": []})

    assert changed.status == 200
    after = await cursors(db, [*names, other["name"]])
    assert all(after[each][0] != before[each][0] and after[each][1] > before[each][1] for each in names)
    assert after[other["name"]] == before[other["name"]]
    assert len({after[job["name"]][0] for job in jobs}) == 2
    coming = (await api("GET", f"/api/v1/jobs/{names[0]}/next?from=2026-10-01T00:00:00Z&count=1")).json["fires"]
    assert coming[0]["local"][:16] == "2026-10-02T09:00"
    ticks = f"{refresh['name']}:refresh"
    assert (await cursors(db, [ticks]))[ticks][0] == after[names[0]][0], "the ticks follow it, too"
    row = await db.fetchrow("select verb, before, after from horai.audit where object_id = $1 order by id desc", name)
    assert row is not None
    assert row["verb"] == "calendar.change"
    assert "weekend" in row["after"]


async def cursors(db: Platform, names: list[str]) -> dict[str, tuple[int, datetime]]:
    rows = await db.fetch("select name, schedule_id, active_from from horai.job where name = any ($1::text[])", names)
    return {row["name"]: (row["schedule_id"], row["active_from"]) for row in rows}


async def test_other_names_of_holidays_change_no_schedule(api: Client, db: Platform) -> None:
    name = await calendar(api)
    job = await given.job(api, **DAILY, calendar={"name": name})
    before = await cursors(db, [job["name"]])

    named = {**CN, "holidays": [{"date": "2026-10-01/2026-10-07", "name": "Golden Week"}]}
    changed = await api("PUT", f"/api/v1/calendars/{name}", named)

    assert (changed.status, changed.json["version"]) == (200, 2)
    assert await cursors(db, [job["name"]]) == before
    note = (await api("GET", f"/api/v1/jobs/{job['name']}/explain?at=2026-10-01T09:00")).json["why"]
    assert "Golden Week" in note


async def test_a_change_that_would_silence_a_job_for_good_is_refused_and_changes_nothing(
    api: Client, db: Platform
) -> None:
    name = await calendar(api)
    job = await given.job(api, **DAILY, calendar={"name": name})
    path, before = f"/api/v1/calendars/{name}", await cursors(db, [job["name"]])

    refused = await api("PUT", path, {"weekend": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]})

    expect.problem(refused, 409, "SCH_409_CONFLICT", job["name"], "never fire")
    assert (await api("GET", path)).json["version"] == 1
    assert await cursors(db, [job["name"]]) == before


async def test_jobs_that_begin_to_follow_a_calendar_during_its_changes_follow_its_last_days(
    api: Client, db: Platform
) -> None:
    name = await calendar(api)
    path = f"/api/v1/calendars/{name}"
    jobs = [await given.job(api, **DAILY, calendar={"name": name}) for _ in range(4)]
    fresh = [await given.job(api, **DAILY) for _ in range(4)]

    changes = [api("PUT", path, {"holidays": [f"2026-10-{day:02}"]}) for day in range(1, 9)]
    joins = [api("PATCH", f"/api/v1/jobs/{job['name']}", {"calendar": {"name": name}}) for job in fresh]
    others = [api("POST", f"/api/v1/jobs/{job['name']}/pause") for job in jobs]
    replies = await asyncio.gather(*changes, *joins, *others, *(api("PUT", path, CN) for _ in range(2)))

    assert [reply.status for reply in replies if reply.status != 200] == []
    last = (await api("GET", path)).json["holidays"]
    specs = await db.fetch(
        "select distinct s.spec -> 'calendar' ->> 'holidays' as days from horai.schedule s "
        "join horai.job on job.schedule_id = s.id where job.name = any ($1::text[])",
        [job["name"] for job in [*jobs, *fresh]],
    )
    assert [row["days"].replace('"', "").strip("[]") for row in specs] == [", ".join(day["date"] for day in last)]


async def test_a_job_that_begins_to_follow_a_calendar_waits_for_its_change(api: Client, db: Platform) -> None:
    name, job = await calendar(api), await given.job(api, **DAILY)
    days = '{"holidays": [], "workdays": [], "weekend": [], "hours": null}'
    async with db.transaction():
        await db.execute("update horai.calendar set days = $2 where name = $1", name, days)
        join = asyncio.create_task(api("PATCH", f"/api/v1/jobs/{job['name']}", {"calendar": {"name": name}}))
        async with asyncio.timeout(20):
            while not join.done() and not await db.fetchval("select exists (select from pg_locks where not granted)"):
                await asyncio.sleep(0.01)
        assert not join.done()

    assert (await join).status == 200
    spec = await db.fetchval(
        "select spec -> 'calendar' ->> 'weekend' from horai.schedule s join horai.job on job.schedule_id = s.id "
        "where job.name = $1",
        job["name"],
    )
    assert spec == "[]"


async def test_explain_says_why_a_slot_is_skipped_moved_or_stands_for_another(api: Client) -> None:
    name = await calendar(api)
    skip = await given.job(api, **DAILY, calendar={"name": name})
    after = await given.job(api, **FIRST, calendar={"name": name, "onHoliday": "after"})
    holiday = f"2026-10-01 (National Day) is a day off of the calendar {name}"

    async def why(job: Any, at: str) -> tuple[str, str]:
        told = (await api("GET", f"/api/v1/jobs/{job['name']}/explain?at={at}")).json
        return told["verdict"], told["why"]

    assert await why(skip, "2026-10-01T09:00") == (
        "NOT_A_SLOT",
        f"Its schedule has this time, but {holiday}, and onHoliday is skip.",
    )
    verdict, moved = await why(after, "2026-10-01T09:00")
    assert (verdict, holiday in moved, "2026-10-08T09:00" in moved.replace(" ", "T")) == ("NOT_A_SLOT", True, True)
    _, landed = await why(after, "2026-10-08T09:00")
    assert f"Moved from 2026-10-01 09:00: {holiday}." in landed


async def test_code_declares_a_job_that_follows_a_calendar_and_changes_nothing_the_second_time(
    api: Client, database: str
) -> None:
    name, job = await calendar(api), given.name("declared")
    declared = [DeclaredJob({"name": job, **DAILY, "calendar": {"name": name}}, None)]
    async with make.scope(database, 2) as scope:
        first = await declare(scope, "shop", declared)
        again = await declare(scope, "shop", declared)
        with pytest.raises(Invalid, match="does not exist"):
            await declare(scope, "shop", [DeclaredJob({"name": f"{job}-2", **DAILY, "calendar": {"name": "no"}}, None)])

    assert (first.created, again.unchanged) == ((job,), (job,))
    assert (await api("GET", f"/api/v1/jobs/{job}")).json["calendar"] == {"name": name, "onHoliday": "skip"}


async def test_backfill_and_forecast_respect_the_calendar(api: Client) -> None:
    name = await calendar(api, holidays=["2025-10-01/2025-10-08"], workdays=["2025-10-11"])
    job = await given.job(api, **DAILY, calendar={"name": name})
    span = {"from": "2025-09-30T00:00:00+08:00", "to": "2025-10-14T00:00:00+08:00", "dryRun": True}

    planned = await api("POST", f"/api/v1/jobs/{job['name']}/backfill", span)
    forecast = await api("GET", "/api/v1/forecast")

    assert planned.status == 200, planned.json
    assert planned.json["total"] == 5, "30, 9, 10, the make-up day 11, and 13"
    assert forecast.status == 200, forecast.json

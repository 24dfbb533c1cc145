"""Pausing and resuming many jobs by one request."""

import asyncio
from typing import Any

from harness import Client

from api import given
from horai.db.pool import Platform


async def jobs(api: Client, count: int, **fields: Any) -> list[str]:
    return [(await given.job(api, **fields))["name"] for _ in range(count)]


async def statuses(api: Client, names: list[str]) -> set[str]:
    return {(await api("GET", f"/api/v1/jobs/{name}")).json["status"] for name in names}


async def test_C5_all_jobs_with_a_tag_are_paused_and_resumed(api: Client) -> None:
    tag = given.name("tag")
    names, other = await jobs(api, 3, cron="0 3 * * *", tags=[tag]), await jobs(api, 1, cron="0 3 * * *")

    paused = await api("POST", "/api/v1/jobs/pause", {"tag": tag, "note": "maintenance"})
    assert paused.json == {"matched": 3, "changed": 3, "held": 0, "more": False, "dryRun": False}
    assert await statuses(api, names) == {"PAUSED"}
    assert await statuses(api, other) == {"ACTIVE"}
    assert (await api("GET", f"/api/v1/jobs/{names[0]}")).json["note"] == "maintenance"

    again = await api("POST", "/api/v1/jobs/pause", {"tag": tag})
    assert (again.json["matched"], again.json["changed"]) == (0, 0)

    resumed = await api("POST", "/api/v1/jobs/resume", {"tag": tag})
    assert (resumed.json["matched"], resumed.json["changed"]) == (3, 3)
    assert await statuses(api, names) == {"ACTIVE"}


async def test_each_job_gets_its_event(api: Client, db: Platform) -> None:
    names = await jobs(api, 2)
    await api("POST", "/api/v1/jobs/pause", {"names": names, "note": "why"})
    await api("POST", "/api/v1/jobs/resume", {"names": names})
    for name in names:
        kinds = await db.fetch(
            "select kind from horai.event join horai.job on job.id = event.job_id where job.name = $1 order by event.id",
            name,
        )
        assert [row["kind"] for row in kinds] == ["JOB_CREATED", "JOB_PAUSED", "JOB_RESUMED"]


async def test_a_limit_leaves_the_rest_for_the_next_request(api: Client) -> None:
    names = await jobs(api, 3)
    first = await api("POST", "/api/v1/jobs/pause", {"names": names, "limit": 2})
    assert (first.json["changed"], first.json["more"]) == (2, True)
    second = await api("POST", "/api/v1/jobs/pause", {"names": names, "limit": 2})
    assert (second.json["changed"], second.json["more"]) == (1, False)
    assert await statuses(api, names) == {"PAUSED"}


async def test_a_dry_run_counts_and_changes_nothing(api: Client) -> None:
    names = await jobs(api, 2)
    reply = await api("POST", "/api/v1/jobs/pause", {"names": names, "dryRun": True})
    assert reply.json == {"matched": 2, "changed": 0, "held": 0, "more": False, "dryRun": True}
    assert await statuses(api, names) == {"ACTIVE"}


async def test_a_request_without_a_filter_and_one_with_an_unknown_name_change_nothing(api: Client) -> None:
    (name,) = await jobs(api, 1)
    bare = await api("POST", "/api/v1/jobs/pause", {"note": "all of them"})
    assert bare.status == 422
    assert "names, tag, queue, nameContains" in bare.json["hint"]
    unknown = await api("POST", "/api/v1/jobs/pause", {"names": [name, "no-such-job"]})
    assert (unknown.status, "no-such-job" in unknown.json["detail"]) == (404, True)
    assert await statuses(api, [name]) == {"ACTIVE"}


async def test_waiting_instances_of_many_jobs_are_held_and_go_on(api: Client, db: Platform) -> None:
    """More jobs than a request moves the instances of by itself: the node moves the rest."""
    names = await jobs(api, 25)
    for name in names:
        assert (await api("PUT", f"/api/v1/jobs/{name}/instances/a", {"executeTime": given.FAR})).status == 201
    lanes = (
        "select count(*) from horai.instance_live live join horai.job on job.id = live.job_id"
        " where job.name = any ($1) and (live.lane = 0) = $2"
    )
    for verb, held in (("pause", True), ("resume", False)):
        assert (await api("POST", f"/api/v1/jobs/{verb}", {"names": names})).json["changed"] == 25
        async with asyncio.timeout(30):
            while await db.fetchval(lanes, names, held) < 25:
                await asyncio.sleep(0.02)


async def test_a_job_that_another_transaction_changes_is_counted_as_held_and_the_others_are_changed(
    api: Client, db: Platform
) -> None:
    names = await jobs(api, 3)
    async with db.transaction():
        await db.execute("select from horai.job where name = $1 for update", names[1])
        reply = await api("POST", "/api/v1/jobs/pause", {"names": names})
    assert reply.json == {"matched": 3, "changed": 2, "held": 1, "more": False, "dryRun": False}
    assert (await api("POST", "/api/v1/jobs/pause", {"names": names})).json["changed"] == 1


async def test_the_slots_of_the_pause_follow_the_misfire_policy(api: Client, db: Platform) -> None:
    names = await jobs(api, 2, every="1s", misfire="skip", misfireAfter="1s")
    await api("POST", "/api/v1/jobs/pause", {"names": names})
    await db.execute("update horai.job set missed_from = missed_from - interval '1 hour' where name = any ($1)", names)
    await db.execute("update horai.job set active_from = active_from - interval '2 hours' where name = any ($1)", names)
    assert (await api("POST", "/api/v1/jobs/resume", {"names": names})).json["changed"] == 2
    skips = await db.fetchval(
        "select count(distinct job_id) from horai.skip join horai.job on job.id = skip.job_id"
        " where job.name = any ($1) and reason = 'PAUSED_SKIP' and slots > 3000",
        names,
    )
    assert skips == 2


async def test_the_ticks_of_a_refresh_job_are_paused_and_resumed_with_it(api: Client, db: Platform) -> None:
    (name,) = await jobs(api, 1, every="1h", refresh={"window": "10d"})
    ticks = "select ticks.status from horai.job ticks join horai.job on job.id = ticks.ticks_for where job.name = $1"
    await api("POST", "/api/v1/jobs/pause", {"names": [name]})
    assert await db.fetchval(ticks, name) == 1
    await api("POST", "/api/v1/jobs/resume", {"names": [name]})
    assert await db.fetchval(ticks, name) == 0

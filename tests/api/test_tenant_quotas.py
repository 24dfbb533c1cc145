"""Quotas of a tenant over REST: each one on each path, with its figures in the answer, and nothing half done."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from harness import Client, Reply

from api import expect, given
from horai.db.pool import Platform

TENANT = "/api/v1/tenants/default"
NONE = {
    "jobs": None,
    "liveInstances": None,
    "enqueuePerSecond": None,
    "payloadBytes": None,
    "concurrency": None,
    "callbackNetworks": None,
}


@asynccontextmanager
async def quotas(api: Client, **limits: Any) -> AsyncGenerator[Any]:
    """The tenant with these quotas, and without any afterwards."""
    reply = await api("PATCH", TENANT, {"quotas": limits})
    assert reply.status == 200, reply.json
    try:
        yield reply.json
    finally:
        assert (await api("PATCH", TENANT, {"quotas": NONE})).status == 200


async def clear(db: Platform) -> None:
    """End every live instance, as if all had run."""
    await db.execute("delete from horai.instance_live")


async def live(db: Platform) -> int:
    return await db.fetchval("select count(*) from horai.instance_live")


def limited(reply: Reply, *words: str) -> None:
    """The write was refused with 429 and a time to wait."""
    expect.problem(reply, 429, "SCH_429_RETRY_LIMITED", *words)
    assert int(reply.headers["Retry-After"]) >= 1


# Settings


async def test_C2b_the_platform_sets_reads_and_removes_the_quotas_of_a_tenant(api: Client) -> None:
    before = (await api("GET", TENANT)).json
    assert before["quotas"] == NONE
    wished = {
        "jobs": 1000,
        "liveInstances": 5,
        "enqueuePerSecond": 7,
        "payloadBytes": 99,
        "concurrency": 3,
        "callbackNetworks": ["10.1.0.0/16"],
    }
    changed = await api("PATCH", TENANT, {"weight": 3, "quotas": wished})
    assert (changed.status, changed.json["weight"], changed.json["quotas"]) == (200, 3, wished)
    assert changed.json["version"] == before["version"] + 1
    assert changed.headers["ETag"] == f'"{changed.json["version"]}"'
    partly = await api("PATCH", TENANT, {"quotas": {"jobs": None}})
    assert partly.json["quotas"] == {**wished, "jobs": None}
    assert partly.json["weight"] == 3
    assert (await api("PATCH", TENANT, {"weight": 1, "quotas": NONE})).json["quotas"] == NONE


async def test_a_change_of_a_tenant_that_was_changed_meanwhile_is_refused(api: Client) -> None:
    version = (await api("GET", TENANT)).json["version"]
    stale = await api("PATCH", TENANT, {"weight": 2}, If_Match=f'"{version + 1}"')
    expect.problem(stale, 412, "SCH_412_PRECONDITION", str(version))
    assert (await api("PATCH", TENANT, {"weight": 1}, If_Match=f'"{version}"')).status == 200


async def test_wrong_quotas_are_refused_with_each_field(api: Client) -> None:
    for body, field in (
        ({"weight": 0}, "weight"),
        ({"weight": 1001}, "weight"),
        ({"quotas": {"jobs": -1}}, "quotas.jobs"),
        ({"quotas": {"liveInstances": "5"}}, "quotas.liveInstances"),
        ({"quotas": {"enqueuePerSecond": 0}}, "quotas.enqueuePerSecond"),
        ({"quotas": {"payloadBytes": 1_048_577}}, "quotas.payloadBytes"),
        ({"quotas": {"callbackNetworks": ["10.0.0.1/8"]}}, "quotas.callbackNetworks.0"),
        ({"quotas": {"concurrency": 0}}, "quotas.concurrency"),
        ({"quotas": {"concurrency": 10_001}}, "quotas.concurrency"),
        ({"name": "other"}, "name"),
    ):
        expect.problem(await api("PATCH", TENANT, body), 422, "SCH_422_INVALID", field)
    expect.problem(await api("PATCH", "/api/v1/tenants/none", {"weight": 1}), 404, "SCH_404_NOT_FOUND", "none")


async def test_C43_a_change_of_quotas_is_recorded_with_the_fields_before_and_after(api: Client, db: Platform) -> None:
    async with quotas(api, jobs=100_000):
        row = await db.fetchrow("select * from horai.audit where verb = 'tenant.change' order by id desc limit 1")
    assert row is not None
    assert (json.loads(row["before"]), json.loads(row["after"])) == ({"jobs": None}, {"jobs": 100_000})


# Jobs


async def test_C2b_a_tenant_has_no_more_jobs_than_its_quota(api: Client) -> None:
    known = (await api("GET", TENANT)).json["usage"]["jobs"]
    async with quotas(api, jobs=known + 1):
        kept = await given.job(api)
        refused = await api("POST", "/api/v1/jobs", {"name": given.name(), "target": kept["target"]})
        expect.problem(refused, 422, "SCH_422_INVALID", f"has {known + 1:,} jobs", f"allows {known + 1:,}")
        assert (await api("GET", TENANT)).json["usage"]["jobs"] == known + 1
        assert (await api("DELETE", f"/api/v1/jobs/{kept['name']}")).status == 204
        await given.job(api)


async def test_C2b_creators_of_jobs_at_the_same_time_stay_within_the_quota(api: Client) -> None:
    known = (await api("GET", TENANT)).json["usage"]["jobs"]
    target = {"type": "http", "url": "http://127.0.0.1:9/"}
    async with quotas(api, jobs=known + 3):
        wishes = [api("POST", "/api/v1/jobs", {"name": given.name(), "target": target}) for _ in range(10)]
        replies = await asyncio.gather(*wishes)
    assert sorted(reply.status for reply in replies) == [201] * 3 + [422] * 7


async def test_a_refresh_job_counts_as_one_job(api: Client) -> None:
    known = (await api("GET", TENANT)).json["usage"]["jobs"]
    async with quotas(api, jobs=known + 1):
        await given.job(api, every="1h", refresh={"window": "10d"})
        assert (await api("GET", TENANT)).json["usage"]["jobs"] == known + 1


# Payloads


async def test_C2b_a_payload_is_at_most_as_large_as_the_quota_on_every_path(api: Client, db: Platform) -> None:
    job = await given.job(api)
    refresh = await given.job(api, every="1h", refresh={"window": "10d"})
    await given.put(api, job, "moves", payload="small")
    large, before = "x" * 99, await live(db)
    name = job["name"]
    async with quotas(api, payloadBytes=100):
        for reply in (
            await given.put(api, job, "new", payload=large),
            await given.put(api, job, "moves", payload=large),
            await api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": [{}, {"payload": large}]}),
            await api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": [{"key": "k", "payload": large}]}),
            await api("POST", f"/api/v1/jobs/{name}/trigger", {"payload": large}, Idempotency_Key=given.name("key")),
            await api("POST", "/api/v1/jobs", {"name": given.name(), "target": job["target"], "payload": large}),
            await api("PATCH", f"/api/v1/jobs/{name}", {"payload": large}),
            await api("PUT", f"/api/v1/jobs/{refresh['name']}/entities/e", {"payload": large}),
        ):
            expect.problem(reply, 413, "SCH_413_TOO_LARGE", "101 bytes", "allows 100")
        assert await live(db) == before
        assert (await given.put(api, job, "moves", payload="x" * 98)).status == 200


async def test_a_job_with_a_payload_beyond_a_later_quota_can_still_be_changed(api: Client) -> None:
    job = await given.job(api, payload="x" * 200)
    async with quotas(api, payloadBytes=100):
        assert (await api("PATCH", f"/api/v1/jobs/{job['name']}", {"tags": ["kept"]})).status == 200


# Live instances


async def test_C2b_a_tenant_has_no_more_live_instances_than_its_quota_on_every_path(api: Client, db: Platform) -> None:
    job = await given.job(api)
    past = await given.job(api, every="1h", startAt="2026-01-01T00:00:00Z")
    refresh = await given.job(api, every="1h", refresh={"window": "10d", "runOnAdd": True})
    await clear(db)
    name = job["name"]
    async with quotas(api, liveInstances=2):
        assert (await given.put(api, job, "first")).status == 201
        over = await api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": [{"executeTime": given.FAR}] * 2})
        limited(over, "has 1 live", "allows 2", "2 more")
        assert await live(db) == 1
        assert (await given.put(api, job, "second")).status == 201
        soon = {"name": given.name(), "target": job["target"], "delay": "1h"}
        backfill = {"from": "2026-02-01T00:00:00Z", "to": "2026-02-02T00:00:00Z"}
        for reply in (
            await given.put(api, job, "third"),
            await api("POST", f"/api/v1/jobs/{name}/trigger", Idempotency_Key=given.name("key")),
            await api("POST", f"/api/v1/jobs/{name}/instances/batch", {"items": [{"key": "k"}]}),
            await api("POST", "/api/v1/jobs", soon),
            await api("POST", f"/api/v1/jobs/{past['name']}/backfill", backfill),
            await api("PUT", f"/api/v1/jobs/{refresh['name']}/entities/e"),
        ):
            limited(reply, "has 2 live", "allows 2")
        assert await live(db) == 2
        assert (await api("GET", f"/api/v1/jobs/{soon['name']}")).status == 404
        assert (await given.put(api, job, "second")).json["decision"] == "UPDATED"


async def test_C2b_ended_instances_make_room_within_two_seconds(api: Client, db: Platform) -> None:
    job = await given.job(api)
    await clear(db)
    async with quotas(api, liveInstances=1):
        await given.put(api, job, "first")
        limited(await given.put(api, job, "second"), "has 1 live")
        await api("DELETE", f"/api/v1/jobs/{job['name']}/instances/first")

        async def has_room() -> bool:
            return (await given.put(api, job, "second")).status == 201

        await given.until(has_room)


async def test_C2b_writers_at_the_same_time_never_exceed_the_quota(api: Client, db: Platform) -> None:
    job = await given.job(api)
    await clear(db)
    async with quotas(api, liveInstances=25):
        replies = await asyncio.gather(*(given.put(api, job, f"k{n}") for n in range(60)))
        assert await live(db) == 25
    assert sorted({reply.status for reply in replies}) == [201, 429]


# Rate


async def test_C2b_a_tenant_adds_no_more_instances_per_second_than_its_quota(api: Client, db: Platform) -> None:
    job = await given.job(api)
    await clear(db)
    async with quotas(api, enqueuePerSecond=2):
        assert (await given.put(api, job, "a")).status == 201
        batch = {"items": [{"executeTime": given.FAR}] * 40}
        limited(await api("POST", f"/api/v1/jobs/{job['name']}/instances/batch", batch), "2 instances per second")

        async def is_taken() -> bool:
            return (await api("POST", f"/api/v1/jobs/{job['name']}/instances/batch", batch)).status == 200

        await given.until(is_taken)
        refused = await given.put(api, job, "b")
        limited(refused, "2 instances per second", "1 more")
        assert 15 <= int(refused.headers["Retry-After"]) <= 20
    assert (await given.put(api, job, "b")).status == 201


async def test_slots_of_schedules_are_not_refused_and_count_as_live(api: Client, db: Platform) -> None:
    manual = await given.job(api)
    await clear(db)
    async with quotas(api, liveInstances=1, enqueuePerSecond=1):
        paused = (await api("PUT", "/api/v1/queues/slots", {"paused": True})).json
        every = await given.job(api, every="1s", queue=paused["name"], overlap="allow")

        async def has_slots() -> bool:
            made = await db.fetchval("select count(*) from horai.instance_live where job_id = $1", int(every["id"]))
            return made >= 3

        await given.until(has_slots)

        async def is_refused() -> bool:
            reply = await given.put(api, manual, given.name("key"))
            return reply.status == 429 and "liveInstances" in reply.json["detail"]

        await given.until(is_refused)
        await api("DELETE", f"/api/v1/jobs/{every['name']}")


async def test_a_tenant_without_quotas_sends_no_statement_about_them(api: Client, db: Platform) -> None:
    job = await given.job(api)
    assert await db.fetchval("select metered from horai.job where id = $1", int(job["id"])) is False
    async with quotas(api, liveInstances=10**6):
        assert await db.fetchval("select metered from horai.job where id = $1", int(job["id"])) is True
        new = await given.job(api)
        assert await db.fetchval("select metered from horai.job where id = $1", int(new["id"])) is True
    assert await db.fetchval("select bool_or(metered) from horai.job where deleted_at is null") is False

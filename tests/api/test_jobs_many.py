"""Running and deleting many jobs by one request, once per Idempotency-Key."""

import itertools
from datetime import datetime
from typing import Any

import pytest
from databases import Superuser
from harness import Client, Reply

from api import expect, given

TRIGGER, DELETE = "/api/v1/jobs/trigger", "/api/v1/jobs/delete"


async def jobs(api: Client, count: int, **fields: Any) -> list[str]:
    return [(await given.job(api, **fields))["name"] for _ in range(count)]


async def bulk(api: Client, path: str, key: str | None = None, **wish: Any) -> Any:
    reply: Reply = await api("POST", path, wish, Idempotency_Key=key or given.name("key"))
    assert reply.status == 200, reply.json
    return reply.json


async def made(api: Client, name: str) -> list[Any]:
    return (await given.listed(api, f"/api/v1/jobs/{name}/instances"))[::-1]


async def is_there(api: Client, name: str) -> bool:
    return (await api("GET", f"/api/v1/jobs/{name}")).status == 200


async def test_jobs_that_match_are_counted_and_then_run_once_with_one_payload(api: Client) -> None:
    tag = given.name("tag")
    names, (other,) = await jobs(api, 3, tags=[tag]), await jobs(api, 1)
    await api("POST", f"/api/v1/jobs/{names[2]}/pause")

    counted = (await api("POST", TRIGGER, {"tag": tag, "dryRun": True})).json
    done = await bulk(api, TRIGGER, tag=tag, payload={"day": "2026-11-19"})

    assert (counted["matched"], counted["changed"], counted["dryRun"]) == (3, 0, True)
    assert (done["matched"], done["changed"], done["skipped"], done["nextCursor"]) == (3, 3, 0, None)
    found = [await made(api, name) for name in names]
    assert [[(await given.read(api, one))["payload"] for one in of_job] for of_job in found] == [
        [{"day": "2026-11-19"}]
    ] * 3
    assert await made(api, other) == []


async def test_a_repeated_request_runs_nothing_again_and_the_next_continues_at_its_cursor(api: Client) -> None:
    names = await jobs(api, 3)

    first = await bulk(api, TRIGGER, "page-1" + names[0], names=names, limit=2)
    repeated = await bulk(api, TRIGGER, "page-1" + names[0], names=names, limit=2)
    second = await bulk(api, TRIGGER, "page-2" + names[0], names=names, limit=2, cursor=first["nextCursor"])

    assert repeated == first
    assert (first["changed"], second["changed"], second["nextCursor"]) == (2, 1, None)
    assert [len(await made(api, name)) for name in names] == [1, 1, 1]


async def test_a_rate_spreads_the_starts_also_over_several_requests(api: Client, db: Superuser) -> None:
    names = await jobs(api, 3)

    first = await bulk(api, TRIGGER, names=names, rate="30/h", limit=2)
    rest = {"cursor": first["nextCursor"], "startAt": first["nextStart"]}
    await bulk(api, TRIGGER, names=names, rate="30/h", **rest)

    times = [datetime.fromisoformat((await made(api, name))[0]["fireTime"]) for name in names]
    assert [round((after - before).total_seconds()) for before, after in itertools.pairwise(times)] == [120, 120]


@pytest.mark.parametrize("path", [TRIGGER, DELETE])
async def test_a_bulk_request_without_a_key_a_filter_or_with_unknown_fields_is_refused(api: Client, path: str) -> None:
    (name,) = await jobs(api, 1)

    keyless = await api("POST", path, {"names": [name]})
    bare = await api("POST", path, {}, Idempotency_Key="bare")
    unknown = await api("POST", path, {"names": [name, "no-such-job"]}, Idempotency_Key="unknown")

    expect.problem(keyless, 400, "SCH_400_IDEMPOTENCY_KEY_REQUIRED", "Idempotency-Key")
    expect.problem(bare, 422, "SCH_422_INVALID", "every job")
    assert (unknown.status, "no-such-job" in unknown.json["detail"]) == (404, True)
    expect.invalid(await api("POST", path, {"names": [name], "note": "x"}, Idempotency_Key="n"), "note")
    assert await is_there(api, name)
    assert await made(api, name) == []


async def test_a_start_without_a_rate_and_a_rate_of_a_deletion_are_refused(api: Client) -> None:
    (name,) = await jobs(api, 1)
    start = {"names": [name], "startAt": "2999-01-01T00:00:00Z"}

    expect.invalid(await api("POST", TRIGGER, start, Idempotency_Key="a"), "startAt")
    expect.invalid(await api("POST", TRIGGER, {"names": [name], "rate": "soon"}, Idempotency_Key="b"), "rate")
    expect.invalid(await api("POST", DELETE, {"names": [name], "rate": "1/s"}, Idempotency_Key="c"), "rate")
    expect.invalid(await api("POST", DELETE, {"names": [name], "payload": 1}, Idempotency_Key="d"), "payload")
    assert await made(api, name) == []


async def test_a_job_that_cannot_be_run_is_skipped_and_named_with_the_reason(api: Client) -> None:
    refresh = (await given.job(api, every="1d", refresh={"window": "10d"}))["name"]
    (plain,) = await jobs(api, 1)

    done = await bulk(api, TRIGGER, names=[refresh, plain], payload={"n": 1})

    assert (done["matched"], done["changed"], done["skipped"]) == (2, 1, 1)
    assert [each["job"] for each in done["reasons"]] == [refresh]
    assert done["reasons"][0]["reasonSaid"]["code"]


async def test_jobs_that_match_are_deleted_and_those_of_a_workflow_are_skipped(api: Client) -> None:
    tag = given.name("tag")
    names, (other,) = await jobs(api, 3, tags=[tag]), await jobs(api, 1)
    nodes = [{"name": "load", "job": names[1]}]
    flow = (await api("POST", "/api/v1/workflows", {"name": given.name("flow"), "nodes": nodes})).json

    counted = (await api("POST", DELETE, {"tag": tag, "dryRun": True})).json
    done = await bulk(api, DELETE, tag=tag)

    assert (counted["matched"], done["matched"], done["changed"], done["skipped"]) == (3, 3, 2, 1)
    assert [(each["job"], flow["name"] in each["reason"]) for each in done["reasons"]] == [(names[1], True)]
    assert [await is_there(api, name) for name in [*names, other]] == [False, True, False, True]


async def test_a_repeated_deletion_spares_a_new_job_of_the_same_name(api: Client) -> None:
    (name,) = await jobs(api, 1)
    first = await bulk(api, DELETE, "once" + name, names=[name])
    await given.job(api, name=name)

    repeated = await bulk(api, DELETE, "once" + name, names=[name])

    assert repeated == first
    assert await is_there(api, name)


async def test_a_job_that_is_locked_is_held_and_the_others_are_deleted(api: Client, db: Superuser) -> None:
    names = await jobs(api, 3)
    async with db.transaction():
        await db.execute("select from horai.job where name = $1 and deleted_at is null for update", names[1])
        done = await bulk(api, DELETE, names=names)

    assert (done["matched"], done["changed"], done["held"]) == (3, 2, 1)
    assert [await is_there(api, name) for name in names] == [False, True, False]

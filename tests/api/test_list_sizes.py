"""Sizes of lists: small payloads are included, large ones are shown by their size, and a page ends at 4 MB."""

import json
from typing import Any

from harness import Client

from api import given
from horai.db.pool import Platform

SMALL = {"text": "x" * 4_000}
LARGE = {"text": "x" * 5_000}


def size(payload: Any) -> int:
    return len(json.dumps(payload))


async def test_lists_of_instances_include_small_payloads_and_the_size_of_large_ones(api: Client) -> None:
    job = await given.job(api, status="PAUSED")
    for key, payload in (("small", SMALL), ("large", LARGE), ("none", None)):
        path = f"/api/v1/jobs/{job['id']}/instances/{key}"
        assert (await api("PUT", path, {"executeTime": "2999-01-01T00:00:00Z", "payload": payload})).status == 201

    for order in ("newest", "oldest"):
        rows = await given.listed(api, f"/api/v1/jobs/{job['id']}/instances?order={order}")
        shown = {row["key"]: (row["payload"], row["payloadSize"]) for row in rows}
        assert shown == {"small": (SMALL, size(SMALL)), "large": (None, size(LARGE)), "none": (None, None)}

    large = next(row for row in rows if row["key"] == "large")
    whole = (await api("GET", f"/api/v1/instances/{large['id']}")).json
    assert (whole["payload"], whole["payloadSize"]) == (LARGE, size(LARGE))


async def test_a_page_of_instances_ends_at_4_mb_and_the_next_one_continues_without_a_gap(
    api: Client, db: Platform
) -> None:
    job = await given.job(api, status="PAUSED")
    await db.execute(
        "insert into horai.instance_history (id, job_id, tenant_id, lane, fire_time, execute_time, born_for, slot, created_at,"
        " finished_at, fence, attempt, retry_count, events, state, result, payload)"
        " select nextval('horai.instance_id'), $1, 1, 0, at, at, at, -n, at, now(), 1, 1, 0, 0, 2,"
        " to_json(repeat('r', 60000)), to_json(repeat('p', 4000))"
        " from (select n, now() - n * interval '1 second' as at from generate_series(1, 150) n) made",
        int(job["id"]),
    )
    path = f"/api/v1/jobs/{job['id']}/instances?limit=500"
    for order in ("newest", "oldest"):
        seen: list[str] = []
        cursor, pages = "", 0
        while cursor is not None:
            async with api.session.get(f"{api.base}{path}&order={order}{cursor and f'&cursor={cursor}'}") as response:
                raw = await response.read()
            assert len(raw) <= 4 * 1024 * 1024
            page = json.loads(raw)
            assert page["items"]
            seen += [item["fireTime"] for item in page["items"]]
            cursor, pages = page["nextCursor"], pages + 1
        assert pages == 3
        assert len(seen) == 150
        assert seen == sorted(set(seen), reverse=order == "newest")


async def test_310_instances_with_payloads_of_1_mb_are_a_small_page(api: Client, db: Platform) -> None:
    job = await given.job(api, status="PAUSED")
    await db.execute(
        "insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, payload)"
        " select -n, $1, 1, 0, 0, at, at, at, at, n - 1000, to_json(repeat('p', 1000000))"
        " from (select n, timestamptz '2999-01-01' + n * interval '1 second' as at from generate_series(1, 310) n) made",
        int(job["id"]),
    )
    async with api.session.get(f"{api.base}/api/v1/jobs/{job['id']}/instances?limit=500") as response:
        raw = await response.read()
    page = json.loads(raw)
    assert len(raw) < 400_000
    assert [(item["payload"], item["payloadSize"]) for item in page["items"]] == [(None, 1_000_002)] * 310


async def test_lists_of_jobs_and_entities_include_small_payloads_and_the_size_of_large_ones(api: Client) -> None:
    name = given.name("refresh")
    refresh = {"every": "1d", "refresh": {"window": "10d"}, "target": {"type": "http", "url": "http://127.0.0.1:9/"}}
    made = await api("POST", "/api/v1/jobs", {"name": name, "payload": LARGE, **refresh})
    assert (made.status, made.json["payload"], made.json["payloadSize"]) == (201, LARGE, size(LARGE))
    assert (await api("GET", f"/api/v1/jobs/{name}")).json["payload"] == LARGE
    [listed] = (await api("GET", f"/api/v1/jobs?name={name}")).json["items"]
    assert (listed["payload"], listed["payloadSize"]) == (None, size(LARGE))

    path = f"/api/v1/jobs/{name}/entities"
    for key, payload in (("large", LARGE), ("small", SMALL)):
        assert (await api("PUT", f"{path}/{key}", {"payload": payload})).json["payload"] == payload
    rows = (await api("GET", path)).json["items"]
    assert [(row["payload"], row["payloadSize"]) for row in rows] == [(None, size(LARGE)), (SMALL, size(SMALL))]
    assert (await api("GET", f"{path}/large")).json["payload"] == LARGE

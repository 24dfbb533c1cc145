"""Access: clients of a server without keys, and objects of another tenant."""

from typing import Any

import pytest
from harness import Client

from api import expect, given
from horai.db.pool import Platform

FORBIDDEN = "SCH_403_FORBIDDEN"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", "[::2]", "127.0.0.1@evil"],
)
async def test_a_foreign_host_name_is_turned_away(api: Client, db: Platform, host: str) -> None:
    before = await expect.contents(db)

    for method, path, body in (("GET", "/api/v1/jobs", b""), ("POST", "/api/v1/jobs", b'{"name":"rebound"}')):
        expect.problem(await given.sent(api, method, path, body, Host=host), 403, FORBIDDEN, "host name")

    assert await expect.contents(db) == before


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1", "", "http://[", "http://[::1", "²"],
)
async def test_a_page_of_another_origin_is_turned_away(api: Client, db: Platform, origin: str) -> None:
    before = await expect.contents(db)

    reply = await given.sent(api, "POST", "/api/v1/jobs", b'{"name":"forged"}', Origin=origin)

    expect.problem(reply, 403, FORBIDDEN)
    assert await expect.contents(db) == before


async def test_the_own_origin_and_loopback_names_are_served(api: Client) -> None:
    port = api.base.rsplit(":", 1)[1]

    assert (await api("GET", "/api/v1/jobs", Origin=api.base)).status == 200
    for host in (f"localhost:{port}", "LOCALHOST", f"[::1]:{port}"):
        assert (await api("GET", "/api/v1/jobs", Host=host)).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
async def test_a_write_that_a_browser_marks_as_coming_from_another_site_is_turned_away(
    api: Client, db: Platform, site: str
) -> None:
    before = await expect.contents(db)
    headers = {"Sec-Fetch-Site": site}

    for method, path in (("POST", "/api/v1/jobs"), ("PATCH", "/api/v1/jobs/a"), ("DELETE", "/api/v1/jobs/a")):
        reply = await given.sent(api, method, path, b'{"name":"forged"}', **headers)
        expect.problem(reply, 403, FORBIDDEN, "another site")

    assert await expect.contents(db) == before
    assert (await api("GET", "/api/v1/jobs", **headers)).status == 200, "a link on another site may lead here"
    for own in ("same-origin", "none"):
        assert (await api("DELETE", "/api/v1/jobs/nobody", Sec_Fetch_Site=own)).status == 404


async def test_every_answer_carries_a_request_id_and_the_marks_of_safety(api: Client) -> None:
    for path in ("/api/v1/jobs", "/api/v1/jobs/nobody", "/nothing", "/healthz", "/"):
        headers = (await api("GET", path, X_Request_Id="trace-7")).headers
        assert headers["X-Request-Id"] == "trace-7"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "server" not in {name.lower() for name in headers}
    forged = await api("GET", "/healthz", X_Request_Id="a b\tc")
    assert forged.headers["X-Request-Id"] != "a b\tc"


async def neighbour(db: Platform) -> dict[str, Any]:
    """A job of another tenant with a waiting, a running and a finished instance, by SQL: the API has no way to it."""
    serial = given.name("tenant")
    tenant = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", serial)
    lane = await db.fetchval(
        "insert into horai.lane (tenant_id, queue, priority, handler) values ($1, 'default', 2, 'h') returning id",
        tenant,
    )
    definition = '{"name": "theirs", "target": {"type": "worker", "handler": "h"}, "tags": ["theirs"]}'
    job = await db.fetchval(
        "insert into horai.job (tenant_id, name, lane_id, definition, tags) values ($1, $2, $3, $4, $5) returning id",
        tenant,
        f"theirs-{serial}",
        lane,
        definition,
        ["theirs"],
    )
    live, running, done = [await db.fetchval("select nextval('horai.instance_id')") for _ in range(3)]
    for instance, key, is_running in ((live, "k", 0), (running, "r", 1)):
        await db.execute(
            "insert into horai.instance_live (id, job_id, tenant_id, lane, shard, key, fire_time, execute_time, born_for, due, slot, "
            "state, attempt, fence, node, claim, claimed_at) "
            "values ($1::bigint, $2, $3, $4, 0, $5, '2999-01-01', '2999-01-01', '2999-01-01', '2999-01-01', -$1::bigint, "
            "$6::smallint, $6, $6, case $6 when 1 then 999999 end, case $6 when 1 then 1 end, case $6 when 1 then now() end)",
            instance,
            job,
            tenant,
            lane,
            key,
            is_running,
        )
    await db.execute(
        "insert into horai.instance_history (id, job_id, tenant_id, lane, fire_time, execute_time, born_for, slot, "
        "created_at, finished_at, fence, attempt, retry_count, events, state) "
        "values ($1::bigint, $2, $3, $4, now(), now(), now(), -$1::bigint, now(), now(), 1, 1, 0, 0, 2)",
        done,
        job,
        tenant,
        lane,
    )
    return {"id": str(job), "name": f"theirs-{serial}", "live": str(live), "running": str(running), "done": str(done)}


async def test_C2a_another_tenants_job_does_not_exist(api: Client, db: Platform) -> None:
    theirs = await neighbour(db)
    before = await expect.contents(db)
    unnamed = {"detail": "", "detailSaid": {}}

    for method, path in (
        ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/trigger"),
        ("GET", "/instances"), ("PUT", "/instances/k"), ("DELETE", "/instances/k"),
    ):  # fmt: skip
        for reference in (theirs["id"], theirs["name"]):
            found = await api(method, f"/api/v1/jobs/{reference}{path}", {}, Idempotency_Key="x")
            unknown = await api(method, f"/api/v1/jobs/no{reference}{path}", {}, Idempotency_Key="x")
            expect.problem(found, 404, "SCH_404_NOT_FOUND")
            assert {**found.json, **unnamed} == {**unknown.json, **unnamed}
            assert found.json["detailSaid"]["code"] == unknown.json["detailSaid"]["code"]
    batch = await api("POST", f"/api/v1/jobs/{theirs['id']}/instances/batch", {"items": [{}]})
    expect.problem(batch, 404, "SCH_404_NOT_FOUND")

    assert await expect.contents(db) == before
    assert (await api("POST", "/api/v1/jobs", {"name": theirs["name"]})).status == 201


async def test_C2a_another_tenants_instances_do_not_exist(api: Client, db: Platform) -> None:
    theirs = await neighbour(db)
    own = {theirs[name] for name in ("id", "live", "running", "done")}
    before = await expect.contents(db)

    for instance in (theirs["live"], theirs["running"], theirs["done"]):
        for method, path, body in (
            ("GET", "", None),
            ("POST", "/cancel", {}),
            ("POST", "/outcome", {"fence": 1, "result": "SUCCESS"}),
            ("POST", "/outcome", {"fence": 1, "result": "FAIL_RETRYABLE"}),
        ):
            reply = await api(method, f"/api/v1/instances/{instance}{path}", body)
            expect.problem(reply, 404, "SCH_404_NOT_FOUND")
    for path in ("/api/v1/instances", "/api/v1/jobs", "/api/v1/instances?tag=theirs", "/api/v1/jobs?tag=theirs"):
        rows = await given.listed(api, path)
        assert not {row["id"] for row in rows} & own

    assert await expect.contents(db) == before

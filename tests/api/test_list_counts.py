"""Bounded counts of jobs, runs and entities, and the order, range and start of a list of runs."""

from typing import Any

import pytest
from databases import Superuser
from harness import Client

from api import expect, given


async def counted(api: Client, path: str) -> tuple[int, bool]:
    reply = await api("GET", path)
    assert reply.status == 200, reply.json
    return reply.json["count"], reply.json["more"]


async def flow_with_runs(api: Client, db: Superuser, count: int) -> Any:
    """A workflow with that many runs, one a day from 2026-01-01; every third is BLOCKED, the others have succeeded."""
    job = await given.job(api)
    nodes = [{"name": "only", "job": job["name"]}]
    flow = (await api("POST", "/api/v1/workflows", {"name": given.name("flow"), "nodes": nodes})).json
    await db.execute(
        "insert into horai.workflow_run (tenant_id, id, workflow_id, fire_time, phase, version, created_at, finished_at)"
        " select 1, nextval('horai.instance_id'), $1, at, case when n % 3 = 0 then 1 else 2 end, 1, at,"
        " case when n % 3 <> 0 then at end"
        " from (select n, timestamptz '2026-01-01Z' + n * interval '1 day' as at from generate_series(0, $2 - 1) n) runs",
        int(flow["id"]),
        count,
    )
    return flow


async def test_a_count_of_jobs_is_the_length_of_the_list_with_the_same_filter(api: Client) -> None:
    word, queue, owner = given.name("counted"), given.name("queue"), given.name("owner")
    for n in range(5):
        more: dict[str, Any] = {"tags": [word], "owner": owner} if n < 3 else {"queue": queue}
        await given.job(api, name=f"{word}-{n}", **more)
    await api("POST", f"/api/v1/jobs/{word}-0/pause")
    await given.job(api, name=f"{word}-refresh", every="1d", refresh={"window": "10d"})
    await api("POST", "/api/v1/workflows", {"name": f"{word}-flow", "nodes": [{"name": "n", "job": f"{word}-1"}]})

    for query, expected in (
        (f"nameContains={word}", 6),
        (f"name={word}-2", 1),
        (f"tag={word}", 3),
        (f"tag={word}&status=PAUSED", 1),
        (f"queue={queue}", 2),
        (f"owner={owner}", 3),
        (f"nameContains={word}&refresh=true", 1),
        (f"nameContains={word}&refresh=false", 5),
        ("name=absent", 0),
    ):
        listed = len(await given.listed(api, f"/api/v1/jobs?{query}"))
        assert (listed, await counted(api, f"/api/v1/job-count?{query}")) == (expected, (expected, False)), query


async def test_a_job_may_be_named_count(api: Client) -> None:
    await given.job(api, name="count")
    assert (await api("GET", "/api/v1/jobs/count")).json["name"] == "count"


async def test_counts_that_read_not_all_rows_say_so(
    api: Client, db: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await given.job(api, every="1d", refresh={"window": "10d"})
    items = [{"key": f"sku{n}"} for n in range(6)]
    await api("POST", f"/api/v1/jobs/{job['name']}/entities/batch", {"items": items})
    flow = await flow_with_runs(api, db, 6)
    read = "select count(*) from horai.job where tenant_id = 1 and deleted_at is null and ticks_for is null"
    read_jobs = await db.fetchval(read)
    for path, module, total in (
        (f"/api/v1/jobs/{job['name']}/entity-count", "horai.features.refresh.store", 6),
        (f"/api/v1/workflows/{flow['name']}/runs/count", "horai.features.workflow.rerun_store", 6),
        ("/api/v1/job-count", "horai.db.job_lists", read_jobs),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.COUNTED", total)
            assert (await counted(api, path))[1] is False, path
            patch.setattr(f"{module}.COUNTED", total - 1)
            found, more = await counted(api, path)
            assert (found <= total - 1, more) == (True, True), path


async def test_a_count_of_entities_is_the_length_of_the_list_with_the_same_filter(api: Client) -> None:
    job = await given.job(api, every="1d", refresh={"window": "10d"})
    path = f"/api/v1/jobs/{job['name']}"
    items = [{"key": f"{'ab'[n % 2]}{n}"} for n in range(9)]
    await api("POST", f"{path}/entities/batch", {"items": items})

    for query, expected in (
        ("", 9),
        ("prefix=a", 5),
        ("prefix=b&status=NOT_RUN", 4),
        ("status=FAILED", 0),
        ("olderThan=1h", 0),
        ("olderThan=0s", 9),
        ("batch=7", 0),
    ):
        listed = len(await given.listed(api, f"{path}/entities?{query}"))
        assert (listed, await counted(api, f"{path}/entity-count?{query}")) == (expected, (expected, False)), query

    await api("PUT", f"{path}/entities/count")
    assert (await api("GET", f"{path}/entities/count")).json["key"] == "count"
    plain = await given.job(api)
    assert (await api("GET", f"/api/v1/jobs/{plain['name']}/entity-count")).status == 422


async def test_runs_are_counted_sorted_narrowed_and_begun_at_a_time(api: Client, db: Superuser) -> None:
    flow = await flow_with_runs(api, db, 10)
    path = f"/api/v1/workflows/{flow['name']}/runs"

    async def days(query: str) -> list[int]:
        return [int(run["fireTime"][8:10]) for run in await given.listed(api, f"{path}?{query}")]

    newest = list(range(10, 0, -1))
    assert await days("limit=3") == newest
    assert await days("limit=3&order=oldest") == newest[::-1]
    assert await days("state=BLOCKED&limit=1&order=oldest") == [1, 4, 7, 10]
    assert await days("from=2026-01-03T00:00:00Z&to=2026-01-06T00:00:00Z&limit=2") == [5, 4, 3]
    assert await days("from=2026-01-03T00:00:00Z&to=2026-01-06T00:00:00Z&limit=2&order=oldest") == [3, 4, 5]
    assert await days("at=2026-01-04T12:00:00Z&limit=2") == [4, 3, 2, 1]
    assert await days("at=2026-01-04T12:00:00Z&limit=2&order=oldest&state=SUCCESS") == [5, 6, 8, 9]
    for query, expected in (
        ("", 10),
        ("state=BLOCKED", 4),
        ("state=RUNNING", 0),
        ("from=2026-01-03T00:00:00Z&to=2026-01-06T00:00:00Z", 3),
        ("state=SUCCESS&from=2026-01-03T00:00:00Z", 5),
    ):
        assert (len(await days(query)), await counted(api, f"{path}/count?{query}")) == (expected, (expected, False))
    expect.problem(await api("GET", f"{path}?order=finished"), 422, "SCH_422_INVALID", "order")
    expect.problem(await api("GET", f"{path}/count?limit=3"), 422, "SCH_422_INVALID", "limit")


async def test_C2a_counts_leave_out_the_jobs_of_other_tenants(api: Client, db: Superuser) -> None:
    word = given.name("foreign")
    job = await given.job(api, name=word)
    assert await counted(api, f"/api/v1/job-count?nameContains={word}") == (1, False)
    tenant = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", given.name("tenant"))
    await db.execute("update horai.job set tenant_id = $1 where id = $2", tenant, int(job["id"]))
    assert await counted(api, f"/api/v1/job-count?nameContains={word}") == (0, False)

"""Bounded counts of instances, and lists that begin at a time."""

from typing import Any

import pytest
from databases import Superuser
from harness import Client

from api import expect, given
from horai.db.instance_counts import count_instances
from horai.db.instance_lists import InstanceFilter

FEW = 5
COUNT = "/api/v1/instances/count"


async def filled(api: Client, count: int, **more: Any) -> Any:
    """A job with that many planned instances, three a day; every fifth is cancelled, and keys begin with a digit."""
    job = await given.job(api, **more)
    items = [{"key": f"{n % 10}-{n}", "executeTime": f"2999-05-{1 + n // 3:02}T00:00:00Z"} for n in range(count)]
    made = (await api("POST", f"/api/v1/jobs/{job['id']}/instances/batch", {"items": items})).json["items"]
    for n in range(0, count, 5):
        await api("POST", f"/api/v1/instances/{made[n]['instanceId']}/cancel")
    return job


async def counted(api: Client, query: str) -> tuple[int, bool]:
    told = (await api("GET", f"{COUNT}?{query}")).json
    return told["count"], told["more"]


async def test_a_count_is_the_length_of_the_list_with_the_same_filter(api: Client) -> None:
    tag, queue = given.name("tag"), given.name("queue")
    job = await filled(api, 30, tags=[tag], queue=queue)

    for query, expected in (
        (f"job={job['name']}", 30),
        (f"job={job['id']}&state=CANCELLED", 6),
        (f"tag={tag}&state=INIT", 24),
        (f"queue={queue}", 30),
        (f"job={job['id']}&keyPrefix=3-", 3),
        (f"tag={tag}&keyPrefix=3-", 3),
        (f"job={job['id']}&key=4-4", 1),
        (f"tag={tag}&from=2999-05-02T00:00:00Z&to=2999-05-03T00:00:00Z", 3),
        (f"job={job['id']}&when=planned", 30),
        (f"job={job['id']}&when=happened", 0),
        (f"job={job['id']}&state=RUNNING", 0),
        (f"job={job['id']}&errorCode=NONE", 0),
        (f"job={job['id']}&payload=order%3D1", 0),
    ):
        listed = len(await given.listed(api, f"/api/v1/instances?{query}"))
        assert (listed, await counted(api, query)) == (expected, (expected, False)), query


async def test_a_count_by_queue_has_the_instances_that_name_it_and_those_of_its_jobs(api: Client) -> None:
    own, other = given.name("queue"), given.name("queue")
    await api("PUT", f"/api/v1/queues/{other}", {})
    job = await given.job(api, queue=own)
    await given.put(api, job, "of-the-job")
    await given.put(api, job, "urgent", priority="high")
    await given.put(api, job, "elsewhere", queue=other)
    await given.put(api, job, "cancelled", queue=other)
    await api("DELETE", f"/api/v1/jobs/{job['id']}/instances/cancelled")

    assert [await counted(api, f"queue={queue}") for queue in (own, other)] == [(2, False), (2, False)]
    assert await counted(api, f"queue={other}&state=INIT") == (1, False)


async def test_a_count_that_reads_not_all_rows_says_so(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await filled(api, 30)
    monkeypatch.setattr("horai.db.instance_counts.COUNTED", 24)
    assert await counted(api, f"job={job['id']}") == (30, False)

    monkeypatch.setattr("horai.db.instance_counts.COUNTED", 23)
    assert await counted(api, f"job={job['id']}") == (23, True)
    assert await counted(api, f"job={job['id']}&state=CANCELLED") == (6, False)

    monkeypatch.setattr("horai.db.instance_counts.COUNTED", FEW)
    assert await counted(api, f"job={job['id']}&tag=absent") == (0, True)


async def test_C2a_a_count_leaves_out_the_instances_of_other_tenants(api: Client, db: Superuser) -> None:
    prefix = given.name("key")
    job = await given.job(api)
    for n in range(3):
        await given.put(api, job, f"{prefix}-{n}")
    await api("DELETE", f"/api/v1/jobs/{job['id']}/instances/{prefix}-0")
    assert await counted(api, f"keyPrefix={prefix}") == (3, False)

    tenant = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", given.name("tenant"))
    for table in ("instance_live", "instance_history"):
        await db.execute(f"update horai.{table} set tenant_id = $1 where job_id = $2", tenant, int(job["id"]))

    assert await counted(api, f"keyPrefix={prefix}") == (0, False)
    only = InstanceFilter(key_prefix=prefix)
    assert (await count_instances(db, 1, only)).count == 0, "without policies too"
    assert (await count_instances(db, tenant, only)).count == 3


@pytest.mark.parametrize(
    "query", ["limit=1", "cursor=x", "order=oldest", "archived=true", "sort=key", "at=2999-01-01T00:00:00Z"]
)
async def test_a_count_takes_filters_and_nothing_else(api: Client, query: str) -> None:
    expect.invalid(await api("GET", f"{COUNT}?{query}"), query.split("=", maxsplit=1)[0])


async def test_a_count_of_an_unknown_job_is_not_found(api: Client) -> None:
    assert (await api("GET", f"{COUNT}?job=absent")).status == 404


@pytest.mark.parametrize(("order", "days"), [("newest", [4, 3, 2, 1]), ("oldest", [4, 5, 6, 7, 8, 9, 10])])
async def test_a_list_begins_at_a_time_with_all_instances_of_that_time(
    api: Client, order: str, days: list[int]
) -> None:
    job = await filled(api, 30)
    path = f"/api/v1/jobs/{job['id']}/instances?order={order}"
    whole = await given.listed(api, path)

    rows = await given.listed(api, f"{path}&at=2999-05-04T00:00:00Z")

    assert [row["fireTime"] for row in rows] == [f"2999-05-{day:02}T00:00:00Z" for day in days for _ in range(3)]
    times = {row["fireTime"] for row in rows}
    assert [row["id"] for row in rows] == [row["id"] for row in whole if row["fireTime"] in times]


async def test_a_list_begins_at_the_next_time_if_no_instance_has_that_one(api: Client) -> None:
    job = await filled(api, 9)
    path = f"/api/v1/instances?job={job['name']}&at=2999-05-02T12:00:00%2B02:00&limit=1"

    (newest,) = (await api("GET", path)).json["items"]
    (oldest,) = (await api("GET", f"{path}&order=oldest")).json["items"]

    assert (newest["fireTime"], oldest["fireTime"]) == ("2999-05-02T00:00:00Z", "2999-05-03T00:00:00Z")
    (late,) = (await api("GET", f"{path}&state=CANCELLED&from=2999-05-02T00:00:00Z")).json["items"]
    assert late["state"] == "CANCELLED"


async def test_a_time_that_is_none_is_refused(api: Client) -> None:
    expect.invalid(await api("GET", "/api/v1/instances?at=yesterday"), "at")

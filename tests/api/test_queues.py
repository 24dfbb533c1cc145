"""Queues over REST: read, list, set."""

from typing import Any

import pytest
from harness import Client

from api import expect, given
from horai.db.pool import Platform

QUEUES = "/api/v1/queues"
DEFAULTS = {
    "priority": "normal",
    "maxConcurrency": None,
    "rate": None,
    "paused": False,
    "note": None,
    "title": None,
    "description": None,
    "owner": None,
    "waiting": 0,
    "running": 0,
    "version": 0,
    "clogged": None,
}


async def test_a_queue_that_only_jobs_name_has_the_defaults(api: Client) -> None:
    name = given.name("queue")
    await given.job(api, queue=name)

    shown = await api("GET", f"{QUEUES}/{name}")

    assert (shown.status, shown.headers["ETag"]) == (200, '"0"')
    assert shown.json == {"name": name, **DEFAULTS, "updatedAt": shown.json["updatedAt"]}


@pytest.mark.parametrize("name", ["nobody", "a%20b", "%00", "x" * 200])
async def test_an_unknown_queue_gets_404(api: Client, name: str) -> None:
    expect.problem(await given.sent(api, "GET", f"{QUEUES}/{name}", b""), 404, "SCH_404_NOT_FOUND")


async def test_a_put_sets_all_four_and_what_it_leaves_out_has_its_default(api: Client) -> None:
    name = given.name("queue")
    document = {"priority": "core", "maxConcurrency": 5, "rate": "100/s", "paused": True}

    first = await api("PUT", f"{QUEUES}/{name}", document)

    assert (first.status, first.headers["ETag"]) == (200, '"1"')
    assert {**first.json, **document, "running": 0, "version": 1} == first.json
    assert (await api("GET", f"{QUEUES}/{name}")).json == first.json

    second = await api("PUT", f"{QUEUES}/{name}", {"rate": 7})
    assert {**second.json, **DEFAULTS, "rate": "7/s", "version": 2} == second.json


async def test_a_queue_change_with_an_old_version_is_refused(api: Client) -> None:
    path = f"{QUEUES}/{given.name('queue')}"
    await api("PUT", path, {"maxConcurrency": 5}, If_Match='"0"')

    stale = await api("PUT", path, {"maxConcurrency": 9}, If_Match='"0"')

    expect.problem(stale, 412, "SCH_412_PRECONDITION", "has version 1, not 0")
    assert (await api("GET", path)).json["maxConcurrency"] == 5
    assert (await api("PUT", path, {"maxConcurrency": 9}, If_Match='"1"')).json["version"] == 2


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"maxConcurrency": 0}, "maxConcurrency", "1 to 10000"),
    ({"maxConcurrency": "5"}, "maxConcurrency", ""),
    ({"maxConcurrency": True}, "maxConcurrency", ""),
    ({"rate": "soon"}, "rate", "100/s"),
    ({"rate": 1.5}, "rate", ""),
    ({"priority": "urgent"}, "priority", ""),
    ({"paused": "yes"}, "paused", ""),
    ({"max_concurrency": 5}, "max_concurrency", "camelCase"),
    ({"limit": 5}, "limit", "camelCase"),
]


@pytest.mark.parametrize(("document", "field", "words"), WRONG)
async def test_a_wrong_document_is_refused_at_its_field(
    api: Client, document: dict[str, Any], field: str, words: str
) -> None:
    path = f"{QUEUES}/{given.name('queue')}"

    told = expect.invalid(await api("PUT", path, document), field, words)

    assert any(error["field"].split(".")[0] == field for error in told["errors"])
    assert (await api("GET", path)).status == 404


async def test_a_name_that_no_queue_has_is_refused(api: Client) -> None:
    told = expect.invalid(await given.sent(api, "PUT", f"{QUEUES}/a%20b", b"{}"))

    assert [error["field"] for error in told["errors"]] == ["name"]


async def test_queues_are_listed_page_by_page(api: Client) -> None:
    names = [given.name("paged") for _ in range(5)]
    for name in names:
        await api("PUT", f"{QUEUES}/{name}", {"paused": True})

    found: list[str] = []
    cursor = ""
    while True:
        page = (await api("GET", f"{QUEUES}?limit=2{cursor}")).json
        assert len(page["items"]) <= 2
        found += [queue["name"] for queue in page["items"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"

    assert [name for name in found if name in names] == names
    assert len(found) == len(set(found))
    expect.invalid(await api("GET", f"{QUEUES}?cursor=zzz"), "cursor")
    expect.invalid(await api("GET", f"{QUEUES}?sort=name"), "sort")


async def test_a_queue_counts_due_instances_as_waiting_but_not_future_ones(api: Client, db: Platform) -> None:
    name = given.name("queue")
    job = (await api("POST", "/api/v1/jobs", {"name": given.name("job"), "queue": name})).json  # no worker runs it
    for key in "abc":
        await given.put(api, job, key, at=None)
    await given.put(api, job, "later")
    node = "insert into horai.node (name, host, pid, version, lease_until) values ('n', 'h', 1, 'v', now() + interval '1 hour') returning incarnation"
    claim = """update horai.instance_live set state = 1, node = $1, claim = 1, claimed_at = now()
               where job_id = $2 and key = 'a'"""
    await db.execute(claim, await db.fetchval(node), int(job["id"]))

    shown = (await api("GET", f"{QUEUES}/{name}")).json

    assert (shown["waiting"], shown["running"]) == (2, 1)
    listed = (await api("GET", f"{QUEUES}?limit=500")).json["items"]
    assert shown in listed


async def test_a_job_without_a_priority_shows_that_of_its_queue(api: Client) -> None:
    name = given.name("queue")
    follows = await given.job(api, queue=name)
    states = await given.job(api, queue=name, priority="low")
    planned = (await given.put(api, follows, "a")).json["instance"]
    assert (follows["priority"], planned["priority"]) == ("normal", "normal")

    await api("PUT", f"{QUEUES}/{name}", {"priority": "core"})

    assert (await api("GET", f"/api/v1/jobs/{follows['id']}")).json == {**follows, "priority": "core"}
    assert (await api("GET", f"/api/v1/jobs/{states['id']}")).json == states
    assert (await api("GET", f"/api/v1/instances/{planned['id']}")).json["priority"] == "core"

    patched = await api("PATCH", f"/api/v1/jobs/{states['id']}", {"priority": None})
    assert patched.json["priority"] == "core"
    touched = await api("PATCH", f"/api/v1/jobs/{follows['id']}", {"tags": ["x"]})
    await api("PUT", f"{QUEUES}/{name}", {})
    assert touched.json["priority"] == "core"
    assert (await api("GET", f"/api/v1/jobs/{follows['id']}")).json["priority"] == "normal", "it still states none"


async def test_another_tenants_queue_is_not_found(api: Client, db: Platform) -> None:
    other = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", given.name("tenant"))
    name = given.name("queue")
    await db.execute("insert into horai.queue (tenant_id, name) values ($1, $2)", other, name)

    expect.problem(await api("GET", f"{QUEUES}/{name}"), 404, "SCH_404_NOT_FOUND")
    assert name not in [queue["name"] for queue in (await api("GET", f"{QUEUES}?limit=500")).json["items"]]

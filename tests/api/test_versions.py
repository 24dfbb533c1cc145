"""Versions of definitions over REST: kept by each change, listed, compared, restored."""

from typing import Any

import pytest
from harness import Client

from api import expect, given

HOOK = {"type": "http", "url": "http://127.0.0.1:9/hook?token=s3cret", "headers": {"X-Key": "s3cret"}}


async def test_each_change_of_a_job_keeps_a_version_with_its_actor_and_fields(api: Client) -> None:
    job = await given.job(api, cron="0 9 * * *", payload={"n": 1.10})
    path = f"/api/v1/jobs/{job['name']}"
    await api("PATCH", path, {"cron": "0 10 * * *", "payload": {"n": 2}})
    await api("POST", path + "/pause", {"note": "stock-taking"})
    await api("PATCH", path, {"title": "日报"})

    listed = (await api("GET", path + "/versions")).json
    second = (await api("GET", path + "/versions/2")).json

    assert [(each["version"], each["fields"]) for each in listed["items"]] == [
        (4, ["title"]),
        (2, ["cron", "payload"]),
        (1, []),
    ]
    assert (listed["current"], listed["items"][0]["via"]) == (4, "api")
    assert listed["items"][0]["actor"]["kind"] == "keyless"
    assert second["changes"][0] == {"field": "cron", "before": "0 9 * * *", "after": "0 10 * * *"}
    assert second["definition"]["payload"] == {"n": 2}


async def test_a_restore_makes_the_definition_what_it_was_and_leaves_the_pause(api: Client) -> None:
    job = await given.job(api, cron="0 9 * * *", payload={"n": 1}, dst={"gap": "skip", "overlap": "last"})
    path = f"/api/v1/jobs/{job['name']}"
    await api("PATCH", path, {"every": "5m", "payload": None, "tags": ["x"], "title": "T"})
    await api("POST", path + "/pause", {"note": "later"})

    shown = await api("POST", path + "/versions/1/restore", {"dryRun": True}, If_Match='"3"')
    unchanged = await api("GET", path)
    restored = await api("POST", path + "/versions/1/restore", {}, If_Match='"3"')
    now = (await api("GET", path)).json

    assert shown.json["action"] == "changed"
    assert {change["field"] for change in shown.json["changes"]} >= {"cron", "every", "payload", "tags", "title"}
    assert unchanged.json["version"] == 3
    assert (restored.status, restored.headers["ETag"]) == (200, '"4"')
    assert {field: now.get(field) for field in ("cron", "every", "payload", "tags", "title", "status", "note")} == {
        "cron": "0 9 * * *",
        "every": None,
        "payload": {"n": 1},
        "tags": [],
        "title": None,
        "status": "PAUSED",
        "note": "later",
    }
    assert now["dst"] == job["dst"]


async def test_a_restore_with_an_old_version_is_refused(api: Client) -> None:
    job = await given.job(api)
    path = f"/api/v1/jobs/{job['name']}"
    await api("PATCH", path, {"tags": ["x"]})

    expect.problem(await api("POST", path + "/versions/1/restore", {}, If_Match='"1"'), 412, "SCH_412_PRECONDITION")
    assert (await api("GET", path)).json["tags"] == ["x"]


@pytest.mark.parametrize("version", ["7", "0", "x", "9" * 30])
async def test_a_version_that_is_not_kept_gets_404(api: Client, version: str) -> None:
    job = await given.job(api)
    path = f"/api/v1/jobs/{job['name']}/versions/{version}"

    expect.problem(await api("GET", path), 404, "SCH_404_NOT_FOUND")
    expect.problem(await api("POST", path + "/restore", {}), 404, "SCH_404_NOT_FOUND")


async def test_versions_hold_no_secret_and_a_restore_keeps_the_stored_ones(api: Client) -> None:
    job = await given.job(api, target=HOOK)
    path = f"/api/v1/jobs/{job['name']}"
    await api("PATCH", path, {"target": {**HOOK, "method": "PUT"}})

    version = await api("GET", path + "/versions/1")
    restored = await api("POST", path + "/versions/1/restore", {})
    moved = await api("PATCH", path, {"target": {**HOOK, "url": "http://127.0.0.2:9/hook"}})
    refused = await api("POST", path + "/versions/1/restore", {})

    assert "s3cret" not in str(version.json)
    assert (restored.status, restored.json["changes"][0]["field"]) == (200, "target")
    assert moved.status == 200
    problem = expect.problem(refused, 422, "SCH_422_INVALID")
    assert {error["field"] for error in problem["errors"]} == {"target.url", "target.headers"}


async def test_only_the_newest_fifty_versions_are_kept(api: Client) -> None:
    job = await given.job(api)
    path = f"/api/v1/jobs/{job['name']}"
    for n in range(52):
        await api("PATCH", path, {"title": str(n)})

    items = (await api("GET", path + "/versions")).json["items"]

    assert [items[0]["version"], items[-1]["version"], len(items)] == [53, 4, 50]


async def test_a_deleted_job_leaves_no_versions_to_one_of_its_name(api: Client) -> None:
    job = await given.job(api)
    path = f"/api/v1/jobs/{job['name']}"
    await api("PATCH", path, {"title": "old"})
    await api("DELETE", path)
    await given.job(api, name=job["name"])

    assert [each["version"] for each in (await api("GET", path + "/versions")).json["items"]] == [1]


async def test_queues_workflows_and_reconcilers_have_versions_too(api: Client) -> None:
    job, other = await given.job(api), await given.job(api)
    changes: dict[str, tuple[Any, Any]] = {
        f"queues/{given.name('queue')}": ({"rate": "5/s", "paused": True}, {"maxConcurrency": 3}),
        f"workflows/{await _workflow(api, job)}": (
            {"nodes": [{"name": "a", "job": other["name"], "payload": {"n": 1.50}}], "owner": "市场部"},
            {"nodes": [{"name": "b", "job": job["name"]}], "cron": "0 9 * * *", "params": {"type": "object"}},
        ),
        f"reconcilers/{await _reconciler(api, job)}": (
            {"every": "5m"},
            {
                "cron": "0 9 * * *",
                "source": {"type": "http", "url": "http://127.0.0.1:9/other", "headers": {"X-Key": "***"}},
            },
        ),
    }
    for name, (first, second) in changes.items():
        path, method = f"/api/v1/{name}", "PUT" if name.startswith("queues") else "PATCH"
        assert (await api(method, path, first)).status == 200
        before = (await api("GET", path)).json
        assert (await api(method, path, second)).status == 200

        restored = await api("POST", f"{path}/versions/{before['version']}/restore", {})
        after = (await api("GET", path)).json

        assert restored.status == 200, restored.json
        assert restored.json["action"] == "changed"
        changing = {"version", "updatedAt", "nextFire", "paused", "note"}
        assert {k: v for k, v in after.items() if k not in changing} == {
            k: v for k, v in before.items() if k not in changing
        }


async def _workflow(api: Client, job: dict[str, Any]) -> str:
    name = given.name("flow")
    made = await api("POST", "/api/v1/workflows", {"name": name, "nodes": [{"name": "a", "job": job["name"]}]})
    assert made.status == 201, made.json
    return name


async def _reconciler(api: Client, job: dict[str, Any]) -> str:
    name = given.name("orders")
    source = {"type": "http", "url": "http://127.0.0.1:9/items", "headers": {"X-Key": "s3cret"}}
    made = await api("POST", "/api/v1/reconcilers", {"name": name, "job": job["name"], "source": source})
    assert made.status == 201, made.json
    return name


async def test_a_change_is_tried_without_being_made(api: Client) -> None:
    job = await given.job(api, cron="0 9 * * *")
    path, queue = f"/api/v1/jobs/{job['name']}", f"/api/v1/queues/{given.name('queue')}"
    flow = f"/api/v1/workflows/{await _workflow(api, job)}"

    tried = await api("PATCH", path + "?dryRun=true", {"every": "5m", "queue": "other"}, Idempotency_Key=job["name"])
    refused = await api("PATCH", path + "?dryRun=true", {"cron": "0 99 * * *"})
    limited = await api("PUT", queue + "?dryRun=true", {"maxConcurrency": 3})
    moved = await api("PATCH", flow + "?dryRun=true", {"title": "夜间"})

    assert [tried.json["every"], tried.json["queue"], tried.json["version"]] == ["5m", "other", 2]
    assert "cron" not in tried.json
    assert expect.problem(refused, 422, "SCH_422_INVALID")["errors"][0]["field"] == "cron"
    assert (limited.json["maxConcurrency"], moved.json["title"]) == (3, "夜间")
    assert (await api("GET", path)).json == job
    assert (await api("GET", queue)).status == 404
    assert "title" not in (await api("GET", flow)).json
    assert (await api("GET", "/api/v1/queues/other")).status == 404

"""Definitions in files over REST: exported, previewed, applied, refused with reasons; what is exported changes nothing."""

from typing import Any

import pytest
from harness import Client

from api import given

APPLY = "/api/v1/definitions/apply"
HOOK = {"type": "http", "url": "http://127.0.0.1:9/hook?token=s3cret", "headers": {"X-Key": "s3cret"}}


async def _applied(api: Client, *definitions: Any, dry: bool = False) -> list[Any]:
    answered = await api("POST", APPLY, {"definitions": list(definitions), "dryRun": dry})
    assert answered.status == 200, answered.json
    assert answered.json["dryRun"] is dry
    return answered.json["items"]


async def _exported(api: Client, kind: str, name: str) -> Any:
    items = (await api("GET", f"/api/v1/definitions/{kind}?limit=500")).json["items"]
    (found,) = [item for item in items if item["name"] == name]
    return {"kind": kind, **found["definition"]}


async def _all_kinds(api: Client) -> list[tuple[str, str]]:
    """Create one object of each kind with as many settings as it can have."""
    job = given.name("full")
    timing = {"cron": "0 0 9 * * ?", "timezone": "Europe/Berlin", "dst": {"gap": "skip"}, "jitter": "30s"}
    more = {"misfire": {"policy": "all", "maxCatchup": 3}, "overlap": "skip", "retry": {"maxRetry": 1}, "timeout": "5s"}
    labels: dict[str, Any] = {
        "title": "日报",
        "description": "a\nb",
        "owner": "市场部",
        "tags": ["x"],
        "startAt": "2026-01-01T00:00:00Z",
    }
    await given.job(api, name=job, target=HOOK, **timing, **more, **labels, payload={"n": 1.10, "big": 10**30})
    flow, queue, orders = given.name("flow"), given.name("queue"), given.name("orders")
    nodes = [{"name": "a", "job": job, "payload": {"x": 1e3}}, {"name": "b", "job": job, "after": ["a"]}]
    source = {"type": "http", "url": "http://127.0.0.1:9/items", "headers": {"X-Key": "s3cret"}}
    made = [
        await api("POST", "/api/v1/workflows", {"name": flow, "nodes": nodes, "every": "1h", "title": "夜间"}),
        await api(
            "PUT", f"/api/v1/queues/{queue}", {"rate": "5/m", "priority": "low", "paused": True, "note": "later"}
        ),
        await api("POST", "/api/v1/reconcilers", {"name": orders, "job": job, "source": source, "every": "5m"}),
    ]
    assert all(each.status in {200, 201} for each in made), [each.json for each in made]
    return [("queue", queue), ("job", job), ("workflow", flow), ("reconciler", orders)]


async def test_applying_an_export_changes_nothing(api: Client) -> None:
    named = await _all_kinds(api)
    files = [await _exported(api, kind, name) for kind, name in named]

    previewed, applied = await _applied(api, *files, dry=True), await _applied(api, *files)

    assert [(item["name"], item["action"], item["errors"]) for item in previewed] == [
        (name, "unchanged", []) for _, name in named
    ]
    assert [(item["action"], item["version"]) for item in applied] == [("unchanged", 1)] * 4
    assert "s3cret" not in str(files)
    assert (await api("GET", f"/api/v1/queues/{named[0][1]}")).json["paused"] is True


async def test_an_exported_workflow_has_every_setting_of_its_nodes(api: Client) -> None:
    job = (await given.job(api))["name"]
    inner, name, asset = given.name("inner"), given.name("flow"), given.name("asset")
    nodes = [
        {"name": "file", "job": job, "sensor": {"every": "10m", "deadline": "2h", "onDeadline": "skip"}},
        {"name": "list", "job": job, "after": ["file"], "produces": [asset], "triggerRule": "noneFailed"},
        {"name": "each", "job": job, "after": ["list"], "map": {"over": "list", "maxConcurrency": 3}},
        {
            "name": "more",
            "workflow": inner,
            "after": ["list"],
            "params": {"day": {"value": 1}, "rows": {"resultOf": "list"}},
            "retry": {"maxRetry": 1},
        },
    ]
    assert (await api("POST", "/api/v1/workflows", {"name": inner, "nodes": [{"name": "a", "job": job}]})).status == 201
    made = await api("POST", "/api/v1/workflows", {"name": name, "nodes": nodes})
    assert made.status == 201, made.json

    exported = await _exported(api, "workflow", name)

    settings = {"job", "workflow", "sensor", "produces", "triggerRule", "map", "params"}
    assert [settings & {*node} for node in exported["nodes"]] == [settings & {*node} for node in nodes]
    (applied,) = await _applied(api, exported)
    assert (applied["action"], applied["errors"]) == ("unchanged", [])
    changed = {**exported, "nodes": [{**node, "produces": None} for node in exported["nodes"]]}
    (without,) = await _applied(api, changed)
    assert (without["action"], without["errors"]) == ("changed", [])
    assert (await _applied(api, exported))[0]["action"] == "changed"
    shown = (await api("GET", f"/api/v1/workflows/{name}")).json["nodes"]
    assert [node["produces"] for node in shown] == [[], [asset], [], []]


async def test_a_dry_run_says_what_would_happen_and_writes_nothing(api: Client) -> None:
    job, fresh = await given.job(api, cron="0 9 * * *"), given.name("fresh")
    changed = {**await _exported(api, "job", job["name"]), "cron": "0 10 * * *", "payload": {"n": 1}}
    flow = {"kind": "workflow", "name": given.name("flow"), "nodes": [{"name": "a", "job": fresh}]}
    files = [flow, changed, {"kind": "job", "name": fresh}]

    previewed = await _applied(api, *files, dry=True)

    assert [item["action"] for item in previewed] == ["created", "changed", "created"]
    assert previewed[1]["changes"] == [
        {"field": "cron", "before": "0 9 * * *", "after": "0 10 * * *"},
        {"field": "payload", "before": None, "after": {"n": 1}},
    ]
    assert (await api("GET", f"/api/v1/jobs/{fresh}")).status == 404
    assert (await api("GET", f"/api/v1/jobs/{job['name']}")).json["version"] == 1
    assert [item["action"] for item in await _applied(api, *files)] == ["created", "changed", "created"]
    assert [item["action"] for item in await _applied(api, *files)] == ["unchanged"] * 3


async def test_a_refused_definition_says_why_at_its_fields_and_does_not_stop_the_others(api: Client) -> None:
    good = given.name("good")
    items = await _applied(
        api,
        {"kind": "job", "name": given.name("bad"), "cron": "0 99 * * *", "retry": {"maxRetry": -1}},
        {"kind": "job", "name": given.name("bad"), "croon": "0 9 * * *"},
        {"kind": "robot", "name": "x"},
        {"kind": "workflow", "name": given.name("flow"), "nodes": [{"name": "a", "job": "no-such-job"}]},
        {"kind": "job", "name": given.name("bad"), "target": {"type": "worker", "handler": "horai:workflow"}},
        {"kind": "job", "name": good},
        {"kind": "job", "name": good},
    )

    assert [item["action"] for item in items] == ["refused"] * 5 + ["created", "refused"]
    assert [[error["field"] for error in item["errors"]] for item in items] == [
        ["cron", "retry.maxRetry"],
        ["croon"],
        ["kind"],
        ["nodes.0.job"],
        ["target.handler"],
        [],
        ["name"],
    ]
    assert all(item["reason"] for item in items if item["action"] == "refused")


async def test_a_new_secret_in_a_file_is_stored_and_the_same_one_changes_nothing(api: Client) -> None:
    name = given.name()
    await given.job(api, name=name, target=HOOK)
    file = {**await _exported(api, "job", name), "target": HOOK}

    same = await _applied(api, file)
    other = await _applied(api, {**file, "target": {**HOOK, "headers": {"X-Key": "another"}}})

    assert (same[0]["action"], other[0]["action"]) == ("unchanged", "changed")


async def test_a_secret_shown_as_stars_cannot_be_applied_to_another_address(api: Client) -> None:
    name = given.name()
    await given.job(api, name=name, target=HOOK)
    file = await _exported(api, "job", name)

    (item,) = await _applied(api, {**file, "target": {**file["target"], "url": "http://127.0.0.2:9/hook"}})

    assert (item["action"], [error["field"] for error in item["errors"]]) == ("refused", ["target.headers"])


async def test_an_import_keeps_versions_and_a_repeat_with_the_same_key_does_not(api: Client) -> None:
    name = given.name()
    body = {"definitions": [{"kind": "job", "name": name, "title": "one"}]}
    first = await api("POST", APPLY, body, Idempotency_Key=name)
    again = await api("POST", APPLY, body, Idempotency_Key=name)

    assert (first.json, again.headers["Idempotency-Replayed"]) == (again.json, "true")
    assert len((await api("GET", f"/api/v1/jobs/{name}/versions")).json["items"]) == 1


@pytest.mark.parametrize("kind", ["job", "workflow", "queue", "reconciler"])
async def test_the_schema_for_editors_knows_each_kind(api: Client, kind: str) -> None:
    schema = (await api("GET", "/api/v1/definitions/schema")).json

    variant = next(one for one in schema["oneOf"] if one["properties"]["kind"]["const"] == kind)
    assert {"kind", "name"} <= set(variant["required"])
    assert variant["additionalProperties"] is False

"""Jobs and queues that code declares, seen over REST: shown with their application, changed like others, declared by code only."""

import json
from typing import Any

import make
from harness import Client

from api import expect, given
from horai.cli import views
from horai.cli.commands.queues import queue_fields
from horai.operations.declarations import DeclaredJob, declare

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


async def declared(database: str) -> Any:
    name = given.name("declared")
    async with make.scope(database, 1) as scope:
        await declare(scope, "shop", [DeclaredJob({"name": name, "payloadSchema": SCHEMA}, '{"id": 1}')])
    return name


async def test_a_declared_job_is_shown_with_its_payloads_schema_and_its_application(api: Client, database: str) -> None:
    name = await declared(database)

    job = (await api("GET", f"/api/v1/jobs/{name}")).json

    assert (job["payloadSchema"], job["declaredBy"], job["payload"]) == (SCHEMA, "shop", {"id": 1})
    assert (await api("GET", f"/api/v1/jobs?name={name}")).json["items"] == [job]
    shown = dict(views.job_fields(job))
    assert (json.loads(shown["payload schema"]), shown["declared by"]) == (SCHEMA, "shop")


async def test_a_patch_a_pause_and_a_resume_keep_what_the_code_said_of_a_job(api: Client, database: str) -> None:
    name = await declared(database)

    patched = (await api("PATCH", f"/api/v1/jobs/{name}", {"priority": "high"})).json
    paused = (await api("POST", f"/api/v1/jobs/{name}/pause", {"note": "wait"})).json
    resumed = (await api("POST", f"/api/v1/jobs/{name}/resume")).json

    for job in (patched, paused, resumed):
        assert (job["payloadSchema"], job["declaredBy"], job["priority"]) == (SCHEMA, "shop", "high")


async def test_only_code_says_what_a_payload_must_look_like(api: Client, database: str) -> None:
    name = await declared(database)

    for field, value in (("payloadSchema", SCHEMA), ("declaredBy", "shop"), ("payloadSchema", None)):
        expect.invalid(await api("POST", "/api/v1/jobs", {"name": given.name(), field: value}), field, "unknown field")
        expect.invalid(await api("PATCH", f"/api/v1/jobs/{name}", {field: value}), field, "unknown field")


async def test_a_job_made_by_hand_has_neither(api: Client) -> None:
    job = await given.job(api)

    assert not {"payloadSchema", "declaredBy"} & job.keys()


async def declared_queue(database: str) -> str:
    name = given.name("queue")
    async with make.scope(database, 1) as scope:
        await declare(scope, "shop", [], [{"name": name, "maxConcurrency": 5}])
    return name


async def test_a_declared_queue_is_shown_with_its_application_and_a_change_by_hand_keeps_it(
    api: Client, database: str
) -> None:
    path = f"/api/v1/queues/{await declared_queue(database)}"
    before = (await api("GET", path)).json

    await api("PUT", path, {"maxConcurrency": 9, "paused": True})

    after = (await api("GET", path)).json
    assert (before["declaredBy"], before["maxConcurrency"]) == ("shop", 5)
    assert (after["declaredBy"], after["maxConcurrency"], after["paused"]) == ("shop", 9, True)
    assert dict(queue_fields(after))["declared by"] == "shop"


async def test_only_code_says_which_application_a_queue_belongs_to(api: Client) -> None:
    name = given.name("queue")

    expect.invalid(await api("PUT", f"/api/v1/queues/{name}", {"declaredBy": "shop"}), "declaredBy", "unknown field")
    set_by_hand = (await api("PUT", f"/api/v1/queues/{name}", {"maxConcurrency": 5})).json

    assert "declaredBy" not in set_by_hand
    assert "declared by" not in dict(queue_fields(set_by_hand))


async def test_a_change_of_a_declared_queue_from_a_file_names_the_application(api: Client, database: str) -> None:
    name = await declared_queue(database)

    applied = await api(
        "POST", "/api/v1/definitions/apply", {"definitions": [{"kind": "queue", "name": name, "maxConcurrency": 9}]}
    )

    assert applied.status == 200, applied.json
    assert [each["declaredBy"] for each in applied.json["items"]] == ["shop"]

"""Jobs that code declares, seen over REST: shown with their schema, changed like others, declared by code only."""

import json
from typing import Any

import make
from harness import Client

from api import expect, given
from horai.cli import views
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

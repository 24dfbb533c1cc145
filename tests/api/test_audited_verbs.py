"""Every write of the control plane is in the audit log, with its actor, tenant, address, and change."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from harness import Client, node
from keys import created, holding

from api import given
from api.repeat_recipes import RECIPES, World
from api.test_repeats import OF_PLATFORM, WRITES, WRITES_NOTHING

DATA = {
    ("POST", "/api/v1/jobs/{job}/instances/batch"),
    ("PUT", "/api/v1/jobs/{job}/instances/{key}"),
    ("POST", "/api/v1/instances/{instance}/outcome"),
    ("POST", "/api/v1/heartbeats/{name}"),
    ("POST", "/api/v1/jobs/{job}/entities/batch"),
    ("POST", "/api/v1/jobs/{job}/entities/remove"),
    ("PUT", "/api/v1/jobs/{job}/entities/{key}"),
    ("DELETE", "/api/v1/jobs/{job}/entities/{key}"),
}
"""Data of the business: instances and entities have histories of their own, and a heartbeat counts its reports."""
AUDITED = [operation for operation in WRITES if operation not in WRITES_NOTHING | DATA]


@pytest.mark.parametrize("operation", AUDITED, ids=" ".join)
async def test_C43_every_verb_writes_an_audit_row_with_its_actor_and_tenant(
    runner: asyncio.Runner, world: World, operation: tuple[str, str]
) -> None:
    sent = await RECIPES[operation](world)
    before = await world.db.fetchval("select coalesce(max(id), 0) from horai.audit")

    reply = await world.api(
        operation[0], sent.path, sent.body, Idempotency_Key=given.name("key"), X_Request_Id="audited-1"
    )

    assert reply.status < 300, reply.json
    rows = await world.db.fetch("select * from horai.audit where id > $1 order by id", before)
    is_of_platform = operation[1].startswith(OF_PLATFORM)
    assert len(rows) == 1 or (is_of_platform and rows), [row["verb"] for row in rows]
    for row in rows:  # a mode that begins opens an incident as well
        assert (row["tenant_id"], row["actor_kind"], row["address"], row["request_id"]) == (
            None if is_of_platform else 1, "keyless", "127.0.0.1", "audited-1",
        )  # fmt: skip
        assert row["object_id"] or row["counts"]


@pytest.fixture
def closed(runner: asyncio.Runner, url: str) -> Iterator[Client]:
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(node(url)))
    runner.run(stack.aclose())


async def test_C43_a_change_shows_the_key_that_made_it_and_the_fields_before_and_after(closed: Client) -> None:
    key = await created(closed, "admin", name="deploy")
    admin = holding(closed, key["key"])
    secret = {"type": "http", "url": "http://127.0.0.1:9/?token=canary", "headers": {"Authorization": "canary"}}
    job = (await admin("POST", "/api/v1/jobs", {"name": "nightly", "target": secret, "payload": "canary"})).json
    await admin("PATCH", f"/api/v1/jobs/{job['id']}", {"priority": "high", "tags": ["a"]})

    rows: list[Any] = (await admin("GET", "/api/v1/audit?object=nightly")).json["items"]
    changed, made = rows
    assert changed["actor"] == {"kind": "key", "id": key["id"], "name": "deploy", "role": "admin"}
    assert (changed["verb"], made["verb"]) == ("job.change", "job.create")
    assert changed["after"]["priority"] == "high"
    assert changed["after"]["tags"] == ["a"]
    assert set(changed["before"]) <= set(changed["after"])
    assert "canary" not in str(rows)

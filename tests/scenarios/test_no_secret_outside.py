"""Canaries in every secret that a deployment has, and a search of everything that leaves it or is kept."""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from canaries import TALKATIVE, Canaries, pg_dump, process_list
from harness import Client, NodeProcess, Reply, start_interpreter
from keys import KeyHolder, created, holder, holding
from receiver import Answer, Hit, Receiver

from api import given
from horai.db.migrate import migrate
from horai.db.pool import connect
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.embedded.admin import admin_url
from horai.embedded.area import Area

PATHS = (
    "/api/v1/jobs", "/api/v1/jobs/hook", "/api/v1/instances", "/api/v1/dlq", "/api/v1/dlq/faults", "/api/v1/tenant",
    "/api/v1/reconcilers", "/api/v1/scheduler/attention", "/api/v1/scheduler/health",
    "/api/v1/scheduler/stats", "/api/v1/search?q=hook",
)  # fmt: skip
"""Pages that a viewer reads, who sees no payload of an encrypted job."""
EXPORTS = (
    "/api/v1/export", "/api/v1/audit", "/api/v1/audit/export", "/api/v1/audit/verify", "/api/v1/keys", "/api/v1/secrets",
)  # fmt: skip
"""Pages of an admin. `/signing-secrets` is for receivers, which verify calls with the secret that it shows."""


@pytest.mark.early
async def test_C42d_no_secret_is_in_an_answer_a_log_an_export_the_process_list_or_a_dump(short_place: Path) -> None:
    canary, data_dir = Canaries(), short_place / "secrets"
    server = EmbeddedPostgres(EmbeddedSettings(data_dir, extra=TALKATIVE))
    await server.start()
    try:
        connection = await connect(admin_url(server.url), "horai secrets")
        await migrate(connection)
        connection.terminate()
        node = NodeProcess(
            short_place / "node", "",
            "--database-url", f"{server.url}&password={canary('database')}",
            "--source", f"shop=postgresql://reader:{canary('source')}@127.0.0.1:1/shop",
            HORAI_ENCRYPTION_KEY=canary.add(base64.b64encode(os.urandom(32)).decode()),
        )  # fmt: skip
        node.launch = start_interpreter
        node.start()
        try:
            async with Receiver() as receiver, aiohttp.ClientSession() as session:
                root, admin = await _keys(Client(node.base, session), canary)
                await given.loopback_targets(root, "default")
                said = await _work(admin, receiver, canary)
                answers = " ".join(json.dumps([reply.json, dict(reply.headers)]) for reply in said)
                assert {hit[:13] for hit in canary.in_(answers)} == {"canarypayload"}, "an admin may read payloads"
                viewer = await holder(root, "viewer", "default")
                for path in PATHS:
                    assert canary.in_(await _text(viewer, path)) == [], path
                for path in EXPORTS:
                    assert canary.in_(await _text(admin, path)) == [], path
                assert canary.in_(process_list()) == []
                assert canary.in_(pg_dump(data_dir, admin_url(server.url))) == []
                await _delete_everything(root, admin)
            assert canary.in_(pg_dump(data_dir, admin_url(server.url))) == []
        finally:
            node.stop()
    finally:
        await server.stop()
    logged = Area.at(data_dir).log.read_text("utf-8", "replace")
    assert "instance_live" in logged, "the server must log statements, or this test proves nothing"
    assert canary.in_(logged) == []
    assert "dead letter" in (own := node.log.read_text())
    assert canary.in_(own) == []


async def _keys(anyone: Client, canary: Canaries) -> tuple[KeyHolder, KeyHolder]:
    """Create a key of the platform and an admin of the tenant, who has also signed in at the console."""
    root = holding(anyone, canary.add((await created(anyone, "platform-admin"))["key"]))
    admin = holding(anyone, canary.add((await created(root, "admin", "default"))["key"]))
    signed_in = await anyone("POST", "/api/v1/session", {"key": admin.key})
    assert signed_in.status in {200, 201}, signed_in.json
    canary.add(signed_in.headers["set-cookie"].partition("=")[2].partition(";")[0])
    anyone.session.cookie_jar.clear()
    return root, admin


async def _work(admin: KeyHolder, receiver: Receiver, canary: Canaries) -> list[Reply]:
    """Use each secret once, in requests that succeed and in requests that are refused. Return the answers."""
    rotated = await admin("POST", "/api/v1/signing-secrets", {})
    for secret in rotated.json["items"]:
        canary.add(secret["secret"])
    named = canary("named")
    said = [await admin("PUT", "/api/v1/secrets/partner", {"value": named})]
    failure = {"result": "FAIL_UNRECOVERABLE", "message": "card refused"}
    receiver.on("/hook", Answer(500), Answer(json=failure), Answer(202))
    authorization = canary("header")
    target = {
        "type": "http",
        "url": receiver.url(f"/hook?token={canary('url')}"),
        "headers": {"Authorization": authorization, "X-Partner": {"secret": "partner"}},
    }
    payload = {"card": canary("payload")}
    job = {"name": "hook", "target": target, "encrypted": True, "payload": payload, "retry": given.SOON}
    said.append(await admin("POST", "/api/v1/jobs", job, Idempotency_Key="create"))
    said.extend(await _refused(admin, job, canary))
    dead = await admin("POST", "/api/v1/jobs/hook/trigger", {"payload": canary("payload")}, Idempotency_Key="one")
    await admin.until_state(dead.json["instance"]["id"], "DEAD")
    waits = await admin("POST", "/api/v1/jobs/hook/trigger", Idempotency_Key="two")
    hit = await given.until(lambda: _third(receiver))
    assert (hit.headers["authorization"], hit.headers["x-partner"]) == (authorization, named)
    canary.add(hit.headers["horai-outcome-token"])
    for made in (dead, waits):
        path = f"/api/v1/instances/{made.json['instance']['id']}"
        said.append(await admin("GET", f"{path}/why"))
    query = "select key, execute_time from article where key > $1 order by key limit $2"
    source = {"type": "sql", "query": query, "source": "shop"}
    plain = {"name": "plain", "target": target}
    said.append(await admin("POST", "/api/v1/jobs", plain))
    said.append(await admin("POST", "/api/v1/reconcilers", {"name": "desk", "job": "plain", "source": source}))
    run = await admin("POST", "/api/v1/reconcilers/desk/run", Idempotency_Key="run")
    await admin.until_state(run.json["instance"]["id"], "DEAD", "FAIL", within=30)
    said.append(await admin("GET", f"/api/v1/instances/{run.json['instance']['id']}"))
    return said


async def _text(admin: KeyHolder, path: str) -> str:
    """Return the body of a list or an export as it is sent."""
    async with admin.session.get(admin.base + path, headers={"Authorization": f"Bearer {admin.key}"}) as response:
        text = await response.text()
        assert response.status == 200, text
        return text


async def _third(receiver: Receiver) -> Hit | None:
    return receiver.hits[2] if len(receiver.hits) > 2 else None


async def _refused(admin: KeyHolder, job: Mapping[str, Any], canary: Canaries) -> list[Reply]:
    """Send each secret in a request that is refused."""
    broken = {"type": "http", "url": f"ftp://h/{canary('scheme')}", "headers": {"X": f"{canary('control')}\n"}}
    stranger = holding(admin, f"{admin.key[:-6]}000000")
    said = [
        await admin("POST", "/api/v1/jobs", job),
        await admin("POST", "/api/v1/jobs", {"name": "broken", "target": broken}),
        await admin("PUT", "/api/v1/secrets/wrong", {"value": [canary("list")]}),
        await admin("PUT", "/api/v1/secrets/wrong", {"value": canary("long") * 10_000}),
        await stranger("GET", "/api/v1/jobs"),
        await holding(admin, canary("bearer"))("GET", "/api/v1/jobs"),
    ]
    assert [reply.status for reply in said] == [409, 422, 422, 422, 401, 401]
    return said


async def _delete_everything(root: KeyHolder, admin: KeyHolder) -> None:
    for path in ("reconcilers/desk", "jobs/hook", "jobs/plain", "secrets/partner"):
        done = await admin("DELETE", f"/api/v1/{path}")
        assert done.status == 204, (path, done.json)
    for key in (await root("GET", "/api/v1/keys")).json["items"]:
        if key["role"] != "platform-admin":
            assert (await root("DELETE", f"/api/v1/keys/{key['id']}")).status in {200, 204}

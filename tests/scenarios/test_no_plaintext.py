"""C42, the whole of it: canaries in every value of encrypted jobs, and a search of everything that is kept."""

import asyncio
import base64
import json
import os
from pathlib import Path
from typing import Any

import harness
import pytest
from canaries import TALKATIVE, Canaries, pg_dump
from receiver import Answer, Receiver
from working import working

from horai import Horai, Instance, Retry
from horai.core.encryption import KeyEncryptionKey
from horai.db import data_keys
from horai.db.migrate import migrate
from horai.db.pool import connect
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.embedded.admin import admin_url
from horai.embedded.area import Area
from horai.features.events.change import read_change
from horai.features.events.service import Arrival, accept_changes
from horai.operations.keyring import Keyring
from horai.operations.scope import Scope

OLD, NEW = KeyEncryptionKey(os.urandom(32)), KeyEncryptionKey(os.urandom(32))
FAR = "2999-01-01T00:00:00Z"


def application(url: str, canary: Canaries) -> tuple[Horai, Any, str]:
    """An application whose encrypted function says canaries wherever it can."""
    app, note, error = Horai("vault", database_url=url), canary("note"), canary("error")

    @app.job(encrypted=True, search_paths=["card"], retry=Retry(max=0), payload={"own": canary("declared")})
    async def seal(instance: Instance[dict[str, Any]]) -> str:
        instance.log(note)
        instance.progress(0.5, note)
        if "fail" in instance.payload:
            raise ValueError(error)
        return canary("result")

    return app, seal, error


@pytest.mark.early
async def test_C42d_no_value_of_an_encrypted_job_is_in_a_dump_or_a_log(
    short_place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], runner: asyncio.Runner
) -> None:
    canary, data_dir = Canaries(), short_place / "canaries"
    server = EmbeddedPostgres(EmbeddedSettings(data_dir, extra=TALKATIVE))
    await server.start()
    try:
        connection = await connect(admin_url(server.url), "horai canaries")
        await migrate(connection)
        monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(OLD.key).decode())
        async with harness.node(server.url, encryption_keys=(OLD,)) as api, Receiver() as receiver:
            opened = await _work(api, receiver, server.url, canary)
            assert canary.in_(pg_dump(data_dir, admin_url(server.url))) == []

        assert await Keyring((NEW, OLD)).rewrap(connection, 100) > 0
        async with harness.node(server.url, encryption_keys=(NEW,)) as api:  # rotated: the old key is gone
            for path, secret in opened.items():
                assert secret in json.dumps((await api("GET", path)).json), path
            for job in ("vault-hook", "seal"):
                assert (await api("DELETE", f"/api/v1/jobs/{job}")).status == 204
            assert await connection.fetchval("select count(*) from horai.payload_digest") > 4
            await data_keys.erase_data_keys(connection, 1)
            assert await connection.fetchval("select count(*) from horai.payload_digest") == 0
            for path in opened:
                if "/instances/" in path:
                    async with asyncio.timeout(20):
                        while canary.in_(json.dumps((await api("GET", path)).json)):
                            await asyncio.sleep(0.1)
        connection.terminate()
        assert canary.in_(pg_dump(data_dir, admin_url(server.url))) == []
    finally:
        await server.stop()
    logged = Area.at(data_dir).log.read_text("utf-8", "replace")
    assert "instance_live" in logged, "the server must log statements, or this test proves nothing"
    assert canary.in_(logged) == []
    said = capfd.readouterr()
    assert "dead letter" in said.out + said.err
    assert canary.in_(said.out + said.err) == []


async def _work(api: harness.Client, receiver: Receiver, url: str, canary: Canaries) -> dict[str, str]:
    """Run every path once. Return paths of the API, each with a canary that an operator sees there."""
    done = {"result": "SUCCESS", "output": canary("output")}
    failed = {"result": "FAIL_UNRECOVERABLE", "message": canary("message")}
    receiver.on("/vault", Answer(json=done), Answer(json=failed), Answer(json=done))
    default = canary("default")
    body = {
        "name": "vault-hook",
        "encrypted": True,
        "searchPaths": ["card"],
        "payload": {"card": default},
        "retry": {"maxRetry": 0},
        "target": {"type": "http", "url": receiver.url("/vault")},
    }
    assert (await api("POST", "/api/v1/jobs", body, Idempotency_Key="create")).status == 201
    instances, jobs = "/api/v1/jobs/vault-hook/instances", "/api/v1/jobs/vault-hook"
    paths: dict[str, str] = {jobs: default}
    for key, state in (("good", "SUCCESS"), ("bad", "DEAD")):
        secret = canary(key)
        wish = {"payload": {"card": secret}, "version": 1}
        made = await api("PUT", f"{instances}/{key}", wish, Idempotency_Key=key)
        assert made.status == 201, made.json
        assert (await api("PUT", f"{instances}/{key}", wish, Idempotency_Key=key)).json == made.json
        paths[f"/api/v1/instances/{made.json['instance']['id']}"] = secret
        await api.until_state(made.json["instance"]["id"], state)
        searched = await api("GET", f"/api/v1/instances?job=vault-hook&payload=card%3D{secret}")
        assert [item["id"] for item in searched.json["items"]] == [made.json["instance"]["id"]]
    assert {hit.json["payload"]["card"] for hit in receiver.hits} == {
        secret for secret in canary.all if secret.startswith(("canarygood", "canarybad"))
    }
    batch = {
        "items": [
            {"payload": canary("batch"), "executeTime": FAR},
            {"key": "b", "payload": canary("keyed"), "executeTime": FAR},
        ]
    }
    assert (await api("POST", f"{instances}/batch", batch)).status == 200
    assert (await api("PATCH", jobs, {"payload": {"card": default, "more": canary("patched")}})).status == 200
    fired = await api("POST", f"{jobs}/trigger", {"payload": canary("triggered")}, Idempotency_Key="trigger")
    await api.until_state(fired.json["instance"]["id"], "SUCCESS")
    letter = (await api("GET", "/api/v1/dlq?job=vault-hook")).json["items"][0]
    assert failed["message"] in letter["errorMsg"]
    paths[f"/api/v1/dlq/{letter['id']}"] = failed["message"]
    await _functions(api, url, canary, paths)
    await _second_copies(api, receiver, canary, paths)
    return paths


async def _second_copies(api: harness.Client, receiver: Receiver, canary: Canaries, paths: dict[str, str]) -> None:
    """Values that are stored a second time: payloads of nodes, results that are handed over, entities and their remarks."""
    handed, failed = canary("handed"), canary("remark")
    receiver.on("/first", Answer(json={"result": "SUCCESS", "output": handed}))
    receiver.on("/second", Answer())
    receiver.on("/renew", Answer(json={"result": "FAIL_UNRECOVERABLE", "message": failed}))
    rhythm = {"every": "1h", "refresh": {"window": "1d", "runOnAdd": True}}
    for name, more in (("first", {}), ("second", {}), ("renew", rhythm)):
        target = {"type": "http", "url": receiver.url(f"/{name}")}
        body = {"name": name, "encrypted": True, "target": target, "retry": {"maxRetry": 0}, **more}
        assert (await api("POST", "/api/v1/jobs", body)).status == 201
    nodes: list[Any] = [
        {"name": "first", "payload": {"card": canary("node")}},
        {"name": "second", "after": ["first"], "payload": {"card": canary("child")}},
    ]
    assert (
        await api("POST", "/api/v1/workflows", {"name": "chain", "nodes": nodes}, Idempotency_Key="chain")
    ).status == 201
    assert (await api("POST", "/api/v1/workflows/chain/trigger", {}, Idempotency_Key="run")).status == 202
    entity = "/api/v1/jobs/renew/entities/one"
    assert (await api("PUT", entity, {"payload": {"card": canary("entity")}}, Idempotency_Key="entity")).status == 201
    async with asyncio.timeout(30):
        while not any(hit.path == "/second" for hit in receiver.hits):
            await asyncio.sleep(0.05)
        while (shown := (await api("GET", entity)).json)["status"] != "FAILED":
            await asyncio.sleep(0.05)
    assert failed in shown["remark"]
    given = next(hit for hit in receiver.hits if hit.path == "/second").json["payload"]
    assert given["parents"] == {"first": handed}
    paths["/api/v1/workflows/chain"] = nodes[0]["payload"]["card"]
    paths[entity] = failed


async def _functions(api: harness.Client, url: str, canary: Canaries, paths: dict[str, str]) -> None:
    app, seal, error = application(url, canary)
    async with working(app):
        handle = await seal.enqueue({"card": canary("enqueued")})
        assert "result" in await handle.result("30s")
        paths[f"/api/v1/instances/{handle.id}"] = next(secret for secret in canary.all if "note" in secret)
        bad = await seal.enqueue({"fail": canary("failing")})
        await api.until_state(bad.id, "DEAD")
        paths[f"/api/v1/instances/{bad.id}"] = error
        await _events(api, (await app.client()).scope, canary)
        async with asyncio.timeout(20):
            while not (await api("GET", f"/api/v1/instances/{handle.id}")).json["attempts"][0]["log"]:
                await asyncio.sleep(0.05)


async def _events(api: harness.Client, scope: Scope, canary: Canaries) -> None:
    """A source changes the encrypted job, and a message that cannot be read is parked."""
    parked = canary("parked")
    good = {"id": "1", "job": "vault-hook", "key": "event", "executeTime": FAR, "payload": {"card": canary("event")}}
    bad = {"id": "2", "job": "vault-hook", "key": "event", "executeTime": "never", "payload": {"card": parked}}
    bodies = [json.dumps(change).encode() for change in (good, bad)]
    arrivals = [Arrival(str(n), "s", {}, body, read_change(body, {}, None)) for n, body in enumerate(bodies)]
    fates = await accept_changes(scope, "desk", arrivals)
    assert [fate.word for fate in fates] == ["INSERTED", "PARKED"]
    listed = (await api("GET", "/api/v1/events/parked")).json["items"]
    assert [parked in one["preview"] for one in listed] == [True]
    whole = (await api("GET", f"/api/v1/events/parked/{listed[0]['id']}")).json
    assert json.loads(whole["body"])["payload"]["card"] == parked
    again = await api("POST", f"/api/v1/events/parked/{listed[0]['id']}/retry", Idempotency_Key="retry")
    assert again.json["decision"] == "PARKED"

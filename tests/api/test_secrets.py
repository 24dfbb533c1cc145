"""Secrets are encrypted at rest: named secrets, headers and URLs of targets, sources, signing secrets."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import harness
import pytest
from harness import Client
from keys import holder
from receiver import Receiver

from api import expect, given
from horai import verify_webhook
from horai.core.encryption import KeyEncryptionKey
from horai.db import data_keys
from horai.db.pool import Platform

CANARY = "hunter2canary"
FIRST, SECOND = KeyEncryptionKey(os.urandom(32)), KeyEncryptionKey(os.urandom(32))
SECRETS = "/api/v1/secrets"


@pytest.fixture(scope="module")
def api(runner: asyncio.Runner, database: str) -> Iterator[Client]:
    """A client of a whole node with an encryption key."""
    stack = AsyncExitStack()
    node = harness.node(
        database, lease=timedelta(seconds=60), grace=timedelta(milliseconds=100), encryption_keys=(FIRST,)
    )
    yield runner.run(stack.enter_async_context(node))
    runner.run(stack.aclose())


def body(receiver: Receiver, **headers: Any) -> Any:
    """A job whose target has secrets in its URL and its headers."""
    name = given.name("hook")
    url = receiver.url(f"/{name}?token={CANARY}")
    return {"name": name, "target": {"type": "http", "url": url, "headers": headers or {"Authorization": CANARY}}}


async def run(api: Client, job: str, state: str = "SUCCESS", **more: Any) -> Any:
    made = await api("POST", f"/api/v1/jobs/{job}/trigger", Idempotency_Key=given.name("key"))
    assert made.status == 201, made.json
    return await api.until_state(made.json["instance"]["id"], state, **more)


async def put(api: Client, name: str, value: str) -> Any:
    reply = await api("PUT", f"{SECRETS}/{name}", {"value": value})
    assert reply.status in {200, 201}, reply.json
    return reply.json


async def dump(db: Platform) -> str:
    """Return every row of every table as text."""
    tables = await db.fetch(
        "select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind = 'r' order by 1"
    )
    rows = [await db.fetchval(f"select string_agg(t::text, '|') from horai.{name} t") for (name,) in tables]
    return "\n".join(row for row in rows if row)


async def test_C42c_the_secrets_of_a_target_are_sent_and_stored_only_in_an_envelope(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = body(receiver)
    made = await api("POST", "/api/v1/jobs", job)
    assert made.status == 201, made.json
    assert made.json["target"]["headers"] == {"Authorization": "***"}
    assert "sealed" not in made.json["target"]

    await run(api, job["name"])

    hit = receiver.hits[-1]
    assert hit.headers["authorization"] == CANARY
    assert hit.path.endswith(f"?token={CANARY}")
    stored = json.loads(await db.fetchval("select definition from horai.job where name = $1", job["name"]))
    assert set(stored["target"]["sealed"]) == {"$enc", "k", "n", "c"}
    assert CANARY not in await dump(db)
    assert "sealed" not in str((await api("GET", f"/api/v1/jobs/{job['name']}")).json)

    target = {**made.json["target"], "headers": {"Authorization": "***", "X-New": CANARY + "2"}}
    changed = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"target": target})
    assert changed.status == 200, changed.json
    await asyncio.sleep(1.1)  # a node reads definitions at most a second late
    await run(api, job["name"])
    hit = receiver.hits[-1]
    assert (hit.headers["authorization"], hit.headers["x-new"]) == (CANARY, CANARY + "2")
    assert hit.path.endswith(f"?token={CANARY}")
    assert CANARY not in await dump(db)
    assert "sealed" not in str((await api("GET", f"/api/v1/audit?object={job['name']}")).json)

    paused = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"tags": ["a"]})
    assert paused.status == 200, paused.json
    await run(api, job["name"])
    assert receiver.hits[-1].headers["x-new"] == CANARY + "2"

    assert (await api("DELETE", f"/api/v1/jobs/{job['name']}")).status == 204
    left = await db.fetchval("select definition::text from horai.job where name = $1", job["name"])
    assert "$enc" not in left


async def test_C42c_a_header_that_a_request_could_not_carry_is_refused_before_it_is_sealed(
    api: Client, receiver: Receiver
) -> None:
    job = body(receiver, **{"X-Bad": "line\nbreak"})
    expect.invalid(await api("POST", "/api/v1/jobs", job), "target.headers")
    good = body(receiver)
    made = (await api("POST", "/api/v1/jobs", good)).json
    broken = {**made["target"], "headers": {"X-Bad": "line\nbreak"}}
    expect.invalid(await api("PATCH", f"/api/v1/jobs/{made['id']}", {"target": broken}), "target.headers")
    forged = {**made["target"], "sealed": {"$enc": 1, "k": "a", "n": "", "c": ""}}
    expect.invalid(await api("PATCH", f"/api/v1/jobs/{made['id']}", {"target": forged}), "sealed")
    named = {**made["target"], "headers": {"X-Named": {"secret": "a", "value": "b"}}}
    assert (await api("PATCH", f"/api/v1/jobs/{made['id']}", {"target": named})).status == 422


async def test_C42c_a_named_secret_is_sent_and_replaced_and_never_shown(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    name = given.name("crm")
    made = await api("POST", SECRETS, {"name": name, "value": CANARY})
    assert (made.status, made.headers["location"]) == (201, f"{SECRETS}/{name}")
    assert set(made.json) == {"name", "version", "createdAt", "updatedAt"}
    job = body(receiver, Authorization={"secret": name}, **{"X-Plain": CANARY})
    created = await api("POST", "/api/v1/jobs", job)
    assert created.status == 201, created.json
    assert created.json["target"]["headers"] == {"X-Plain": "***", "Authorization": {"secret": name}}

    await run(api, job["name"])
    assert receiver.hits[-1].headers["authorization"] == CANARY

    again = await api("POST", SECRETS, {"name": name, "value": "other"})
    expect.problem(again, 409, "SCH_409_DUPLICATE", name)
    assert (await put(api, name, CANARY + "new"))["version"] == 2
    await asyncio.sleep(1.1)  # a node reads secrets at most a second late
    await run(api, job["name"])
    assert receiver.hits[-1].headers["authorization"] == CANARY + "new"
    assert receiver.hits[-1].headers["x-plain"] == CANARY

    kept = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"target": created.json["target"]})
    assert kept.status == 200, kept.json
    await run(api, job["name"])
    assert receiver.hits[-1].headers["authorization"] == CANARY + "new"
    listed = (await api("GET", f"{SECRETS}?limit=500")).json["items"]
    assert name in [each["name"] for each in listed]
    audit = (await api("GET", f"/api/v1/audit?object={name}")).json["items"]
    assert [each["verb"] for each in audit] == ["secret.replace", "secret.create"]
    assert CANARY not in str([listed, audit, created.json]) + await dump(db)


async def test_C42c_a_secret_in_use_is_not_deleted_and_an_unused_one_is(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    name = given.name("crm")
    await put(api, name, CANARY)
    job = body(receiver, Authorization={"secret": name})
    assert (await api("POST", "/api/v1/jobs", job)).status == 201
    refused = await api("DELETE", f"{SECRETS}/{name}")
    expect.problem(refused, 409, "SCH_409_CONFLICT", job["name"])

    assert (await api("DELETE", f"/api/v1/jobs/{job['name']}")).status == 204
    assert (await api("DELETE", f"{SECRETS}/{name}")).status == 204
    expect.problem(await api("DELETE", f"{SECRETS}/{name}"), 404, "SCH_404_NOT_FOUND", name)
    absent = body(receiver, Authorization={"secret": name})
    expect.invalid(await api("POST", "/api/v1/jobs", absent), "target.headers.Authorization", "does not exist")
    assert await db.fetchval("select count(*) from horai.secret where name = $1", name) == 0


async def test_C42c_a_secret_that_vanished_fails_the_attempt_with_its_code(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    name = given.name("crm")
    await put(api, name, CANARY)
    job: Any = {**body(receiver, Authorization={"secret": name}), "retry": {"maxRetry": 0}}
    assert (await api("POST", "/api/v1/jobs", job)).status == 201
    await db.execute("delete from horai.secret where name = $1", name)
    before = len(receiver.hits)

    dead = await run(api, job["name"], "DEAD")

    assert (dead["errorCode"], name in dead["errorMsg"]) == ("SECRET_MISSING", True)
    assert len(receiver.hits) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [("", "x"), ("a b", "x"), ("-a", "x"), ("a" * 65, "x"), ("ok", ""), ("ok", "line\nbreak"), ("ok", "ä"), ("ok", 5)],
)
async def test_a_secret_with_a_bad_name_or_value_is_refused(api: Client, name: str, value: Any) -> None:
    reply = await api("POST", SECRETS, {"name": name, "value": value})
    expect.invalid(reply, "name" if value == "x" else "value")
    assert str(value) not in str(reply.json) or len(str(value)) < 3
    too_long = await api("PUT", f"{SECRETS}/ok", {"value": "x" * 4_097})
    expect.invalid(too_long, "value")


async def test_a_value_of_a_secret_is_not_repeated_by_an_error(api: Client) -> None:
    for wrong in ({"value": f"{CANARY}\n"}, {"value": CANARY, "extra": CANARY}, {"value": [CANARY]}):
        reply = await api("PUT", f"{SECRETS}/ok", wrong)
        assert (reply.status, CANARY in str(reply.json)) == (422, False), reply.json


async def test_C42c_an_envelope_that_was_moved_or_changed_in_the_database_is_never_sent(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    victim: Any = body(receiver)
    thief: Any = {**body(receiver), "retry": {"maxRetry": 0}}
    for job in (victim, thief):
        assert (await api("POST", "/api/v1/jobs", job)).status == 201
    stored = json.loads(await db.fetchval("select definition from horai.job where name = $1", victim["name"]))
    theirs = json.loads(await db.fetchval("select definition from horai.job where name = $1", thief["name"]))
    theirs["target"]["sealed"] = stored["target"]["sealed"]
    change = "update horai.job set definition = $2, version = version + 1 where name = $1"
    await db.execute(change, thief["name"], json.dumps(theirs))
    before = len(receiver.hits)
    dead = await run(api, thief["name"], "DEAD")
    assert dead["errorCode"] == "SECRET_UNREADABLE"

    elsewhere = {**stored, "target": {**stored["target"], "url": receiver.url("/x").replace("127.0.0.1", "localhost")}}
    elsewhere["retry"] = {"maxRetry": 0}
    await db.execute(change, victim["name"], json.dumps(elsewhere))
    dead = await run(api, victim["name"], "DEAD")
    assert dead["errorCode"] == "SECRET_UNREADABLE"
    assert len(receiver.hits) == before


async def test_C42c_signing_secrets_are_sealed_and_still_verify(api: Client, db: Platform, receiver: Receiver) -> None:
    await given.until(lambda: _is_sealed(db))
    rotated = await api("POST", "/api/v1/signing-secrets", {"expireOld": "1h"}, Idempotency_Key=given.name("key"))
    newest = rotated.json["items"][0]["secret"]
    assert newest.startswith("whsec_")
    kept = await db.fetch("select * from horai.idempotency_key")
    assert newest not in str(kept)
    assert "whsec_" not in await dump(db)
    await asyncio.sleep(1.1)
    job = body(receiver)
    await api("POST", "/api/v1/jobs", job)
    await run(api, job["name"])
    hit = receiver.hits[-1]
    for each in (await api("GET", "/api/v1/signing-secrets")).json["items"]:
        assert verify_webhook(each["secret"], hit.headers, hit.body)


async def _is_sealed(db: Platform) -> bool:
    return not await db.fetchval("select count(*) from horai.signing_secret where secret like 'whsec%'")


async def test_a_repeated_rotation_does_not_show_the_secret_again(api: Client, db: Platform) -> None:
    key = given.name("key")
    first = await api("POST", "/api/v1/signing-secrets", {"expireOld": "0s"}, Idempotency_Key=key)
    repeat = await api("POST", "/api/v1/signing-secrets", {"expireOld": "0s"}, Idempotency_Key=key)
    told = expect.problem(repeat, 409, "SCH_409_DUPLICATE")
    assert told["secretId"] == first.json["items"][0]["id"]
    assert first.json["items"][0]["secret"] not in str(told)
    assert (await api("GET", "/api/v1/signing-secrets")).json["items"] == first.json["items"]


async def test_C42c_a_source_keeps_its_secrets_in_an_envelope(api: Client, db: Platform) -> None:
    job = await given.job(api)
    name = given.name("desk")
    source = {"type": "http", "url": f"https://example.com/w?t={CANARY}", "headers": {"Authorization": CANARY}}
    made = await api("POST", "/api/v1/reconcilers", {"name": name, "job": job["name"], "source": source})
    assert made.status == 201, made.json
    stored = "select source::text from horai.reconciler where id = $1"
    before = await db.fetchval(stored, int(made.json["id"]))
    assert ("$enc" in before, CANARY in before) == (True, False)
    kept = await api("PATCH", f"/api/v1/reconcilers/{name}", {"source": made.json["source"]})
    assert (kept.status, "sealed" in str(kept.json)) == (200, False), kept.json
    assert await db.fetchval(stored, int(made.json["id"])) == before
    changed = {**made.json["source"], "headers": {"Authorization": "***", "X-New": CANARY}}
    assert (await api("PATCH", f"/api/v1/reconcilers/{name}", {"source": changed})).status == 200
    assert CANARY not in await dump(db)
    assert (await api("DELETE", f"/api/v1/reconcilers/{name}")).status == 204
    assert "$enc" not in await db.fetchval(stored, int(made.json["id"]))


async def test_C42c_without_its_key_an_instance_waits_uncounted_and_runs_when_the_key_is_back(
    url: str, receiver: Receiver
) -> None:
    async with harness.node(url, encryption_keys=(FIRST,)) as api:
        job = body(receiver)
        assert (await api("POST", "/api/v1/jobs", job)).status == 201
        assert (await put(api, "crm", CANARY))["version"] == 1
    for keys in ((), (SECOND,)):
        async with harness.node(url, encryption_keys=keys) as api:
            before = len(receiver.hits)
            made = (await api("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key=given.name("key"))).json
            path = f"/api/v1/instances/{made['instance']['id']}/why"
            told = await given.until(lambda path=path, api=api: _held_for_key(api, path))
            assert told["verdict"] == "HELD"
            found = (await api("GET", f"/api/v1/instances/{made['instance']['id']}")).json
            assert (found["retryCount"], len(receiver.hits)) == (0, before)
            change = {"target": {"type": "http", "url": receiver.url("/x?t=***")}}
            assert (await api("PATCH", f"/api/v1/jobs/{job['name']}", change)).status == 503
            refused = await api("PUT", f"{SECRETS}/crm", {"value": "other"})
            assert refused.status == (409 if not keys else 503)
            assert refused.json["code"] == ("SCH_409_CONFLICT" if not keys else "SCH_503_KEY_UNAVAILABLE")
            await api("POST", f"/api/v1/instances/{made['instance']['id']}/cancel")
    async with harness.node(url, encryption_keys=(SECOND, FIRST)) as api:
        await run(api, job["name"])
        assert receiver.hits[-1].headers["authorization"] == CANARY


async def _held_for_key(api: Client, path: str) -> Any:
    told = (await api("GET", path)).json
    return told if "KEY_UNAVAILABLE" in [hold["kind"] for hold in told["holds"]] else None


async def test_C42c_secrets_stored_before_there_was_a_key_are_encrypted_at_the_next_start(
    url: str, receiver: Receiver
) -> None:
    job, source = body(receiver), {"type": "http", "url": f"https://example.com/?t={CANARY}"}
    async with harness.node(url) as api:
        assert (await api("POST", "/api/v1/jobs", job)).status == 201
        desk = {"name": "desk", "job": job["name"], "source": source}
        assert (await api("POST", "/api/v1/reconcilers", desk)).status == 201
    db = await _connected(url)
    assert CANARY in await dump(db)
    async with harness.node(url, encryption_keys=(FIRST,)) as api:
        await given.until(lambda: _is_clean(db))
        await run(api, job["name"])
        assert receiver.hits[-1].headers["authorization"] == CANARY
        assert "whsec_" not in await dump(db)
    await db.close()


async def _connected(url: str) -> Platform:
    from horai.db.pool import connect  # noqa: PLC0415

    return await connect(url, "horai secrets tests")


async def _is_clean(db: Platform) -> bool:
    return CANARY not in await dump(db)


async def test_a_new_tenant_has_a_sealed_signing_secret_from_the_start(url: str) -> None:
    async with harness.node(url, encryption_keys=(FIRST,)) as api:
        root = await holder(api, "platform-admin")
        assert (await root("POST", "/api/v1/tenants", {"name": "acme"})).status == 201
        db = await _connected(url)
        found = (
            "select secret from horai.signing_secret s join horai.tenant t on t.id = s.tenant_id where t.name = 'acme'"
        )
        assert "$enc" in await db.fetchval(found)
        admin = await holder(root, "admin", "acme")
        (shown,) = (await admin("GET", "/api/v1/signing-secrets")).json["items"]
        assert shown["secret"].startswith("whsec_")
        await db.close()


async def test_C42b_a_secret_of_another_tenant_is_neither_found_nor_sent(url: str, receiver: Receiver) -> None:
    async with harness.node(url, encryption_keys=(FIRST,)) as api:
        root = await holder(api, "platform-admin")
        assert (await root("POST", "/api/v1/tenants", {"name": "acme"})).status == 201
        ours, theirs = await holder(root, "admin", "default"), await holder(root, "admin", "acme")
        assert (await theirs("PUT", f"{SECRETS}/crm", {"value": CANARY})).status == 201
        assert (await ours("GET", SECRETS)).json["items"] == []
        job = body(receiver, Authorization={"secret": "crm"})
        expect.invalid(await ours("POST", "/api/v1/jobs", job), "does not exist")
        db = await _connected(url)
        await db.execute("insert into horai.secret (tenant_id, name, value) select 1, name, value from horai.secret")
        assert (await ours("POST", "/api/v1/jobs", job)).status == 201
        before = len(receiver.hits)
        made = await ours("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key=given.name("key"))
        waits = "select due > now() + interval '5 s' from horai.instance_live where id = $1 and state = 0"
        await given.until(lambda: db.fetchval(waits, int(made.json["instance"]["id"])))
        assert len(receiver.hits) == before
        await db.close()


async def test_C42b_a_broken_signing_secret_of_one_tenant_stops_no_other_tenants_calls(
    url: str, receiver: Receiver
) -> None:
    async with harness.node(url, encryption_keys=(FIRST,)) as api:
        root = await holder(api, "platform-admin")
        for number, broken in enumerate(("{", "{}", '{"$enc": 1, "k": 5, "n": "", "c": ""}', '{"$enc": 2, "k": "a"}')):
            name = f"broken-{number}"
            assert (await root("POST", "/api/v1/tenants", {"name": name})).status == 201
            db = await _connected(url)
            await db.execute(
                "update horai.signing_secret set secret = $2 where tenant_id = (select id from horai.tenant where name = $1)",
                name,
                broken,
            )
            await db.close()
        await given.loopback_targets(root, "default")
        admin = await holder(root, "admin", "default")
        job = body(receiver)
        assert (await admin("POST", "/api/v1/jobs", job)).status == 201
        await run(admin, job["name"])
        assert receiver.hits[-1].headers["authorization"] == CANARY


async def test_C42c_running_nodes_forget_the_secrets_of_a_tenant_whose_keys_were_erased(
    url: str, receiver: Receiver
) -> None:
    first = harness.node(url, encryption_keys=(FIRST,))
    second = harness.node(url, name="second", encryption_keys=(FIRST,))
    async with first as one, second as two:
        db = await _connected(url)
        await given.until(lambda: _is_sealed(db))
        job = body(receiver)
        assert (await one("POST", "/api/v1/jobs", job)).status == 201
        await run(one, job["name"])
        assert {(await node("GET", "/api/v1/signing-secrets")).status for node in (one, two)} == {200}
        before = len(receiver.hits)

        await data_keys.erase_data_keys(db, 1)

        for node in (one, two):
            await given.until(lambda node=node: _has_lost_keys(node))
        made = await two("POST", f"/api/v1/jobs/{job['name']}/trigger", Idempotency_Key=given.name("key"))
        path = f"/api/v1/instances/{made.json['instance']['id']}/why"
        await given.until(lambda: _held_for_key(two, path))
        assert len(receiver.hits) == before

        target = {**job["target"], "headers": {"Authorization": "another"}}
        changed = await one("PATCH", f"/api/v1/jobs/{job['name']}", {"target": target})
        assert changed.status == 200, "a change that gives every value again needs no old one"
        await db.close()


async def _has_lost_keys(api: Client) -> bool:
    return (await api("GET", "/api/v1/signing-secrets")).status == 503

"""Encrypted jobs: payloads, results, error texts and notes are stored in envelopes and shown to operators only."""

import asyncio
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import asyncpg
import harness
import pytest
from databases import fresh_database
from dumps import every_row
from harness import Client
from keys import KeyHolder, holder
from receiver import Answer, Receiver

from api import expect, given
from horai.core.encryption import KeyEncryptionKey
from horai.db import data_keys
from horai.db.pool import Platform, connect
from horai.embedded import EmbeddedPostgres

CANARY = "hunter2canary"
FIRST, SECOND = KeyEncryptionKey(os.urandom(32)), KeyEncryptionKey(os.urandom(32))
QUICK: dict[str, Any] = {"lease": timedelta(seconds=60), "grace": timedelta(milliseconds=100)}
ENVELOPE = {"$enc": 1, "k": "a1", "n": "AAAA", "c": "AAAA"}


@pytest.fixture(scope="module")
def server(runner: asyncio.Runner, database: str) -> Iterator[Client]:
    """A client without a key of a whole node that has an encryption key."""
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(harness.node(database, encryption_keys=(FIRST,), **QUICK)))
    runner.run(stack.aclose())


@pytest.fixture(scope="module")
def api(runner: asyncio.Runner, server: Client) -> KeyHolder:
    """A client with the role admin, whose jobs may call receivers of this machine."""
    return runner.run(given.admin(server))


async def made(api: Client, receiver: Receiver, *answers: Answer, **fields: Any) -> Any:
    """An encrypted job whose target answers like this."""
    return await given.scripted(api, receiver, *answers, encrypted=True, **fields)


async def stored(db: Platform, instance: Any) -> Any:
    """Return the stored payload, result and error text of a final instance."""
    sql = "select payload, result, error_msg from horai.instance_history where id = $1"
    return await db.fetchrow(sql, int(instance["id"]))


def is_envelope(text: str | None) -> bool:
    """Return whether a stored text is an envelope."""
    return text is not None and set(json.loads(text)) == {"$enc", "k", "n", "c"}


async def put(api: Client, job: Any, key: str, payload: Any, **more: Any) -> Any:
    reply = await given.put(api, job, key, None, payload=payload, **more)
    assert reply.status in {200, 201}, reply.json
    return reply.json["instance"]


async def test_C42c_a_target_gets_the_opened_payload_and_the_database_has_envelopes_only(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    answer = Answer(json={"result": "SUCCESS", "output": {"secret": CANARY}})
    job = await made(api, receiver, answer, payload={"default": CANARY})
    assert (job["encrypted"], job["payload"]) == (True, {"default": CANARY})

    first = await put(api, job, "k", {"card": CANARY})
    assert first["payload"] == {"card": CANARY}
    done = await api.until_state(first["id"], "SUCCESS")

    assert given.hits(receiver, job)[-1].json["payload"] == {"card": CANARY}
    assert done["payload"] == {"card": CANARY}
    assert done["result"] == {"secret": CANARY}
    payload, result, _ = await stored(db, done)
    assert is_envelope(payload)
    assert is_envelope(result)
    default = await given.triggered(api, job)
    await api.until_state(default["id"], "SUCCESS")
    assert given.hits(receiver, job)[-1].json["payload"] == {"default": CANARY}
    assert CANARY not in await every_row(db)


async def test_C42c_every_way_to_add_an_instance_over_rest_seals_its_payload(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, Answer())
    path = f"/api/v1/jobs/{job['name']}"
    items = [{"payload": {"card": f"{CANARY}1"}}, {"key": "b", "payload": {"card": f"{CANARY}2"}}]
    batch = await api("POST", f"{path}/instances/batch", {"items": items})
    assert batch.status == 200, batch.json
    triggered = await api("POST", f"{path}/trigger", {"payload": {"card": f"{CANARY}3"}}, Idempotency_Key="t1")
    assert triggered.status == 201, triggered.json
    assert triggered.json["instance"]["payload"] == {"card": f"{CANARY}3"}
    changed = await api("PATCH", path, {"payload": {"card": f"{CANARY}4"}})
    assert (changed.status, changed.json["payload"]) == (200, {"card": f"{CANARY}4"})
    plain = await given.triggered(api, job)
    ids = [one["instanceId"] for one in batch.json["items"]] + [triggered.json["instance"]["id"], plain["id"]]
    for one in ids:
        await api.until_state(one, "SUCCESS")

    got = sorted(hit.json["payload"]["card"] for hit in given.hits(receiver, job))
    assert got == [f"{CANARY}{n}" for n in (1, 2, 3, 4)]
    assert CANARY not in await every_row(db)


async def test_C42c_a_failure_is_stored_sealed_with_its_code_and_fingerprint_in_clear(
    api: Client, db: Platform, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    bad = Answer(json={"result": "FAIL_UNRECOVERABLE", "message": f"card {CANARY} refused"})
    job = await made(api, receiver, bad, retry={"maxRetry": 0})
    dead = [await api.until_state((await put(api, job, key, {}))["id"], "DEAD") for key in ("a", "b")]

    assert CANARY in dead[0]["errorMsg"]
    assert dead[0]["errorCode"] == "RESULT_UNRECOVERABLE"
    assert CANARY in dead[0]["attempts"][-1]["errorMsg"]
    letters = (await api("GET", f"/api/v1/dlq?job={job['name']}")).json["items"]
    assert [CANARY in letter["errorMsg"] for letter in letters] == [True, True]
    faults = (await api("GET", f"/api/v1/dlq/faults?job={job['name']}")).json["items"]
    assert [(fault["letters"], CANARY in fault["errorMsg"]) for fault in faults] == [(2, True)]
    detail = (await api("GET", f"/api/v1/dlq/{letters[0]['id']}")).json
    assert CANARY in detail["instance"]["errorMsg"]
    replayed = await api("POST", f"/api/v1/dlq/{letters[0]['id']}/replay")
    assert replayed.status == 201, replayed.json
    await api.until_state(replayed.json["instance"]["id"], "DEAD")
    assert given.hits(receiver, job)[-1].json["payload"] == {}
    assert CANARY not in await every_row(db)
    assert CANARY not in caplog.text


async def test_C42c_viewers_see_stars_and_operators_see_values(api: Client, db: Platform, receiver: Receiver) -> None:
    bad = Answer(json={"result": "FAIL_UNRECOVERABLE", "message": CANARY})
    good = Answer(json={"result": "SUCCESS", "output": CANARY})
    job = await made(api, receiver, good, bad, payload={"default": CANARY}, retry={"maxRetry": 0})
    done = await api.until_state((await put(api, job, "good", {"card": CANARY}))["id"], "SUCCESS")
    dead = await api.until_state((await put(api, job, "bad", {"card": CANARY}))["id"], "DEAD")
    letter = (await api("GET", f"/api/v1/dlq?job={job['name']}")).json["items"][0]["id"]
    name = job["name"]
    paths = [
        f"/api/v1/jobs/{name}",
        f"/api/v1/jobs?name={name}",
        f"/api/v1/jobs/{name}/instances",
        f"/api/v1/instances?job={name}",
        f"/api/v1/instances/{done['id']}",
        f"/api/v1/instances/{dead['id']}",
        f"/api/v1/dlq?job={name}",
        f"/api/v1/dlq/faults?job={name}",
        f"/api/v1/dlq/{letter}",
        f"/api/v1/instances/{dead['id']}/why",
    ]
    viewer, operator = await holder(api, "viewer"), await holder(api, "operator")
    for path in paths:
        hidden, shown = await viewer("GET", path), await operator("GET", path)
        assert (hidden.status, shown.status) == (200, 200), path
        assert CANARY not in str(hidden.json), path
        assert "$enc" not in str(hidden.json) + str(shown.json), path
        assert "***" in str(hidden.json), path
        assert CANARY in str(shown.json), path
    one = (await viewer("GET", f"/api/v1/instances/{done['id']}")).json
    assert (one["payload"], one["result"]) == ("***", "***")


async def test_C42c_encrypted_is_set_at_creation_and_never_changes(api: Client, receiver: Receiver) -> None:
    job, plain = await made(api, receiver, Answer()), await given.scripted(api, receiver, Answer())
    for one, wish in ((job, False), (job, None), (plain, True)):
        reply = await api("PATCH", f"/api/v1/jobs/{one['name']}", {"encrypted": wish})
        expect.invalid(reply, "encrypted", "never changes")
        assert "Create another job" in reply.json["hint"]
    same = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"encrypted": True, "tags": ["a"]})
    assert (same.status, same.json["encrypted"]) == (200, True)
    assert (await api("GET", f"/api/v1/jobs/{plain['name']}")).json["encrypted"] is False


async def test_C42c_a_payload_that_looks_like_an_envelope_is_data(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job, plain = await made(api, receiver, Answer()), await given.scripted(api, receiver, Answer())
    for one in (job, plain):
        sent = await put(api, one, "k", ENVELOPE)
        done = await api.until_state(sent["id"], "SUCCESS")
        assert done["payload"] == ENVELOPE
        assert given.hits(receiver, one)[-1].json["payload"] == ENVELOPE
    taken = (await stored(db, await api.until_state((await put(api, job, "x", {"a": CANARY}))["id"], "SUCCESS")))[0]
    moved = await put(api, plain, "moved", json.loads(taken))
    assert (await api.until_state(moved["id"], "SUCCESS"))["payload"] == json.loads(taken)


async def test_C42c_an_envelope_that_was_moved_or_changed_fails_its_attempt(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    once = {"maxRetry": 0}
    job, other = await made(api, receiver, Answer(), retry=once), await made(api, receiver, Answer(), retry=once)
    first = (await given.put(api, job, "a", payload={"card": CANARY})).json["instance"]
    strange = (await given.put(api, other, "a", payload={})).json["instance"]
    plain = (await given.put(api, other, "b", payload={})).json["instance"]
    taken = await db.fetchval("select payload from horai.instance_live where id = $1", int(first["id"]))
    await db.execute("update horai.instance_live set payload = $2 where id = $1", int(strange["id"]), taken)
    await db.execute("update horai.instance_live set payload = $2 where id = $1", int(plain["id"]), '{"forged": 1}')
    for instance in (strange, plain):
        assert (await api("GET", f"/api/v1/instances/{instance['id']}")).json["payload"] == "***"
    for key, instance in (("a", strange), ("b", plain)):
        assert (await given.put(api, other, key, None)).status == 200
        dead = await api.until_state(instance["id"], "DEAD")
        assert (dead["errorCode"], dead["payload"]) == ("PAYLOAD_UNREADABLE", "***")
    assert given.hits(receiver, other) == []

    done = await api.until_state((await given.put(api, job, "a", None)).json["instance"]["id"], "SUCCESS")
    sql = "update horai.instance_history set result = payload where id = $1"
    await db.execute(sql, int(done["id"]))  # another column of the same job
    assert (await api("GET", f"/api/v1/instances/{done['id']}")).json["result"] == "***"


async def test_C42c_a_repeated_put_is_recognised_by_its_opened_payload(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, Answer(status=500), retry={"maxRetry": 0})
    wish: Any = {"payload": {"card": CANARY}, "version": 3}
    decisions = [(await given.put(api, job, "k", **wish)).json["decision"] for _ in range(2)]
    other = await given.put(api, job, "k", payload={"card": "other"}, version=3)
    assert [*decisions, other.json["decision"]] == ["INSERTED", "IGNORED", "UPDATED"]
    kept = await given.put(api, job, "k", "2999-02-01T00:00:00Z", version=4)
    assert kept.json["instance"]["payload"] == {"card": "other"}
    assert (await api("DELETE", f"/api/v1/jobs/{job['name']}/instances/k")).status == 200
    again: Any = {"payload": {"card": "other"}, "version": 4}
    repeat = await given.put(api, job, "k", "2999-02-01T00:00:00Z", **again)
    assert repeat.json["decision"] == "IGNORED"
    assert CANARY not in await every_row(db)


async def test_C42c_payloads_of_encrypted_jobs_are_not_searched(api: Client, receiver: Receiver) -> None:
    job = await made(api, receiver, Answer())
    tag = given.name("tag")
    assert (await api("PATCH", f"/api/v1/jobs/{job['name']}", {"tags": [tag]})).status == 200
    await given.put(api, job, "k", payload={"card": CANARY, "$enc": "1"})
    refused = await api("GET", f"/api/v1/jobs/{job['name']}/instances?payload=card%3D{CANARY}")
    expect.invalid(refused, "payload", "are encrypted")
    assert "Filter by key" in refused.json["hint"]
    for filter_ in (f"card%3D{CANARY}", "$enc%3D1"):
        assert (await api("GET", f"/api/v1/instances?tag={tag}&payload={filter_}")).json["items"] == []


async def test_C42c_the_answer_kept_for_an_idempotency_key_is_sealed(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, Answer(), payload={"default": CANARY})
    path = f"/api/v1/jobs/{job['name']}/instances/k"
    wish = {"executeTime": given.FAR, "payload": {"card": CANARY}}
    key = given.name("key")
    first = await api("PUT", path, wish, Idempotency_Key=key)
    body = await db.fetchval("select body from horai.idempotency_key where key = $1", key)
    assert CANARY.encode() not in zlib.decompress(body)
    again = await api("PUT", path, wish, Idempotency_Key=key)
    assert (again.status, again.json, again.headers["Idempotency-Replayed"]) == (201, first.json, "true")
    assert again.json["instance"]["payload"] == {"card": CANARY}
    assert "horai-sealed" not in {name.lower() for name in again.headers}
    paused = await api("POST", f"/api/v1/jobs/{job['name']}/pause", Idempotency_Key=given.name("key"))
    assert paused.json["payload"] == {"default": CANARY}
    kept = await db.fetch("select body from horai.idempotency_key where body is not null")
    assert not any(CANARY.encode() in zlib.decompress(row["body"]) for row in kept)


async def test_C42c_a_reconciler_refuses_encrypted_jobs(api: Client, receiver: Receiver) -> None:
    job = await made(api, receiver, Answer())
    source = {"type": "http", "url": receiver.url("/source")}
    wish = {"name": given.name("rec"), "job": job["name"], "every": "1h", "source": source}
    expect.invalid(await api("POST", "/api/v1/reconcilers", wish), "job", "is encrypted")


async def test_C42c_sql_functions_refuse_payloads_of_encrypted_jobs(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, Answer(), payload={"default": CANARY})
    name = job["name"]
    for statement in (
        "select horai.enqueue($1, $2::text)",
        "select horai.put_instance($1, 'k', null, $2::text)",
        "select horai.enqueue_many($1, array[$2::text])",
    ):
        for payload in ('{"card": 1}', json.dumps(ENVELOPE), '"x"', "[]"):
            with pytest.raises(asyncpg.PostgresError, match="is encrypted") as refused:
                await db.execute(statement, name, payload)
            assert "SDK" in str(refused.value.hint)
    made_here = await db.fetchval("select (horai.enqueue($1)).instance_id", name)
    done = await api.until_state(str(made_here), "SUCCESS")
    assert done["payload"] == {"default": CANARY}


async def test_C42c_backfills_and_slots_run_with_the_sealed_payload_of_the_job(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, Answer(), payload={"default": CANARY}, every="1h", anchor="2026-01-01T00:00:00Z")
    wish = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-02T02:00:00Z", "mode": "all"}
    before = len(receiver.hits)
    started = await api("POST", f"/api/v1/jobs/{job['name']}/backfill", wish, Idempotency_Key=given.name("key"))
    assert started.status == 202, started.json
    await receiver.wait_for(before + 2)
    assert {json.dumps(hit.json["payload"]) for hit in given.hits(receiver, job)} == {json.dumps({"default": CANARY})}
    assert CANARY not in await every_row(db)


@pytest.fixture(scope="module")
def lonely(runner: asyncio.Runner, postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database of its own, for tests that take keys away."""
    with fresh_database(postgres) as made:
        yield made


async def test_C42c_a_node_without_the_key_waits_and_shows_stars_and_one_with_it_goes_on(
    lonely: str, receiver: Receiver
) -> None:
    async with harness.node(lonely, encryption_keys=(FIRST,), **QUICK) as api:
        job = await made(api, receiver, Answer(), payload={"default": CANARY})
        waiting = (await given.put(api, job, "k", payload={"card": CANARY})).json["instance"]

    async with harness.node(lonely, **QUICK) as api:
        for body in (
            {"name": given.name(), "encrypted": True},
            {"name": given.name(), "encrypted": True, "payload": 1},
        ):
            refused = await api("POST", "/api/v1/jobs", body)
            expect.problem(refused, 409, "SCH_409_CONFLICT", "no encryption key")
            assert "HORAI_ENCRYPTION_KEY" in refused.json["hint"]
        refused = await given.put(api, job, "other", payload={"card": CANARY})
        expect.problem(refused, 409, "SCH_409_CONFLICT", "no encryption key")
        assert (await api("GET", f"/api/v1/jobs/{job['name']}")).json["payload"] == "***"
        shown = (await given.put(api, job, "k", None)).json["instance"]
        assert shown["payload"] == "***"
        async with asyncio.timeout(30):
            while (await api("GET", f"/api/v1/instances/{waiting['id']}")).json["fence"] == 0:
                await asyncio.sleep(0.05)
        why = (await api("GET", f"/api/v1/instances/{waiting['id']}/why")).json
        assert "KEY_UNAVAILABLE" in [hold["kind"] for hold in why["holds"]], why
        row = (await api("GET", f"/api/v1/instances/{waiting['id']}")).json
        assert (row["retryCount"], row["errorCode"]) == (0, None)

    async with harness.node(lonely, encryption_keys=(SECOND,), **QUICK) as api:
        assert (await api("GET", f"/api/v1/instances/{waiting['id']}")).json["payload"] == "***"

    assert given.hits(receiver, job) == []
    async with harness.node(lonely, encryption_keys=(SECOND, FIRST), **QUICK) as api:
        assert (await given.put(api, job, "k", None)).status == 200
        done = await api.until_state(waiting["id"], "SUCCESS")
        assert done["payload"] == {"card": CANARY}
        connection = await connect(lonely, "horai test")
        await data_keys.erase_data_keys(connection, 1)
        await connection.execute("notify horai_wake, 'k'")
        connection.terminate()

    async with harness.node(lonely, encryption_keys=(SECOND, FIRST), **QUICK) as api:
        erased = (await api("GET", f"/api/v1/instances/{waiting['id']}")).json
        assert (erased["payload"], erased["state"]) == ("***", "SUCCESS")

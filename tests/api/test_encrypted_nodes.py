"""Encrypted jobs as nodes of workflows: payloads and results are sealed for the job that reads them."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import harness
import pytest
from databases import fresh_database
from dumps import every_row
from harness import Client
from keys import KeyHolder, holder
from receiver import Answer, Receiver

from api import expect, given
from horai.core.encryption import KeyEncryptionKey
from horai.db.pool import Platform, connect
from horai.embedded import EmbeddedPostgres

CANARY = "hunter2canary"
KEY = KeyEncryptionKey(os.urandom(32))
QUICK: dict[str, Any] = {"lease": timedelta(seconds=60), "grace": timedelta(milliseconds=100)}
RETURNS = Answer(json={"result": "SUCCESS", "output": {"token": CANARY}})


@pytest.fixture(scope="module")
def api(runner: asyncio.Runner, database: str) -> Iterator[KeyHolder]:
    """A client with the role admin of a whole node that has an encryption key."""
    stack = AsyncExitStack()

    async def build() -> KeyHolder:
        server = await stack.enter_async_context(harness.node(database, encryption_keys=(KEY,), **QUICK))
        return await given.admin(server)

    yield runner.run(build())
    runner.run(stack.aclose())


async def sealed(api: Client, receiver: Receiver, *answers: Answer, **fields: Any) -> Any:
    return await given.scripted(api, receiver, *(answers or (RETURNS,)), encrypted=True, **fields)


async def flow(api: Client, *nodes: Any, **fields: Any) -> Any:
    reply = await api("POST", "/api/v1/workflows", {"name": given.name("flow"), "nodes": list(nodes), **fields})
    assert reply.status == 201, reply.json
    return reply.json


async def run_of(api: Client, made: Any, payload: Any = None) -> str:
    body = {} if payload is None else {"payload": payload}
    path = f"/api/v1/workflows/{made['name']}/trigger"
    reply = await api("POST", path, body, Idempotency_Key=given.name("key"))
    assert reply.status == 202, reply.json
    return reply.json["run"]["id"]


async def ended(api: Client, made: Any, run: str, state: str = "SUCCESS") -> Any:
    async def look() -> Any:
        found = (await api("GET", f"/api/v1/workflows/{made['name']}/runs/{run}")).json
        return found if found["state"] == state else None

    return await given.until(look)


async def test_C42c_results_are_handed_over_from_an_encrypted_job_to_another_and_stay_sealed(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    first, second = await sealed(api, receiver), await sealed(api, receiver)
    third = await sealed(api, receiver, payload={"own": CANARY})
    made = await flow(
        api,
        {"name": "a", "job": first["name"], "payload": {"card": CANARY}},
        {"name": "b", "job": second["name"], "after": ["a"], "payload": {"also": CANARY}},
        {"name": "c", "job": third["name"], "after": ["a", "b"]},
    )
    assert made["nodes"][0]["payload"] == {"card": CANARY}
    run = await ended(api, made, await run_of(api, made))
    assert given.hits(receiver, first)[-1].json["payload"] == {"card": CANARY}
    token = {"token": CANARY}
    assert given.hits(receiver, second)[-1].json["payload"] == {"also": CANARY, "parents": {"a": token}}
    assert given.hits(receiver, third)[-1].json["payload"] == {"own": CANARY, "parents": {"a": token, "b": token}}
    assert [node["result"] for node in run["nodes"]] == [token] * 3
    assert CANARY not in await every_row(db)

    viewer = await holder(api, "viewer")
    for path in (
        f"/api/v1/workflows/{made['name']}",
        "/api/v1/workflows",
        f"/api/v1/workflows/{made['name']}/runs/{run['id']}",
    ):
        hidden = await viewer("GET", path)
        assert hidden.status == 200, hidden.json
        assert CANARY not in str(hidden.json)
        assert "$enc" not in str(hidden.json) + str((await api("GET", path)).json), path
        assert "***" in str(hidden.json), path
    tagged = await api("PATCH", f"/api/v1/workflows/{made['name']}", {"tags": ["a"]})
    assert tagged.json["nodes"][0]["payload"] == {"card": CANARY}


async def test_C42c_the_payload_of_a_run_is_sealed_for_encrypted_nodes_also_in_a_rerun(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    handed = Answer(json={"result": "SUCCESS", "output": {"token": "plain"}})
    plain, hidden = await given.scripted(api, receiver, handed), await sealed(api, receiver)
    made = await flow(api, {"name": "a", "job": plain["name"]}, {"name": "b", "job": hidden["name"], "after": ["a"]})
    run = await run_of(api, made, {"order": 7})
    await ended(api, made, run)
    expected = {"order": 7, "parents": {"a": {"token": "plain"}}}
    assert given.hits(receiver, hidden)[-1].json["payload"] == expected
    rerun = await api("POST", f"/api/v1/workflows/{made['name']}/runs/{run}/rerun", {"from": "b"})
    assert rerun.status == 200, rerun.json
    await given.until(lambda: _count(receiver, hidden, 2))
    assert given.hits(receiver, hidden)[-1].json["payload"] == expected
    rows = await db.fetch(
        "select payload from horai.workflow_node where run_id = $1 and name = 'b' union all "
        "select payload from horai.instance_history where job_id = $2",
        int(run),
        int(hidden["id"]),
    )
    assert len(rows) >= 3
    assert all(set(json.loads(payload)) == {"$enc", "k", "n", "c"} for (payload,) in rows)


async def _count(receiver: Receiver, job: Any, count: int) -> bool:
    return len(given.hits(receiver, job)) >= count


async def test_C42c_a_failed_node_shows_its_error_text_to_operators_only(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    bad = Answer(json={"result": "FAIL_UNRECOVERABLE", "message": CANARY})
    job = await sealed(api, receiver, bad, RETURNS, retry={"maxRetry": 0})
    made = await flow(api, {"name": "a", "job": job["name"], "payload": {"card": CANARY}})
    run = await run_of(api, made)
    blocked = await ended(api, made, run, "BLOCKED")
    assert CANARY in blocked["nodes"][0]["errorMsg"]
    viewer = await holder(api, "viewer")
    hidden = (await viewer("GET", f"/api/v1/workflows/{made['name']}/runs/{run}")).json
    assert hidden["nodes"][0]["errorMsg"] == "***"
    letter = (await api("GET", f"/api/v1/dlq?job={job['name']}")).json["items"][0]
    assert (await api("POST", f"/api/v1/dlq/{letter['id']}/replay")).status == 201
    await ended(api, made, run)
    assert CANARY not in await every_row(db)


async def test_C42c_a_plain_job_cannot_follow_an_encrypted_one_and_a_searched_job_cannot_be_a_node(
    api: Client, receiver: Receiver
) -> None:
    hidden, plain = await sealed(api, receiver), await given.scripted(api, receiver, Answer())
    searched = await sealed(api, receiver, searchPaths=["card"])
    nodes = [{"name": "a", "job": hidden["name"]}, {"name": "b", "job": plain["name"], "after": ["a"]}]
    body = {"name": given.name("flow"), "nodes": nodes}
    expect.invalid(await api("POST", "/api/v1/workflows", body), "nodes.1.job", "is not encrypted")
    made = await flow(api, {"name": "a", "job": hidden["name"]}, {"name": "b", "job": plain["name"]})
    changed = await api("PATCH", f"/api/v1/workflows/{made['name']}", {"nodes": nodes})
    expect.invalid(changed, "nodes.1.job", "is not encrypted")
    body = {"name": given.name("flow"), "nodes": [{"name": "a", "job": searched["name"]}]}
    expect.invalid(await api("POST", "/api/v1/workflows", body), "nodes.0.job", "search paths")


@pytest.fixture(scope="module")
def lonely(runner: asyncio.Runner, postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database of its own, for tests that take keys away."""
    with fresh_database(postgres) as made_here:
        yield made_here


async def test_C42c_a_run_waits_for_a_missing_key_and_starts_with_it(lonely: str, receiver: Receiver) -> None:
    async with harness.node(lonely, encryption_keys=(KEY,), **QUICK) as api:
        hidden = await sealed(api, receiver, RETURNS)
        made = await flow(api, {"name": "a", "job": hidden["name"]})
    async with harness.node(lonely, **QUICK) as api:
        node = {"name": "a", "job": hidden["name"], "payload": 1}
        refused = await api("POST", "/api/v1/workflows", {"name": "x", "nodes": [node]})
        expect.problem(refused, 409, "SCH_409_CONFLICT", "no encryption key")
        run = await run_of(api, made, {"order": 7})
        connection = await connect(lonely, "horai test")

        async def was_claimed() -> bool:
            return await connection.fetchval(
                "select fence > 0 and state = 0 from horai.instance_live where id = $1", int(run)
            )

        await given.until(was_claimed)
        assert await connection.fetchval("select count(*) from horai.workflow_run") == 0
        connection.terminate()
    async with harness.node(lonely, encryption_keys=(KEY,), **QUICK) as api:
        await ended(api, made, run)
    assert [hit.json["payload"] for hit in given.hits(receiver, hidden)] == [{"order": 7}]

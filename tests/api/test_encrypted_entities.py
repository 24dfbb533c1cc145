"""Encrypted refresh jobs: payloads and remarks of entities are sealed, and their runs get the opened payload."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import asyncpg
import harness
import pytest
from dumps import every_row
from harness import Client
from keys import KeyHolder, holder
from receiver import Answer, Receiver

from api import expect, given
from horai.core.encryption import KeyEncryptionKey
from horai.db.pool import Platform

CANARY = "hunter2canary"
KEY = KeyEncryptionKey(os.urandom(32))
QUICK: dict[str, Any] = {"lease": timedelta(seconds=60), "grace": timedelta(milliseconds=100)}


@pytest.fixture(scope="module")
def api(runner: asyncio.Runner, database: str) -> Iterator[KeyHolder]:
    """A client with the role admin of a whole node that has an encryption key."""
    stack = AsyncExitStack()

    async def build() -> KeyHolder:
        server = await stack.enter_async_context(harness.node(database, encryption_keys=(KEY,), **QUICK))
        return await given.admin(server)

    yield runner.run(build())
    runner.run(stack.aclose())


async def made(api: Client, receiver: Receiver, *answers: Answer, **fields: Any) -> Any:
    """An encrypted refresh job, whose target answers like this."""
    refresh = {"window": "1d", **fields.pop("refresh", {})}
    rest: Any = {"encrypted": True, "every": "1s", "refresh": refresh, "retry": {"maxRetry": 0}, **fields}
    return await given.scripted(api, receiver, *answers, **rest)


async def until_status(api: Client, path: str, status: str) -> Any:
    async def look() -> Any:
        found = (await api("GET", path)).json
        return found if found["status"] == status else None

    return await given.until(look)


async def test_C42c_entities_of_an_encrypted_job_run_with_the_opened_payload(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    bad = Answer(json={"result": "FAIL_UNRECOVERABLE", "message": f"{CANARY}-" + "x" * 3_000})
    good, failing = await made(api, receiver, Answer()), await made(api, receiver, bad, refresh={"runOnAdd": True})
    path = f"/api/v1/jobs/{good['name']}/entities"
    put = await api("PUT", f"{path}/one", {"payload": {"card": f"{CANARY}1"}})
    assert (put.status, put.json["payload"]) == (201, {"card": f"{CANARY}1"})
    batch = {"items": [{"key": "two", "payload": {"card": f"{CANARY}2"}}, {"key": "three"}]}
    assert (await api("POST", f"{path}/batch", batch)).json == {"added": 2, "known": 0}
    for key in ("one", "two", "three"):
        await until_status(api, f"{path}/{key}", "SUCCESS")
    got = {hit.json["key"]: hit.json["payload"] for hit in given.hits(receiver, good)}
    assert got == {"one": {"card": f"{CANARY}1"}, "two": {"card": f"{CANARY}2"}, "three": None}

    other = f"/api/v1/jobs/{failing['name']}/entities"
    assert (await api("PUT", f"{other}/bad", {"payload": {"card": CANARY}})).status == 201
    failed = await until_status(api, f"{other}/bad", "FAILED")
    assert failed["remark"].startswith(f"RESULT_UNRECOVERABLE: {CANARY}-")
    assert len(failed["remark"]) == 2_000
    assert CANARY not in await every_row(db)

    viewer = await holder(api, "viewer")
    for shown in (f"{other}/bad", other, f"/api/v1/jobs/{failing['name']}/refresh"):
        hidden = await viewer("GET", shown)
        assert hidden.status == 200, hidden.json
        assert CANARY not in str(hidden.json), shown
        assert CANARY in str((await api("GET", shown)).json), shown
        assert "$enc" not in str(hidden.json) + str((await api("GET", shown)).json), shown
    one = (await viewer("GET", f"{other}/bad")).json
    assert (one["payload"], one["remark"]) == ("***", "RESULT_UNRECOVERABLE: ***")


async def test_C42c_a_job_becomes_a_refresh_job_and_search_paths_keep_it_from_that(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await given.scripted(api, receiver, Answer(), encrypted=True, payload={"own": CANARY})
    rhythm = {"every": "1s", "refresh": {"window": "1d"}}
    assert (await api("PATCH", f"/api/v1/jobs/{job['name']}", rhythm)).status == 200
    path = f"/api/v1/jobs/{job['name']}/entities/one"
    assert (await api("PUT", path)).status == 201
    await until_status(api, path, "SUCCESS")
    assert given.hits(receiver, job)[-1].json["payload"] == {"own": CANARY}
    searched = await given.scripted(api, receiver, Answer(), encrypted=True, searchPaths=["card"])
    expect.invalid(await api("PATCH", f"/api/v1/jobs/{searched['name']}", rhythm), "searchPaths", "refresh")
    assert CANARY not in await every_row(db)


async def test_C42c_sql_clients_and_followed_tables_add_entities_without_payloads_only(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, Answer())
    for statement in (
        "select horai.add_entity($1, 'a', $2::text::json)",
        "select horai.add_entities($1, array['a'], array[$2::text::json])",
    ):
        for payload in ('{"card": 1}', '{"$enc": 1, "k": "a", "n": "b", "c": "c"}'):
            with pytest.raises(asyncpg.PostgresError, match="is encrypted"):
                await db.execute(statement, job["name"], payload)
    assert await db.fetchval("select horai.add_entity($1, 'plain')", job["name"])
    async with db.transaction():
        await db.execute("create table public.followed (id text primary key, card text)")
        await db.execute("insert into public.followed values ('row', $1)", CANARY)
        with pytest.raises(asyncpg.PostgresError, match="is encrypted"):
            async with db.transaction():
                await db.fetchval("select horai.follow_table('public.followed', $1, 'id', '{card}')", job["name"])
        assert await db.fetchval("select horai.follow_table('public.followed', $1, 'id')", job["name"]) == 1
    for key in ("plain", "row"):
        await until_status(api, f"/api/v1/jobs/{job['name']}/entities/{key}", "SUCCESS")
    await db.execute("drop table public.followed")

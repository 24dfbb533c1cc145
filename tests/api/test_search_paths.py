"""Search paths of encrypted jobs: instances are found by digests of declared fields, on every way that adds them."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import harness
import pytest
from databases import fresh_database
from harness import Client
from keys import KeyHolder, holder
from receiver import Answer, Receiver

from api import expect, given
from horai.core.encryption import KeyEncryptionKey
from horai.db import data_keys
from horai.db.instances import InsertTarget
from horai.db.payload_digests import BEGINNING, prune_payload_digests
from horai.db.pool import Platform, connect
from horai.embedded import EmbeddedPostgres
from horai.operations import search

CANARY = "hunter2canary"
FIRST, SECOND = KeyEncryptionKey(os.urandom(32)), KeyEncryptionKey(os.urandom(32))
QUICK: dict[str, Any] = {"lease": timedelta(seconds=60), "grace": timedelta(milliseconds=100)}
PATHS = ["orderId", "customer.id"]


@pytest.fixture(scope="module")
def server(runner: asyncio.Runner, database: str) -> Iterator[Client]:
    """A client without a key of a whole node that has an encryption key."""
    stack = AsyncExitStack()
    yield runner.run(stack.enter_async_context(harness.node(database, encryption_keys=(FIRST,), **QUICK)))
    runner.run(stack.aclose())


@pytest.fixture(scope="module")
def root(runner: asyncio.Runner, server: Client) -> KeyHolder:
    """A client with the role platform-admin."""

    async def build() -> KeyHolder:
        made = await holder(server, "platform-admin")
        await given.loopback_targets(made, "default")
        return made

    return runner.run(build())


@pytest.fixture(scope="module")
def api(runner: asyncio.Runner, root: KeyHolder) -> KeyHolder:
    """A client with the role admin, whose jobs may call receivers of this machine."""
    return runner.run(holder(root, "admin", "default"))


async def made(api: Client, receiver: Receiver, *answers: Answer, **fields: Any) -> Any:
    """An encrypted job with search paths, whose target answers like this."""
    return await given.scripted(
        api, receiver, *(answers or (Answer(),)), **{"encrypted": True, "searchPaths": PATHS, **fields}
    )


async def search_for(api: Client, job: Any, field: str, more: str = "") -> harness.Reply:
    return await api("GET", f"/api/v1/instances?job={job['name']}&payload={quote(field)}{more}")


async def found(api: Client, job: Any, field: str, more: str = "") -> set[str]:
    """Return the ids of the instances that a filter finds."""
    reply = await search_for(api, job, field, more)
    assert reply.status == 200, reply.json
    assert reply.json["nextCursor"] is None
    return {item["id"] for item in reply.json["items"]}


async def rows(db: Platform, job: Any) -> list[Any]:
    """Return the index of a job."""
    sql = "select instance_id, path, digest from horai.payload_digest where job_id = $1 order by 1, 2"
    return [tuple(row) for row in await db.fetch(sql, int(job["id"]))]


async def put(api: Client, job: Any, key: str, payload: Any, at: str | None = given.FAR, **more: Any) -> str:
    reply = await given.put(api, job, key, at, payload=payload, **more)
    assert reply.status in {200, 201}, reply.json
    return reply.json["instance"]["id"]


async def test_C42_an_instance_is_found_by_a_declared_field_while_it_waits_and_after_it_has_ended(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver)
    assert job["searchPaths"] == PATHS
    waiting = await put(api, job, "a", {"orderId": CANARY, "customer": {"id": 17}})
    other = await put(api, job, "b", {"orderId": "other", "customer": {"id": 17}})
    assert await found(api, job, f"orderId={CANARY}") == {waiting}
    assert await found(api, job, "customer.id=17") == {waiting, other}
    assert await found(api, job, "customer.id=17", "&key=b") == {other}
    assert await found(api, job, "orderId=nothing") == set()
    assert await found(api, job, "customer.id=17", "&state=SUCCESS") == set()
    await put(api, job, "a", None, at=None)
    done = await api.until_state(waiting, "SUCCESS")
    assert done["payload"] == {"orderId": CANARY, "customer": {"id": 17}}
    assert await found(api, job, f"orderId={CANARY}", "&state=SUCCESS") == {waiting}
    of_job = await api("GET", f"/api/v1/jobs/{job['name']}/instances?payload=orderId%3D{CANARY}")
    assert [item["id"] for item in of_job.json["items"]] == [waiting]
    stored = await db.fetchval("select string_agg(t::text, '|') from horai.payload_digest t")
    assert CANARY not in stored


async def test_C42_every_way_to_add_an_instance_over_rest_indexes_it(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, payload={"orderId": "default"})
    path = f"/api/v1/jobs/{job['name']}"
    items = [
        {"payload": {"orderId": "batch"}, "executeTime": given.FAR},
        {"executeTime": given.FAR},
        {"key": "keyed", "payload": {"orderId": "keyed"}, "executeTime": given.FAR},
        {"key": "keyed-default", "executeTime": given.FAR},
    ]
    batch = await api("POST", f"{path}/instances/batch", {"items": items})
    ids = [one["instanceId"] for one in batch.json["items"]]
    fired = await api("POST", f"{path}/trigger", {"payload": {"orderId": "fired"}}, Idempotency_Key=given.name("key"))
    plain = await given.triggered(api, job)
    assert await found(api, job, "orderId=batch") == {ids[0]}
    assert await found(api, job, "orderId=keyed") == {ids[2]}
    assert await found(api, job, "orderId=fired") == {fired.json["instance"]["id"]}
    assert await found(api, job, "orderId=default") == {ids[1], ids[3], plain["id"]}

    changed = await api("PATCH", path, {"payload": {"orderId": "patched"}})
    assert (changed.status, changed.json["payload"]) == (200, {"orderId": "patched"})
    assert (await api("PATCH", path, {"tags": ["a"]})).status == 200
    after = await given.triggered(api, job)
    assert await found(api, job, "orderId=patched") == {after["id"]}
    assert await found(api, job, "orderId=default") == {ids[1], ids[3], plain["id"]}
    assert (await api("PATCH", path, {"payload": None})).status == 200
    assert [row for row in await rows(db, job) if row[0] == 0] == []


async def test_C42_a_put_over_a_live_instance_moves_its_digests_with_its_payload(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, Answer(delay=60.0))
    moved = await put(api, job, "a", {"orderId": "first", "customer": {"id": 1}})
    await put(api, job, "a", None, at="2999-02-01T00:00:00Z")
    assert await found(api, job, "orderId=first") == {moved}
    await put(api, job, "a", {"orderId": "second"})
    assert await found(api, job, "orderId=second") == {moved}
    assert await found(api, job, "orderId=first") == set()
    assert await found(api, job, "customer.id=1") == set()

    running = await given.running(api, receiver, job, "b", payload={"orderId": "runs"})
    kept = await put(api, job, "b", None)
    assert kept != running["id"]
    assert await found(api, job, "orderId=runs") == {running["id"], kept}
    replaced = await given.running(api, receiver, job, "c", payload={"orderId": "runs too"})
    other = await put(api, job, "c", {"orderId": "other"})
    assert await found(api, job, "orderId=runs too") == {replaced["id"]}
    assert await found(api, job, "orderId=other") == {other}


async def test_C42_a_put_that_is_ignored_leaves_no_digests(api: Client, db: Platform, receiver: Receiver) -> None:
    job = await made(api, receiver)
    done = await put(api, job, "a", {"orderId": "once"}, at=None)
    await api.until_state(done, "SUCCESS")
    ignored = await given.put(api, job, "a", payload={"orderId": "again"})
    assert ignored.json["decision"] == "IGNORED"
    assert {row[0] for row in await rows(db, job)} == {int(done)}


async def test_C42_slots_backfills_and_replays_are_found_by_the_payload_that_they_copy(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    bad = Answer(json={"result": "FAIL_UNRECOVERABLE", "message": "no"})
    dying = await made(api, receiver, bad, retry={"maxRetry": 0})
    dead = await put(api, dying, "a", {"orderId": "dead"}, at=None)
    await api.until_state(dead, "DEAD")
    letter = (await api("GET", f"/api/v1/dlq?job={dying['name']}")).json["items"][0]
    again = (await api("POST", f"/api/v1/dlq/{letter['id']}/replay")).json["instance"]["id"]
    assert await found(api, dying, "orderId=dead") == {dead, again}

    late = {"every": "1h", "anchor": "2026-01-01T00:00:00Z"}
    job = await made(api, receiver, payload={"orderId": "slot"}, **late)
    wish = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-02T02:00:00Z", "mode": "all"}
    started = await api("POST", f"/api/v1/jobs/{job['name']}/backfill", wish, Idempotency_Key=given.name("key"))
    assert started.status == 202, started.json

    async def has(count: int) -> bool:
        return len(await found(api, job, "orderId=slot")) == count

    await given.until(lambda: has(2))
    ticking = await made(api, receiver, payload={"orderId": "tick"}, every="1s")
    following = await made(api, receiver, payload={"orderId": "follow"}, every="1s", everyFrom="finish")

    async def ticks(one: Any, value: str) -> bool:
        listed = (await api("GET", f"/api/v1/jobs/{one['name']}/instances")).json["items"]
        both = await found(api, one, f"orderId={value}")
        return len(both) >= 2 and both >= {item["id"] for item in listed}

    await given.until(lambda: ticks(ticking, "tick"))
    await given.until(lambda: ticks(following, "follow"))


async def test_C42_equal_values_have_other_digests_in_other_jobs_paths_and_tenants(
    root: Client, api: Client, db: Platform, receiver: Receiver
) -> None:
    assert (await root("POST", "/api/v1/tenants", {"name": "other"})).status == 201
    await given.loopback_targets(root, "other")
    other = await holder(root, "admin", "other")
    name = given.name()
    jobs = [await made(api, receiver, name=name), await made(api, receiver), await made(other, receiver, name=name)]
    for client, job in zip((api, api, other), jobs, strict=True):
        for key in ("a", "b"):
            await put(client, job, key, {"orderId": "same", "customer": {"id": "same"}})
    digests = [row[2] for job in jobs for row in await rows(db, job)]
    assert len(digests) == 12
    assert len(set(digests)) == 6, "two instances of one job are recognisable as equal, and nothing else is"
    assert len(await found(other, jobs[2], "orderId=same")) == 2
    assert len(await found(api, jobs[0], "orderId=same")) == 2


async def test_C42_a_field_that_is_not_declared_is_refused_and_the_hint_names_those_that_are(
    api: Client, receiver: Receiver
) -> None:
    job = await made(api, receiver)
    refused = await search_for(api, job, f"card={CANARY}")
    expect.invalid(refused, "payload", "are encrypted")
    assert "orderId, customer.id" in refused.json["hint"]
    nothing = await given.scripted(api, receiver, Answer(), encrypted=True)
    refused = await search_for(api, nothing, "orderId=1")
    expect.invalid(refused, "payload", "are encrypted")
    assert "no search paths" in refused.json["hint"]


async def test_C42_search_paths_are_set_at_creation_and_never_change(api: Client, receiver: Receiver) -> None:
    job = await made(api, receiver)
    for wish in (["orderId"], [], None):
        refused = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"searchPaths": wish})
        expect.invalid(refused, "searchPaths", "never changes")
    same = await api("PATCH", f"/api/v1/jobs/{job['name']}", {"searchPaths": PATHS, "tags": ["a"]})
    assert (same.status, same.json["searchPaths"]) == (200, PATHS)
    for wish in (
        {"searchPaths": ["a"]},
        {"searchPaths": ["a"], "encrypted": True, "every": "1h", "refresh": {"window": "1d"}},
    ):
        expect.invalid(await api("POST", "/api/v1/jobs", {"name": given.name(), **wish}), "searchPaths")
    plain = await given.scripted(api, receiver, Answer())
    assert plain["searchPaths"] == []


async def test_C42_a_viewer_may_not_search_by_values_that_it_may_not_see(api: Client, receiver: Receiver) -> None:
    job = await made(api, receiver)
    instance = await put(api, job, "a", {"orderId": CANARY})
    viewer, operator = await holder(api, "viewer"), await holder(api, "operator")
    refused = await search_for(viewer, job, f"orderId={CANARY}")
    expect.problem(refused, 403, "SCH_403_FORBIDDEN", "operator")
    assert await found(operator, job, f"orderId={CANARY}") == {instance}


async def test_C42_bulk_requests_take_the_instances_that_a_search_finds(api: Client, receiver: Receiver) -> None:
    job = await made(api, receiver)
    ids = [await put(api, job, key, {"orderId": "gone" if key in "ab" else "stays"}) for key in "abc"]
    wish = {"job": job["name"], "payload": "orderId=gone"}
    some = await api("POST", "/api/v1/instances/cancel", {**wish, "ids": [ids[0], ids[2]], "dryRun": True})
    assert (some.status, some.json["matched"]) == (200, 1)
    swept = await api("POST", "/api/v1/instances/cancel", wish)
    assert (swept.status, swept.json["cancelled"]) == (200, 2)
    assert await found(api, job, "orderId=gone", "&state=CANCELLED") == set(ids[:2])
    assert (await api("GET", f"/api/v1/instances/{ids[2]}")).json["state"] == "INIT"


async def test_C42_a_list_of_found_instances_has_pages(api: Client, receiver: Receiver) -> None:
    job = await made(api, receiver)
    ids = {await put(api, job, f"k{n}", {"orderId": "many"}) for n in range(9)}
    listed = await given.listed(api, f"/api/v1/instances?job={job['name']}&payload=orderId%3Dmany")
    assert {item["id"] for item in listed} == ids


async def test_C42_a_value_that_too_many_instances_share_is_refused(
    api: Client, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MOST_FOUND", 2)
    job = await made(api, receiver)
    for key in "ab":
        await put(api, job, key, {"orderId": "common"})
    assert len(await found(api, job, "orderId=common")) == 2
    await put(api, job, "c", {"orderId": "common"})
    expect.invalid(await search_for(api, job, "orderId=common"), "payload", "more than 2 instances")


async def test_C42_a_payload_without_digests_is_not_stored(db: Platform) -> None:
    target = InsertTarget(1, 1, 1, None, sealed_for="j", search_paths=("orderId",))
    envelope = '{"$enc":1,"k":"a","n":"b","c":"c"}'
    with pytest.raises(RuntimeError, match="has no digests"):
        target.parted([envelope])
    with pytest.raises(RuntimeError, match="was not sealed"):
        target.parted(['{"orderId":1,"d":{}}'])
    assert target.parted([envelope], [7]).texts == [envelope]


async def test_C42_digests_of_instances_that_are_gone_are_pruned_page_by_page(
    api: Client, db: Platform, receiver: Receiver
) -> None:
    job = await made(api, receiver, payload={"orderId": "own"})
    ids = [await put(api, job, f"k{n}", {"orderId": f"{n}", "customer": {"id": 1}}) for n in range(3)]
    await api("DELETE", f"/api/v1/jobs/{job['name']}/instances/k1")
    await db.execute("delete from horai.instance_history where id = $1", int(ids[1]))
    position, pages = BEGINNING, 0
    while (position := await prune_payload_digests(db, position, 2)) != BEGINNING:
        pages += 1
    assert pages >= 3
    assert {row[0] for row in await rows(db, job)} == {0, int(ids[0]), int(ids[2])}


@pytest.fixture(scope="module")
def lonely(runner: asyncio.Runner, postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database of its own, for tests that take keys away."""
    with fresh_database(postgres) as made_here:
        yield made_here


async def test_C42_a_search_needs_every_data_key_and_erased_keys_take_their_digests_along(
    lonely: str, receiver: Receiver
) -> None:
    async with harness.node(lonely, encryption_keys=(FIRST,), **QUICK) as api:
        job = await made(api, receiver, payload={"orderId": "own"})
        waiting = await put(api, job, "a", {"orderId": "x"})
    async with harness.node(lonely, encryption_keys=(SECOND,), **QUICK) as api:
        refused = await search_for(api, job, "orderId=x")
        expect.problem(refused, 503, "SCH_503_KEY_UNAVAILABLE")
    async with harness.node(lonely, encryption_keys=(SECOND, FIRST), **QUICK) as api:
        assert await found(api, job, "orderId=x") == {waiting}
        connection = await connect(lonely, "horai test")
        kept = await connection.fetch("select * from horai.payload_digest")
        await data_keys.erase_data_keys(connection, 1)
        assert await rows(connection, job) == []
        assert await found(api, job, "orderId=x") == set()
        for row in kept:  # what a transaction has copied meanwhile
            await connection.execute("insert into horai.payload_digest values ($1, $2, $3, $4, $5)", *row)
        await prune_payload_digests(connection, BEGINNING, 100)
        assert await rows(connection, job) == []
        connection.terminate()

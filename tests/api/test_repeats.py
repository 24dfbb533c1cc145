"""Every write sent twice with one Idempotency-Key takes effect once; the list of writes is that of the OpenAPI document."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from harness import Reply

from api import expect, given
from api.repeat_recipes import RECIPES, Sent, World
from horai.core.limits import KEPT_KEYS
from horai.db import idempotency
from horai.db.pool import Platform

DOCUMENT = json.loads((Path(__file__).parents[2] / "console" / "openapi.json").read_text())
OF_ACCESS = ("/api/v1/keys", "/api/v1/tenants", "/api/v1/session", "/api/v1/groups")
"""Their writes close the server or are of no tenant: test_keys.py, test_sessions.py and test_oidc.py send them."""
OF_PLATFORM = ("/api/v1/scheduler/", "/api/v1/incidents", "/api/v1/recover", "/api/v1/drills")
"""Writes that on a server without keys belong to no tenant: modes, holds, incidents, recoveries and reports of drills."""
WRITES = [
    (method.upper(), path)
    for path, operations in DOCUMENT["paths"].items()
    for method in operations
    if method in {"put", "post", "patch", "delete"} and not path.startswith(OF_ACCESS)
]
WRITES_NOTHING = {("POST", "/api/v1/schedules/preview")}
MADE = {
    ("POST", "/api/v1/jobs"): "jobId",
    ("POST", "/api/v1/workflows"): "jobId",
    ("POST", "/api/v1/reconcilers"): "jobId",
    ("POST", "/api/v1/jobs/{job}/trigger"): "instanceId",
    ("POST", "/api/v1/workflows/{workflow}/trigger"): "instanceId",
    ("POST", "/api/v1/reconcilers/{reconciler}/run"): "instanceId",
    ("POST", "/api/v1/signing-secrets"): "secretId",
}
"""Creates and triggers: a repeat is told the id and the state of what the first request made."""
COMPOSED = {("POST", "/api/v1/compositions")}
"""Their keys are those of compositions, which compare the calls and not the bytes of the body."""
OTHER_TABLES = {
    "node",
    "lane",
    "schedule",
    "shard_lease",
    "idempotency_key",
    "idempotency_load",
    "minute",
    "gauge",
    "tenant",
}

every_write = pytest.mark.parametrize("operation", WRITES, ids=" ".join)


async def send(world: World, operation: tuple[str, str], sent: Sent, key: str, body: Any = None) -> Reply:
    return await world.api(operation[0], sent.path, sent.body if body is None else body, Idempotency_Key=key)


async def stored(db: Platform) -> dict[str, tuple[int, str | None]]:
    """Return the number of rows of every table and a digest of them, by one statement."""
    found = await db.fetch(await _digests(db))
    return {row["name"]: (row["rows"], row["digest"]) for row in found}


_TABLES = """
    select relname from pg_class
    where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p') and not relispartition
"""
_DIGEST = (
    "select '{0}' as name, count(*) as rows, md5(string_agg(t::text, '|' order by t::text)) as digest from horai.{0} t"
)
_statements: dict[Platform, str] = {}


async def _digests(db: Platform) -> str:
    if db not in _statements:
        names = [name for (name,) in await db.fetch(_TABLES) if name not in OTHER_TABLES]
        _statements[db] = " union all ".join(map(_DIGEST.format, names))
    return _statements[db]


def grown(before: dict[str, Any], after: dict[str, Any]) -> dict[str, int]:
    """By how many rows each table has changed."""
    return {name: after[name][0] - before[name][0] for name in before if after[name][0] != before[name][0]}


def check_repeat(operation: tuple[str, str], first: Reply, repeat: Reply) -> None:
    if operation in MADE:
        told = expect.problem(repeat, 409, "SCH_409_DUPLICATE")
        assert told[MADE[operation]]
        assert told["state"]
        return
    assert (repeat.status, repeat.json) == (first.status, first.json)
    for name in ("etag", "location", "content-type"):
        assert repeat.headers.get(name) == first.headers.get(name), name
    if operation not in WRITES_NOTHING:
        assert repeat.headers["Idempotency-Replayed"] == "true"


def test_every_write_operation_has_a_recipe() -> None:
    assert set(WRITES) == set(RECIPES)


def test_every_write_operation_declares_the_key() -> None:
    for method, path in WRITES:
        parameters = DOCUMENT["paths"][path][method.lower()]["parameters"]
        assert "Idempotency-Key" in [each["name"] for each in parameters if each["in"] == "header"], path


@every_write
async def test_a_repeated_write_takes_effect_once(
    runner: asyncio.Runner, world: World, operation: tuple[str, str]
) -> None:
    sent, key = await RECIPES[operation](world), given.name("key")
    before = await stored(world.db)
    first = await send(world, operation, sent, key)
    after = await stored(world.db)
    assert first.status < 300 or first.json["code"] == "SCH_409_STALE", first.json
    assert "Idempotency-Replayed" not in first.headers
    assert (after == before) == (operation in WRITES_NOTHING)

    repeat = await send(world, operation, sent, key)

    check_repeat(operation, first, repeat)
    assert await stored(world.db) == after
    if operation not in WRITES_NOTHING and sent.other is not None:
        refused = await send(world, operation, sent, key, sent.other)
        expect.problem(
            refused, 422, "SCH_422_INVALID", "another composition" if operation in COMPOSED else "another body"
        )
        assert await stored(world.db) == after


@every_write
async def test_a_write_whose_answer_is_lost_takes_effect_once(
    runner: asyncio.Runner, world: World, operation: tuple[str, str]
) -> None:
    single, lost = await RECIPES[operation](world), await RECIPES[operation](world)
    before = await stored(world.db)
    assert (await send(world, operation, single, given.name("key"))).status < 500
    between = await stored(world.db)
    key = given.name("key")

    await send_and_hang_up(world, operation, lost, key)
    repeat = await send(world, operation, lost, key)

    assert repeat.status < 500
    assert repeat.headers.get("Idempotency-Replayed") == "true" or operation in {*MADE, *WRITES_NOTHING}
    assert grown(between, await stored(world.db)) == grown(before, between)


async def send_and_hang_up(world: World, operation: tuple[str, str], sent: Sent, key: str) -> None:
    """Send a request, and close the connection without reading its answer once the server has begun to answer."""
    host, port = re.fullmatch(r"http://([^:/]+):(\d+)", world.api.base).groups()  # pyright: ignore[reportOptionalMemberAccess]
    body = b"" if sent.body is None else json.dumps(sent.body).encode()
    head = (
        f"{operation[0]} {sent.path} HTTP/1.1\r\nHost: {host}:{port}\r\nIdempotency-Key: {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head.encode() + body)
    await writer.drain()
    assert await reader.read(1)
    writer.transport.abort()


@every_write
async def test_two_copies_in_flight_take_effect_once(
    runner: asyncio.Runner, world: World, operation: tuple[str, str]
) -> None:
    single, twice = await RECIPES[operation](world), await RECIPES[operation](world)
    before = await stored(world.db)
    assert (await send(world, operation, single, given.name("key"))).status < 500
    between = await stored(world.db)
    key = given.name("key")

    copies = await asyncio.gather(*(send(world, operation, twice, key) for _ in range(2)))

    first, repeat = sorted(copies, key=lambda one: (one.status == 409, "Idempotency-Replayed" in one.headers))
    check_repeat(operation, first, repeat)
    assert "Idempotency-Replayed" not in first.headers
    assert grown(between, await stored(world.db)) == grown(before, between)


async def test_a_repeat_waits_for_the_first_request_and_gets_its_answer(
    runner: asyncio.Runner, world: World, db: Platform
) -> None:
    job, key = await given.job(world.api), given.name("key")
    sent, put = Sent(f"/api/v1/jobs/{job['name']}/instances/a", {"executeTime": given.FAR}), ("PUT", "")
    async with db.transaction():
        await db.execute("select from horai.job where id = $1 for update", int(job["id"]))
        first = asyncio.create_task(send(world, put, sent, key))
        await until_waiting(db, 1)
        repeat = asyncio.create_task(send(world, put, sent, key))
        await until_waiting(db, 2)

    assert (await first).status == 201
    check_repeat(put, await first, await repeat)


async def until_waiting(db: Platform, count: int) -> None:
    """Return when so many sessions of this database wait for a lock. A transaction sees new sessions only in a new snapshot."""
    waiting = (
        "select count(*) >= $1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )

    async def are_waiting() -> bool:
        await db.execute("select pg_stat_clear_snapshot()")
        return await db.fetchval(waiting, count)

    await given.until(are_waiting)


async def test_a_repeat_gives_up_after_five_seconds(runner: asyncio.Runner, world: World, db: Platform) -> None:
    job, key = await given.job(world.api), given.name("key")
    sent, put = Sent(f"/api/v1/jobs/{job['name']}/instances/a", {"executeTime": given.FAR}), ("PUT", "")
    taking = "insert into horai.idempotency_key (tenant_id, scope, key, request_hash) values (1, $1, $2, '')"
    began = asyncio.get_running_loop().time()
    in_flight = db.transaction()
    await in_flight.start()
    await db.execute(taking, f"PUT {sent.path}", key)

    refused = await send(world, put, sent, key)
    took = asyncio.get_running_loop().time() - began
    await in_flight.rollback()

    expect.problem(refused, 409, "SCH_409_CONFLICT", "still being worked on")
    assert refused.headers["Retry-After"] == "1"
    assert 4.5 < took < 9
    assert (await send(world, put, sent, key)).status == 201


async def test_a_refused_write_may_be_corrected_and_sent_again_with_its_key(
    runner: asyncio.Runner, world: World
) -> None:
    key, name = given.name("key"), given.name()
    sent, put = Sent(f"/api/v1/jobs/{name}/instances/a", {"executeTime": given.FAR}), ("PUT", "")

    expect.problem(await send(world, put, sent, key), 404, "SCH_404_NOT_FOUND")
    await given.job(world.api, name=name)
    made = await send(world, put, sent, key, {**sent.body, "payload": 1})

    assert made.status == 201
    assert "Idempotency-Replayed" not in made.headers


async def test_a_dry_run_takes_no_key(runner: asyncio.Runner, world: World, db: Platform) -> None:
    operation = ("POST", "/api/v1/instances/cancel")
    sent, key = await RECIPES[operation](world), given.name("key")

    counted = await send(world, operation, sent, key, {**sent.body, "dryRun": True})
    done = await send(world, operation, sent, key)

    assert (counted.json["cancelled"], done.json["cancelled"]) == (0, 1)
    assert "Idempotency-Replayed" not in done.headers


async def test_the_same_key_on_another_address_is_another_key(runner: asyncio.Runner, world: World) -> None:
    job, key = await given.job(world.api), given.name("key")
    path, body = f"/api/v1/jobs/{job['name']}/instances", {"executeTime": given.FAR}

    made = [await world.api("PUT", f"{path}/{each}", body, Idempotency_Key=key) for each in ("a", "b", "c" * 500)]

    assert [each.status for each in made] == [201, 201, 201]
    again = [await world.api("PUT", f"{path}/{each}", body, Idempotency_Key=key) for each in ("a", "b", "c" * 500)]
    for first, repeat in zip(made, again, strict=True):
        check_repeat(("PUT", ""), first, repeat)


@pytest.mark.parametrize("key", ["", "x" * 256, "é"])
async def test_a_key_that_cannot_be_kept_is_refused(runner: asyncio.Runner, world: World, key: str) -> None:
    job = await given.job(world.api)
    path = f"/api/v1/jobs/{job['name']}/instances/a"

    refused = await given.sent(world.api, "PUT", path, b"{}", Idempotency_Key=key)

    expect.invalid(refused, "Idempotency-Key")


async def test_a_tenant_with_too_many_keys_gets_429_for_a_new_one(
    runner: asyncio.Runner, world: World, db: Platform
) -> None:
    job, key = await given.job(world.api), given.name("key")
    sent, put = Sent(f"/api/v1/jobs/{job['name']}/instances/a", {"executeTime": given.FAR}), ("PUT", "")
    await db.execute("insert into horai.idempotency_load (tenant_id, keys, bytes) values (2, $1, 0)", KEPT_KEYS)
    first = await send(world, put, sent, key)
    assert first.status == 201, "the keys of another tenant do not count"
    await db.execute("insert into horai.idempotency_load (tenant_id, keys, bytes) values (1, $1, 0)", KEPT_KEYS)

    refused = await send(world, put, sent, given.name("key"))
    repeat = await send(world, put, sent, key)
    without = await world.api("PUT", sent.path, sent.body)
    await idempotency.count_keys(db)
    counted = await send(world, put, sent, given.name("key"))

    expect.problem(refused, 429, "SCH_429_RETRY_LIMITED", "10,000,000")
    assert refused.headers["Retry-After"] == "3600"
    check_repeat(put, first, repeat)
    assert (without.status, counted.status) == (200, 200)

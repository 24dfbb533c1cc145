"""Objects of another tenant: no write reaches them, and no list shows them. Generated from the OpenAPI document."""

import asyncio
import json

import pytest
from harness import Reply

from api import given
from api.repeat_recipes import RECIPES, World
from api.test_repeats import DOCUMENT, OF_ACCESS, OF_PLATFORM, WRITES, stored
from horai.db.pool import Platform

OWN = {"idempotency_key", "idempotency_load", "signing_secret", "data_key"}
"""Tables whose rows stay with the caller: without them a request could not be answered."""
CREATES = {
    ("PUT", "/api/v1/queues/{name}"),
    ("DELETE", "/api/v1/queues/{name}"),
    ("PUT", "/api/v1/secrets/{name}"),
    ("PUT", "/api/v1/calendars/{name}"),
    ("PUT", "/api/v1/heartbeats/{name}"),
    ("PUT", "/api/v1/sinks/{name}"),
}
"""Operations on a name that every tenant has."""
COMMON = {
    "/api/v1/scheduler/nodes",
    "/api/v1/scheduler/shards",
    "/api/v1/signing-secrets",
    "/api/v1/events",
    "/api/v1/audit/export",
    "/api/v1/scheduler/mode/history",
    "/api/v1/incidents",
    "/api/v1/drills",
}
"""Nodes, shards, the governor, incidents and drills serve every tenant, the secrets are the caller's own, the stream of events does not end, and the export
of the audit log, which is no JSON, has a test of its own."""
LISTS = ["/api/v1/search?q=job", "/api/v1/forecast/what-if?every=1h"] + [
    path
    for path, verbs in DOCUMENT["paths"].items()
    if "get" in verbs
    and path not in COMMON | {"/api/v1/forecast/what-if"}  # which needs a schedule
    and not path.startswith(OF_ACCESS)
    and not [each for each in verbs["get"].get("parameters", []) if each.get("required")]
]


async def given_away(db: Platform) -> int:
    """Make everything the property of a new tenant, by SQL: the API has no way to it."""
    tenant = await db.fetchval("insert into horai.tenant (name) values ($1) returning id", given.name("tenant"))
    await db.execute("set session_replication_role = replica")  # the audit log is append-only
    for table in await tables(db):
        await db.execute(f"update horai.{table} set tenant_id = $1 where tenant_id = 1", tenant)
    await db.execute("set session_replication_role = origin")
    return tenant


async def tables(db: Platform) -> list[str]:
    found = await db.fetch(
        "select relname from pg_class join pg_attribute on attrelid = pg_class.oid and attname = 'tenant_id'"
        " where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p') and not relispartition"
    )
    return [name for (name,) in found if name not in OWN]


async def rows_of(db: Platform, tenant: int) -> dict[str, str | None]:
    """A digest of the tenant's rows, table by table."""
    digest = "select md5(string_agg(t::text, '|' order by t::text)) from horai.{} t where tenant_id = $1"
    return {table: await db.fetchval(digest.format(table), tenant) for table in await tables(db)}


@pytest.mark.parametrize("operation", [each for each in WRITES if not each[1].startswith(OF_PLATFORM)], ids=" ".join)
async def test_C2a_no_write_reaches_what_belongs_to_another_tenant(
    runner: asyncio.Runner, world: World, operation: tuple[str, str]
) -> None:
    sent = await RECIPES[operation](world)
    tenant = await given_away(world.db)
    theirs, everything = await rows_of(world.db, tenant), await stored(world.db)

    reply: Reply = await world.api(operation[0], sent.path, sent.body, Idempotency_Key=given.name("key"))

    assert await rows_of(world.db, tenant) == theirs
    if "{" in operation[1] and operation not in CREATES:
        assert (reply.status, reply.json["code"]) == (404, "SCH_404_NOT_FOUND"), reply.json
        assert await stored(world.db) == everything


@pytest.fixture(scope="module")
def theirs(runner: asyncio.Runner, world: World) -> list[str]:
    """The names of jobs, workflows and reconcilers of another tenant, with all that every recipe makes."""

    async def made() -> list[str]:
        for operation in WRITES:
            if not operation[1].startswith(OF_PLATFORM):
                await RECIPES[operation](world)
        tenant = await given_away(world.db)
        found = await world.db.fetch("select name from horai.job where tenant_id = $1", tenant)
        return [name for (name,) in found]

    return runner.run(made())


@pytest.mark.parametrize("path", LISTS)
async def test_C2a_no_list_names_what_belongs_to_another_tenant(
    runner: asyncio.Runner, world: World, theirs: list[str], path: str
) -> None:
    assert len(theirs) > 20

    reply = await world.api("GET", path)

    assert reply.status == 200, reply.json
    told = json.dumps(reply.json)
    assert not [name for name in theirs if f'"{name}"' in told]
    assert not reply.json.get("items")

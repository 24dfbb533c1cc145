"""Row-level security between tenants: its roles, its policies, and databases that cannot have it."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import cast
from urllib.parse import urlsplit

import asyncpg
import make
import pytest

from horai.db.catalog import sql
from horai.db.isolation import Isolation, RolesMissing, grant_roles, is_isolated
from horai.db.migrate import migrate
from horai.db.pool import Dedicated, Plans, Platform, Pool, TenantPool, acquire, connect, open_pool, transaction

ROLES = ("horai_api", "horai_auth", "horai_engine")
OF_PLATFORM = {"access_session", "access_sign_in", "access_state", "archive_partition", "asset_cursor", "audit_anchor", "audit_clock", "audit_seal", "backup_run", "cluster", "drill_report", "governed_rate", "governor", "history_fold", "incident", "incident_entry", "migration", "mode_change", "node", "outbox_cursor", "recovery", "schedule", "shard_lease", "sli_minute"}  # fmt: skip
"""Tables without a tenant: times of schedules that jobs share, nodes, seals, sessions, the governor, its history, incidents, drills, backups and the id of the cluster."""
OF_AUTH = {"access_group", "access_key", "access_session", "access_sign_in", "access_state"}
OF_ENGINE = {"client"}
"""The rights of SQL clients, which only the owner of the schema gives."""
TABLES = "select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p') and not relispartition"


@asynccontextmanager
async def pooled(url: str) -> AsyncGenerator[Pool]:
    pool = await open_pool(url, "horai test", 1)
    try:
        yield pool
    finally:
        pool.terminate()


async def second_tenant(connection: Platform) -> int:
    return await connection.fetchval("insert into horai.tenant (name) values ('second') returning id")


# Catalogue


async def test_C2a_every_table_has_a_tenant_and_a_policy_or_is_one_of_the_platform(connection: Platform) -> None:
    rows = await connection.fetch(
        "select relname, relrowsecurity and relforcerowsecurity as is_forced,"
        " exists (select from pg_attribute where attrelid = pg_class.oid and attname = 'tenant_id') as has_tenant,"
        " array(select polname::text from pg_policy where polrelid = pg_class.oid) as policies,"
        " array(select pg_get_expr(polqual, polrelid) from pg_policy where polrelid = pg_class.oid and polname = 'of_tenant') as own"
        f" from pg_class where relname in ({TABLES}) and relnamespace = 'horai'::regnamespace"
    )

    assert {row["relname"] for row in rows if not row["has_tenant"]} == OF_PLATFORM | {"tenant"}
    for row in rows:
        assert row["is_forced"], row["relname"]
        assert "of_platform" in row["policies"], row["relname"]
        if row["has_tenant"] and row["relname"] not in OF_AUTH | OF_ENGINE:
            (own,) = row["own"]
            assert "tenant_id = (current_setting('horai.tenant_id'::text))::integer" in own, row["relname"]


async def test_C2a_nothing_is_granted_to_public_and_keys_partitions_and_views_not_to_requests(
    connection: Platform,
) -> None:
    granted = await connection.fetch(
        "select relname, relkind, relispartition, acl.grantee, acl.privilege_type,"
        " case when acl.grantee <> 0 then acl.grantee::regrole::text end as role"
        " from pg_class cross join aclexplode(relacl) acl where relnamespace = 'horai'::regnamespace"
    )

    assert [row for row in granted if row["grantee"] == 0] == []
    of_api = [row for row in granted if row["role"] == "horai_api" and row["relkind"] != b"S"]
    assert not {row["relname"] for row in of_api} & (OF_AUTH | OF_ENGINE)
    assert not [row["relname"] for row in of_api if row["relispartition"] or row["relkind"] == b"v"]
    assert {row["privilege_type"] for row in granted if row["role"] in ROLES} == {
        "SELECT", "INSERT", "UPDATE", "DELETE", "USAGE", "MAINTAIN",
    }  # fmt: skip
    upkeep = [(row["relname"], row["role"]) for row in granted if row["privilege_type"] == "MAINTAIN"]
    assert [held for held in upkeep if held[1] in ROLES] == [("instance_live", "horai_engine")]
    of_engine = {row["relname"] for row in granted if row["role"] == "horai_engine"}
    assert not of_engine & OF_AUTH, "the engine reads no keys"


@pytest.mark.parametrize(
    "change", ["update horai.audit set verb = ''", "delete from horai.audit", "truncate horai.audit"]
)
@pytest.mark.parametrize("role", ROLES)
async def test_C9_no_role_changes_the_audit_log(connection: Platform, role: str, change: str) -> None:
    await connection.execute(f"set role {role}; set horai.tenant_id = '1'")

    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute(change)


async def test_the_roles_have_no_login_own_nothing_and_bypass_nothing(connection: Platform) -> None:
    rows = await connection.fetch("select * from pg_roles where rolname = any ($1)", ROLES)

    assert len(rows) == 3
    for row in rows:
        assert not [right for right in ("rolcanlogin", "rolsuper", "rolbypassrls", "rolcreaterole") if row[right]]
        assert not await connection.fetchval("select count(*) from pg_class where relowner = $1", row["oid"])


async def test_the_engine_reads_sequences_views_and_default_partitions(connection: Dedicated) -> None:
    names = await connection.fetch(
        "select relname, relkind::text as kind from pg_class where relnamespace = 'horai'::regnamespace"
        " and (relkind in ('S', 'v') or relname ~ '_default$' and relkind = 'r')"
    )
    await connection.execute("set role horai_engine")

    assert {row["kind"] for row in names} == {"S", "v", "r"}
    for row in names:
        await connection.execute(f"select * from horai.{row['relname']} limit 1")


# Sessions of tenants


async def test_C2a_a_statement_without_its_tenant_finds_only_rows_of_the_session(
    url: str, connection: Platform
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
    other = await second_tenant(connection)

    async with pooled(url) as pool:
        for tenant, found in ((1, ["publish"]), (other, []), (1, ["publish"])):  # one connection serves all of them
            async with acquire(TenantPool(pool, tenant)) as session:
                assert [name for (name,) in await session.fetch("select name from horai.job")] == found
                assert await session.fetchval("select array_agg(id) from horai.tenant") == [tenant]
        async with acquire(pool) as session:
            assert await session.fetchval("select count(*) from horai.tenant") == 2, "the platform sees every tenant"


async def test_C2a_a_write_for_another_tenant_is_refused(url: str, connection: Platform) -> None:
    other = await second_tenant(connection)
    async with pooled(url) as pool, transaction(TenantPool(pool, 1)) as session:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
            await session.execute("insert into horai.queue (tenant_id, name) values ($1, 'theirs')", other)


async def test_a_write_outside_a_transaction_for_writes_is_refused(url: str) -> None:
    async with pooled(url) as pool:
        own = TenantPool(pool, 1)
        async with acquire(own) as session:
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await session.execute("insert into horai.queue (tenant_id, name) values (1, 'low')")
        async with transaction(own) as session:
            await session.execute("insert into horai.queue (tenant_id, name) values (1, 'low')")


async def test_a_scope_reads_and_writes_with_the_right_that_the_type_of_its_connection_names(url: str) -> None:
    add, known = "insert into horai.queue (tenant_id, name) values (1, $1)", "select array_agg(name) from horai.queue"
    async with make.scope(url, size=1) as scope:
        async with scope.read() as session:
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await session.execute(add, "refused")
        async with scope.write(autocommit=True) as session:
            assert not session.is_in_transaction()
            await session.execute(add, "low")
        with suppress(asyncpg.UniqueViolationError):
            async with scope.write() as session:
                await session.execute(add, "rolled back")
                await session.execute(add, "low")
        async with scope.read() as session:
            assert {"low", "refused", "rolled back"} & set(await session.fetchval(known)) == {"low"}


async def test_a_session_of_a_tenant_has_not_the_rights_of_its_login(url: str) -> None:
    async with pooled(url) as pool, acquire(TenantPool(pool, 1)) as session:
        assert await session.fetchval("select current_user") == "horai_api"
        for refused in (
            "select * from horai.access_key",
            "select * from horai.job_instance",
            "create table horai.mine ()",
        ):
            with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.ReadOnlySQLTransactionError)):
                await session.execute(refused)


async def test_a_session_that_forgot_to_name_its_tenant_gets_an_error(connection: Platform) -> None:
    await connection.execute("set role horai_api")

    with pytest.raises(asyncpg.UndefinedObjectError, match=r"horai\.tenant_id"):
        await connection.fetch("select * from horai.job")


async def test_a_state_that_the_server_refused_is_set_again(url: str) -> None:
    async with pooled(url) as pool:
        own = TenantPool(pool, 1)
        async with acquire(own, Plans.KEPT) as session, session.transaction():
            await session.execute("set local role none")
        async with acquire(own, Plans.KEPT) as session:
            assert await session.fetchval("select current_user") == "horai_api"


# Databases with roles of their own


@asynccontextmanager
async def owned_database(url: str) -> AsyncGenerator[tuple[str, str, Platform]]:
    """An empty database of a role that is no superuser: its URL, the role, and a superuser's connection to it."""
    name = f"owner_{os.urandom(5).hex()}"
    admin: Dedicated = await asyncpg.connect(urlsplit(url)._replace(path="/postgres").geturl())
    await admin.execute(f"create role {name} login")
    await admin.execute(f"create database {name} owner {name}")
    owned = urlsplit(url)._replace(path=f"/{name}").geturl()
    inside = cast("Platform", await asyncpg.connect(owned))
    try:
        yield owned.replace("//horai@", f"//{name}@"), name, inside
    finally:
        await inside.close()
        await admin.execute(f"drop database {name} with (force)")
        await admin.execute(f"drop owned by {name}; drop role {name}")
        await admin.close()


async def test_a_login_that_cannot_create_roles_is_told_what_to_do_before_anything_is_changed(url: str) -> None:
    async with owned_database(url) as (owned, _, inside):
        login = await connect(owned, "horai test")
        with pytest.raises(RolesMissing) as refused:
            await migrate(login)
        await login.close()

        assert "--admin-url" in str(refused.value.hint)
        assert "--single-role" in str(refused.value.hint)
        assert await inside.fetchval("select to_regclass('horai.job')") is None


async def test_an_administrator_grants_the_roles_and_a_plain_login_does_all_the_work(url: str) -> None:
    async with owned_database(url) as (owned, name, inside):
        await grant_roles(inside, name)
        login = await connect(owned, "horai test")
        await migrate(login)

        assert await is_isolated(login)
        assert not await login.fetchval("select rolsuper from pg_roles where rolname = session_user")
        assert await login.fetchval(sql("make_partitions"), 2) > 0
        async with make.scope(owned) as scope:
            await make.job(scope)
            assert len(await make.many(scope, 3)) == 3
        assert await login.fetchval("select count(*) from horai.instance_live") == 3, (
            "the owner is a member of the engine"
        )
        await login.close()


async def test_a_database_with_a_single_role_stays_one_until_it_is_isolated(url: str) -> None:
    async with owned_database(url) as (owned, name, inside):
        login = await connect(owned, "horai test")
        await migrate(login, isolation=Isolation(single_role=True))
        assert await migrate(login) == []
        assert not await is_isolated(login)
        async with make.scope(owned) as scope:
            await make.job(scope)

        await grant_roles(inside, name)
        await migrate(login, isolation=Isolation(single_role=False))

        assert await is_isolated(login)
        async with make.scope(owned) as scope, scope.read() as session:
            assert await session.fetchval("select current_user") == "horai_api"
            assert await session.fetchval("select count(*) from horai.job") == 1
        await login.close()

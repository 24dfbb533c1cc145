"""SQL clients and their tenants: the login decides, and the setting `horai.tenant` only chooses among several."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
import clients
import make
import pytest

from horai.db.pool import Platform
from horai.operations.scope import Scope

ENQUEUE = "select instance_id from horai.enqueue('publish')"
FOLLOW = "select horai.follow_table('shop.product', 'stock', 'code')"
REFRESH = {"every": "1h", "refresh": {"window": "10d"}}


@dataclass(frozen=True, slots=True)
class Two:
    """Two tenants with a job of the same name."""

    default: Scope
    shop: Scope


@asynccontextmanager
async def two(url: str, connection: Platform) -> AsyncGenerator[Two]:
    tenant = await connection.fetchval("insert into horai.tenant (name) values ('shop') returning id")
    async with make.scope(url) as scope:
        tenants = Two(scope, make.of_tenant(scope, tenant, "shop"))
        for each in (tenants.default, tenants.shop):
            await make.job(each)
        yield tenants


async def added(connection: Platform) -> dict[str, int]:
    rows = await connection.fetch(
        "select tenant.name, count(*) from horai.instance_live live join horai.tenant on tenant.id = live.tenant_id group by 1"
    )
    return {row["name"]: row["count"] for row in rows}


async def test_C2a_a_client_adds_to_its_own_tenant_and_finds_no_other(url: str, connection: Platform) -> None:
    async with two(url, connection), clients.role(connection, url, granted=False) as (name, session):
        await connection.execute("select horai.grant_client($1, 'shop')", name)
        await connection.execute("insert into horai.tenant (name) values ('press')")

        await session.fetch(ENQUEUE)
        await session.execute("set horai.tenant = 'press'")
        with pytest.raises(asyncpg.PostgresError) as other:
            await session.fetch(ENQUEUE)
        await session.execute("set horai.tenant = 'nowhere'")
        with pytest.raises(asyncpg.PostgresError) as absent:
            await session.fetch(ENQUEUE)

        assert await added(connection) == {"shop": 1}
        assert other.value.sqlstate == absent.value.sqlstate == "HR404"
        assert str(other.value).replace("press", "nowhere") == str(absent.value)


async def test_C2a_a_client_of_two_tenants_chooses_by_the_setting(url: str, connection: Platform) -> None:
    async with two(url, connection), clients.role(connection, url) as (name, session):
        await connection.execute("select horai.grant_client($1, 'shop')", name)

        await session.fetch(ENQUEUE)
        await session.execute("set horai.tenant = 'shop'")
        await session.fetch(ENQUEUE)
        assert await added(connection) == {"default": 1, "shop": 1}

        await connection.execute("select horai.revoke_client($1)", name)
        await connection.execute("insert into horai.tenant (name) values ('press')")
        await connection.execute("select horai.grant_client($1, 'press')", name)
        await session.execute("reset horai.tenant")
        with pytest.raises(asyncpg.PostgresError, match="several tenants") as refused:
            await session.fetch(ENQUEUE)
        assert refused.value.sqlstate == "HR422"


async def test_C2a_a_client_of_some_jobs_finds_no_other(url: str, connection: Platform) -> None:
    async with two(url, connection) as tenants, clients.role(connection, url, granted=False) as (name, session):
        await make.job(tenants.default, "clear")
        await connection.execute("select horai.grant_client($1, 'default', array['clear'])", name)

        await session.fetch("select horai.enqueue('clear')")
        for call in (
            ENQUEUE,
            "select horai.put_instance('publish', 'k')",
            "select horai.cancel_instance('publish', 'k')",
        ):
            with pytest.raises(asyncpg.PostgresError, match="There is no job 'publish'"):
                await session.fetch(call)
        assert await added(connection) == {"default": 1}


async def test_a_member_of_a_client_role_is_a_client(url: str, connection: Platform) -> None:
    async with (
        two(url, connection),
        clients.role(connection, url, granted=False) as (team, _),
        clients.role(connection, url, granted=False) as (name, session),
    ):
        await connection.execute("select horai.grant_client($1, 'shop')", team)
        await connection.execute(f"grant {team} to {name}")

        await session.fetch(ENQUEUE)

        assert await added(connection) == {"shop": 1}


async def test_a_role_that_was_revoked_or_never_bound_is_told_so(url: str, connection: Platform) -> None:
    async with two(url, connection), clients.role(connection, url) as (name, session):
        await connection.execute("select horai.revoke_client($1)", name)

        with pytest.raises(asyncpg.PostgresError, match="bound to no tenant") as refused:
            await session.fetch(ENQUEUE)
        assert "grant_client" in (refused.value.hint or "")
        with pytest.raises(asyncpg.PostgresError, match="There is no tenant 'nowhere'"):
            await connection.execute("select horai.grant_client($1, 'nowhere')", name)


async def test_C2a_a_table_is_followed_for_the_tenant_of_its_client_and_no_other(
    url: str, connection: Platform
) -> None:
    async with two(url, connection) as tenants, clients.role(connection, url, granted=False) as (name, session):
        for each in (tenants.default, tenants.shop):
            await make.job(each, "stock", **REFRESH)
        await connection.execute("select horai.grant_client($1, 'shop')", name)
        await connection.execute(
            f"create schema shop authorization {name}; create table shop.product (code text primary key)"
        )
        await connection.execute(f"alter table shop.product owner to {name}")

        await session.execute(FOLLOW)
        await connection.execute("insert into shop.product values ('a')")  # by a role that is no client of the tenant

        rows = await connection.fetch("select key, tenant_id from horai.entity")
        assert [tuple(row) for row in rows] == [("a", tenants.shop.tenant_id)]
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.execute("select horai.follow_entity('default', 'stock', null, 'b', null)")
        functions = await connection.fetch("select proname from pg_proc where proname like 'follow\\_of\\_%'")
        assert len(functions) == 1
        async with clients.role(connection, url) as (_, stranger):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await stranger.execute(f"select horai.{functions[0][0]}('stock', null, 'c', null)")


async def test_C2a_a_client_of_some_jobs_follows_tables_for_no_other(url: str, connection: Platform) -> None:
    async with two(url, connection) as tenants, clients.role(connection, url, granted=False) as (name, session):
        await make.job(tenants.default, "stock", **REFRESH)
        await connection.execute("select horai.grant_client($1, 'default', array['publish'])", name)
        function = await connection.fetchval("select horai.follow_function(1, array['publish'])")

        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="may not use the job 'stock'"):
            await session.execute(f"select horai.{function}('stock', null, 'a', null)")
        assert await connection.fetchval("select count(*) from horai.entity") == 0

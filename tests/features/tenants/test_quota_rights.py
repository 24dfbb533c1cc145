"""The rights of sessions on quotas: a request reads the quotas of its tenant, and only the platform changes any."""

import os
from datetime import UTC, datetime

import asyncpg
import make
import pytest
from databases import Superuser

from horai.db import signing_secrets, tenants
from horai.db.quotas import read_quotas
from horai.features.tenants.service import TenantChange, change_tenant
from horai.operations.scope import Scope


async def two_tenants(scope: Scope) -> Scope:
    """Give the tenant `default` and a second one a quota each. Return the scope of the second."""
    platform = make.platform_scope(scope)
    async with platform.write() as connection:
        made = await tenants.insert_tenant(connection, "second")
    assert made is not None
    for name, most in (("default", 1), ("second", 2)):
        await change_tenant(platform, name, TenantChange(quotas={"liveInstances": most, "jobs": most}))
    return make.of_tenant(scope, made.id, made.name)


async def test_C2b_a_request_reads_the_quotas_of_its_tenant_and_of_no_other(url: str):
    async with make.scope(url) as scope:
        second = await two_tenants(scope)
        async with second.read() as session:
            assert (await read_quotas(session, second.tenant_id)).live_instances == 2
            assert (await read_quotas(session, scope.tenant_id)).live_instances is None


@pytest.mark.parametrize(
    "change",
    [
        "update horai.tenant_quota set live_charged = 0",
        "delete from horai.tenant_quota",
        "insert into horai.tenant_quota (tenant_id) values (1)",
        "update horai.tenant set weight = 9",
        "update horai.retention set keep_history = interval '1 day'",
        "insert into horai.retention (tenant_id, kept_from) values (1, '-infinity')",
        "select horai.set_retention(1, 0, interval '1 day', null)",
        "select horai.erase_some(1, 1)",
        "select horai.hold_tenant(1)",
    ],
)
async def test_C2b_a_request_changes_no_quota_and_no_tenant(url: str, change: str):
    async with make.scope(url) as scope, scope.write() as session:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.execute(change)


async def test_C2b_a_request_charges_only_its_own_tenant(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        second = await two_tenants(scope)
        async with second.write() as session:
            await session.execute("select horai.charge($1, 1, null)", second.tenant_id)
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="cannot charge tenant 1"):
            async with second.write() as session:
                await session.execute("select horai.charge(1, 1, null)")
    charged = await connection.fetch("select tenant_id, live_charged from horai.tenant_quota order by tenant_id")
    assert [tuple(row) for row in charged] == [(1, 0), (second.tenant_id, 1)]


async def test_a_worker_that_may_read_no_keys_knows_which_addresses_to_call(connection: Superuser):
    await connection.execute("set role horai_engine")

    assert [each.reach.is_keyed for each in await signing_secrets.callback_settings(connection)] == [False]
    await connection.execute("reset role; insert into horai.access_state default values; set role horai_engine")
    assert [each.reach.is_keyed for each in await signing_secrets.callback_settings(connection)] == [True]
    assert (await signing_secrets.reach_of(connection, 1)).is_keyed


async def test_a_login_that_owns_nothing_erases_a_tenant(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "k", datetime(2999, 1, 1, tzinfo=UTC))
    role = f"node_{os.urandom(4).hex()}"
    await connection.execute(
        f"create role {role}; grant horai_api, horai_auth, horai_engine to {role}; set role {role}"
    )
    try:
        await connection.execute("update horai.tenant set paused_at = now() where id = 1")
        await tenants.mark_deleting(connection, 1)
        while await tenants.erase_some(connection, 1, 10):
            pass
        await tenants.erase_tenant(connection, 1)
        assert await connection.fetchval("select count(*) from horai.tenant") == 0
    finally:
        await connection.execute(f"reset role; drop role {role}")
    for table in ("job", "lane", "queue", "instance_live", "instance_history", "event", "signing_secret"):
        assert await connection.fetchval(f"select count(*) from horai.{table}") == 0

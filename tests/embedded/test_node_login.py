"""The login of nodes on an embedded server: its rights, the objects of users, and directories of earlier versions."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg
import make
import pytest
from embedded_servers import ask, other_horai, run, running, short_lived_place

from horai.core.settings import EngineSettings
from horai.db.isolation import Isolation
from horai.db.migrate import migrate
from horai.db.pool import DatabaseUnreachable, Dedicated, TenantPool, acquire, close_pool, open_pool, opened
from horai.embedded import EmbeddedPostgres, EmbeddedSettings, NotRunning, url_of
from horai.embedded.admin import admin_url, is_embedded, opened_for_migrations
from horai.embedded.postmaster import read_pid_file
from horai.embedded.sockets import NODE_LOGIN, SUPERUSER
from horai.process import prepare

REFUSED = (
    f"set role {SUPERUSER}",
    f"set session authorization {SUPERUSER}",
    "create role intruder",
    f"alter role {NODE_LOGIN} createrole",
    "create database intruder",
    "alter system set fsync = off",
    "copy (select 1) to program 'cat'",
    "copy (select 1) to '/tmp/intruder'",
    "select pg_read_file('postgresql.conf')",
    "select * from pg_authid",
    "update horai.audit set verb = ''",
    "delete from horai.audit",
    "truncate horai.audit",
    "update horai.audit_seal set rows = 0",
    "delete from horai.audit_seal",
    "drop table horai.job",
    "drop table horai.audit",
    "drop schema horai cascade",
    "alter table horai.job disable row level security",
    "create trigger intruder before update on horai.job for each row execute function suppress_redundant_updates_trigger()",
    "create table horai.intruder ()",
    "create function horai.intruder() returns integer language sql as 'select 1'",
    "select horai.grant_client('pg_monitor')",
)
OBJECTS = """
create extension vector;
create schema shop;
create domain shop.code as text;
create type shop.kind as enum ('new', 'old');
create type shop.size as (width integer, height integer);
create type shop.prices as range (subtype = numeric);
create table shop.product (id serial primary key, number integer generated always as identity, kind shop.kind, code shop.code);
create table shop.sale (at date) partition by range (at);
create table shop.sale_2026 partition of shop.sale for values from ('2026-01-01') to ('2027-01-01');
create sequence shop.invoice;
create view shop.products as select * from shop.product;
create materialized view shop.counted as select count(*) from shop.product;
create function shop.twice(n integer) returns integer language sql as 'select 2 * n';
create procedure shop.close() language sql as 'select 1';
create aggregate shop.total (integer) (sfunc = int4pl, stype = integer);
"""
EXTENDED = "select array_agg(distinct proowner::regrole::text) from pg_proc where pronamespace = 'public'::regnamespace"
CHANGES = """
insert into kept values ('after');
alter table kept add column more integer;
create table shop.other ();
insert into shop.product (kind, code) values ('new', 'a');
alter table shop.product add column more integer;
alter table shop.sale add column more integer;
drop table shop.sale_2026;
alter sequence shop.invoice restart;
create or replace view shop.products as select *, 1 as one from shop.product;
refresh materialized view shop.counted;
create or replace function shop.twice(n integer) returns integer language sql as 'select n + n';
alter procedure shop.close() rename to open;
alter aggregate shop.total (integer) rename to sum;
alter domain shop.code set default 'b';
alter type shop.kind add value 'spare';
alter type shop.size add attribute depth integer;
alter type shop.prices rename to spans;
drop schema shop cascade;
drop table kept;
"""
EARLIER = f"""
alter table kept owner to {SUPERUSER};
drop owned by {NODE_LOGIN};
drop role {NODE_LOGIN}, horai_api, horai_auth, horai_engine;
"""
"""Makes the directory of the template one of a version that had no login for nodes."""
TRAPS = f"""
create function public.format(pattern text, name name) returns text language plpgsql as $$
begin
    execute 'alter role {NODE_LOGIN} superuser';
    return pg_catalog.format(pattern, name);
end $$;
create function public.ended(found text[]) returns text[] language plpgsql as $$
begin
    execute 'alter role {NODE_LOGIN} superuser';
    return found;
end $$;
create aggregate public.array_agg (text) (sfunc = array_append, stype = text[], finalfunc = public.ended);
"""
"""Each matches a call of the superuser better than the function of PostgreSQL does: in migrations, and at each start."""
IS_SUPERUSER = f"select rolsuper from pg_roles where rolname = '{NODE_LOGIN}'"


@asynccontextmanager
async def session(url: str) -> AsyncGenerator[Dedicated]:
    connection: Dedicated = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def migrated() -> Iterator[str]:
    """The URL of nodes of an embedded server whose database is migrated."""
    with short_lived_place() as place:
        postgres = EmbeddedPostgres(EmbeddedSettings(place / "data"))

        async def start() -> None:
            await postgres.start()
            await prepare(postgres.url, EngineSettings())

        asyncio.run(start())
        yield postgres.url
        asyncio.run(postgres.stop())


# Rights


async def test_the_login_is_no_superuser_and_owns_nothing(migrated: str) -> None:
    async with session(migrated) as login:
        row = await login.fetchrow("select * from pg_roles where rolname = session_user")
        owned = await login.fetchval("select count(*) from pg_class where relowner = session_user::regrole")
        roles = await login.fetch("select roleid::regrole::text as name, admin_option from pg_auth_members where member = session_user::regrole")  # fmt: skip

    assert row is not None
    assert row["rolname"] == NODE_LOGIN
    assert not [
        name for name in ("rolsuper", "rolcreaterole", "rolcreatedb", "rolbypassrls", "rolreplication") if row[name]
    ]
    assert owned == 0
    assert {(role["name"], role["admin_option"]) for role in roles} == {
        ("horai_api", False), ("horai_auth", False), ("horai_engine", False),
    }  # fmt: skip


@pytest.mark.parametrize("statement", REFUSED)
async def test_C2_C9_the_login_is_refused(migrated: str, statement: str) -> None:
    async with session(migrated) as login:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await login.execute(statement)


@pytest.mark.parametrize("statement", REFUSED)
async def test_C2_C9_the_session_of_a_request_is_refused_also_after_a_reset_of_its_role(
    migrated: str, statement: str
) -> None:
    pool = await open_pool(migrated, "horai api", 1)
    try:
        async with acquire(TenantPool(pool, 1), writes=True) as request:
            assert await request.fetchval("select current_user") == "horai_api"
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await request.execute(statement)
            await request.execute("reset role")
            assert await request.fetchval("select current_user") == NODE_LOGIN
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await request.execute(statement)
    finally:
        await close_pool(pool)


async def test_no_function_of_the_login_runs_as_the_superuser_that_migrates(data_dir: Path) -> None:
    async with running(data_dir) as postgres:
        await prepare(postgres.url, EngineSettings())
        async with session(postgres.url) as login:
            await login.execute(TRAPS)

        async with opened_for_migrations(postgres.url) as connection:
            assert await connection.fetchval("select session_user") == SUPERUSER
            await migrate(connection, isolation=Isolation(single_role=False))

        assert await ask(postgres.url, IS_SUPERUSER) is False
    async with running(data_dir) as postgres:
        assert await ask(postgres.url, IS_SUPERUSER) is False


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://horai@/horai?host=/data/socket&port=5432",
        f"postgresql://{NODE_LOGIN}@db/horai",
        f"postgresql://{NODE_LOGIN}@/horai",
        f"postgresql://{NODE_LOGIN}@db/horai?host=/data/socket",
    ],
)
def test_the_url_of_another_server_or_login_is_not_that_of_an_embedded_one(url: str) -> None:
    assert not is_embedded(url)


# Users of the server


async def test_users_create_tables_and_add_instances_in_one_transaction(migrated: str) -> None:
    async with make.scope(migrated) as scope, session(migrated) as login:
        await make.job(scope)
        await make.job(scope, "stock", every="1h", refresh={"window": "10d"})
        async with login.transaction():
            await login.execute(
                "create schema newsroom; create table newsroom.article (id integer); create table visitor (name text)"
            )
            await login.execute("insert into visitor values ('Ada')")
            added = await login.fetchval("select instance_id from horai.enqueue('publish', '{}')")
        await login.execute("create table product (code text); insert into product values ('a')")

        assert await login.fetchval("select horai.follow_table('product', 'stock', 'code')") == 1
        await login.execute("insert into product values ('b')")

        assert await login.fetchval("select count(*) from horai.entity") == 2
        assert await login.fetchval("select state from horai.job_instance where instance_id = $1", added) == "INIT"
        await login.execute("drop schema newsroom cascade; drop table visitor, product")


# Directories of earlier versions


def test_a_directory_of_an_earlier_version_gets_the_login_with_all_objects_of_users(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres, session(admin_url(postgres.url)) as admin:
            await admin.execute(EARLIER + OBJECTS)
            with pytest.raises(DatabaseUnreachable) as refused:
                async with opened(postgres.url, "horai test"):
                    pass
            assert "horai migrate" in str(refused.value.hint)
        async with running(data_dir) as postgres:
            async with session(postgres.url) as login:
                assert await login.fetchval(EXTENDED) == [SUPERUSER]
                await login.execute(CHANGES)
            async with session(admin_url(postgres.url)) as admin:
                await admin.execute("create table private ()")
        async with running(data_dir) as postgres:
            owner = "select relowner::regrole::text from pg_class where relname = 'private'"
            assert await ask(postgres.url, owner) == SUPERUSER, "only objects from before the login are given"

    run(story())


def test_the_objects_of_horai_stay_with_the_superuser(data_dir: Path) -> None:
    owners = (
        "select array_agg(distinct relowner::regrole::text) from pg_class where relnamespace = 'horai'::regnamespace"
    )

    async def story() -> None:
        async with running(data_dir) as postgres:
            await prepare(postgres.url, EngineSettings())
            async with session(admin_url(postgres.url)) as admin:
                await admin.execute(f"drop owned by {NODE_LOGIN}; drop role {NODE_LOGIN}")
        async with running(data_dir) as postgres:
            assert await ask(postgres.url, owners) == [SUPERUSER]
            assert await ask(postgres.url, "select count(*) from horai.tenant") == 1

    run(story())


def test_a_worker_of_this_version_on_a_server_of_an_earlier_one_creates_the_login(data_dir: Path) -> None:
    async def story() -> None:
        async with running(data_dir) as postgres:
            async with session(admin_url(postgres.url)) as admin:
                await admin.execute(EARLIER)
                await asyncio.gather(*(prepare(url_of(data_dir), EngineSettings()) for _ in range(3)))
            assert await ask(postgres.url, "select count(*) from horai.tenant") == 1
            assert await ask(postgres.url, "select what from kept") == "before"

    run(story())


WAITS = "select exists (select from pg_stat_activity where application_name = 'horai-supervisor' and wait_event_type = 'Lock')"


async def once_the_start_waits(data_dir: Path) -> Dedicated:
    """Return a session of the superuser, once the creation of the login waits for a lock."""
    async with asyncio.timeout(30):
        while True:
            with suppress(NotRunning, OSError, asyncpg.PostgresError):
                admin: Dedicated = await asyncpg.connect(admin_url(url_of(data_dir)))
                while not await admin.fetchval(WAITS):
                    await asyncio.sleep(0.01)
                return admin
            await asyncio.sleep(0.01)


def test_a_kill_while_the_login_is_created_leaves_nothing_of_it(data_dir: Path) -> None:
    """A prepared transaction locks the table of a user over restarts, so that each start waits inside its transaction."""

    async def story() -> None:
        async with running(data_dir) as postgres:
            await ask(admin_url(postgres.url), "alter system set max_prepared_transactions = 1")
        async with running(data_dir) as postgres, session(admin_url(postgres.url)) as admin:
            await admin.execute(EARLIER)
            await admin.execute("begin; lock table kept in access share mode; prepare transaction 'held'")
        with other_horai(data_dir) as other:
            admin = await once_the_start_waits(data_dir)
            other.kill()
            found = read_pid_file(data_dir / "pgdata")
            assert found is not None
            os.kill(found.pid, signal.SIGKILL)
            admin.terminate()
        postgres = EmbeddedPostgres(EmbeddedSettings(data_dir))
        starting = asyncio.create_task(postgres.start())
        try:
            admin = await once_the_start_waits(data_dir)
            assert await admin.fetchval("select count(*) from pg_roles where rolname like 'horai\\_%'") == 0
            await admin.execute("rollback prepared 'held'")
            await starting
            assert await ask(postgres.url, "select what from kept") == "before"
            await admin.close()
        finally:
            await postgres.stop()

    run(story())

"""Followed tables: who writes and owns them, what their columns are, and what an upgrade does to them."""

import asyncio
import json
from collections.abc import Iterator

import asyncpg
import clients
import entities as given
import make
import pytest
from databases import fresh_database

from horai.db.migrate import Migration, migrate, migrations
from horai.db.pool import Platform, connect
from horai.embedded import EmbeddedPostgres
from horai.embedded.sockets import NODE_LOGIN

FOLLOW = "select horai.follow_table('shop.product', 'refresh_stock', 'code', array['warehouse'])"
FOLLOWERS = "select proname from pg_proc where proname like 'horai_follow_%'"


@pytest.fixture(autouse=True)
def refresh_stock(url: str, runner: asyncio.Runner) -> None:
    """A job whose entities a table holds."""

    async def made() -> None:
        async with make.scope(url) as scope:
            await given.refresh_job(scope)

    runner.run(made())


async def known(connection: Platform) -> dict[str, object]:
    rows = await connection.fetch("select key, payload from horai.entity order by key")
    return {row["key"]: None if row["payload"] is None else json.loads(row["payload"]) for row in rows}


async def open_shop(connection: Platform, owner: str) -> None:
    await connection.execute(
        f"create schema shop authorization {owner}; create table shop.product (code text, warehouse integer);"
        f" alter table shop.product owner to {owner}; grant usage on schema shop to public;"
        " grant select, insert, update, delete on shop.product to public"
    )


async def test_a_role_without_any_right_on_horai_writes_a_followed_table(url: str, connection: Platform):
    async with (
        clients.role(connection, url) as (owner, lease),
        clients.role(connection, url, granted=False) as (_, clerk),
    ):
        await open_shop(connection, owner)
        await lease.execute(FOLLOW)
        await clerk.execute("set timezone = 'Asia/Tokyo'; set search_path = shop")

        await clerk.execute(
            "insert into product values ('a', 1), ('b', 1); update product set warehouse = 2 where code = 'b'"
        )
        await clerk.execute("update product set code = 'c' where code = 'a'")

        assert await known(connection) == {"b": {"warehouse": 2}, "c": {"warehouse": 1}}
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await clerk.execute("select horai.add_entity('refresh_stock', 'd')")


async def test_the_trigger_function_belongs_to_the_caller_and_goes_with_the_trigger(url: str, connection: Platform):
    async with clients.role(connection, url) as (owner, lease):
        await open_shop(connection, owner)
        await lease.execute(FOLLOW)
        await lease.execute(FOLLOW)
        found = await connection.fetch(
            "select pg_get_userbyid(proowner) as owner, prosecdef, proconfig, has_function_privilege('public', oid, 'execute') as open"
            " from pg_proc where proname like 'horai_follow_%'"
        )
        await lease.execute("select horai.unfollow_table('shop.product', 'refresh_stock')")

        assert [(row["owner"], row["prosecdef"], row["open"]) for row in found] == [(owner, True, False)]
        assert "search_path=pg_catalog, pg_temp" in found[0]["proconfig"]
        assert await connection.fetch(FOLLOWERS) == []


async def test_a_role_whose_function_a_table_needs_cannot_be_dropped_by_accident(url: str, connection: Platform):
    async with clients.role(connection, url) as (owner, lease), clients.role(connection, url) as (heir, successor):
        await open_shop(connection, owner)
        await lease.execute(FOLLOW)
        await connection.execute(f"alter table shop.product owner to {heir}; alter schema shop owner to {heir}")
        with pytest.raises(asyncpg.DependentObjectsStillExistError):
            await connection.execute(f"drop role {owner}")
        with pytest.raises(asyncpg.DependentObjectsStillExistError):
            await connection.execute(f"drop owned by {owner}")

        await successor.execute("insert into shop.product values ('a', 1)")
        await connection.execute(f"reassign owned by {owner} to {heir}")
        await successor.execute("insert into shop.product values ('b', 1)")
        await successor.execute(FOLLOW)
        await successor.execute("insert into shop.product values ('c', 1)")

        assert set(await known(connection)) == {"a", "b", "c"}
        assert len(await connection.fetch(FOLLOWERS)) == 1


async def test_a_follower_that_lost_its_rights_refuses_writes_instead_of_missing_them(url: str, connection: Platform):
    async with clients.role(connection, url) as (owner, lease):
        await open_shop(connection, owner)
        await lease.execute(FOLLOW)
        await connection.execute("select horai.revoke_client($1)", owner)

        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="follow_of"):
            await lease.execute("insert into shop.product values ('a', 1)")


VALUES = """
create type public.size as enum ('small', 'large');
create type public.box as (width integer, height integer);
create domain public.shelf as integer check (value > 0);
create table public.thing (
    code public.size, amount public.shelf, sizes public.size[], box public.box, at timestamptz, price numeric, real float8,
    tags text[], document jsonb, span interval, doubled integer generated always as (amount * 2) stored, "odd "" 'name%s\\" text, bits bit(4)
);
"""


async def test_columns_of_every_kind_of_type_arrive_the_same_by_import_and_by_trigger(connection: Platform):
    await connection.execute(VALUES)
    columns = [
        "amount",
        "sizes",
        "box",
        "at",
        "price",
        "real",
        "tags",
        "document",
        "span",
        "doubled",
        "odd \" 'name%s\\",
        "bits",
    ]
    row = (
        "'small', 7, '{small,large}', row(1, null), '2030-01-01 09:00+08', 1.50, 0.1, array['x', null, 'NULL'], '{\"a\": null}',"
        " '1 day 2 hours', default, 'it''s', b'1010'"
    )
    await connection.execute(f"insert into thing values ({row})")
    await connection.execute("select horai.follow_table('thing', 'refresh_stock', 'code', $1)", columns)
    imported = await known(connection)
    await connection.execute("delete from thing; set timezone = 'Asia/Tokyo'; set datestyle = 'SQL, DMY'")
    await connection.execute("set extra_float_digits = -10; set array_nulls = off; set intervalstyle = 'iso_8601'")
    await connection.execute(f"insert into thing values ({row})")

    assert await known(connection) == imported
    assert imported == {
        "small": {
            "amount": 7, "sizes": "{small,large}", "box": "(1,)", "at": "2030-01-01T01:00:00+00:00", "price": 1.5, "real": 0.1,
            "tags": ["x", None, "NULL"], "document": {"a": None}, "span": "1 day 02:00:00", "doubled": 14,
            "odd \" 'name%s\\": "it's", "bits": "1010",
        }
    }  # fmt: skip


async def test_a_virtual_generated_column_is_refused_with_the_reason(connection: Platform):
    if int(await connection.fetchval("show server_version_num")) < 180000:
        pytest.skip("PostgreSQL has virtual generated columns from version 18 on")
    await connection.execute("create table thing (code text, twice text generated always as (code || code) virtual)")

    with pytest.raises(asyncpg.PostgresError, match="cannot read the virtual generated column twice") as refused:
        await connection.execute("select horai.follow_table('thing', 'refresh_stock', 'twice')")

    assert refused.value.sqlstate == "HR422"


async def test_rows_of_partitions_are_followed_wherever_they_move(connection: Platform):
    await connection.execute(
        "create table thing (code text, region integer) partition by list (region);"
        " create table thing_1 partition of thing for values in (1); create table thing_2 partition of thing for values in (2)"
    )
    await connection.execute("insert into thing values ('a', 1)")
    follow = "select horai.follow_table('thing', 'refresh_stock', 'code', array['region'])"

    await connection.execute(follow)
    await connection.execute(follow)
    await connection.execute("insert into thing values ('b', 1); insert into thing_2 values ('c', 2)")
    await connection.execute(
        "create table thing_3 partition of thing for values in (3); insert into thing values ('d', 3)"
    )
    await connection.execute("update thing set region = 2 where code in ('a', 'b'); delete from thing where code = 'd'")

    assert await known(connection) == {"a": {"region": 2}, "b": {"region": 2}, "c": {"region": 2}}


async def test_entities_stay_when_their_table_is_truncated(connection: Platform):
    await connection.execute("create table thing (code text)")
    await connection.execute("select horai.follow_table('thing', 'refresh_stock', 'code')")
    await connection.execute("insert into thing values ('a'); truncate thing")

    assert set(await known(connection)) == {"a"}


async def test_two_tables_of_one_schema_follow_one_job(connection: Platform):
    for table in ("thing", "other"):
        await connection.execute(f"create table {table} (code text)")
        await connection.execute(f"select horai.follow_table('{table}', 'refresh_stock', 'code')")
    await connection.execute("select horai.unfollow_table('thing', 'refresh_stock')")
    await connection.execute("insert into thing values ('a'); insert into other values ('b')")

    assert set(await known(connection)) == {"b"}


async def test_a_payload_that_is_too_large_is_refused_with_the_row(connection: Platform):
    await connection.execute("create table thing (code text, words text)")
    await connection.execute("select horai.follow_table('thing', 'refresh_stock', 'code', array['words'])")

    with pytest.raises(asyncpg.PostgresError, match="larger than 1048576 bytes") as refused:
        await connection.execute("insert into thing values ('a', repeat('x', 1048576))")

    assert refused.value.sqlstate == "HR413"
    assert await connection.fetchval("select count(*) from thing") == 0


# The upgrade of a database whose tables follow_row followed


@pytest.fixture
def old_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database without Horai."""
    with fresh_database(postgres, template="template0") as made:
        yield made


def until(number: int) -> list[Migration]:
    return [migration for migration in migrations() if migration.number <= number]


UNAUDITED = """
    create table horai.audit (
        tenant_id int, actor_kind text, actor_id text, actor_name text, actor_role text, address text, request_id text,
        verb text, object_kind text, object_id text, object_name text, before json, after json, counts json
    );
    create table horai.definition_version (
        tenant_id int, kind text, object_id bigint, version int, at timestamptz, actor_kind text, actor_id text, actor_name text, via text,
        definition json
    )
"""
"""Stand-ins for the audit log and the versions, which the version of that time did not have and the operations of now write to."""


async def test_an_upgrade_replaces_the_triggers_of_followed_tables_and_drops_their_old_function(
    old_url: str, monkeypatch: pytest.MonkeyPatch
):
    connection = await connect(old_url, "horai test")
    with monkeypatch.context() as patch:
        patch.setattr("horai.db.migrate.migrations", lambda: until(17))
        await migrate(connection)
    await connection.execute(UNAUDITED)
    await connection.execute(
        "alter table horai.job add column encrypted boolean not null default false, add column search_paths text[] default '{}'"
    )
    await connection.execute(f"grant usage on schema horai to {NODE_LOGIN}")
    await connection.execute(f"grant all on all tables in schema horai to {NODE_LOGIN}")
    await connection.execute(f"grant all on all sequences in schema horai to {NODE_LOGIN}")
    async with make.scope(old_url) as scope:
        await given.refresh_job(scope)
    await connection.execute(
        "drop table horai.audit, horai.definition_version; alter table horai.job drop column encrypted, drop column search_paths"
    )
    async with clients.role(connection, old_url) as (owner, lease):
        await open_shop(connection, owner)
        await lease.execute(FOLLOW)
        await lease.execute("create table shop.quiet (code text)")
        await lease.execute("select horai.follow_table('shop.quiet', 'refresh_stock', 'code')")
        await lease.execute("alter table shop.quiet disable trigger user")
        await lease.execute("insert into shop.product values ('a', 1)")
        await lease.execute("create table shop.bait (code text)")
        wrong = "execute function horai.follow_row('default', 'refresh_stock', 'gone')"
        await lease.execute(
            f"create trigger horai_follow_x after insert or update or delete on shop.bait for each row {wrong}"
        )
        await connection.execute(f"grant select on horai.job_instance to {owner}")

        await migrate(connection)

        assert await connection.fetchval("select to_regproc('horai.follow_row')") is None
        await lease.execute(
            "insert into shop.product values ('b', 2); insert into shop.quiet values ('c'); insert into shop.bait values ('d')"
        )
        await lease.execute("delete from shop.product where code = 'a'")
        assert await known(connection) == {"b": {"warehouse": 2}}
        await lease.execute("alter table shop.quiet enable trigger user; insert into shop.quiet values ('e')")
        assert set(await known(connection)) == {"b", "e"}
        assert await lease.fetchval("select count(*) from horai.job_instance") == 0
        await lease.execute(FOLLOW)
        owners = await connection.fetch(
            "select distinct pg_get_userbyid(proowner) from pg_proc where proname like 'horai_follow_%'"
        )
        assert [row[0] for row in owners] == [owner]
        assert len(await connection.fetch(FOLLOWERS)) == 2
    connection.terminate()

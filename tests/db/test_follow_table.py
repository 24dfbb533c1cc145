"""A business table whose rows are the entities of a refresh job, in the transactions in which they come and go."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import entities as given
import make
import pytest

from horai.db.jobs import JobRow
from horai.db.pool import Platform
from horai.operations import jobs
from horai.operations.scope import Scope

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "refresh.md").read_text()
FOLLOW = "select horai.follow_table('public.product', 'refresh_stock', 'code', array['warehouse'])"


@asynccontextmanager
async def shop(url: str, connection: Platform, **refresh: Any) -> AsyncGenerator[tuple[Scope, JobRow]]:
    """A table of products and a job that refreshes them."""
    await connection.execute("create table public.product (code text, warehouse integer, price numeric)")
    async with make.scope(url) as scope:
        yield scope, await given.refresh_job(scope, refresh=refresh)


async def known(connection: Platform) -> dict[str, Any]:
    rows = await connection.fetch("select key, payload from horai.entity order by key")
    return {row["key"]: None if row["payload"] is None else json.loads(row["payload"]) for row in rows}


async def test_D1_D2_the_rows_there_are_become_entities_and_so_do_those_that_come(url: str, connection: Platform):
    async with shop(url, connection):
        await connection.execute("insert into product select 'sku-' || n, 1 from generate_series(1, 25000) n")

        added = await connection.fetchval(FOLLOW)
        await connection.execute("insert into product values ('new', 2, 9.9), (null, 3, 1)")

        assert added == 25_000
        assert await connection.fetchval("select count(*) from horai.entity") == 25_001
        assert (await known(connection))["new"] == {"warehouse": 2}


async def test_D2_a_deleted_row_or_an_old_key_is_no_longer_an_entity(url: str, connection: Platform):
    async with shop(url, connection):
        await connection.execute(FOLLOW)
        await connection.execute("insert into product values ('a', 1, 1), ('b', 1, 1), ('c', 1, 1)")

        await connection.execute("delete from product where code = 'a'")
        await connection.execute("update product set code = 'd' where code = 'b'")
        await connection.execute("update product set warehouse = 5 where code = 'c'")
        await connection.execute("update product set price = 2")

        assert await known(connection) == {"c": {"warehouse": 5}, "d": {"warehouse": 1}}


async def test_a_table_is_followed_by_the_job_of_its_tenant_alone(url: str, connection: Platform):
    async with shop(url, connection) as (scope, ours):
        tenant = await connection.fetchval("insert into horai.tenant (name) values ('acme') returning id")
        theirs = await given.refresh_job(make.of_tenant(scope, tenant, "acme"))
        await connection.execute("set horai.tenant = 'acme'")
        await connection.execute(FOLLOW)
        await connection.execute("reset horai.tenant")

        await connection.execute("insert into product values ('a', 1, 1), ('b', 1, 1)")
        await connection.execute("delete from product where code = 'b'")

        found = await connection.fetch("select job_id, key from horai.entity")
        assert found == [(theirs.id, "a")]
        assert ours.name == theirs.name


async def test_D2_a_row_that_is_rolled_back_was_never_there(url: str, connection: Platform):
    async with shop(url, connection, runOnAdd=True):
        await connection.execute(FOLLOW)
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("insert into product values ('a', 1, 1)")
        seen = await connection.fetchval("select count(*) from horai.instance_live where key = 'a'")
        await transaction.rollback()

        assert seen == 1
        assert await known(connection) == {}
        assert await connection.fetchval("select count(*) from horai.instance_live where key is not null") == 0


async def test_D11_a_new_row_runs_at_once_and_a_removed_one_not_any_more(url: str, connection: Platform):
    async with shop(url, connection, runOnAdd=True):
        await connection.execute(FOLLOW)

        await connection.execute("insert into product values ('a', 1, 1)")
        waiting = await connection.fetchval("select payload from horai.instance_live where key = 'a'")
        await connection.execute("delete from product")

        assert json.loads(waiting) == {"warehouse": 1}
        assert await connection.fetchval("select state from horai.job_instance where key = 'a'") == "CANCELLED"


async def test_following_again_is_following_once_and_it_can_be_ended(url: str, connection: Platform):
    async with shop(url, connection):
        await connection.execute("insert into product values ('a', 1, 1)")

        answers = [await connection.fetchval(FOLLOW), await connection.fetchval(FOLLOW)]
        triggers = await connection.fetchval("select count(*) from pg_trigger where tgname like 'horai_follow_%'")
        await connection.execute("select horai.unfollow_table('public.product', 'refresh_stock')")
        await connection.execute("insert into product values ('b', 1, 1)")

        assert (answers, triggers) == ([1, 0], 1)
        assert await known(connection) == {"a": {"warehouse": 1}}


async def test_a_job_that_is_gone_does_not_stop_those_who_write_the_table(url: str, connection: Platform):
    async with shop(url, connection) as (scope, job):
        await connection.execute(FOLLOW)
        await jobs.delete_job(scope, job.name)

        await connection.execute("insert into product values ('a', 1, 1)")
        assert await known(connection) == {}

        await given.refresh_job(scope)
        await connection.execute("insert into product values ('b', 1, 1)")
        assert await known(connection) == {"b": {"warehouse": 1}}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("select horai.follow_table('public.product', 'refresh_stock', 'sku')", "no column sku"),
        ("select horai.follow_table('public.product', 'nobody', 'code')", "There is no job"),
        ("select horai.follow_table('public.product', 'publish', 'code')", "no refresh job"),
        ("select horai.add_entity('publish', 'a')", "no refresh job"),
        ("select horai.add_entity('refresh_stock', '')", "1 to 512 characters"),
        ("select horai.add_entities('refresh_stock', array['a', 'b'], array['1']::json[])", "not as many"),
    ],
)
async def test_an_invalid_call_of_follow_table_or_add_entity_is_refused_with_a_reason(
    url: str, connection: Platform, call: str, words: str
):
    async with shop(url, connection) as (scope, _):
        await make.job(scope, "publish")

        with pytest.raises(asyncpg.PostgresError, match=words):
            await connection.execute(call)


async def test_a_client_that_owns_the_table_and_may_create_in_its_schema_needs_no_more(url: str, connection: Platform):
    async with shop(url, connection):
        transaction = connection.transaction()
        await transaction.start()
        role = f"shopkeeper_{await connection.fetchval('select pg_backend_pid()')}"
        await connection.execute(f"create role {role}")
        await connection.execute("select horai.grant_client($1)", role)
        await connection.execute(f"alter table product owner to {role}")
        await connection.execute(f"set local role {role}")

        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="may not create the trigger function") as refused:
            async with connection.transaction():
                await connection.execute(FOLLOW)
        assert refused.value.hint == f"Run as the owner of the schema: grant create on schema public to {role}"
        await connection.execute(f"reset role; grant create on schema public to {role}; set local role {role}")

        await connection.execute(FOLLOW)
        await connection.execute("insert into public.product values ('a', 1, 1)")
        added = await connection.fetchval("select horai.add_entity('refresh_stock', 'b', '{\"n\": 1}')")
        many = await connection.fetchval("select horai.add_entities('refresh_stock', array['a', 'c', 'c'])")
        removed = await connection.fetchval("select horai.remove_entity('refresh_stock', 'b')")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with connection.transaction():
                await connection.execute("select * from horai.entity")

        await connection.execute("reset role")
        assert (added, many, removed) == (True, 1, True)
        assert set(await known(connection)) == {"a", "c"}
        await transaction.rollback()


async def test_every_statement_of_the_guide_answers_what_it_says(url: str, connection: Platform):
    """docs/guides/refresh.md."""
    (block,) = re.findall(r"```sql\n(.*?)```", GUIDE, re.DOTALL)
    answers: list[str] = []
    async with shop(url, connection):
        await connection.execute("insert into product values ('a', 1, 1), ('b', 1, 1)")
        for statement in re.split(r";\n(?:-- answers: \d+\n)?", block):
            if statement.strip():
                answers += [str(row[0]) for row in await connection.fetch(statement)]

    assert [answer for answer in answers if answer] == [*re.findall(r"-- answers: (\d+)", block), "None"]

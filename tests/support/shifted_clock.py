"""A clock of the database that a test sets, for every connection that is opened from then on."""

from datetime import datetime

from databases import Superuser

SHIFTED = """
    create schema shifted;
    create table shifted.by (amount interval not null);
    insert into shifted.by values ('0');
    create function shifted.clock_timestamp() returns timestamptz language sql volatile
        return pg_catalog.clock_timestamp() + (select amount from shifted.by);
    create function shifted.statement_timestamp() returns timestamptz language sql stable
        return pg_catalog.statement_timestamp() + (select amount from shifted.by);
    grant usage on schema shifted to public;
    grant select on shifted.by to public;
    do $$ begin execute format('alter database %I set search_path = shifted, pg_catalog', current_database()); end $$;
"""


async def set_clock(connection: Superuser, now: datetime) -> None:
    """Let the clock of the database show this time, and go on from there."""
    await connection.execute("update shifted.by set amount = $1 - pg_catalog.clock_timestamp()", now)


async def read_clock(connection: Superuser) -> datetime:
    """The time that the clock shows."""
    return await connection.fetchval("select shifted.clock_timestamp()")

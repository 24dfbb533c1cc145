"""Decisions on keys open only the days of history that are not folded, however many days are kept."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import make
import pytest
from databases import Superuser

from horai.db import instances

DAYS = 40
FOLD = "update horai.history_fold set folded_before = date_trunc('day', clock_timestamp(), 'UTC')"
OPENED = """
select count(distinct part.relname) from pg_locks
join pg_index on pg_index.indexrelid = pg_locks.relation join pg_class part on part.oid = pg_index.indrelid
where pid = pg_backend_pid() and part.relname ~ '^instance_history_[0-9]{8}$'
    and right(part.relname, 8) < to_char(clock_timestamp() at time zone 'UTC', 'YYYYMMDD')
"""
"""The past days whose indexes this transaction has opened: PostgreSQL locks an index when it prepares to read it."""


async def _by_the_server(connection: Superuser, job_id: int, key: str) -> None:
    assert await instances.past_of_keys(connection, job_id, [key]) == {}


async def _by_sql(connection: Superuser, job_id: int, key: str) -> None:
    assert job_id
    assert await connection.fetchval("select decision from horai.put_instance('publish', $1)", key) == "INSERTED"


@pytest.mark.parametrize("decide", [_by_the_server, _by_sql])
@pytest.mark.parametrize(("is_folded", "opened"), [(True, 0), (False, DAYS)])
async def test_a_put_opens_no_folded_day(
    decide: Callable[[Superuser, int, str], Awaitable[None]],
    is_folded: bool,
    opened: int,
    url: str,
    connection: Superuser,
) -> None:
    async with make.scope(url) as scope:
        job = await make.job(scope)
    since = datetime.now(UTC).date() - timedelta(days=DAYS)
    await connection.execute("select horai.make_partitions($1, $2)", since, DAYS)
    if is_folded:
        await connection.execute(FOLD)
    await decide(connection, job.id, "first")  # plans the statements, for which PostgreSQL looks at all days

    async with connection.transaction():
        await decide(connection, job.id, "second")
        assert await connection.fetchval(OPENED) == opened

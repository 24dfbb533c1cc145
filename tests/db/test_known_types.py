"""Types of PostgreSQL itself are asked for once per process, those of a database by each connection."""

import asyncio
from collections.abc import Iterator

import pytest
from databases import Superuser, superuser

from horai.db import known_types
from horai.db.known_types import FIRST_UNFIXED
from horai.db.pool import acquire, close_pool, open_pool


@pytest.fixture(autouse=True)
def unlearned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a new process does."""
    monkeypatch.setattr(known_types, "_known", {})


@pytest.fixture
def other(runner: asyncio.Runner, url: str) -> Iterator[Superuser]:
    """A second connection to the same database."""
    opened = runner.run(superuser(url))
    yield opened
    opened.terminate()


async def asked_by(connection: Superuser, query: str, *values: object) -> tuple[object, int]:
    """Return the value of a query, and how often its connection asked about types."""
    heard: list[str] = []
    with connection.query_logger(lambda record: heard.append(record.query)):
        value = await connection.fetchval(query, *values)
    return value, sum("typeinfo_tree" in text for text in heard)


async def test_a_second_connection_asks_no_more_about_an_array(connection: Superuser, other: Superuser) -> None:
    query = "select $1::bigint[]"

    assert await asked_by(connection, query, [1, 2]) == ([1, 2], 1)
    assert await asked_by(other, query, [3]) == ([3], 0)
    assert await asked_by(other, "select $1::bigint[], $2::uuid[]", [3], []) == ([3], 1)
    assert await asked_by(other, "select array[$1::int, null]", 4) == ([4, None], 1)


async def test_the_connections_of_a_pool_share_what_one_of_them_learned(connection: Superuser, url: str) -> None:
    await connection.fetchval("select array[1::bigint]")
    pool = await open_pool(url, "horai test", 1)
    try:
        async with acquire(pool) as pooled:
            assert await pooled.fetchval("select array[$1::bigint]", 7) == [7]
        assert len(known_types._known) == 1
    finally:
        await close_pool(pool)


async def test_a_statement_without_a_name_is_executed_after_its_types_are_known(
    connection: Superuser, other: Superuser
) -> None:
    too_long_to_keep = "x" * 20_000
    query = f"select array[1::bigint], '{too_long_to_keep}'"

    assert await asked_by(connection, query) == ([1], 1)
    assert await asked_by(other, query) == ([1], 0)


async def test_a_type_of_a_database_is_asked_for_by_each_connection(connection: Superuser, other: Superuser) -> None:
    await connection.execute("create type pair as (a int, b bigint[])")
    query = "select row(1, array[2])::pair"

    assert await asked_by(connection, query) == ((1, [2]), 1)
    assert await asked_by(other, query) == ((1, [2]), 1)
    assert await asked_by(other, "select array[row(3, null)::pair]") == ([(3, None)], 1)
    assert max(known_types._known, default=0) < FIRST_UNFIXED

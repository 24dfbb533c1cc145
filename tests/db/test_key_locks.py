"""The locks of concurrency keys: a claim of many keys takes few, and two claims that share one take turns."""

import asyncio

import make
import pytest
import rows
from databases import Superuser
from keyed_claims import add, claim

from horai.db.pool import connect

LOCKS_OF_KEYS = "select count(*) from pg_locks where locktype = 'advisory' and classid = 1215263336"


async def test_a_claim_of_many_keys_takes_64_locks_at_most(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await add(scope, *(f"customer-{number}" for number in range(500)))
        node = await make.node(connection)

        async with connection.transaction():
            claimed = await claim(connection, node)
            locks = await connection.fetchval(LOCKS_OF_KEYS)

        assert len(claimed) == 500
        assert 32 < locks <= 64


async def test_a_claim_of_other_keys_that_share_a_lock_waits_for_the_first_and_parks_nothing(
    url: str, connection: Superuser
) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await add(scope, *(f"customer-{number}" for number in range(300)))
        node, other = await make.node(connection), await make.node(connection, name="other")

        first, second = await connect(url, "horai test"), await connect(url, "horai test")
        try:
            async with first.transaction():
                claimed = await claim(first, node, each=4)
                claiming = asyncio.create_task(claim(second, other))
                await rows.until_blocked(connection, second)
            rest = await claiming
        finally:
            first.terminate()
            second.terminate()

        assert len(claimed) + len(rest) == 300
        assert not rest.parked


@pytest.mark.parametrize(("keys", "admitted"), [(["a", "b"], 2), (["a", "a"], 1)])
async def test_a_claim_of_a_node_of_the_last_version_counts_keys(
    url: str, connection: Superuser, keys: list[str], admitted: int
) -> None:
    """It passes the ids of its rows without their jobs and keys."""
    async with make.scope(url) as scope:
        await make.job(scope)
        made = await add(scope, *keys)
        plain = await make.many(scope, 1)

        found = await connection.fetchval(
            "select horai.admit_keys($1::bigint[], $2::integer[])", [*made, *plain], await make.lanes(connection)
        )

        assert sorted(found) == sorted([*made[:admitted], *plain])


async def test_a_claim_of_nothing_admits_nothing(url: str, connection: Superuser) -> None:
    async with make.scope(url) as scope:
        await make.job(scope)
        await add(scope, "a")
        node = await make.node(connection)
        assert len(await claim(connection, node)) == 1

        assert await claim(connection, node, 2) == []

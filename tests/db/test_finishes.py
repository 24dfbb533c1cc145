"""The settler's plain way to finish: it takes no lock beforehand, and so may have to wait for one."""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import make
import pytest
import rows

from horai.core.outcome import Complete, Release
from horai.core.states import State
from horai.db import claims
from horai.db.claims import Claim
from horai.db.pool import Platform


async def test_a_finish_waits_no_longer_than_its_lock_timeout_and_its_batch_then_goes_the_other_way(
    url: str, connection: Platform
):
    locked, *free = [await rows.instance(connection, State.RUNNING) for _ in range(3)]
    batch = [(held, Complete()) for held in (free[0], locked, free[1])]
    async with rows.connections(url, 1, lock_timeout=0.02) as (settling,):
        async with connection.transaction(), asyncio.timeout(30):
            await connection.execute("select from horai.instance_live where id = $1 for update", locked.id)
            before = await rows.everything(connection)

            with pytest.raises(asyncpg.LockNotAvailableError):
                await claims.finish_if_running(settling, rows.NODE, batch)

            assert await rows.everything(connection) == before, "not even the free ones: it is all or nothing"
            assert await claims.finish_if_free(settling, batch) == {held.id for held in free}
            assert await claims.still_running(settling, [held for held, _ in batch]) == {locked.id}

        assert await claims.finish_if_running(settling, rows.NODE, batch) == {locked.id}


async def _only_look(connection: Platform, held: Claim) -> None:
    await connection.execute("select from horai.instance_live where id = $1 for update", held.id)


async def _release_and_claim_again(connection: Platform, held: Claim) -> None:
    await claims.release_if_running(connection, [(held, Release())])
    assert await make.claim(connection, held.node)


async def _cancel(connection: Platform, held: Claim) -> None:
    await claims.cancel_if_running(connection, [held])


MEANWHILE: dict[str, tuple[Callable[[Platform, Claim], Awaitable[None]], bool]] = {
    "it was only looked at": (_only_look, True),
    "it was released and claimed again": (_release_and_claim_again, False),
    "it was cancelled": (_cancel, False),
}


@pytest.mark.parametrize(("change", "counts"), MEANWHILE.values(), ids=MEANWHILE.keys())
async def test_B10_a_finish_that_waited_is_judged_by_the_row_as_it_has_become(
    url: str, connection: Platform, change: Callable[[Platform, Claim], Awaitable[None]], counts: bool
):
    async with make.scope(url) as scope, rows.connections(url, 2) as (changing, finishing):
        await make.job(scope)
        held = (await make.running(scope, connection)).held
        async with changing.transaction():
            await change(changing, held)
            finish = asyncio.create_task(claims.finish_if_running(finishing, held.node, [(held, Complete())]))
            await rows.until_blocked(connection, finishing)
        after = await rows.everything(connection)

        assert await finish == ({held.id} if counts else set())
        assert counts or await rows.everything(connection) == after


async def test_B10_a_finish_counts_for_the_claims_of_its_own_node_only(connection: Platform):
    mine, others = (
        await rows.instance(connection, State.RUNNING),
        await rows.instance(connection, State.RUNNING, node=8),
    )

    done = await claims.finish_if_running(connection, rows.NODE, [(mine, Complete()), (others, Complete())])

    assert done == {mine.id}
    assert await claims.still_running(connection, [others]) == {others.id}

"""The one transaction of a keyed write: what it holds back until its commit, and what a failure leaves."""

from datetime import UTC, datetime, timedelta

import make
import pytest

from horai.core.errors import NotFound
from horai.core.wakes import LaneWake
from horai.db.idempotency import KeptAnswer
from horai.db.pool import Platform
from horai.operations.idempotency import Keyed, RepeatedRequest
from horai.operations.instances import Item, insert_batch
from horai.operations.request_keys import Once

ANSWER = KeptAnswer(200, {"etag": '"1"'}, b"{}" * 5_000)
SOON = datetime.now(UTC) + timedelta(hours=1)


def keyed() -> Keyed:
    return Keyed("POST /batch", lambda: Once("key", b"body"))


async def keys(connection: Platform) -> int:
    return await connection.fetchval("select count(*) from horai.idempotency_key")


async def test_wakes_are_sent_after_the_commit(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        seen: list[int] = []
        count = "select count(*) from horai.instance_live"
        told: list[None] = []
        scope.wakeups.subscribe(LaneWake, lambda *_: told.append(None))
        async with keyed() as work:
            await insert_batch(work.bind(scope), "publish", [Item(SOON, None)] * 2)
            await work.keep(ANSWER)
            assert told == []
            seen.append(await connection.fetchval(count))

        assert seen == [0]
        assert told
        assert await connection.fetchval(count) == 2


async def test_a_failure_leaves_neither_key_nor_effect_nor_wake(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        told: list[None] = []
        scope.wakeups.subscribe(LaneWake, lambda *_: told.append(None))

        async def fail() -> None:
            async with keyed() as work:
                bound = work.bind(scope)
                await insert_batch(bound, "publish", [Item(SOON, None)])
                await insert_batch(bound, "unknown", [Item(SOON, None)])

        with pytest.raises(NotFound):
            await fail()

        assert (await keys(connection), told) == (0, [])
        assert await connection.fetchval("select count(*) from horai.instance_live") == 0


async def test_a_repeat_gets_the_answer_to_the_byte(url: str, connection: Platform):
    async with make.scope(url) as scope:
        await make.job(scope)
        async with keyed() as work:
            await insert_batch(work.bind(scope), "publish", [Item(SOON, None)])
            await work.keep(ANSWER)
        with pytest.raises(RepeatedRequest) as repeated:
            async with keyed() as work:
                await insert_batch(work.bind(scope), "publish", [Item(SOON, None)])

        assert repeated.value.answer == ANSWER
        assert await connection.fetchval("select size from horai.idempotency_key") < 1_000
        assert await connection.fetchval("select count(*) from horai.instance_live") == 1


async def test_a_keyed_request_works_in_portions_for_two_seconds_only(url: str):
    async with make.scope(url) as scope:
        assert (scope.longest, keyed().bind(scope).longest) == (20.0, 2.0)

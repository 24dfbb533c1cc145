"""Types do not delay one another: each function has its share of a worker."""

import asyncio
import time
from typing import Any

import pytest
from rows import until
from working import working

from horai import Horai
from horai.core.errors import Invalid
from horai.core.settings import EngineSettings
from horai.db.pool import Platform

HANGING = 8


@pytest.mark.parametrize("is_async", [True, False])
async def test_F2a_E1c_hanging_tasks_of_one_type_do_not_delay_another(url: str, connection: Platform, is_async: bool):
    app, gate, loop = Horai("shop", database_url=url), asyncio.Event(), asyncio.get_running_loop()
    begun = list[str]()

    async def wait() -> None:
        begun.append("hang")
        await gate.wait()

    def block() -> None:
        asyncio.run_coroutine_threadsafe(wait(), loop).result()

    hang = app.job(wait if is_async else block, name="hang")

    @app.job
    async def quick() -> float:
        return time.monotonic()

    async with working(app, EngineSettings(), concurrency=4):
        try:
            await hang.enqueue_many([None] * HANGING)

            async def are_hanging() -> bool:
                return len(begun) == 3

            await until(are_hanging)
            for _ in range(5):
                added = time.monotonic()
                ran_at = await (await quick.enqueue()).result(timeout=30)
                assert ran_at - added < 1.0
            states = await connection.fetch("select state from horai.instance_live order by state")
            assert [row["state"] for row in states] == [0] * (HANGING - 3) + [1] * 3, "what cannot begin is not claimed"
            assert len(begun) == 3
        finally:
            gate.set()

        async def have_run() -> bool:
            return len(begun) == HANGING

        await until(have_run)


async def test_F2b_a_type_that_was_quick_and_hangs_leaves_room(url: str):
    """It was claimed far ahead, at the pace of its quick calls."""
    app, gate, is_hanging = Horai("shop", database_url=url), asyncio.Event(), False

    @app.job
    async def turns() -> None:
        if is_hanging:
            await gate.wait()

    @app.job
    async def quick() -> float:
        return time.monotonic()

    async with working(app, EngineSettings(), concurrency=4):
        try:
            await asyncio.gather(*(h.result(timeout=60) for h in await turns.enqueue_many([None] * 2_000)))
            is_hanging = True
            await turns.enqueue_many([None] * 2_000)
            added = time.monotonic()
            assert await (await quick.enqueue()).result(timeout=30) - added < 1.0
        finally:
            is_hanging = False
            gate.set()


async def test_a_job_runs_no_more_at_once_than_its_own_concurrency(url: str):
    app, now, most = Horai("shop", database_url=url), 0, 0

    @app.job(concurrency=2)
    async def narrow() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.005)
        now -= 1

    async with working(app, EngineSettings()):
        await asyncio.gather(*(h.result(timeout=30) for h in await narrow.enqueue_many([None] * 40)))
    assert most == 2


@pytest.mark.parametrize("wrong", [0, -1, 4001, True, "2", 1.5])
def test_a_concurrency_that_is_no_number_of_calls_is_refused(wrong: Any):
    with pytest.raises(Invalid, match="concurrency: is not a whole number from 1 to 4000"):
        Horai("shop").job(lambda: None, name="narrow", concurrency=wrong)


def test_a_concurrency_beside_isolation_is_refused():
    with pytest.raises(Invalid, match="concurrency: is not accepted together with isolation"):
        Horai("shop").job(lambda: None, name="narrow", concurrency=2, isolation="process")

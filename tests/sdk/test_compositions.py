"""`chain`, `group` and `chord` with real workers and nodes: in transactions, without await, and after a deletion."""

import asyncio
from typing import Any

import harness
import pytest
from callers import Caller
from harness import FAST
from working import working

from horai import Horai, Retry, RunFailed, chain, chord, group
from horai.core.errors import NotFound
from horai.db.pool import Platform
from horai.features.workflow.service import delete_workflow
from horai.sdk import drivers

FORMS = "select name from horai.workflow where deleted_at is null order by name"


class Mill:
    """An application whose jobs are composed."""

    def __init__(self, url: str) -> None:
        self.app = Horai("mill", database_url=url)

        @self.app.job
        async def square(n: int) -> int:
            return n * n

        @self.app.job
        async def add(numbers: list[int], more: int = 0) -> int:
            return sum(numbers) + more

        @self.app.job(retry=Retry(max=0))
        async def fail(n: int) -> int:
            raise ValueError(n)

        self.square, self.add, self.fail = square, add, fail


async def test_a_chord_runs_over_workers_and_a_node_and_its_form_is_defined_once(
    url: str, connection: Platform
) -> None:
    mill = Mill(url)
    async with harness.node(url, FAST), working(mill.app):
        runs = [
            await chord(group(mill.square.s(n) for n in range(size)), mill.add.s(more=1)).enqueue() for size in (3, 40)
        ]
        assert [await run.result("30s") for run in runs] == [6, 1 + sum(n * n for n in range(40))]
        assert [await run.wait("30s") for run in runs] == ["SUCCESS", "SUCCESS"]
    assert len(await connection.fetch(FORMS)) == 1


async def test_two_processes_that_start_the_same_form_at_once_define_it_once(url: str, connection: Platform) -> None:
    mills = [Mill(url) for _ in range(4)]
    await asyncio.gather(*(chain(mill.square.s(2), mill.square.s()).enqueue() for mill in mills))
    assert len(await connection.fetch(FORMS)) == 1
    assert await connection.fetchval("select count(*) from horai.instance_live") == 4


async def test_a_dead_call_is_told_by_the_result_of_the_composition(url: str, connection: Platform) -> None:
    mill = Mill(url)
    async with harness.node(url, FAST), working(mill.app):
        run = await chain(mill.fail.s(1), mill.square.s()).enqueue()
        with pytest.raises(RunFailed, match="'fail' is dead"):
            await run.result("30s")


async def test_a_form_that_was_deleted_is_defined_again(url: str, connection: Platform) -> None:
    mill = Mill(url)
    first = await chain(mill.square.s(2), mill.square.s()).enqueue()
    await delete_workflow((await mill.app.client()).scope, first.run.workflow)
    async with harness.node(url, FAST), working(mill.app):
        again = await chain(mill.square.s(2), mill.square.s()).enqueue()
        assert (await again.result("30s"), again.run.workflow) == (16, first.run.workflow)


def test_a_composition_in_the_transaction_of_the_caller_begins_with_its_commit(
    url: str, caller: Caller, runner: asyncio.Runner
) -> None:
    mill = Mill(url)

    def start() -> Any:
        made = chain(mill.square.s(2), mill.square.s())
        if drivers.is_sync(caller.conn):
            return made.sync.enqueue(conn=caller.conn)
        return runner.run(made.enqueue(conn=caller.conn))

    async def stored() -> int:
        client = await mill.app.client()
        async with client.scope.read() as connection:
            found = await connection.fetchval("select count(*) from horai.instance_live")
        await mill.app.close()
        return found

    caller.begin()
    start()
    caller.rollback()
    assert runner.run(stored()) == 0
    caller.begin()
    run = start()
    caller.commit()
    assert (runner.run(stored()), int(run.id) > 0) == (1, True)


def test_a_composition_without_await(url: str, runner: asyncio.Runner) -> None:
    mill = Mill(url)

    def outside() -> tuple[Any, str, Any]:
        run = chord(group(mill.square.s(2), mill.square.s(3)), mill.add.s()).sync.enqueue()
        return run.result("30s"), run.wait("30s"), run.progress()

    async def inside() -> tuple[Any, str, Any]:
        async with harness.node(url, FAST), working(Mill(url).app):
            return await asyncio.to_thread(outside)

    result, state, progress = runner.run(inside())
    assert (result, state, progress) == (13, "SUCCESS", (3, 3, 0))


async def test_a_run_that_does_not_exist_is_not_found(url: str, connection: Platform) -> None:
    mill = Mill(url)
    run = await chain(mill.square.s(2)).enqueue()
    assert await run.state() == "PENDING"
    run.run.id = "999999"
    with pytest.raises(NotFound):
        await run.state()

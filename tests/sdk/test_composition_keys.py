"""Idempotency keys of compositions: one run for each key, in all processes and transactions, also after a lost COMMIT."""

import asyncio
from typing import Any

import asyncpg
import harness
import pytest
from callers import Caller
from harness import FAST
from working import working

from faults.proxy import Proxy
from horai import Horai, chain, chord, group
from horai.core.errors import Invalid, NotFound
from horai.db.pool import Platform
from horai.operations.enqueue import require_known
from horai.sdk import drivers

RUNS = "select count(*) from horai.instance_live"
OTHER = "has started another composition"


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

        self.square, self.add = square, add

    def twice(self, n: int) -> Any:
        return chain(self.square.s(n), self.square.s())


async def test_the_same_key_starts_one_run_and_later_calls_get_it(url: str, connection: Platform) -> None:
    mill = Mill(url)
    first = await mill.twice(2).enqueue(idempotency_key="order-7")
    async with harness.node(url, FAST), working(mill.app):
        assert await first.result("30s") == 16
        again = await mill.twice(2).enqueue(idempotency_key="order-7")
        assert (again.id, first.duplicate, again.duplicate) == (first.id, False, True)
        assert await again.result("30s") == 16
    assert await connection.fetchval("select count(*) from horai.workflow_run") == 1


async def test_a_key_is_refused_for_another_form_and_for_other_arguments(url: str, connection: Platform) -> None:
    mill = Mill(url)
    await mill.twice(2).enqueue(idempotency_key="order-7")
    for other in (chord(group(mill.square.s(2), mill.square.s(3)), mill.add.s()), mill.twice(3)):
        with pytest.raises(Invalid, match=OTHER):
            await other.enqueue(idempotency_key="order-7")
    assert await connection.fetchval(RUNS) == 1


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_of_a_wrong_length_is_refused(key: str, url: str, connection: Platform) -> None:
    with pytest.raises(Invalid, match="Idempotency-Key"):
        await Mill(url).twice(2).enqueue(idempotency_key=key)
    assert await connection.fetchval(RUNS) == 0


async def test_processes_that_use_one_key_at_once_start_one_run(url: str, connection: Platform) -> None:
    mills = [Mill(url) for _ in range(6)]
    runs = await asyncio.gather(*(mill.twice(2).enqueue(idempotency_key="order-7") for mill in mills))
    assert len({run.id for run in runs}) == 1
    assert sum(not run.duplicate for run in runs) == 1
    assert await connection.fetchval(RUNS) == 1


async def test_a_call_that_is_repeated_after_a_lost_commit_gets_the_run_of_the_first(
    url: str, connection: Platform
) -> None:
    await Mill(url).twice(1).enqueue()  # the form is defined
    async with Proxy(url).listening() as proxy:
        mill = Mill(proxy.url)
        await mill.app.client()
        trap = proxy.cut_after("take_composition_key", at_commit=True)
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, OSError)):
            await mill.twice(2).enqueue(idempotency_key="order-7")
        assert trap.sprung.is_set()
        again = await mill.twice(2).enqueue(idempotency_key="order-7")
        await mill.app.close()
    assert again.duplicate
    assert await connection.fetchval(RUNS) == 2


async def test_a_map_takes_a_key(url: str, connection: Platform) -> None:
    mill = Mill(url)
    runs = [await mill.square.map([1, 2], idempotency_key="m") for _ in range(2)]
    assert runs[0].id == runs[1].id
    with pytest.raises(Invalid, match=OTHER):
        await mill.square.map([1, 2, 3], idempotency_key="m")


def _start(caller: Caller, runner: asyncio.Runner, made: Any, key: str) -> Any:
    if drivers.is_sync(caller.conn):
        return made.sync.enqueue(conn=caller.conn, idempotency_key=key)
    return runner.run(made.enqueue(conn=caller.conn, idempotency_key=key))


def test_a_key_in_the_transaction_of_the_caller_commits_and_rolls_back_with_it(
    url: str, caller: Caller, runner: asyncio.Runner
) -> None:
    mill = Mill(url)

    async def outside() -> tuple[str, bool]:
        run = await mill.twice(2).enqueue(idempotency_key="order-7")
        await mill.app.close()
        return run.id, run.duplicate

    caller.begin()
    _start(caller, runner, mill.twice(2), "order-7")
    caller.rollback()
    caller.begin()
    run = _start(caller, runner, mill.twice(2), "order-7")
    again = _start(caller, runner, mill.twice(2), "order-7")
    with pytest.raises(Invalid, match=OTHER):
        _start(caller, runner, mill.twice(3), "order-7")
    caller.commit()
    assert (run.duplicate, again.duplicate, again.id) == (False, True, run.id)
    assert runner.run(outside()) == (run.id, True), "the key is the same without conn="


async def test_a_call_with_a_key_waits_for_the_transaction_that_has_it(url: str, connection: Platform) -> None:
    """The second process gets the run of the first if that commits, and starts its own if that rolls back."""
    mill, other = Mill(url), Mill(url)
    await mill.twice(1).enqueue()
    for ends in ("commit", "rollback"):
        transaction = connection.transaction()
        await transaction.start()
        run = await mill.twice(2).enqueue(conn=connection, idempotency_key=ends)
        waiting = asyncio.create_task(other.twice(2).enqueue(idempotency_key=ends))
        async with asyncio.timeout(20):
            while not await connection.fetchval(
                "select count(*) from pg_locks where not granted and locktype = 'transactionid'"
            ):
                assert not waiting.done()
        await getattr(transaction, ends)()
        made = await waiting
        assert (made.id == run.id, made.duplicate) == ((ends == "commit"),) * 2


async def test_a_form_that_another_process_defines_meanwhile_counts_as_not_found(
    url: str, connection: Platform
) -> None:
    """The insert has not seen it, and the look for the reason does: the caller defines it and inserts again."""
    mill = Mill(url)
    form = (await mill.twice(2).enqueue()).run.workflow
    scope = (await mill.app.client()).scope
    with pytest.raises(NotFound):
        await require_known(connection, scope.tenant_id, form, [])

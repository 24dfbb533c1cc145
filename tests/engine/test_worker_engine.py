"""A process with functions: their notes are kept, and they are told when no process waits for them any more."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import make
import rows
from databases import Superuser
from harness import FAST
from stages import Recorder

from horai.core.health import EngineHealth
from horai.core.shards import Role
from horai.db import progress
from horai.db.wakeups import Wakeups
from horai.operations import instances
from horai.operations.scope import Scope
from horai.stages import Engine

TARGET = {"type": "worker", "handler": "publish"}


@asynccontextmanager
async def process(url: str, role: Role, executor: Recorder) -> AsyncGenerator[tuple[Engine, Scope]]:
    wakeups = Wakeups()
    settings = replace(FAST, sweep=timedelta(minutes=5), grace=timedelta(milliseconds=100))
    engine = Engine(url, role, {"publish": executor}, wakeups, EngineHealth(), settings, frozenset({role}))
    async with make.scope(url) as scope:
        await engine.start()
        try:
            yield engine, replace(scope, wakeups=wakeups)
        finally:
            executor.gate.set()
            await engine.stop()


async def test_a_function_is_told_at_once_that_another_process_has_cancelled_it(
    url: str, connection: Superuser, runner: asyncio.Runner
):
    executor = Recorder()
    async with process(url, Role.api, executor) as (_, api), process(url, Role.worker, executor) as (worker, _):
        told: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        worker.claim_revoker.listen(lambda *claim: told.put_nowait(claim))
        await rows.until(lambda: _is(worker._listener.is_listening))
        await make.job(api, target=TARGET)
        _, row = await make.put(api, "article:42")
        await rows.until(lambda: _is(bool(executor.calls)))

        await instances.cancel_by_key(api, "publish", "article:42")

        async with asyncio.timeout(30):  # a sweep comes every five minutes
            assert await told.get() == (row.id, executor.calls[0].fence)


async def test_notes_are_stored_while_a_function_runs_and_the_last_ones_when_the_process_stops(
    url: str, connection: Superuser, runner: asyncio.Runner
):
    executor = Recorder()
    async with process(url, Role.worker, executor) as (worker, scope):
        await make.job(scope, target=TARGET)
        _, row = await make.put(scope, "article:42")
        await rows.until(lambda: _is(bool(executor.calls)))
        (call,) = executor.calls

        worker.progress_writer.note(call, 0.5, "half")

        async def is_kept() -> bool:
            return len(await progress.notes_of(connection, row.id, 10)) == 1

        await rows.until(is_kept)
        worker.progress_writer.note(call, 1.0, "goodbye")

    kept = await progress.notes_of(connection, row.id, 10)
    assert [(note.fence, note.message) for note in kept] == [(call.fence, "half"), (call.fence, "goodbye")]


async def _is(truth: bool) -> bool:
    return truth

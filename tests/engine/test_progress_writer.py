"""Notes of functions are written soon, in batches, and wait for a database that is away."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import rows
from databases import Superuser
from stages import Tap

from horai.core.calls import Call, WorkerTarget
from horai.core.health import EngineHealth
from horai.core.progress import WAITING, ProgressNote
from horai.db import nodes, progress
from horai.db.clock import DatabaseClock
from horai.db.pool import connect
from horai.db.stage_connection import StageConnection
from horai.engine import loop
from horai.engine.progress_writer import BATCH, PAUSE, ProgressWriter

SECOND = timedelta(seconds=1)


def call(instance_id: int = 5, fence: int = 2) -> Call:
    now = datetime.now(UTC)
    target = WorkerTarget("publish")
    return Call(instance_id, 1, "publish", "default", None, now, now, 1, fence, now, 0, None, target, None, (), 7)


class Desk:
    """A scribe with its clock and its line."""

    def __init__(self, url: str, now: datetime) -> None:
        self.clock = DatabaseClock()
        self.clock.observe(now, time.monotonic())
        self.line = StageConnection(url, "horai progress_writer", timedelta(seconds=5))
        self.progress_writer = ProgressWriter(self.line, self.clock)

    async def tap(self) -> Tap:
        """Notes what it sends from now on."""
        made = Tap()
        (await self.line.get()).add_query_logger(made.queries.append)
        return made


@asynccontextmanager
async def desk(url: str) -> AsyncGenerator[Desk]:
    connection = await connect(url, "horai test")
    made = Desk(url, await nodes.database_time(connection))
    connection.terminate()
    try:
        yield made
    finally:
        made.line.drop()


async def said(connection: Superuser, instance_id: int = 5) -> list[tuple[float | None, str | None]]:
    return [(note.progress, note.message) for note in await progress.notes_of(connection, instance_id, 10_000)]


@asynccontextmanager
async def running(on: Desk) -> AsyncGenerator[None]:
    task = asyncio.create_task(loop.run(on.progress_writer, on.clock, EngineHealth()))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_note_is_there_soon_after_it_was_left(url: str, connection: Superuser, runner: asyncio.Runner):
    async with desk(url) as on, running(on):
        await asyncio.sleep(0)
        before = await nodes.database_time(connection)

        on.progress_writer.note(call(), 0.5, "half")

        await rows.until(lambda: _is_said(connection, 1))
        (note,) = await progress.notes_of(connection, 5, 10)
        assert (note.fence, note.node, note.attempt, note.progress, note.message) == (2, 7, 1, 0.5, "half")
        assert before - SECOND < note.at < await nodes.database_time(connection) + SECOND


async def _is_said(connection: Superuser, count: int) -> bool:
    return len(await said(connection)) == count


async def test_notes_of_a_moment_are_one_statement_and_the_next_waits_for_its_turn(url: str, connection: Superuser):
    async with desk(url) as on:
        tap = await on.tap()
        now = on.clock.now()
        await on.progress_writer.step(now)
        for number in range(100):
            on.progress_writer.note(call(), None, str(number))

        await on.progress_writer.step(now)
        on.progress_writer.note(call(), 0.1, None)
        on.progress_writer.note(call(), 0.2, None)
        again_at = await on.progress_writer.step(now + PAUSE / 2)

        assert await tap.names() == ["insert_notes"]
        assert again_at == now + PAUSE
        await on.progress_writer.step(again_at)
        assert await tap.names() == ["insert_notes"] * 2
        assert (await said(connection))[-1] == (0.2, None)
        assert len(await said(connection)) == 101


async def test_a_progress_writer_without_notes_opens_no_connection(url: str):
    async with desk(url) as on:
        now = on.clock.now()

        assert await on.progress_writer.step(now) > now + 10 * SECOND
        assert on.line._connection is None


async def test_only_the_first_note_of_a_pause_rouses_the_loop(url: str):
    async with desk(url) as on:
        now = on.clock.now()
        await on.progress_writer.step(now)
        on.progress_writer.note(call(), None, "a")
        await asyncio.sleep(0)
        assert on.progress_writer.signal.is_set()
        on.progress_writer.signal.clear()

        on.progress_writer.note(call(), None, "b")
        await asyncio.sleep(0)
        assert not on.progress_writer.signal.is_set()

        await on.progress_writer.step(now)
        on.progress_writer.note(call(), None, "c")
        await asyncio.sleep(0)
        assert on.progress_writer.signal.is_set()


async def test_a_clock_that_is_set_back_does_not_silence_it(url: str, connection: Superuser):
    async with desk(url) as on:
        now = on.clock.now()
        on.progress_writer.note(call(), None, "a")
        await on.progress_writer.step(now)
        on.progress_writer.note(call(), None, "b")

        again_at = await on.progress_writer.step(now - timedelta(hours=1))
        await on.progress_writer.step(again_at)

        assert again_at == now - timedelta(hours=1) + PAUSE
        assert len(await said(connection)) == 2


async def test_notes_come_from_many_threads_at_once(url: str, connection: Superuser, runner: asyncio.Runner):
    async with desk(url) as on, running(on):

        def talk(number: int) -> None:
            for line in range(100):
                on.progress_writer.note(call(number), None, str(line))

        talking = [threading.Thread(target=talk, args=(number,)) for number in range(1, 9)]
        for thread in talking:
            thread.start()
        await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in talking))

        async def all_said() -> bool:
            return await connection.fetchval("select count(*) from horai.note") == 800

        await rows.until(all_said)
        for number in range(1, 9):
            assert await said(connection, number) == [(None, str(line)) for line in range(100)]


async def test_more_than_a_batch_is_written_in_one_go(url: str, connection: Superuser):
    async with desk(url) as on:
        tap = await on.tap()
        for number in range(1, 2 * BATCH + 2):
            on.progress_writer.note(call(number), None, "x")

        await on.progress_writer.step(on.clock.now())

        assert await tap.names() == ["insert_notes"] * 3
        assert await connection.fetchval("select count(*) from horai.note") == 2 * BATCH + 1


# The database is away


async def test_notes_that_failed_to_be_written_are_written_when_the_database_is_back(
    url: str, connection: Superuser, monkeypatch: pytest.MonkeyPatch
):
    async with desk(url) as on:
        on.progress_writer.note(call(), None, "a")

        async def fails() -> Superuser:
            raise ConnectionResetError("away")

        monkeypatch.setattr(on.line, "get", fails)
        with pytest.raises(ConnectionResetError):
            await on.progress_writer.step(on.clock.now())
        on.progress_writer.note(call(), None, "b")
        monkeypatch.undo()

        await on.progress_writer.step(on.clock.now())

        assert await said(connection) == [(None, "a"), (None, "b")]


async def test_an_answer_that_is_lost_makes_no_note_twice(
    url: str, connection: Superuser, monkeypatch: pytest.MonkeyPatch
):
    async with desk(url) as on:
        on.progress_writer.note(call(), 0.5, "a")
        insert = progress.insert_notes

        async def answer_lost(to: Superuser, batch: list[ProgressNote]) -> None:
            await insert(to, batch)
            raise ConnectionResetError("after the commit")

        monkeypatch.setattr(progress, "insert_notes", answer_lost)
        with pytest.raises(ConnectionResetError):
            await on.progress_writer.step(on.clock.now())
        monkeypatch.undo()

        await on.progress_writer.step(on.clock.now())

        assert await said(connection) == [(0.5, "a")]


async def test_while_the_database_is_away_notes_are_kept_up_to_a_bound_and_the_rest_counted(
    url: str, connection: Superuser, monkeypatch: pytest.MonkeyPatch
):
    async with desk(url) as on:

        async def fails() -> Superuser:
            raise ConnectionResetError("away")

        monkeypatch.setattr(on.line, "get", fails)
        for number in range(1, WAITING + 101):
            on.progress_writer.note(call(number), None, "x")
            if number % 1_000 == 0:
                with pytest.raises(ConnectionResetError):
                    await on.progress_writer.step(on.clock.now())
        monkeypatch.undo()
        await on.progress_writer.step(on.clock.now())

        assert await connection.fetchval("select count(*) from horai.note") == WAITING
        assert on.progress_writer.dropped == 100


async def test_a_note_that_the_database_refuses_does_not_hold_up_the_others(url: str, connection: Superuser):
    await connection.execute(
        "create function refuse() returns trigger language plpgsql as $$ begin"
        " if new.message = 'bad' then raise exception using errcode = '22021'; end if; return new; end $$;"
        "create trigger refuse before insert on horai.note for each row execute function refuse()"
    )
    async with desk(url) as on:
        for message in ("a", "bad", "b"):
            on.progress_writer.note(call(), None, message)

        await on.progress_writer.step(on.clock.now())

        assert await said(connection) == [(None, "a"), (None, "b")]
        assert on.progress_writer.dropped == 1


async def test_the_final_flush_writes_all_waiting_notes_after_a_write_was_cancelled(
    url: str, connection: Superuser, runner: asyncio.Runner
):
    async with desk(url) as on, rows.connections(url, 1) as (holder,):
        writing = await on.line.get()
        async with holder.transaction():
            await holder.execute("lock table horai.note in access exclusive mode")
            on.progress_writer.note(call(), None, "a")
            step = asyncio.create_task(on.progress_writer.step(on.clock.now()))
            await rows.until_blocked(connection, writing)
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
        on.progress_writer.note(call(), None, "b")

        await on.progress_writer.flush()

        assert await said(connection) == [(None, "a"), (None, "b")]


async def test_a_note_after_the_event_loop_was_closed_raises_nothing(url: str):
    async with desk(url) as on:
        await on.progress_writer.step(on.clock.now())
        closed = asyncio.new_event_loop()
        closed.close()
        on.progress_writer._loop = closed

        on.progress_writer.note(call(), None, "too late")

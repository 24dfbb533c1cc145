"""The sweeper finds the rows that lie behind the cursors, and later rows that no wake announced."""

from collections import Counter
from datetime import timedelta

import make
import pytest
import rows
from stages import workbench

from horai.db import claims
from horai.db.claims import LeftBehind
from horai.db.jobs import JobRow
from horai.db.pool import Platform
from horai.engine import sweeper as stage
from horai.engine.sweeper import PAGE

SECOND = timedelta(seconds=1)
SWEEP = timedelta(seconds=31)


async def add_behind(connection: Platform, job: JobRow, first: int, age: str = "0 s") -> None:
    """A row in each shard, as a transaction that took its time leaves them: due before what others have claimed."""
    await connection.execute(
        "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)"
        " select n, $1, now() - $4::text::interval, now(), now(), now(), -n, 1, $2, n % 32"
        " from generate_series($3::bigint, $3::bigint + 31) n",
        job.id,
        job.lane_id,
        first,
        age,
    )


# Behind the cursors


async def test_a_row_that_committed_behind_the_cursor_is_found_by_the_straggler_pass(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (late,):
        job = await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        bench.executor.gate.set()
        async with late.transaction():
            await add_behind(late, job, 900_000)
            await make.many(bench.scope, 200)
            await bench.until_idle(dispatcher)
            await bench.settle()
            assert await bench.states() == {"SUCCESS": 200}
        dispatcher.signal.clear()

        await sweeper.step(bench.clock.now() + SECOND)

        assert dispatcher.signal.is_set()
        await bench.until_idle(dispatcher)
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 232}


async def test_the_straggler_pass_looks_once_after_something_was_claimed_and_not_otherwise(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        tap = await bench.tap(sweeper.line)
        now = bench.clock.now()

        await sweeper.step(now + SECOND)
        assert await tap.names() == []
        await make.many(bench.scope, 3)
        await bench.until_idle(dispatcher)
        await sweeper.step(now + 2 * SECOND)
        await sweeper.step(now + 3 * SECOND)

        assert await tap.names() == ["left_behind"]
        bench.executor.gate.set()
        await bench.settle()


async def test_a_straggler_pass_that_failed_is_made_again(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench, rows.connections(url, 1) as (late,):
        job = await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        async with late.transaction():
            await add_behind(late, job, 900_000)
            await make.many(bench.scope, 64)
            await bench.until_idle(dispatcher)

        async def fails(*_: object) -> list[LeftBehind]:
            raise ConnectionResetError("gone")

        monkeypatch.setattr(claims, "left_behind", fails)
        with pytest.raises(ConnectionResetError):
            await sweeper.step(bench.clock.now() + SECOND)
        monkeypatch.undo()

        await sweeper.step(bench.clock.now() + 2 * SECOND)
        await bench.until_idle(dispatcher)

        assert await bench.states() == {"RUNNING": 96}
        bench.executor.gate.set()
        await bench.settle()


class HandTime:
    def __init__(self) -> None:
        self.now = 100.0
        self.steps = 0.0

    def monotonic(self) -> float:
        self.now += self.steps
        return self.now


async def test_a_pass_that_takes_long_is_followed_by_a_long_rest(url: str, monkeypatch: pytest.MonkeyPatch):
    time = HandTime()
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        monkeypatch.setattr(stage, "time", time)
        tap = await bench.tap(sweeper.line)
        looks: list[int] = []
        for seconds in range(1, 25):
            dispatcher.is_active = True
            time.now, time.steps = 100.0 + seconds, 0.5
            await sweeper.step(bench.clock.now() + SECOND)
            looks.append(len(await tap.names()))

        assert looks[0] == 1
        assert 2 <= looks[-1] <= 4, "a look of half a second or more is made every five seconds or less often"


async def test_a_sweep_finds_what_is_older_than_the_straggler_pass_looks_back(url: str):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await make.many(bench.scope, 64)
        await bench.until_idle(dispatcher)
        await add_behind(bench.connection, job, 900_000, "1 hour")

        await sweeper.step(bench.clock.now() + SECOND)
        await bench.until_idle(dispatcher)
        assert await bench.states() == {"RUNNING": 64, "INIT": 32}
        await sweeper.step(bench.clock.now() + SWEEP)
        await bench.until_idle(dispatcher)

        assert await bench.states() == {"RUNNING": 96}
        bench.executor.gate.set()
        await bench.settle()


async def test_a_sweep_looks_behind_the_cursor_of_a_place_that_never_runs_dry(url: str):
    """It is always in line, and always has more before it than there is room for."""
    async with workbench(url, in_flight=64) as bench:
        job = await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await make.many(bench.scope, 1000)
        await bench.until_idle(dispatcher)
        assert all(dispatcher.is_ready(place) for place in dispatcher.parts.scans.all())
        await add_behind(bench.connection, job, 900_000, "1 hour")

        await sweeper.step(bench.clock.now() + SWEEP)
        bench.executor.gate.set()
        await bench.settle()
        await bench.until_idle(dispatcher)

        assert {call.instance_id for call in await bench.called(128)} >= set(range(900_000, 900_032))
        await bench.settle()


async def test_a_look_at_a_group_of_one_due_does_not_send_the_claimer_back_to_its_beginning(url: str):
    async with workbench(url, in_flight=64) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 1000)
        await bench.connection.execute("update horai.instance_live set due = now()")
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        lanes = dispatcher.parts.scans
        before = [lanes.position(place) for place in lanes.all()]
        assert all(position.id > 0 for position in before)

        await sweeper.step(bench.clock.now() + SWEEP)

        assert [lanes.position(place) for place in lanes.all()] == before
        bench.executor.gate.set()
        await bench.settle()


async def test_a_sweep_goes_on_past_a_page_of_rows_that_are_in_hand(url: str):
    async with workbench(url) as bench:
        job = await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.connection.execute(
            "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)"
            " select 32 * n, $1, now() - interval '1 hour', now(), now(), now(), -n, 1, $2, 0 from generate_series(1, $3::bigint) n",
            job.id,
            job.lane_id,
            PAGE * 2 + 5,
        )
        await bench.until_idle(dispatcher)
        assert await bench.states() == {"RUNNING": PAGE * 2 + 5}
        await add_behind(bench.connection, job, 900_000, "1 minute")
        dispatcher.parts.scans._cursors = {place: (bench.clock.now(), 0) for place in dispatcher.parts.scans.all()}
        tap = await bench.tap(sweeper.line)

        await sweeper.step(bench.clock.now() + SWEEP)
        await bench.until_idle(dispatcher)

        assert Counter(await tap.names()) == {"lanes": 1, "left_behind": 3, "ended_claims": 1}
        assert await bench.states() == {"RUNNING": PAGE * 2 + 5 + 32}
        assert bench.health.released_claims == 0
        bench.executor.gate.set()
        await bench.settle()


# Ahead of the cursors


async def test_F1b_news_of_a_beat_sets_the_timer_of_a_row_that_no_wake_announced(url: str):
    async with workbench(url, timedelta(0)) as bench, make.scope(url) as elsewhere:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        due = bench.clock.now() + timedelta(seconds=40)
        await make.many(elsewhere, 1, at=due)

        sweeper.hear_news()
        assert sweeper.signal.is_set()
        await sweeper.step(bench.clock.now())

        assert abs(await dispatcher.step(bench.clock.now()) - due) <= timedelta(milliseconds=1)


async def test_F1b_news_of_a_lane_that_is_not_known_yet_brings_its_rows(url: str):
    async with workbench(url, timedelta(0)) as bench, make.scope(url) as elsewhere:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        due = bench.clock.now() + timedelta(seconds=40)
        await make.job(elsewhere, "other", queue="other")
        await make.many(elsewhere, 1, job="other", at=due)

        sweeper.hear_news()
        await sweeper.step(bench.clock.now())

        assert abs(await bench.until_idle(dispatcher) - due) <= timedelta(milliseconds=1)


async def test_E7b_without_news_nothing_is_asked_ahead(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)
        tap = await bench.tap(sweeper.line)

        await sweeper.step(bench.clock.now() + SECOND)
        assert await tap.names() == []
        sweeper.hear_news()
        await sweeper.step(bench.clock.now() + SECOND)
        await sweeper.step(bench.clock.now() + 2 * SECOND)

        assert await tap.names() == ["lanes", "next_due"]


async def test_a_look_ahead_that_failed_is_made_again(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        sweeper = bench.sweeper(dispatcher)
        await bench.until_idle(dispatcher)

        async def fails(*_: object) -> list[tuple[int, int, object]]:
            raise ConnectionResetError("gone")

        monkeypatch.setattr(claims, "next_due", fails)
        sweeper.hear_news()
        with pytest.raises(ConnectionResetError):
            await sweeper.step(bench.clock.now() + SECOND)
        monkeypatch.undo()
        tap = await bench.tap(sweeper.line)
        await sweeper.step(bench.clock.now() + 2 * SECOND)

        assert await tap.names() == ["lanes", "next_due"]

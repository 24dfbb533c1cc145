"""When the dispatcher looks for rows, what it asks, and what happens while it looks."""

import asyncio
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import make
import pytest
import rows
from databases import Superuser
from stages import workbench

from horai.db import claim_lanes, claims
from horai.db.claim_lanes import Lane
from horai.db.jobs import JobRow
from horai.db.pool import Platform
from horai.engine import loop
from horai.engine.dispatch.dispatcher import LONGEST_EMPTY_PAUSE, _limit_polls
from horai.engine.dispatch.scans import Scan

SECOND = timedelta(seconds=1)


async def test_a_row_that_was_locked_when_the_claim_passed_is_found_after_its_put_is_ignored(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        await make.job(bench.scope)
        await make.put(bench.scope, "k", version=5)
        await make.many(bench.scope, 200)
        dispatcher = bench.dispatcher()
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where key = 'k' for update")
            await dispatcher.step(bench.clock.now())
            assert await bench.states() == {"RUNNING": 200, "INIT": 1}

        await make.put(bench.scope, "k", version=4)
        assert dispatcher.signal.is_set()
        await dispatcher.step(bench.clock.now() + timedelta(milliseconds=30))

        assert await bench.states() == {"RUNNING": 201}
        bench.executor.gate.set()
        await bench.settle()


async def test_a_lane_that_committed_after_a_younger_one_is_served(url: str):
    """Ids are given before they commit: the lower one may become visible later."""
    async with workbench(url) as bench, rows.connections(url, 1) as (slow,):
        dispatcher = bench.dispatcher()
        transaction = slow.transaction()
        await transaction.start()
        older = await slow.fetchval(
            "insert into horai.lane (tenant_id, queue, priority, handler, inherits) values (1, 'older', 2, '', true) returning id"
        )
        await make.job(bench.scope, "younger", queue="younger")
        await make.many(bench.scope, 1, job="younger")
        await dispatcher.step(bench.clock.now())
        await transaction.commit()

        job = await make.job(bench.scope, "older", queue="older")
        assert job.lane_id == older
        dispatcher.signal.clear()
        await make.many(bench.scope, 1, job="older")
        assert dispatcher.signal.is_set()
        await dispatcher.step(bench.clock.now() + SECOND)

        assert [call.job for call in await bench.called(2)] == ["younger", "older"]
        bench.executor.gate.set()
        await bench.settle()


async def test_a_row_of_the_future_costs_no_claim_before_its_time(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        at = datetime.now(UTC) + timedelta(seconds=20)
        tap = await bench.tap(dispatcher.line)

        await make.many(bench.scope, 64, at=at)
        again = await dispatcher.step(bench.clock.now())

        assert abs((again - at).total_seconds()) < 0.1
        dispatcher.signal.clear()
        await make.many(bench.scope, 64, at=at + timedelta(seconds=1))
        assert not dispatcher.signal.is_set(), "a wake later than the timer costs nothing"
        assert await tap.names() == []


async def test_a_wake_for_a_lane_that_the_node_cannot_run_does_not_wake_the_dispatcher(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope, "workers", target={"type": "worker", "handler": "h"})
        dispatcher = bench.dispatcher()
        await dispatcher.step(bench.clock.now())
        dispatcher.signal.clear()

        await make.many(bench.scope, 5, job="workers")

        assert not dispatcher.signal.is_set()
        await dispatcher.step(bench.clock.now())
        assert await bench.states() == {"INIT": 5}, "an unknown handler waits, it is not discarded"


# What is asked, and when


async def test_a_lane_that_is_new_here_is_asked_what_it_has_and_not_claimed_from_blindly(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.dispatcher()
        tap = await bench.tap(dispatcher.line)

        again = await dispatcher.step(bench.clock.now())

        assert await tap.names() == ["lanes", "next_due"]
        assert again > bench.clock.now() + 30 * SECOND
        await bench.until_idle(dispatcher)
        assert await tap.names() == ["lanes", "next_due"], "with nothing there it asks once"


async def test_a_place_that_gave_all_it_was_asked_for_is_asked_for_more_before_it_is_asked_when(url: str):
    async with workbench(url, poll_batch=1) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 64)
        dispatcher = bench.dispatcher()
        tap = await bench.tap(dispatcher.line)

        await bench.until_idle(dispatcher)

        assert Counter(await tap.names()) == {
            "lanes": 1, "next_due": 2, "claim_due": 3, "jobs_to_run": 1, "callback_settings": 1
        }  # fmt: skip
        assert await bench.states() == {"RUNNING": 64}


async def test_C47_no_scan_brings_more_than_a_poll_batch_at_once(url: str):
    async with workbench(url, in_flight=10_000) as bench:
        job = await make.job(bench.scope)
        await bench.connection.execute(
            "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)"
            " select 32 * n, $1, now(), now(), now(), now(), -n, 1, $2, 0 from generate_series(1, 500) n",
            job.id,
            job.lane_id,
        )
        dispatcher = bench.dispatcher()
        tap = await bench.tap(dispatcher.line)

        await bench.until_idle(dispatcher)

        assert bench.settings.poll_batch == 200
        asked = [query.args[-1] for query in tap.queries if "/* claim_due */" in query.query]
        assert asked == [[200]] * 3
        assert await bench.states() == {"RUNNING": 500}


async def test_a_row_that_cannot_be_claimed_is_looked_at_ever_less_often_until_its_queue_is_woken(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        job = await make.job(bench.scope)
        await make.many(bench.scope, 1)
        dispatcher = bench.dispatcher()
        async with holder.transaction():
            await holder.execute("select from horai.instance_live for update")
            pauses: list[timedelta] = []
            for _ in range(8):
                again = await dispatcher.step(bench.clock.now())
                pauses.append(again - bench.clock.now())
                bench.clock.observe(again, time.monotonic())
            assert pauses[0] < timedelta(milliseconds=5)
            noise = timedelta(milliseconds=5)
            assert all(sooner < later + noise for sooner, later in pairwise(pauses))
            assert LONGEST_EMPTY_PAUSE * 0.8 < pauses[-1] <= LONGEST_EMPTY_PAUSE + timedelta(milliseconds=2)
            queue_id = await bench.connection.fetchval("select queue_id from horai.lane where id = $1", job.lane_id)
            dispatcher.signal.clear()

            dispatcher.wake_queue(queue_id)

            assert dispatcher.signal.is_set()
            first = await dispatcher.step(bench.clock.now())
            assert first - bench.clock.now() < timedelta(milliseconds=50)
        bench.clock.observe(first, time.monotonic())
        bench.executor.gate.set()
        await bench.until_idle(dispatcher)
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 1}


async def test_a_dispatcher_that_drains_claims_nothing(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 3)
        dispatcher = bench.dispatcher()
        dispatcher.is_draining = True
        tap = await bench.tap(dispatcher.line)

        await dispatcher.step(bench.clock.now())

        assert await tap.names() == []
        assert await bench.states() == {"INIT": 3}


# What happens while it looks


async def test_a_change_of_a_queue_during_the_look_at_the_lanes_is_not_missed(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await bench.set_queue(paused=True)
        await make.many(bench.scope, 3)
        dispatcher = bench.dispatcher()
        real = claim_lanes.lanes

        async def is_overtaken(connection: Platform) -> list[Lane]:
            found = await real(connection)
            await bench.set_queue()
            return found

        monkeypatch.setattr(claim_lanes, "lanes", is_overtaken)
        await dispatcher.step(bench.clock.now())
        monkeypatch.undo()
        assert await bench.states() == {"INIT": 3}

        again = await dispatcher.step(bench.clock.now())
        assert again <= bench.clock.now() + SECOND
        await dispatcher.step(again)

        assert await bench.states() == {"RUNNING": 3}


async def test_a_place_that_becomes_unknown_while_it_is_asked_about_is_asked_about_again(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        dispatcher = bench.deaf_dispatcher()
        real = claims.next_due

        async def is_overtaken(*arguments: object) -> list[tuple[int, int, list[datetime]]]:
            found = await real(*arguments)  # pyright: ignore[reportArgumentType]
            monkeypatch.undo()
            await make.many(bench.scope, 40)
            dispatcher.rescan_all()
            return found

        monkeypatch.setattr(claims, "next_due", is_overtaken)

        await bench.until_idle(dispatcher)

        assert await bench.states() == {"RUNNING": 40}
        assert dispatcher.is_ready(Scan(0, 1)) is False


def test_a_place_gives_no_more_than_its_poll_and_the_shares_stay_what_they_were():
    heavy, light = Scan(0, 1), Scan(0, 2)

    assert _limit_polls([(heavy, 750), (light, 250)], 200) == [(heavy, 200), (light, 66)]
    assert _limit_polls([(heavy, 150), (light, 50)], 200) == [(heavy, 150), (light, 50)]
    assert _limit_polls([(heavy, 1000), (light, 1)], 200)[1] == (light, 1), "every scan keeps at least one row"


# The due times that are known ahead


async def add_to_a_shard(connection: Superuser, job: JobRow, first: int, *after: timedelta) -> datetime:
    """Add rows to shard 0, due after these times from now, and announce none. Return the database's time."""
    now = await connection.fetchval("select clock_timestamp()")
    await connection.execute(
        "insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)"
        " select 32 * ($3 + n), $1, at, at, at, at, -$3 - n, 1, $2, 0 from unnest($4::timestamptz[]) with ordinality as due (at, n)",
        job.id,
        job.lane_id,
        first,
        [now + each for each in after],
    )
    return now


async def test_a_scan_with_rows_at_short_distances_is_asked_once_for_several(url: str):
    async with workbench(url, timedelta(0)) as bench:
        job = await make.job(bench.scope)
        now = await add_to_a_shard(bench.connection, job, 0, *(0.09 * n * SECOND for n in range(10)))
        dispatcher = bench.deaf_dispatcher()
        tap = await bench.tap(dispatcher.line)

        while (again := await dispatcher.step(bench.clock.now())) < bench.clock.now() + 10 * SECOND:
            await loop.wait_until(asyncio.Event(), bench.clock, again)

        names = Counter(await tap.names())
        assert await bench.states() == {"RUNNING": 10}
        assert names["next_due"] <= 3, "for the first eight, for the last two, and for the end"
        assert all(call.execute_time >= now for call in await bench.called(10))


async def test_a_row_whose_wake_was_lost_does_not_wait_behind_due_times_that_were_known_ahead(url: str):
    async with workbench(url, in_flight=2) as bench:
        job = await make.job(bench.scope)
        now = await add_to_a_shard(bench.connection, job, 0, *[timedelta(0)] * 3, 0.95 * SECOND)
        dispatcher = bench.deaf_dispatcher()
        await dispatcher.step(bench.clock.now())
        assert dispatcher.is_ready(Scan(0, job.lane_id)), "the third row waits for room"
        await add_to_a_shard(bench.connection, job, 10, 0.5 * SECOND)
        dispatcher.rescan_all()
        bench.executor.gate.set()
        await bench.settle()

        again = await dispatcher.step(bench.clock.now())

        assert again < now + 0.9 * SECOND or "INIT" not in await bench.states()

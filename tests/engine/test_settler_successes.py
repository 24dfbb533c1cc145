"""The settler writes successes in one statement, and gives the slots of ended calls back."""

import time
from datetime import UTC, datetime, timedelta

import asyncpg
import make
import pytest
import rows
from held_claims import hold
from stages import Workbench, workbench

from horai.core.limits import SHARDS
from horai.core.outcome import Bury, Complete, Decision, Release, RetryAt
from horai.core.wakes import QueueWake
from horai.db import claims, queues
from horai.db.claims import Claim, ClaimedBy, Position
from horai.db.pool import LOOP_LOCK_TIMEOUT
from horai.engine.settler import Settlement

HOUR = timedelta(hours=1)


async def hold_seated(bench: Workbench, count: int) -> tuple[int, list[Claim]]:
    """A queue that is full, and the claims in hand that sit in its slots."""
    await make.job(bench.scope)
    await make.many(bench.scope, count)
    queue_id = await bench.set_queue(max_concurrency=count)
    scans = [Position(s, lane, make.LONG_AGO, -1) for lane in await make.lanes(bench.connection) for s in range(SHARDS)]
    by = ClaimedBy(bench.lease.incarnation, 1, datetime.now(UTC))
    claimed = await queues.claim_limited(bench.connection, by, queue_id, scans, count)
    bench.in_flight.add(claimed)
    return queue_id, [row.held for row in claimed]


async def taken_slots(bench: Workbench) -> int:
    return await bench.connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")


# Successes, which most are


async def test_successes_are_one_statement_and_no_transaction(url: str):
    async with workbench(url) as bench:
        for each in await hold(bench, 300):
            bench.settler.submit(Settlement(each, Complete()))
        tap = await bench.tap(bench.settler.line)

        await bench.settler.step(bench.clock.now())

        assert await tap.names() == ["finish_if_running"]
        assert await bench.states() == {"SUCCESS": 300}
        assert (len(bench.in_flight), bench.health.settled) == (0, 300)


async def test_the_output_of_a_success_is_kept_and_its_neighbours_have_none(url: str):
    async with workbench(url) as bench:
        held = await hold(bench, 3)
        for each, output in zip(held, (None, '{"n": 1}', None), strict=True):
            bench.settler.submit(Settlement(each, Complete(output)))

        await bench.settler.step(bench.clock.now())

        found = await bench.connection.fetch("select id, result from horai.instance_history where result is not null")
        assert [tuple(row) for row in found] == [(held[1].id, '{"n": 1}')]


async def test_a_row_locked_by_another_transaction_does_not_delay_the_other_successes_of_its_batch(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        held = await hold(bench, 100)
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", held[50].id)
            for each in held:
                bench.settler.submit(Settlement(each, Complete()))
            started = time.monotonic()
            await bench.settler.step(bench.clock.now())

            assert time.monotonic() - started < LOOP_LOCK_TIMEOUT.total_seconds(), "the wait for it is bounded"
            assert await bench.states() == {"SUCCESS": 99, "RUNNING": 1}
            assert bench.in_flight.known() == {(held[50].id, held[50].fence)}
        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 100}
        assert bench.health.late_results == 0


async def test_a_stale_success_among_good_ones_is_kept_as_late_and_changes_nothing(url: str):
    async with workbench(url) as bench:
        held = await hold(bench, 10)
        await claims.fail_if_running(bench.connection, [(held[3], RetryAt(HOUR, "NODE_LOST", "lost"))])
        for each in held:
            bench.settler.submit(Settlement(each, Complete()))

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 9, "FAIL": 1}
        assert (bench.health.late_results, bench.health.settled, len(bench.in_flight)) == (1, 9, 0)
        late = await bench.connection.fetch("select instance_id, outcome from horai.attempt where late")
        assert [tuple(row) for row in late] == [(held[3].id, "SUCCESS")]


async def test_claims_of_an_earlier_incarnation_are_settled_with_those_of_the_present_one(url: str):
    """A node that was fenced and has a new incarnation may still have outcomes of the old one to report."""
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 4)
        nodes = [await make.node(bench.connection), bench.lease.incarnation]
        scans = [Position(s, lane, make.LONG_AGO, -1) for lane in await make.lanes(bench.connection) for s in range(32)]
        for node, shards in zip(nodes, (scans[:2], scans[2:]), strict=True):
            by = ClaimedBy(node, 1, datetime.now(UTC))
            for claimed in [await claims.claim_due(bench.connection, by, shards, [9] * len(shards))]:
                bench.in_flight.add(claimed)
                for row in claimed:
                    bench.settler.submit(Settlement(row.held, Complete()))
        assert {node for (node,) in await bench.connection.fetch("select node from horai.instance_live")} == set(nodes)

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 4}
        assert (len(bench.in_flight), bench.health.late_results) == (0, 0)


async def test_a_table_that_is_held_for_a_while_makes_no_outcome_unstorable(url: str):
    """A partition that is made, an index: the settler does not wait for it, and tries again."""
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        held = await hold(bench, 3)
        decisions: list[Decision] = [Complete(), RetryAt(HOUR, "X", "x"), Bury("X", "x")]
        async with holder.transaction():
            await holder.execute("lock table horai.instance_history in access exclusive mode")
            for each, decision in zip(held, decisions, strict=True):
                bench.settler.submit(Settlement(each, decision))
            started, now = time.monotonic(), bench.clock.now()
            assert await bench.settler.step(now) > now
            assert time.monotonic() - started < LOOP_LOCK_TIMEOUT.total_seconds()
            assert bench.health.unsettled == 3

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1, "FAIL": 1, "DEAD": 1}
        assert await bench.connection.fetchval("select error_code from horai.dead_letter") == "X"


NO_FAULT_OF_THE_ROW = {"disk full": "53100", "cancelled": "57014", "read-only": "25006", "serialization": "40001"}


@pytest.mark.parametrize("trouble", NO_FAULT_OF_THE_ROW.values(), ids=NO_FAULT_OF_THE_ROW.keys())
async def test_a_database_that_cannot_write_for_now_makes_no_outcome_unstorable(url: str, trouble: str):
    """The outcome is fine, and it waits."""
    async with workbench(url) as bench:
        for each in await hold(bench, 2):
            bench.settler.submit(Settlement(each, Bury("X", "x")))
        await bench.connection.execute(
            "create function public.refuse() returns trigger language plpgsql as $$"
            f" begin raise exception 'for now' using errcode = '{trouble}'; end $$;"
            " create trigger refuse before insert on horai.dead_letter for each row"
            " when (new.error_code = 'X') execute function public.refuse()"
        )
        with pytest.raises(asyncpg.PostgresError):
            await bench.settler.step(bench.clock.now())
        assert await bench.states() == {"RUNNING": 2}
        await bench.connection.execute("drop trigger refuse on horai.dead_letter")
        bench.settler.line.drop()

        await bench.settler.step(bench.clock.now())

        codes = await bench.connection.fetch("select error_code from horai.dead_letter")
        assert [code for (code,) in codes] == ["X", "X"]


# Slots

ENDS: dict[str, Decision] = {
    "success": Complete(),
    "failure": RetryAt(HOUR, "X", "x"),
    "dead": Bury("X", "x"),
    "given back": Release(HOUR),
}


@pytest.mark.parametrize("decision", ENDS.values(), ids=ENDS.keys())
async def test_the_end_of_a_call_frees_its_slot_and_wakes_its_queue(url: str, decision: Decision):
    async with workbench(url) as bench:
        queue_id, held = await hold_seated(bench, 3)
        woken: list[int] = []
        bench.scope.wakeups.subscribe(QueueWake, lambda wake: woken.append(wake.queue_id))
        bench.settler.submit(Settlement(held[0], decision))

        await bench.settler.step(bench.clock.now())

        assert await taken_slots(bench) == 2
        assert woken == [queue_id]
        assert len(bench.in_flight) == 2


async def test_a_slot_is_freed_though_the_row_has_moved_on(url: str):
    async with workbench(url) as bench:
        queue_id, (held,) = await hold_seated(bench, 1)
        await claims.fail_if_running(bench.connection, [(held, RetryAt(HOUR, "NODE_LOST", "lost"))])
        assert await taken_slots(bench) == 1, "the call goes on"
        woken: list[int] = []
        bench.scope.wakeups.subscribe(QueueWake, lambda wake: woken.append(wake.queue_id))
        bench.settler.submit(Settlement(held, Complete()))

        await bench.settler.step(bench.clock.now())

        assert await taken_slots(bench) == 0
        assert woken == [queue_id]
        assert bench.health.late_results == 1


async def test_a_permit_is_freed_even_if_another_transaction_locks_the_row(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        _, (held,) = await hold_seated(bench, 1)
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", held.id)
            bench.settler.submit(Settlement(held, Complete()))
            await bench.settler.step(bench.clock.now())

            assert await taken_slots(bench) == 0
            assert await bench.states() == {"RUNNING": 1}
        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1}


async def test_a_locked_permit_buries_no_success_and_does_not_delay_other_queues(url: str):
    """A change of a queue locks all its permits for a moment."""
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        _, held = await hold_seated(bench, 3)
        await make.job(bench.scope, "other", queue="other")
        await make.many(bench.scope, 3, job="other")
        others = await make.claim(bench.connection, bench.lease.incarnation, claim_id=2)
        bench.in_flight.add(others)
        async with holder.transaction():
            await holder.execute("select from horai.queue_slot for update")
            for each in (*held, *(row.held for row in others)):
                bench.settler.submit(Settlement(each, Complete()))
            bench.settler.submit(Settlement(others[0].held._replace(fence=99), Complete()))
            now = bench.clock.now()
            started = time.monotonic()
            again = await bench.settler.step(now)

            assert time.monotonic() - started < LOOP_LOCK_TIMEOUT.total_seconds()
            assert again >= now
            assert await bench.states() == {"SUCCESS": 3, "RUNNING": 3}
        while bench.health.unsettled:
            await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 6}
        assert await bench.connection.fetchval("select count(*) from horai.dead_letter") == 0
        assert (await taken_slots(bench), len(bench.in_flight)) == (0, 0)

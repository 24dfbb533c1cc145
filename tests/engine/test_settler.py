"""The settler, step by step: an outcome is kept until the database has taken it."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import asyncpg
import make
import pytest
import rows
from stages import Workbench, workbench

from horai.core.outcome import Bury, Complete, Decision, Release, RetryAt
from horai.core.settings import SHARDS
from horai.core.states import State
from horai.db import claims, queues, settlements
from horai.db.claims import Claim, ClaimedBy, Position
from horai.db.pool import GONE, LOOP_LOCK_TIMEOUT, Dedicated
from horai.db.settlements import SettledRows
from horai.db.stage_connection import StageConnection
from horai.engine.settler import LOCK_TIMEOUT, UNSTORABLE, Settlement, Settler

HOUR = timedelta(hours=1)


async def hold(bench: Workbench, count: int) -> list[Claim]:
    """Claims in hand."""
    await make.job(bench.scope)
    await make.many(bench.scope, count)
    claimed = await make.claim(bench.connection, bench.keeper.incarnation)
    bench.holdings.add(claimed)
    return [row.held for row in claimed]


async def hold_seated(bench: Workbench, count: int) -> tuple[int, list[Claim]]:
    """A queue that is full, and the claims in hand that sit in its slots."""
    await make.job(bench.scope)
    await make.many(bench.scope, count)
    queue_id = await bench.set_queue(max_concurrency=count)
    scans = [Position(s, lane, make.LONG_AGO, -1) for lane in await make.lanes(bench.connection) for s in range(SHARDS)]
    by = ClaimedBy(bench.keeper.incarnation, 1, datetime.now(UTC))
    claimed = await queues.claim_limited(bench.connection, by, queue_id, scans, count)
    bench.holdings.add(claimed)
    return queue_id, [row.held for row in claimed]


async def taken_slots(bench: Workbench) -> int:
    return await bench.connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")


def cut_before(monkeypatch: pytest.MonkeyPatch, bench: Workbench) -> None:
    """The connection is lost when the transaction of a batch begins."""
    real = settlements.apply

    async def is_cut(connection: Dedicated, batch: Sequence[tuple[Claim, Decision]]) -> SettledRows:
        await bench.connection.execute("select pg_terminate_backend($1, 5000)", connection.get_server_pid())
        return await real(connection, batch)

    monkeypatch.setattr(settlements, "apply", is_cut)


async def test_outcomes_are_written_and_let_go(url: str):
    async with workbench(url) as bench:
        held = await hold(bench, 4)
        decisions: list[Decision] = [Complete('{"n": 1}'), RetryAt(HOUR, "X", "x"), Bury("X", "x"), Release(HOUR)]
        for each, decision in zip(held, decisions, strict=True):
            bench.settler.submit(Settlement(each, decision))
        assert bench.settler.signal.is_set()

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1, "FAIL": 1, "DEAD": 1, "INIT": 1}
        assert (len(bench.holdings), bench.vitals.unsettled, bench.vitals.retry_backlog) == (0, 0, 1)
        assert bench.vitals.settled == 3, "a release is no outcome"
        assert bench.vitals.success_rate(time.monotonic()) == pytest.approx(1 / 3)


POISON: dict[str, Decision] = {
    "output that is not JSON": Complete("{bad"),
    "NUL in a message": RetryAt(HOUR, "X", "a\x00b"),
    "NUL in a code": Bury("X\x00", "x"),
    "half a character": RetryAt(HOUR, "X", "\ud800"),
    "a delay beyond the calendar": RetryAt(timedelta(days=300_000_000), "X", "x"),
}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
async def test_one_poisoned_outcome_does_not_fail_its_batch_of_five_hundred(url: str, poison: Decision):
    async with workbench(url) as bench:
        held = await hold(bench, 500)
        for number, each in enumerate(held):
            bench.settler.submit(Settlement(each, poison if number == 250 else Complete()))

        await bench.settler.step(bench.clock.now())

        assert len(bench.holdings) == 0
        assert await bench.states() == {"SUCCESS": 499, "DEAD": 1}
        letter = await bench.connection.fetchrow("select instance_id, error_code from horai.dead_letter")
        assert letter is not None
        assert tuple(letter) == (held[250].id, UNSTORABLE)


async def test_a_locked_row_is_tried_again_and_holds_nobody_up(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        held = await hold(bench, 3)
        bench.settler.submit(Settlement(held[0], Complete()))
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", held[0].id)
            started = time.monotonic()
            now = bench.clock.now()
            assert await bench.settler.step(now) > now, "and it is not tried in a hot loop"
            for each in held[1:]:
                bench.settler.submit(Settlement(each, Complete()))
                await bench.settler.step(bench.clock.now())
            assert time.monotonic() - started < 4, "nobody waited for a lock"

            assert await bench.states() == {"RUNNING": 1, "SUCCESS": 2}
            assert bench.vitals.unsettled == 1

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 3}
        assert len(bench.holdings) == 0


async def test_a_batch_full_of_locked_rows_does_not_stand_before_the_others(url: str):
    async with workbench(url, settle_batch=5) as bench, rows.connections(url, 1) as (holder,):
        held = await hold(bench, 12)
        async with holder.transaction():
            await holder.execute(
                "select from horai.instance_live where id = any($1::bigint[]) for update", [h.id for h in held[:7]]
            )
            for each in held:
                bench.settler.submit(Settlement(each, Complete()))
            for _ in range(4):
                await bench.settler.step(bench.clock.now())

            assert await bench.states() == {"RUNNING": 7, "SUCCESS": 5}


async def test_outcomes_outlive_a_lost_connection(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        (held,) = await hold(bench, 1)
        bench.settler.submit(Settlement(held, RetryAt(HOUR, "X", "x")))
        cut_before(monkeypatch, bench)
        with pytest.raises((*GONE, asyncpg.PostgresError, asyncpg.InternalClientError)):
            await bench.settler.step(bench.clock.now())
        assert bench.vitals.unsettled == 1
        assert bench.holdings.find(held.id, held.fence) == held
        monkeypatch.undo()
        bench.settler.line.drop()
        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"FAIL": 1}
        assert len(bench.holdings) == 0


async def test_a_connection_lost_between_the_successes_and_the_rest_makes_nothing_late(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        held = await hold(bench, 6)
        for each in held[:4]:
            bench.settler.submit(Settlement(each, Complete()))
        for each in held[4:]:
            bench.settler.submit(Settlement(each, RetryAt(HOUR, "X", "x")))
        cut_before(monkeypatch, bench)
        with pytest.raises((*GONE, asyncpg.PostgresError, asyncpg.InternalClientError)):
            await bench.settler.step(bench.clock.now())
        assert await bench.states() == {"SUCCESS": 4, "RUNNING": 2}
        monkeypatch.undo()
        bench.settler.line.drop()

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 4, "FAIL": 2}
        assert (bench.vitals.late_results, bench.vitals.unsettled, len(bench.holdings)) == (0, 0, 0)
        assert bench.vitals.settled == 6, "and each is counted once"
        assert await bench.connection.fetchval("select count(*) from horai.attempt where late") == 0


async def test_a_lost_answer_to_the_commit_is_neither_doubled_nor_late(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        held = await hold(bench, 3)
        decisions: list[Decision] = [Complete(), RetryAt(HOUR, "X", "x"), Bury("X", "x")]
        for each, decision in zip(held, decisions, strict=True):
            bench.settler.submit(Settlement(each, decision))
        real, finish = settlements.apply, claims.finish_if_running

        async def loses_the_answer(_: Dedicated, batch: Sequence[tuple[Claim, Decision]]) -> SettledRows:
            await real(bench.connection, batch)
            raise ConnectionResetError("after the commit")

        async def loses_the_first(
            connection: Dedicated, node: int, batch: Sequence[tuple[Claim, Complete]]
        ) -> set[int]:
            await finish(connection, node, batch)
            return set()

        monkeypatch.setattr(settlements, "apply", loses_the_answer)
        monkeypatch.setattr(claims, "finish_if_running", loses_the_first)
        with pytest.raises(ConnectionResetError):
            await bench.settler.step(bench.clock.now())
        monkeypatch.undo()
        before = await rows.everything(bench.connection)
        bench.settler.line.drop()

        await bench.settler.step(bench.clock.now())

        assert await rows.everything(bench.connection) == before
        assert bench.vitals.late_results == 0
        assert len(bench.holdings) == 0


async def test_an_outcome_whose_row_has_moved_on_is_kept_as_late(url: str):
    async with workbench(url) as bench:
        (held,) = await hold(bench, 1)
        await claims.fail_if_running(bench.connection, [(held, RetryAt(HOUR, "NODE_LOST", "lost"))])
        bench.settler.submit(Settlement(held, Complete()))

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"FAIL": 1}
        assert bench.vitals.late_results == 1
        assert len(bench.holdings) == 0
        late = await bench.connection.fetch("select attempt, outcome from horai.attempt where late")
        assert [tuple(row) for row in late] == [(1, "SUCCESS")]


@pytest.mark.parametrize("is_quiet", [True, False])
async def test_a_quiet_outcome_and_a_release_leave_no_late_result(url: str, is_quiet: bool):
    async with workbench(url) as bench:
        (held,) = await hold(bench, 1)
        await claims.cancel_if_running(bench.connection, [held])
        bench.settler.submit(Settlement(held, Complete() if is_quiet else Release(), is_quiet))

        await bench.settler.step(bench.clock.now())

        assert bench.vitals.late_results == 0
        assert await bench.connection.fetchval("select count(*) from horai.attempt") == 0
        assert len(bench.holdings) == 0


async def test_X17_an_old_claim_does_not_settle_the_new_attempt(url: str):
    async with workbench(url) as bench:
        (old,) = await hold(bench, 1)
        await claims.release_if_running(bench.connection, [(old, Release())])
        (new,) = await make.claim(bench.connection, bench.keeper.incarnation)
        bench.settler.submit(Settlement(old, Complete()))

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"RUNNING": 1}
        found = await claims.running_by_fence(bench.connection, 1, new.held.id, new.held.fence)
        assert found is not None
        assert found._replace(claimed_at=None) == new.held._replace(claimed_at=None)


async def test_a_retry_wakes_its_lane(url: str):
    async with workbench(url) as bench:
        (held,) = await hold(bench, 1)
        woken: list[tuple[int | None, int]] = []
        bench.scope.wakeups.listen(lambda shard, lane, _: woken.append((shard, lane)))
        bench.settler.submit(Settlement(held, RetryAt(HOUR, "X", "x")))

        await bench.settler.step(bench.clock.now())

        assert woken == [(held.id % SHARDS, lane) for lane in await make.lanes(bench.connection)]


async def test_with_nothing_to_do_it_waits_for_its_signal(url: str):
    async with workbench(url) as bench:
        assert await bench.settler.step(bench.clock.now()) > bench.clock.now() + timedelta(seconds=30)
        assert State.RUNNING.name not in await bench.states()


async def test_C18_an_idle_settler_has_its_statement_planned_before_the_first_outcome_comes(url: str):
    async with workbench(url) as bench:
        await bench.settler.step(bench.clock.now())
        await bench.settler.step(bench.clock.now())

        line = await bench.settler.line.get()
        prepared = "select generic_plans from pg_prepared_statements where statement like '/* finish_if_running */%'"
        assert await line.fetchval(prepared) == 1, "once for each connection"


async def test_a_stale_and_a_fresh_outcome_of_one_instance_are_told_apart_in_one_batch(url: str):
    async with workbench(url) as bench:
        (stale,) = await hold(bench, 1)
        released = [(stale, Release())]
        await settlements.apply(bench.connection, released)
        (again,) = await make.claim(bench.connection, bench.keeper.incarnation, claim_id=2)
        bench.holdings.add([again])
        bench.settler.submit(Settlement(stale, RetryAt(HOUR, "TIMEOUT", "the old attempt")))
        bench.settler.submit(Settlement(again.held, Complete()))
        await bench.settler.step(bench.clock.now())
        assert bench.vitals.unsettled == 1, "one of each instance at a time"

        while bench.vitals.unsettled:
            await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1}
        assert (len(bench.holdings), bench.vitals.late_results) == (0, 1)


# Successes, which most are


async def test_successes_are_one_statement_and_no_transaction(url: str):
    async with workbench(url) as bench:
        for each in await hold(bench, 300):
            bench.settler.submit(Settlement(each, Complete()))
        tap = await bench.tap(bench.settler.line)

        await bench.settler.step(bench.clock.now())

        assert await tap.names() == ["finish_if_running"]
        assert await bench.states() == {"SUCCESS": 300}
        assert (len(bench.holdings), bench.vitals.settled) == (0, 300)


async def test_the_output_of_a_success_is_kept_and_its_neighbours_have_none(url: str):
    async with workbench(url) as bench:
        held = await hold(bench, 3)
        for each, output in zip(held, (None, '{"n": 1}', None), strict=True):
            bench.settler.submit(Settlement(each, Complete(output)))

        await bench.settler.step(bench.clock.now())

        found = await bench.connection.fetch("select id, result from horai.instance_history where result is not null")
        assert [tuple(row) for row in found] == [(held[1].id, '{"n": 1}')]


async def test_a_row_that_somebody_holds_does_not_keep_the_other_successes_of_its_batch(url: str):
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
            assert bench.holdings.known() == {(held[50].id, held[50].fence)}
        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 100}
        assert bench.vitals.late_results == 0


async def test_a_stale_success_among_good_ones_is_kept_as_late_and_changes_nothing(url: str):
    async with workbench(url) as bench:
        held = await hold(bench, 10)
        await claims.fail_if_running(bench.connection, [(held[3], RetryAt(HOUR, "NODE_LOST", "lost"))])
        for each in held:
            bench.settler.submit(Settlement(each, Complete()))

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 9, "FAIL": 1}
        assert (bench.vitals.late_results, bench.vitals.settled, len(bench.holdings)) == (1, 9, 0)
        late = await bench.connection.fetch("select instance_id, outcome from horai.attempt where late")
        assert [tuple(row) for row in late] == [(held[3].id, "SUCCESS")]


async def test_claims_of_an_earlier_incarnation_are_settled_with_those_of_the_present_one(url: str):
    """A node that was fenced and has a new incarnation may still have outcomes of the old one to report."""
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 4)
        nodes = [await make.node(bench.connection), bench.keeper.incarnation]
        scans = [Position(s, lane, make.LONG_AGO, -1) for lane in await make.lanes(bench.connection) for s in range(32)]
        for node, shards in zip(nodes, (scans[:2], scans[2:]), strict=True):
            by = ClaimedBy(node, 1, datetime.now(UTC))
            for claimed in [await claims.claim_due(bench.connection, by, shards, [9] * len(shards))]:
                bench.holdings.add(claimed)
                for row in claimed:
                    bench.settler.submit(Settlement(row.held, Complete()))
        assert {node for (node,) in await bench.connection.fetch("select node from horai.instance_live")} == set(nodes)

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 4}
        assert (len(bench.holdings), bench.vitals.late_results) == (0, 0)


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
            assert bench.vitals.unsettled == 3

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
        bench.scope.wakeups.listen_to_queues(woken.append)
        bench.settler.submit(Settlement(held[0], decision))

        await bench.settler.step(bench.clock.now())

        assert await taken_slots(bench) == 2
        assert woken == [queue_id]
        assert len(bench.holdings) == 2


async def test_a_slot_is_freed_though_the_row_has_moved_on(url: str):
    async with workbench(url) as bench:
        queue_id, (held,) = await hold_seated(bench, 1)
        await claims.fail_if_running(bench.connection, [(held, RetryAt(HOUR, "NODE_LOST", "lost"))])
        assert await taken_slots(bench) == 1, "the call goes on"
        woken: list[int] = []
        bench.scope.wakeups.listen_to_queues(woken.append)
        bench.settler.submit(Settlement(held, Complete()))

        await bench.settler.step(bench.clock.now())

        assert await taken_slots(bench) == 0
        assert woken == [queue_id]
        assert bench.vitals.late_results == 1


async def test_a_slot_is_freed_though_somebody_holds_the_row(url: str):
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


async def test_a_slot_that_somebody_holds_makes_no_success_unstorable_and_holds_no_other_queue_up(url: str):
    """Whoever changes a queue holds all its slots for a while."""
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        _, held = await hold_seated(bench, 3)
        await make.job(bench.scope, "other", queue="other")
        await make.many(bench.scope, 3, job="other")
        others = await make.claim(bench.connection, bench.keeper.incarnation, claim_id=2)
        bench.holdings.add(others)
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
        while bench.vitals.unsettled:
            await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 6}
        assert await bench.connection.fetchval("select count(*) from horai.dead_letter") == 0
        assert (await taken_slots(bench), len(bench.holdings)) == (0, 0)


# Two that share the work


def mate_of(bench: Workbench) -> Settler:
    line = StageConnection(bench.url, "horai settler 2", timedelta(seconds=5), LOCK_TIMEOUT)
    bench.lines.append(line)
    return bench.settler.mate(line)


async def test_two_settlers_share_the_work_and_write_nothing_twice(url: str):
    async with workbench(url, settle_batch=50) as bench:
        held = await hold(bench, 500)
        mate = mate_of(bench)
        taps = [await bench.tap(settler.line) for settler in (bench.settler, mate)]
        for number, each in enumerate(held):
            bench.settler.submit(Settlement(each, Complete() if number % 7 else RetryAt(HOUR, "X", "x")))

        async with asyncio.timeout(30):
            while len(bench.holdings):
                await asyncio.gather(bench.settler.step(bench.clock.now()), mate.step(bench.clock.now()))

        failed = len(held[::7])
        assert await bench.states() == {"SUCCESS": 500 - failed, "FAIL": failed}
        assert (bench.vitals.late_results, bench.vitals.unsettled, bench.vitals.settled) == (0, 0, 500)
        assert all([await tap.names() for tap in taps]), "both have written"


async def test_the_second_settler_is_roused_when_there_is_more_than_a_batch(url: str):
    async with workbench(url, settle_batch=10) as bench:
        mate = mate_of(bench)
        held = await hold(bench, 10)
        for each in held[:9]:
            bench.settler.submit(Settlement(each, Complete()))
        assert bench.settler.signal.is_set()
        assert not mate.signal.is_set()

        bench.settler.submit(Settlement(held[9], Complete()))

        assert mate.signal.is_set()


async def test_a_stale_and_a_fresh_outcome_are_told_apart_though_two_settlers_write_them_at_once(url: str):
    async with workbench(url, settle_batch=1) as bench:
        mate = mate_of(bench)
        (stale,) = await hold(bench, 1)
        await settlements.apply(bench.connection, [(stale, Release())])
        (again,) = await make.claim(bench.connection, bench.keeper.incarnation, claim_id=2)
        bench.holdings.add([again])
        bench.settler.submit(Settlement(stale, RetryAt(HOUR, "TIMEOUT", "the old attempt")))
        bench.settler.submit(Settlement(again.held, Complete()))

        await asyncio.gather(bench.settler.step(bench.clock.now()), mate.step(bench.clock.now()))
        while bench.vitals.unsettled:
            await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1}
        assert (len(bench.holdings), bench.vitals.late_results) == (0, 1)


async def test_what_one_settler_could_not_write_the_other_writes(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        mate = mate_of(bench)
        for each in await hold(bench, 5):
            bench.settler.submit(Settlement(each, RetryAt(HOUR, "X", "x")))
        cut_before(monkeypatch, bench)
        with pytest.raises((*GONE, asyncpg.PostgresError, asyncpg.InternalClientError)):
            await mate.step(bench.clock.now())
        monkeypatch.undo()

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"FAIL": 5}
        assert (len(bench.holdings), bench.vitals.late_results, bench.vitals.unsettled) == (0, 0, 0)

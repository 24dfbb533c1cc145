"""The settler, step by step: an outcome is kept until the database has taken it."""

import asyncio
import time
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import make
import pytest
import rows
from databases import Superuser
from held_claims import hold
from stages import Workbench, workbench

from horai.core.limits import SHARDS
from horai.core.outcome import Bury, Complete, Decision, Release, RetryAt
from horai.core.states import State
from horai.core.wakes import LaneWake
from horai.db import claims, settlements, stage_connection
from horai.db.claims import Claim
from horai.db.pool import GONE
from horai.db.settlements import SettledRows
from horai.db.stage_connection import StageConnection
from horai.engine.settler import LOCK_TIMEOUT, UNSTORABLE, Settlement, Settler

HOUR = timedelta(hours=1)


def cut_before(monkeypatch: pytest.MonkeyPatch, bench: Workbench) -> None:
    """The connection is lost when the transaction of a batch begins."""
    real = settlements.apply

    async def is_cut(connection: Superuser, batch: Sequence[tuple[Claim, Decision]]) -> SettledRows:
        await bench.connection.execute("select pg_terminate_backend($1, 5000)", connection.get_server_pid())
        return await real(connection, batch)

    monkeypatch.setattr(settlements, "apply", is_cut)


async def test_the_settler_writes_outcomes_and_removes_their_claims_from_in_flight(url: str):
    async with workbench(url) as bench:
        held = await hold(bench, 4)
        decisions: list[Decision] = [Complete('{"n": 1}'), RetryAt(HOUR, "X", "x"), Bury("X", "x"), Release(HOUR)]
        for each, decision in zip(held, decisions, strict=True):
            bench.settler.submit(Settlement(each, decision))
        assert bench.settler.signal.is_set()

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1, "FAIL": 1, "DEAD": 1, "INIT": 1}
        assert (len(bench.in_flight), bench.health.unsettled, bench.health.retry_backlog) == (0, 0, 1)
        assert bench.health.settled == 3, "a release is no outcome"
        assert bench.health.success_rate(time.monotonic()) == pytest.approx(1 / 3)


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

        assert len(bench.in_flight) == 0
        assert await bench.states() == {"SUCCESS": 499, "DEAD": 1}
        letter = await bench.connection.fetchrow("select instance_id, error_code from horai.dead_letter")
        assert letter is not None
        assert tuple(letter) == (held[250].id, UNSTORABLE)


async def test_the_settler_retries_a_locked_row_and_does_not_delay_other_outcomes(url: str):
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
            assert time.monotonic() - started < 4, "no statement waited for a lock"

            assert await bench.states() == {"RUNNING": 1, "SUCCESS": 2}
            assert bench.health.unsettled == 1

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 3}
        assert len(bench.in_flight) == 0


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
        assert bench.health.unsettled == 1
        assert bench.in_flight.find(held.id, held.fence) == held
        monkeypatch.undo()
        bench.settler.line.drop()
        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"FAIL": 1}
        assert len(bench.in_flight) == 0


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
        assert (bench.health.late_results, bench.health.unsettled, len(bench.in_flight)) == (0, 0, 0)
        assert bench.health.settled == 6, "and each is counted once"
        assert await bench.connection.fetchval("select count(*) from horai.attempt where late") == 0


async def test_a_lost_answer_to_the_commit_is_neither_doubled_nor_late(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        held = await hold(bench, 3)
        decisions: list[Decision] = [Complete(), RetryAt(HOUR, "X", "x"), Bury("X", "x")]
        for each, decision in zip(held, decisions, strict=True):
            bench.settler.submit(Settlement(each, decision))
        real, finish = settlements.apply, claims.finish_if_running

        async def loses_the_answer(_: Superuser, batch: Sequence[tuple[Claim, Decision]]) -> SettledRows:
            await real(bench.connection, batch)
            raise ConnectionResetError("after the commit")

        async def loses_the_first(
            connection: Superuser, node: int, batch: Sequence[tuple[Claim, Complete]]
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
        assert bench.health.late_results == 0
        assert len(bench.in_flight) == 0


async def test_an_outcome_whose_row_has_moved_on_is_kept_as_late(url: str):
    async with workbench(url) as bench:
        (held,) = await hold(bench, 1)
        await claims.fail_if_running(bench.connection, [(held, RetryAt(HOUR, "NODE_LOST", "lost"))])
        bench.settler.submit(Settlement(held, Complete()))

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"FAIL": 1}
        assert bench.health.late_results == 1
        assert len(bench.in_flight) == 0
        late = await bench.connection.fetch("select attempt, outcome from horai.attempt where late")
        assert [tuple(row) for row in late] == [(1, "SUCCESS")]


@pytest.mark.parametrize("is_quiet", [True, False])
async def test_a_quiet_outcome_and_a_release_leave_no_late_result(url: str, is_quiet: bool):
    async with workbench(url) as bench:
        (held,) = await hold(bench, 1)
        await claims.cancel_if_running(bench.connection, [held])
        bench.settler.submit(Settlement(held, Complete() if is_quiet else Release(), is_quiet))

        await bench.settler.step(bench.clock.now())

        assert bench.health.late_results == 0
        assert await bench.connection.fetchval("select count(*) from horai.attempt") == 0
        assert len(bench.in_flight) == 0


async def test_P2_a_claim_that_started_no_call_is_no_attempt_and_a_postponed_one_is(url: str):
    async with workbench(url) as bench:
        released, postponed = await hold(bench, 2)
        bench.settler.submit(Settlement(released, Release()), Settlement(postponed, Release(postponed=True)))

        await bench.settler.step(bench.clock.now())

        rows = await bench.connection.fetch("select id, attempt, fence from horai.instance_live")
        assert {tuple(row) for row in rows} == {(released.id, 0, 1), (postponed.id, 1, 1)}
        told = await bench.connection.fetch(
            "select data ->> 'attempt' from horai.event where kind = 'INSTANCE_RELEASED'"
        )
        assert [row[0] for row in told] == ["1", "1"]


async def test_X17_an_old_claim_does_not_settle_the_new_attempt(url: str):
    async with workbench(url) as bench:
        (old,) = await hold(bench, 1)
        await claims.release_if_running(bench.connection, [(old, Release())])
        (new,) = await make.claim(bench.connection, bench.lease.incarnation)
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
        bench.scope.wakeups.subscribe(LaneWake, lambda wake: woken.append((wake.shard, wake.lane)))
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
        (again,) = await make.claim(bench.connection, bench.lease.incarnation, claim_id=2)
        bench.in_flight.add([again])
        bench.settler.submit(Settlement(stale, RetryAt(HOUR, "TIMEOUT", "the old attempt")))
        bench.settler.submit(Settlement(again.held, Complete()))
        await bench.settler.step(bench.clock.now())
        assert bench.health.unsettled == 1, "one of each instance at a time"

        while bench.health.unsettled:
            await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1}
        assert (len(bench.in_flight), bench.health.late_results) == (0, 1)


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
            while len(bench.in_flight):
                await asyncio.gather(bench.settler.step(bench.clock.now()), mate.step(bench.clock.now()))

        failed = len(held[::7])
        assert await bench.states() == {"SUCCESS": 500 - failed, "FAIL": failed}
        assert (bench.health.late_results, bench.health.unsettled, bench.health.settled) == (0, 0, 500)
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
        (again,) = await make.claim(bench.connection, bench.lease.incarnation, claim_id=2)
        bench.in_flight.add([again])
        bench.settler.submit(Settlement(stale, RetryAt(HOUR, "TIMEOUT", "the old attempt")))
        bench.settler.submit(Settlement(again.held, Complete()))

        await asyncio.gather(bench.settler.step(bench.clock.now()), mate.step(bench.clock.now()))
        while bench.health.unsettled:
            await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1}
        assert (len(bench.in_flight), bench.health.late_results) == (0, 1)


async def test_one_settler_writes_the_outcomes_that_the_other_failed_to_write(
    url: str, monkeypatch: pytest.MonkeyPatch
):
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
        assert (len(bench.in_flight), bench.health.late_results, bench.health.unsettled) == (0, 0, 0)


async def test_a_settler_whose_connection_rests_opens_it_while_claimed_calls_run(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    async with workbench(url) as bench:
        line = StageConnection(bench.url, "horai settler", timedelta(seconds=5), LOCK_TIMEOUT, may_rest=True)
        settler = bench.settler
        settler.line = line
        await settler.step(bench.clock.now())
        await line.rest()
        assert line.is_open, "it was used just now"

        monkeypatch.setattr(stage_connection, "REST_AFTER", 0.0)
        await line.rest()
        settler.signal.clear()
        await settler.step(bench.clock.now())
        assert not line.is_open, "a step without work leaves it closed"

        await make.job(bench.scope)
        await make.many(bench.scope, 1)
        await bench.until_idle(bench.dispatcher())
        assert settler.signal.is_set()
        await settler.step(bench.clock.now())
        assert line.is_open
        await line.close()

"""The settler, step by step: an outcome is kept until the database has taken it."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

import make
import rows
from horai.core.settlement import Bury, Complete, Decision, Release, Retry
from horai.core.states import State
from horai.db import claims, settlements
from horai.db.claims import Held
from horai.db.pool import GONE, Dedicated
from horai.db.settlements import Applied
from horai.engine.settler import UNSTORABLE, Settlement
from stages import Workbench, workbench

HOUR = timedelta(hours=1)


async def hold(bench: Workbench, count: int) -> list[Held]:
    """Claims in hand."""
    await make.job(bench.scope)
    await make.many(bench.scope, count)
    claimed = [row.held for row in await make.claim(bench.connection, bench.keeper.incarnation)]
    for held in claimed:
        bench.holdings.add(held)
    return claimed


async def test_outcomes_are_written_and_let_go(url: str):
    async with workbench(url) as bench:
        held = await hold(bench, 4)
        decisions: list[Decision] = [Complete('{"n": 1}'), Retry(HOUR, "X", "x"), Bury("X", "x"), Release(HOUR)]
        for each, decision in zip(held, decisions, strict=True):
            bench.settler.submit(Settlement(each, decision))
        assert bench.settler.signal.is_set()
        assert bench.vitals.unsettled == 4

        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1, "FAIL": 1, "DEAD": 1, "INIT": 1}
        assert (len(bench.holdings), bench.vitals.unsettled, bench.vitals.retry_backlog) == (0, 0, 1)
        assert bench.vitals.settled == 3, "a release is no outcome"
        assert bench.vitals.success_rate(time.monotonic()) == pytest.approx(1 / 3)


POISON: dict[str, Decision] = {
    "output that is not JSON": Complete("{bad"),
    "NUL in a message": Retry(HOUR, "X", "a\x00b"),
    "NUL in a code": Bury("X\x00", "x"),
    "half a character": Retry(HOUR, "X", "\ud800"),
    "a delay beyond the calendar": Retry(timedelta(days=300_000_000), "X", "x"),
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
        bench.settler.submit(Settlement(held, Complete()))
        real = settlements.apply

        async def is_cut(connection: Dedicated, batch: Sequence[tuple[Held, Decision]]) -> Applied:
            await bench.connection.execute("select pg_terminate_backend($1, 5000)", connection.get_server_pid())
            return await real(connection, batch)

        monkeypatch.setattr(settlements, "apply", is_cut)
        with pytest.raises((*GONE, asyncpg.PostgresError, asyncpg.InternalClientError)):
            await bench.settler.step(bench.clock.now())
        assert bench.vitals.unsettled == 1
        assert bench.holdings.has(held)
        monkeypatch.undo()
        bench.settler.line.drop()
        await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1}
        assert len(bench.holdings) == 0


async def test_a_lost_answer_to_the_commit_is_neither_doubled_nor_late(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        held = await hold(bench, 3)
        decisions: list[Decision] = [Complete(), Retry(HOUR, "X", "x"), Bury("X", "x")]
        for each, decision in zip(held, decisions, strict=True):
            bench.settler.submit(Settlement(each, decision))
        real = settlements.apply

        async def loses_the_answer(_: Dedicated, batch: Sequence[tuple[Held, Decision]]) -> Applied:
            await real(bench.connection, batch)
            raise ConnectionResetError("after the commit")

        monkeypatch.setattr(settlements, "apply", loses_the_answer)
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
        await claims.fail_if_running(bench.connection, [(held, Retry(HOUR, "NODE_LOST", "lost"))])
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
        assert replace(found, claimed_at=None) == replace(new.held, claimed_at=None)


async def test_a_retry_wakes_its_lane(url: str):
    async with workbench(url) as bench:
        (held,) = await hold(bench, 1)
        woken: list[int] = []
        bench.scope.wakeups.listen(lambda lane, _: woken.append(lane))
        bench.settler.submit(Settlement(held, Retry(HOUR, "X", "x")))

        await bench.settler.step(bench.clock.now())

        assert woken == list(await make.lanes(bench.connection))


async def test_with_nothing_to_do_it_waits_for_its_signal(url: str):
    async with workbench(url) as bench:
        assert await bench.settler.step(bench.clock.now()) > bench.clock.now() + timedelta(seconds=30)
        assert State.RUNNING.name not in await bench.states()


async def test_a_stale_and_a_fresh_outcome_of_one_instance_are_told_apart_in_one_batch(url: str):
    async with workbench(url) as bench:
        (stale,) = await hold(bench, 1)
        released = [(stale, Release())]
        await settlements.apply(bench.connection, released)
        (fresh,) = [row.held for row in await make.claim(bench.connection, bench.keeper.incarnation, claim_id=2)]
        bench.holdings.add(fresh)
        bench.settler.submit(Settlement(stale, Retry(HOUR, "TIMEOUT", "the old attempt")))
        bench.settler.submit(Settlement(fresh, Complete()))

        while bench.vitals.unsettled:
            await bench.settler.step(bench.clock.now())

        assert await bench.states() == {"SUCCESS": 1}
        assert (len(bench.holdings), bench.vitals.late_results) == (0, 1)

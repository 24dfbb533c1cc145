"""Between a claim and its calls: every row is started, set aside or given back."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import make
import pytest
import rows
from stages import Workbench, workbench

from horai.core.calls import KEY_UNAVAILABLE, HttpTarget
from horai.core.job import Recipe
from horai.core.limits import SHARDS
from horai.core.retry import RetryPolicy
from horai.core.wakes import MoveWaitingWake, QueueWake
from horai.db import claim_lanes, claims, jobs
from horai.db.claims import ClaimedRow
from horai.db.jobs import Runnable
from horai.engine.dispatch.admission import BROKEN_PAUSE, Ruling, ruling_of
from horai.engine.dispatch.dispatcher import DispatcherParts
from horai.operations import jobs as accepted


async def claimed(bench: Workbench, **executors: Any) -> tuple[DispatcherParts, list[ClaimedRow]]:
    """All that is due, in hand and not yet handed out."""
    on = bench.parts(**executors)
    on.scans.own(frozenset(range(SHARDS)))
    on.scans.learn(await claim_lanes.lanes(bench.connection))
    claimed = await on.claimer.claim(bench.connection, [(place, 100) for place in on.scans.all()])
    return on, claimed.rows


async def hand_out(bench: Workbench, on: DispatcherParts, found: list[ClaimedRow]) -> None:
    await on.admission.start(bench.connection, found, bench.clock.now())


async def test_rows_of_many_jobs_are_started_with_one_question(url: str):
    async with workbench(url) as bench:
        for name in ("one", "two", "three"):
            await make.job(bench.scope, name)
            await make.many(bench.scope, 10, job=name)
        on, found = await claimed(bench)
        line = bench.line("handout")
        tap = await bench.tap(line)

        await on.admission.start(await line.get(), found, bench.clock.now())

        assert await tap.names() == ["jobs_to_run", "callback_settings"]
        assert len(await bench.called(30)) == 30
        bench.executor.gate.set()
        await bench.settle()
        assert await bench.states() == {"SUCCESS": 30}


async def test_nothing_claimed_asks_nothing(url: str):
    async with workbench(url) as bench:
        on = bench.parts()
        line = bench.line("handout")
        tap = await bench.tap(line)

        await on.admission.start(await line.get(), [], bench.clock.now())

        assert await tap.names() == []


async def test_of_a_mixed_claim_each_row_goes_where_it_belongs(url: str):
    async with workbench(url) as bench:
        for name in ("runs", "paused", "deleted", "broken", "moved"):
            await make.job(bench.scope, name)
            await make.many(bench.scope, 4, job=name)
        on, found = await claimed(bench)
        await bench.connection.execute(
            "update horai.job set status = 1 where name = 'paused';"
            "update horai.job set deleted_at = now() where name = 'deleted';"
            "update horai.job set definition = '{}' where name = 'broken';"
        )
        asked: list[bool] = []
        bench.scope.wakeups.subscribe(MoveWaitingWake, lambda _: asked.append(True))
        change = accepted.JobChange({"target": {"type": "worker", "handler": "elsewhere"}, "timeout": None})
        await accepted.change_job(bench.scope, "moved", change)
        bench.executor.gate.set()

        await hand_out(bench, on, found)
        await bench.settle()

        found_states = await bench.connection.fetch(
            "select name, i.state, count(*) from horai.job_instance i join horai.job j on j.id = i.job_id group by 1, 2"
        )
        assert {(name, state): count for name, state, count in found_states} == {
            ("runs", "SUCCESS"): 4,
            ("paused", "INIT"): 4,
            ("deleted", "CANCELLED"): 4,
            ("broken", "INIT"): 4,
            ("moved", "INIT"): 4,
        }
        assert {call.job for call in bench.executor.calls} == {"runs"}
        assert asked, "the janitor is asked to move the rows of a job with another handler"
        parked = await bench.connection.fetchval("select count(*) from horai.instance_live where lane = 0")
        assert parked == 4
        assert await bench.connection.fetchval("select max(retry_count) from horai.instance_live") == 0


async def test_rows_of_a_job_with_an_unreadable_definition_are_released_for_a_minute(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 2)
        on, found = await claimed(bench)
        await bench.connection.execute("update horai.job set definition = '{}'")

        await hand_out(bench, on, found)
        await bench.settle()

        wait = await bench.connection.fetchval("select min(due) - now() from horai.instance_live")
        assert BROKEN_PAUSE - timedelta(seconds=5) < wait <= BROKEN_PAUSE


RUNS = Recipe(HttpTarget("http://x.test/"), RetryPolicy(), None, "")
ELSEWHERE = replace(RUNS, handler="elsewhere")


@pytest.mark.parametrize(
    ("recipe", "is_paused", "is_deleted", "ruling"),
    [
        (RUNS, False, True, Ruling.CANCEL),
        (RUNS, True, True, Ruling.CANCEL),
        (None, True, False, Ruling.PARK),
        (ELSEWHERE, True, False, Ruling.PARK),
        (None, False, False, Ruling.GIVE_BACK),
        (ELSEWHERE, False, False, Ruling.MOVE),
        (RUNS, False, False, Ruling.RUN),
    ],
)
def test_the_first_line_of_the_table_that_applies_rules(
    recipe: Recipe | None, is_paused: bool, is_deleted: bool, ruling: Ruling
):
    job = Runnable(1, 1, "job", "default", is_paused, is_deleted, recipe)

    assert ruling_of(job, frozenset({"", "here"})) is ruling
    assert ruling_of(None, frozenset({"", "here"})) is Ruling.GIVE_BACK


async def test_a_row_that_cannot_be_parked_is_released_once(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 5)
        on, found = await claimed(bench)
        await bench.connection.execute("update horai.job set status = 1")

        async def fails(*_: object) -> None:
            raise ConnectionResetError("gone")

        monkeypatch.setattr(claims, "park_if_running", fails)
        with pytest.raises(ConnectionResetError):
            await hand_out(bench, on, found)

        assert len(bench.settler._inbox.waiting) == 5
        await bench.settle()
        assert await bench.states() == {"INIT": 5}


async def test_an_error_between_claim_and_call_gives_every_row_back(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 20)
        on, found = await claimed(bench)

        async def fails(*_: object) -> None:
            raise ConnectionResetError("gone")

        monkeypatch.setattr(jobs, "jobs_to_run", fails)
        with pytest.raises(ConnectionResetError):
            await hand_out(bench, on, found)
        await bench.settle()

        assert await bench.states() == {"INIT": 20}
        assert bench.executor.calls == []


async def test_an_error_while_rows_are_set_aside_gives_every_row_back(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.job(bench.scope, "paused")
        await make.many(bench.scope, 20)
        await make.many(bench.scope, 20, job="paused")
        on, found = await claimed(bench)
        await bench.connection.execute("update horai.job set status = 1 where name = 'paused'")

        async def fails(*_: object) -> None:
            raise ConnectionResetError("gone")

        monkeypatch.setattr(claims, "park_if_running", fails)
        with pytest.raises(ConnectionResetError):
            await hand_out(bench, on, found)
        await bench.settle()

        assert await bench.states() == {"INIT": 40}
        assert bench.executor.calls == []


async def test_a_locked_row_of_a_paused_job_is_released_instead_of_parked(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (holder,):
        await make.job(bench.scope)
        ids = await make.many(bench.scope, 3)
        on, found = await claimed(bench)
        await bench.connection.execute("update horai.job set status = 1")
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", ids[0])
            await hand_out(bench, on, found)
            assert len(bench.in_flight) == 1

        await bench.settle()

        assert await bench.states() == {"INIT": 3}
        assert await bench.connection.fetchval("select count(*) from horai.instance_live where lane = 0") == 2


@pytest.mark.parametrize("fate", ["status = 1", "deleted_at = now()"])
async def test_a_row_of_a_limited_queue_that_may_not_run_gives_its_slot_back(url: str, fate: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        await make.many(bench.scope, 5)
        queue_id = await bench.set_queue(max_concurrency=2)
        on, found = await claimed(bench)
        assert len(found) == 2
        await bench.connection.execute(f"update horai.job set {fate}")
        woken: list[int] = []
        bench.scope.wakeups.subscribe(QueueWake, lambda wake: woken.append(wake.queue_id))

        await hand_out(bench, on, found)
        await bench.settle()

        taken = await bench.connection.fetchval("select count(*) from horai.queue_slot where instance_id is not null")
        assert taken == 0
        assert woken == [queue_id]
        assert bench.health.late_results == 0


def test_a_job_whose_secrets_are_locked_waits():
    locked = HttpTarget("http://x.test/", sealed={}, fault=KEY_UNAVAILABLE)
    job = Runnable(1, 1, "job", "default", False, False, replace(RUNS, target=locked))

    assert ruling_of(job, frozenset({""})) is Ruling.LOCK
    broken = replace(RUNS, target=replace(locked, fault="SECRET_UNREADABLE"))
    assert ruling_of(replace(job, recipe=broken), frozenset({""})) is Ruling.RUN, "the attempt fails with its code"
    assert ruling_of(replace(job, is_paused=True), frozenset({""})) is Ruling.PARK

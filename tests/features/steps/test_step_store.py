"""The guards of records, waits and suspensions: only the claim that holds the instance writes."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import make
import pytest
from databases import Superuser

from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import Suspend
from horai.core.states import CancelReason
from horai.db import claims, instances
from horai.db.catalog import sql
from horai.db.claims import Claim
from horai.features.steps import service, store, timeline
from horai.features.steps.rules import Kind, Signal, StepId, StepReport, StepState
from horai.features.steps.store import ReportOf, StartOver, WaitOf

AT = datetime(2030, 1, 1, tzinfo=UTC)
LOAD = StepId(Kind.STEP, "load", 1)
APPROVED = StepId(Kind.WAIT, "approved", 1)
DONE = StepReport(LOAD, StepState.FINISHED, 1, result="7")
Change = Callable[[Claim], Claim]
STALE: dict[str, Change] = {
    "fence": lambda held: held._replace(fence=held.fence - 1),
    "node": lambda held: held._replace(node=held.node + 1),
    "attempt": lambda held: held._replace(attempt=held.attempt + 1),
}
stale = pytest.mark.parametrize("change", STALE.values(), ids=STALE.keys())


def call_of(held: Claim) -> Call:
    return Call(
        held.id, held.job_id, "publish", "default", None, AT, AT, held.attempt, held.fence, AT, -1, None,
        WorkerTarget("publish"), None, node=held.node,
    )  # fmt: skip


async def test_a_record_of_the_claim_is_written_once_however_often_it_is_sent(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        call = call_of((await make.running(scope, connection)).held)
        again = StepReport(LOAD, StepState.FINISHED, 2, result="8")

        for report in (DONE, DONE, again):
            accepted, *_ = await store.record_steps(connection, [ReportOf(call, report)])
            assert accepted == {(call.instance_id, call.fence)}

        ((_, record),) = await store.load_steps(connection, [call.instance_id])
        assert (record.id, record.state, record.tries, record.result) == (LOAD, StepState.FINISHED, 1, "7")


@stale
async def test_a_record_of_another_claim_is_refused(url: str, connection: Superuser, change: Change):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held

        accepted, *_ = await store.record_steps(connection, [ReportOf(call_of(change(held)), DONE)])

        assert accepted == set()
        assert await store.load_steps(connection, [held.id]) == []


async def test_a_record_of_an_earlier_claim_is_refused_beside_one_of_the_current_claim(url: str, connection: Superuser):
    """Both may be in one batch: the worker that lost the instance may have claimed it again."""
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held
        old = StepReport(StepId(Kind.STEP, "old", 1), StepState.FINISHED, 1, result="1")
        batch = [ReportOf(call_of(held._replace(fence=held.fence - 1)), old), ReportOf(call_of(held), DONE)]

        accepted, *_ = await store.record_steps(connection, batch)

        assert accepted == {(held.id, held.fence)}
        assert [record.id for _, record in await store.load_steps(connection, [held.id])] == [LOAD]


async def test_a_record_of_a_cancelled_instance_is_refused(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held
        await instances.cancel_live(connection, [held.id], CancelReason.USER, running=True)

        assert (await store.record_steps(connection, [ReportOf(call_of(held), DONE)]))[0] == set()


async def test_a_sleep_is_shown_as_finished_from_its_end_on(url: str, connection: Superuser):
    """Its record is not written again when it ends."""
    async with make.scope(url) as scope:
        await make.job(scope)
        call = call_of((await make.running(scope, connection)).held)
        delays = {"short": timedelta(0), "long": timedelta(hours=1)}
        asleep = [
            StepReport(StepId(Kind.SLEEP, name, 1), StepState.OPEN, delay=delay) for name, delay in delays.items()
        ]
        await store.record_steps(connection, [ReportOf(call, report) for report in asleep])

        shown = {step.name: step for step in await timeline.steps_of_instance(connection, call.instance_id, 0, 10)}

        assert (shown["short"].state, shown["short"].finished_at) == (
            StepState.FINISHED,
            shown["short"].until,
        )
        assert (shown["long"].state, shown["long"].finished_at) == (StepState.OPEN, None)


async def test_a_record_holds_the_instance_until_it_is_committed(url: str, connection: Superuser):
    """Otherwise a later claim could load the records before this one is there."""
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held
        async with scope.write() as other, connection.transaction():
            await store.record_steps(connection, [ReportOf(call_of(held), DONE)])

            rescue = "select id from horai.instance_live where id = $1 for no key update skip locked"
            assert await other.fetchval(rescue, held.id) is None


@stale
async def test_only_the_claim_that_holds_begins_again(url: str, connection: Superuser, change: Change):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held
        await store.record_steps(connection, [ReportOf(call_of(held), DONE)])
        payload = "select payload::text from horai.instance_live where id = $1"
        before = await connection.fetchval(payload, held.id)

        refused = await store.start_over(connection, [StartOver(call_of(change(held)), "[1]")])
        assert (refused.at, refused.rewound) == ({}, set())
        assert await connection.fetchval(payload, held.id) == before
        assert len(await store.load_steps(connection, [held.id])) == 1

        for _ in range(2):  # again after a lost answer
            done = await store.start_over(connection, [StartOver(call_of(held), "[1]")])
            assert list(done.at) == [(held.id, held.fence)]
            assert await connection.fetchval(payload, held.id) == "[1]"
            assert await store.load_steps(connection, [held.id]) == []


@stale
async def test_a_suspension_of_another_claim_changes_nothing(url: str, connection: Superuser, change: Change):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held

        other: Claim = change(held)
        guards = [[other.id], [other.attempt], [other.fence], [other.node]]
        assert await connection.fetch(sql("hold_running"), *guards) == []
        assert await connection.fetch(sql("suspend_if_running"), *guards, [AT], [held.id]) == []

        assert await make.state(connection, held.id) == "RUNNING"


async def test_a_suspended_instance_counts_neither_an_attempt_nor_a_failure(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held

        async with connection.transaction():
            (again,) = await claims.suspend_if_running(connection, [(held, Suspend(until=AT))])

        row = await connection.fetchrow("select * from horai.instance_live where id = $1", held.id)
        assert row is not None
        assert (again.due, row["due"], row["execute_time"], row["suspended_until"]) == (AT, AT, AT, AT)
        assert (row["state"], row["attempt"], row["retry_count"], row["fence"]) == (0, 0, 0, held.fence)


async def test_a_signal_that_arrives_before_the_suspension_makes_it_due_at_once(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        call = call_of(held := (await make.running(scope, connection)).held)
        await store.open_waits(connection, [WaitOf(call, APPROVED, timedelta(days=7))])
        sent = await service.signal_by_id(scope, held.id, Signal("approved", "1"))
        assert sent.lane is None  # the function runs: nothing was woken

        async with connection.transaction():
            (again,) = await claims.suspend_if_running(connection, [(held, Suspend(until=AT))])

        assert again.due < AT


async def test_a_signal_wakes_only_the_instance_that_waits_for_its_name(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        call = call_of(held := (await make.running(scope, connection)).held)
        await store.open_waits(connection, [WaitOf(call, APPROVED, timedelta(days=7))])
        async with connection.transaction():
            await claims.suspend_if_running(connection, [(held, Suspend(until=AT))])

        assert (await service.signal_by_id(scope, held.id, Signal("rejected"))).lane is None
        assert (await service.signal_by_key(scope, "publish", "article:42", Signal("approved")))[1].lane is not None


async def test_records_go_when_their_instance_has_left_the_history(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held
        await store.record_steps(connection, [ReportOf(call_of(held), DONE)])
        await service.signal_by_id(scope, held.id, Signal("approved"))
        for forget in (store.forget_steps, store.forget_signals):
            assert await forget(connection, -1, 10) == held.id
            assert await forget(connection, held.id, 10) is None
        assert len(await store.load_steps(connection, [held.id])) == 1

        await connection.execute("delete from horai.instance_live where id = $1", held.id)
        await store.forget_steps(connection, -1, 10)
        await store.forget_signals(connection, -1, 10)

        assert await store.load_steps(connection, [held.id]) == []
        assert await connection.fetchval("select count(*) from horai.step_signal") == 0

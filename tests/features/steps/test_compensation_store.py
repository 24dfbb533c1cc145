"""The guards of compensation: who marks an instance, when it dies, and when it is cancelled at once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import make
import pytest
from databases import Superuser

from horai.core.calls import Call, WorkerTarget
from horai.core.errors import AlreadyFinal, NotFound
from horai.core.outcome import Bury, Complete, RetryAt, Suspend, Withdraw
from horai.db import claims, settlements
from horai.db.catalog import sql
from horai.db.claims import Claim
from horai.features.steps import store
from horai.features.steps.rules import REWIND, Kind, StepId, StepReport, StepState
from horai.features.steps.store import ReportOf
from horai.operations.compensated_cancel import cancel_by_id_compensated, cancel_by_key_compensated
from horai.operations.scope import Scope

AT = datetime(2030, 1, 1, tzinfo=UTC)
DEATH = Bury("X", "x", ("transient_error",))
CHARGE = StepReport(StepId(Kind.STEP, "charge", 1), StepState.FINISHED, 1, result="7")
TRIED = StepReport(StepId(Kind.STEP, "charge", 1), StepState.OPEN, 1, delay=timedelta(hours=1))
UNDO = StepReport(StepId(Kind.COMPENSATION, "charge", 1), StepState.OPEN)
UNDONE = StepReport(StepId(Kind.COMPENSATION, "charge", 1), StepState.FINISHED, 1)
Change = Callable[[Claim], Claim]
STALE: dict[str, Change] = {
    "fence": lambda held: held._replace(fence=held.fence - 1),
    "node": lambda held: held._replace(node=held.node + 1),
    "attempt": lambda held: held._replace(attempt=held.attempt + 1),
}


def call_of(held: Claim) -> Call:
    return Call(
        held.id, held.job_id, "publish", "default", None, AT, AT, held.attempt, held.fence, AT, -1, None,
        WorkerTarget("publish"), None, node=held.node,
    )  # fmt: skip


async def held_with(scope: Scope, connection: Superuser, *reports: StepReport) -> Claim:
    """Return a claim whose instance has these records."""
    await make.job(scope)
    held = (await make.running(scope, connection)).held
    for report in reports:
        await store.record_steps(connection, [ReportOf(call_of(held), report)])
    return held


async def settle(connection: Superuser, held: Claim, how: Bury | Suspend | Complete | Withdraw) -> set[int]:
    async with connection.transaction():
        return (await settlements.apply(connection, [(held, how)])).ids


async def claimed_again(connection: Superuser, held: Claim) -> Claim:
    (row,) = await make.claim(connection, held.node, claim_id=2)
    return row.held


async def has_mark(connection: Superuser, held: Claim) -> bool:
    return REWIND in {record.id for _, record in await store.load_steps(connection, [held.id])}


async def test_an_instance_that_owes_a_compensation_does_not_die_before_it_has_run(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)

        async with connection.transaction():
            applied = await settlements.apply(connection, [(held, DEATH)])

        assert applied.instead == {held.id: RetryAt(timedelta(0), "X", "x")}
        assert await make.state(connection, held.id) == "FAIL"
        again = await claimed_again(connection, held)
        await store.record_steps(connection, [ReportOf(call_of(again), UNDONE)])
        assert await settle(connection, again, DEATH) == {held.id}
        assert await make.state(connection, held.id) == "DEAD"
        row = await connection.fetchrow(
            "select error_code, tags from horai.dead_letter where instance_id = $1", held.id
        )
        assert row is not None
        assert tuple(row) == ("X", ["transient_error"])


async def test_a_claim_that_was_to_compensate_and_dies_names_the_steps(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)
        await settle(connection, held, DEATH)
        again = await claimed_again(connection, held)

        await settle(connection, again, Bury("NODE_LOST", "gone", ("crash_loop",), is_loss=True))

        row = await connection.fetchrow("select error_code, error_msg, tags from horai.dead_letter")
        assert row is not None
        assert row["error_code"] == "COMPENSATION_FAILED"
        assert row["error_msg"].startswith("Not compensated: charge#1. ")
        assert row["tags"] == ["crash_loop", "compensation_failed"]


@pytest.mark.parametrize(
    "reports",
    [(), (CHARGE,), (UNDO,), (UNDO, TRIED), (UNDO, CHARGE, UNDONE)],
    ids=["none", "without", "begun", "tried", "compensated"],
)
async def test_an_instance_that_owes_nothing_dies_at_once(
    url: str, connection: Superuser, reports: tuple[StepReport, ...]
):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, *reports)

        await settle(connection, held, DEATH)

        assert await make.state(connection, held.id) == "DEAD"


@pytest.mark.parametrize("change", STALE.values(), ids=STALE.keys())
async def test_the_death_of_another_claim_marks_nothing(url: str, connection: Superuser, change: Change):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)

        assert await settle(connection, change(held), DEATH) == set()

        assert await make.state(connection, held.id) == "RUNNING"
        assert not await has_mark(connection, held)


@pytest.mark.parametrize("change", STALE.values(), ids=STALE.keys())
async def test_owed_compensations_are_those_of_the_claim(url: str, connection: Superuser, change: Change):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)

        assert len(await connection.fetch(sql("owed_compensations"), *claims.guards([held]))) == 1
        assert await connection.fetch(sql("owed_compensations"), *claims.guards([change(held)])) == []


async def test_a_death_whose_row_is_locked_marks_nothing_and_is_written_later(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)
        async with scope.write() as other:
            await claims.lock_instance(other, held.id)

            assert await settle(connection, held, DEATH) == set()
            assert not await has_mark(connection, held)

        assert await settle(connection, held, DEATH) == {held.id}
        assert await make.state(connection, held.id) == "FAIL"


async def test_a_cancel_during_a_claim_is_told_with_the_next_record(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO)

        cancel = await cancel_by_id_compensated(scope, held.id)

        assert (cancel.instance.state.name, cancel.compensates) == ("RUNNING", ("charge#1",))
        told = await store.record_steps(connection, [ReportOf(call_of(held), CHARGE)])
        assert told.rewound == told.held == {(held.id, held.fence)}
        async with connection.transaction():
            (again,) = await claims.suspend_if_running(connection, [(held, Suspend(until=AT))])
        assert again.due < AT
        later = await claimed_again(connection, held)
        undone = await store.record_steps(connection, [ReportOf(call_of(later), UNDONE)])
        assert (undone.held, undone.rewound) == ({(held.id, later.fence)}, set())
        async with connection.transaction():  # a pause between two tries of a compensation is a pause
            (paused,) = await claims.suspend_if_running(connection, [(later, Suspend(until=AT))])
        assert paused.due == AT


async def test_a_claim_that_dies_after_a_cancel_is_compensated_and_cancelled(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)
        await cancel_by_id_compensated(scope, held.id)

        await settle(connection, held, DEATH)

        assert await make.state(connection, held.id) == "FAIL"
        loaded = {record.id: record for _, record in await store.load_steps(connection, [held.id])}
        assert loaded[REWIND].error_type is None  # the cancel came first
        again = await claimed_again(connection, held)
        assert await settle(connection, again, Withdraw()) == {held.id}
        row = await connection.fetchrow("select state, reason from horai.instance_history where id = $1", held.id)
        assert row is not None
        assert tuple(row) == (5, 1)


async def test_a_suspended_instance_is_due_when_it_is_cancelled_with_compensation(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)
        await settle(connection, held, Suspend(until=AT))

        first = await cancel_by_key_compensated(scope, "publish", "article:42")
        second = await cancel_by_id_compensated(scope, held.id)

        assert (first.instance.state.name, first.compensates) == ("INIT", ("charge#1",))
        assert second.compensates == ("charge#1",)
        assert first.instance.execute_time < AT
        assert second.instance.execute_time == first.instance.execute_time  # the second changed nothing
        await claimed_again(connection, held)


async def test_a_step_that_never_finished_is_not_compensated(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO)
        await settle(connection, held, Suspend(until=AT))

        cancel = await cancel_by_id_compensated(scope, held.id)

        assert (cancel.instance.state.name, cancel.compensates) == ("CANCELLED", ())


async def test_a_running_instance_without_compensations_is_cancelled_at_once(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, CHARGE)

        assert (await cancel_by_id_compensated(scope, held.id)).instance.state.name == "CANCELLED"

        assert (await cancel_by_id_compensated(scope, held.id)).compensates == ()
        assert (await store.record_steps(connection, [ReportOf(call_of(held), CHARGE)])).held == set()
        with pytest.raises(NotFound):
            await cancel_by_key_compensated(scope, "publish", "article:42")


async def test_an_instance_that_has_succeeded_is_not_cancelled(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)
        await settle(connection, held, Complete())

        with pytest.raises(AlreadyFinal):
            await cancel_by_id_compensated(scope, held.id)


async def test_another_tenant_neither_cancels_nor_compensates(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        held = await held_with(scope, connection, UNDO, CHARGE)
        other = make.of_tenant(scope, 4711, "other")

        with pytest.raises(NotFound):
            await cancel_by_id_compensated(other, held.id)

        assert not await has_mark(connection, held)

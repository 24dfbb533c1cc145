"""The guards of child calls: one child for a call, of the claim that holds, and one wake for each end."""

import asyncio
from collections.abc import Callable

import make
import pytest
from databases import Superuser

from features.steps.test_step_store import STALE, call_of
from horai.core.outcome import Complete, Suspend
from horai.core.states import CancelReason
from horai.db import claims, compensations, instances
from horai.db.claims import Claim
from horai.features.steps import calls
from horai.features.steps.calls import CallOf
from horai.features.steps.child_calls import ServedCalls, serve_calls
from horai.features.steps.rules import Kind, StepId, StepState

PRINT = StepId(Kind.CALL, "print", 1)
CHILDREN = "select count(*) from horai.instance_live where job_id = (select id from horai.job where name = 'print')"


async def called(connection: Superuser, held: Claim, job: str = "print") -> ServedCalls:
    return await serve_calls(connection, [CallOf(call_of(held)._replace(tenant_id=1), PRINT, job, "7")])


async def suspended(connection: Superuser, held: Claim) -> None:
    async with connection.transaction():
        await claims.suspend_if_running(connection, [(held, Suspend(until=None))])


async def ended(connection: Superuser, child: int, result: str | None = None) -> None:
    incarnation = await make.node(connection, name="child-node")
    (row,) = [row for row in await make.claim(connection, incarnation, claim_id=9) if row.held.id == child]
    assert await claims.finish_if_running(connection, incarnation, [(row.held, Complete(result))]) == {child}


async def due(connection: Superuser, instance_id: int) -> bool:
    return await connection.fetchval(
        "select due <= clock_timestamp() from horai.instance_live where id = $1", instance_id
    )


async def test_a_call_that_is_asked_again_creates_no_second_child(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held

        found = [(await called(connection, held)).found[held.id, PRINT] for _ in range(2)]

        assert found[0] == found[1]
        assert found[0].state is StepState.OPEN
        assert await connection.fetchval(CHILDREN) == 1


@pytest.mark.parametrize("change", STALE.values(), ids=STALE.keys())
async def test_a_claim_that_is_over_creates_no_child(url: str, connection: Superuser, change: Callable[[Claim], Claim]):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held

        served = await called(connection, change(held))

        assert (served.held, served.found) == (set(), {})
        assert await connection.fetchval(CHILDREN) == 0


async def test_a_cancel_with_compensation_creates_no_child(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        async with scope.write() as other:
            await compensations.mark_cancel(other, scope.tenant_id, held.id)

        served = await called(connection, held)

        assert served.rewound == {(held.id, held.fence)}
        assert await connection.fetchval(CHILDREN) == 0


async def test_a_job_that_does_not_exist_fails_only_its_own_call(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        call, missing = call_of(held)._replace(tenant_id=1), PRINT._replace(name="missing")

        served = await serve_calls(
            connection, [CallOf(call, missing, "missing", None), CallOf(call, PRINT, "print", None)]
        )

        assert set(served.refused) == {(held.id, missing)}
        assert set(served.found) == {(held.id, PRINT)}


async def test_the_end_of_a_child_wakes_a_caller_that_ran_when_it_came(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        (child,) = (await called(connection, held)).children
        await ended(connection, child, "42")

        assert await calls.wake_callers(connection, [child]) == []  # it may be about to suspend itself

        assert await calls.has_open_calls(connection)


async def test_the_end_of_a_child_wakes_its_suspended_caller_once(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        (child,) = (await called(connection, held)).children
        await suspended(connection, held)
        await ended(connection, child, "42")
        assert not await due(connection, held.id)

        assert await calls.calls_to_decide(connection, 0, 10) == [child]
        assert [row.id for row in await calls.wake_callers(connection, [child])] == [held.id]
        assert await due(connection, held.id)
        assert await calls.wake_callers(connection, [child]) == []
        assert await calls.calls_to_decide(connection, 0, 10) == []


async def test_a_child_that_ends_before_the_suspension_makes_its_caller_due_at_once(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        (child,) = (await called(connection, held)).children
        await ended(connection, child)

        await suspended(connection, held)

        assert await due(connection, held.id)
        assert not await calls.has_open_calls(connection)


async def test_a_wake_does_not_wait_for_a_locked_caller_and_is_not_lost(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        (child,) = (await called(connection, held)).children
        await suspended(connection, held)
        await ended(connection, child)
        async with scope.write() as other:
            await other.execute("select from horai.instance_live where id = $1 for update", held.id)
            woken = await asyncio.wait_for(calls.wake_callers(connection, [child]), 5)
            assert woken == []

        assert [row.id for row in await calls.wake_callers(connection, [child])] == [held.id]


async def test_a_finished_call_has_the_result_of_its_child_in_every_later_claim(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        (child,) = (await called(connection, held)).children
        await ended(connection, child, "42")

        for _ in range(2):
            record = (await called(connection, held)).found[held.id, PRINT]
            assert (record.state, record.result, record.child) == (StepState.FINISHED, "42", child)
            await connection.execute("delete from horai.instance_history where id = $1", child)


async def test_the_children_of_an_ended_caller_are_orphans_and_those_of_a_live_one_are_not(
    url: str, connection: Superuser
):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        (child,) = (await called(connection, held)).children
        assert await calls.orphans_among(connection, [child]) == []
        assert await calls.calls_to_decide(connection, 0, 10) == []

        await instances.cancel_live(connection, [held.id], CancelReason.USER, running=True)

        assert await calls.orphans_among(connection, [child]) == [child]
        assert await calls.calls_to_decide(connection, 0, 10) == [child]


async def test_calls_go_when_child_and_caller_have_left_the_history(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.job(scope, "print")
        held = (await make.running(scope, connection)).held
        (child,) = (await called(connection, held)).children
        await connection.execute("delete from horai.instance_live where id = $1", child)
        assert await calls.forget_calls(connection, 0, 10) == child
        assert await connection.fetchval("select count(*) from horai.child_call") == 1

        await connection.execute("delete from horai.instance_live where id = $1", held.id)
        await calls.forget_calls(connection, 0, 10)

        assert await connection.fetchval("select count(*) from horai.child_call") == 0

"""Settlements of claims as PostgreSQL carries them out: whose word on a row counts, and what comes too late."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import make
import pytest
import rows
from databases import Superuser

from horai.core.outcome import Bury, Complete, Release, RetryAt
from horai.core.states import State
from horai.db import claims
from horai.db.claims import Claim, LateResult

LATER = timedelta(seconds=30)

Settle = Callable[[Superuser, Claim], Awaitable[object]]
SETTLES: dict[str, Settle] = {
    "finish": lambda c, held: claims.finish_if_running(c, held.node, [(held, Complete())]),
    "finish_if_free": lambda c, held: claims.finish_if_free(c, [(held, Complete())]),
    "fail": lambda c, held: claims.fail_if_running(c, [(held, RetryAt(LATER, "X", "x"))]),
    "bury": lambda c, held: claims.bury_if_running(c, [(held, Bury("X", "x", ("t",)))]),
    "release": lambda c, held: claims.release_if_running(c, [(held, Release())]),
    "park": lambda c, held: claims.park_if_running(c, [held]),
    "cancel": lambda c, held: claims.cancel_if_running(c, [held]),
}
settles = pytest.mark.parametrize("settle", SETTLES.values(), ids=SETTLES.keys())
PASSING_OVER = {name: settle for name, settle in SETTLES.items() if name != "finish"}
passing_over = pytest.mark.parametrize("settle", PASSING_OVER.values(), ids=PASSING_OVER.keys())


# Whose word counts


@settles
async def test_B10_a_completion_of_what_is_not_running_changes_nothing(connection: Superuser, settle: Settle):
    """The other columns match: the owner's columns are filled in by hand, which the table itself would not allow."""
    await connection.execute("alter table horai.instance_live drop constraint instance_live_running_has_owner")
    job = await rows.job(connection, paused=True)
    for state in set(State) - {State.RUNNING}:
        held = await rows.instance(connection, state, job_id=job)
        await connection.execute("update horai.instance_live set node = $1, claim = 1, claimed_at = now()", rows.NODE)
        before = await rows.everything(connection)

        assert not await settle(connection, held), state

        assert await rows.everything(connection) == before, state


WRONG: list[dict[str, int]] = [{"attempt": 2}, {"attempt": 4}, {"fence": 4}, {"fence": 6}, {"node": 8}]


@settles
async def test_B10_X17_an_old_attempt_fence_or_node_has_no_say(connection: Superuser, settle: Settle):
    held = await rows.instance(connection, State.RUNNING, job_id=await rows.job(connection, paused=True))
    before = await rows.everything(connection)
    for wrong in WRONG:
        assert not await settle(connection, held._replace(**wrong)), wrong

        assert await rows.everything(connection) == before, wrong


@settles
async def test_B10_the_holder_has_its_say_once(connection: Superuser, settle: Settle):
    held = await rows.instance(connection, State.RUNNING, job_id=await rows.job(connection, paused=True))

    assert await settle(connection, held)
    settled = await rows.everything(connection)

    assert not await settle(connection, held)
    assert await rows.everything(connection) == settled


@passing_over
async def test_a_row_locked_by_another_transaction_is_skipped_and_the_other_rows_are_settled(
    url: str, connection: Superuser, settle: Settle
):
    job = await rows.job(connection, paused=True)
    locked = await rows.instance(connection, State.RUNNING, job_id=job)
    free = await rows.instance(connection, State.RUNNING, job_id=job)
    async with rows.connections(url, 1, lock_timeout=2) as (holder,):
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", locked.id)

            assert not await settle(connection, locked)
            assert await settle(connection, free)

        assert await settle(connection, locked)


# Parking


@pytest.mark.parametrize("order", ["park first", "resume first"])
async def test_a_row_parked_while_its_job_is_resumed_is_not_forgotten(url: str, connection: Superuser, order: str):
    async with make.scope(url) as scope, rows.connections(url, 2) as (parking, resuming):
        job = await make.job(scope)
        held = (await make.running(scope, connection)).held
        await connection.execute("update horai.job set status = 1 where id = $1", job.id)
        first, second = (parking, resuming) if order == "park first" else (resuming, parking)
        steps: dict[Superuser, Callable[[], Awaitable[object]]] = {
            parking: lambda: claims.park_if_running(parking, [held]),
            resuming: lambda: _resume(resuming, job.id),
        }
        async with first.transaction():
            await steps[first]()
            waiting = asyncio.create_task(_in_transaction(second, steps[second]))
            await rows.until_blocked(connection, second)
        await waiting

        lane, state = (await connection.fetch("select lane, state from horai.instance_live"))[0]
        if order == "park first":
            assert (lane, state) == (job.lane_id, State.INIT), "the resume found the parked row and moved it back"
        else:
            assert (lane, state) == (job.lane_id, State.RUNNING), "an active job's row is not parked"


async def _resume(connection: Superuser, job_id: int) -> None:
    await connection.execute("select from horai.job where id = $1 for update", job_id)
    await connection.execute("update horai.job set status = 0 where id = $1", job_id)
    await connection.execute(
        "update horai.instance_live set lane = (select lane_id from horai.job where id = $1) where job_id = $1 and state = 0",
        job_id,
    )


async def _in_transaction(connection: Superuser, step: Callable[[], Awaitable[object]]) -> None:
    async with connection.transaction():
        await step()


# Late results


def late(held: Claim, outcome: str = "SUCCESS", code: str | None = None) -> LateResult:
    return LateResult(held, outcome, code, None)


async def test_an_outcome_of_ones_own_lost_commit_is_not_late(connection: Superuser):
    job = await rows.job(connection)
    for settle, told in (("finish", ("SUCCESS", None)), ("fail", ("FAIL", "X")), ("bury", ("FAIL", "X"))):
        held = await rows.instance(connection, State.RUNNING, job_id=job)
        assert await SETTLES[settle](connection, held)

        assert await claims.keep_late(connection, [late(held, *told)]) == set(), settle

    assert await connection.fetchval("select count(*) from horai.attempt where late") == 0


async def test_an_outcome_that_differs_from_the_recorded_one_is_late(connection: Superuser):
    job = await rows.job(connection)
    for settle, told in (("finish", ("FAIL", "X")), ("bury", ("SUCCESS", None)), ("bury", ("FAIL", "Y"))):
        held = await rows.instance(connection, State.RUNNING, job_id=job)
        assert await SETTLES[settle](connection, held)

        assert await claims.keep_late(connection, [late(held, *told)]) == {held.id}, settle


@pytest.mark.parametrize("retries_left", [True, False])
async def test_an_outcome_after_the_rescue_is_kept_as_late_and_once(connection: Superuser, retries_left: bool):
    held = await rows.instance(connection, State.RUNNING, job_id=await rows.job(connection))
    if retries_left:
        await claims.fail_if_running(connection, [(held, RetryAt(LATER, "NODE_LOST", "lost"))])
    else:
        await claims.bury_if_running(connection, [(held, Bury("NODE_LOST", "lost"))])
    before = await connection.fetchval("select state from horai.job_instance")

    assert await claims.keep_late(connection, [late(held)]) == {held.id}
    assert await claims.keep_late(connection, [late(held)]) == set()

    assert await connection.fetchval("select state from horai.job_instance") == before
    kept = await connection.fetch("select attempt, fence, outcome from horai.attempt where late")
    assert [tuple(row) for row in kept] == [(held.attempt, held.fence, "SUCCESS")]
    assert (None, "INSTANCE_LATE_RESULT") in await rows.events(connection, held.id)


async def test_an_outcome_of_a_cancelled_instance_is_late_even_from_its_own_holder(connection: Superuser):
    held = await rows.instance(connection, State.RUNNING, job_id=await rows.job(connection))
    await SETTLES["cancel"](connection, held)

    assert await claims.keep_late(connection, [late(held)]) == {held.id}


# What a node holds


async def test_the_running_rows_of_a_node_are_paged_by_id(connection: Superuser):
    mine = [await rows.instance(connection, State.RUNNING) for _ in range(5)]
    await rows.instance(connection, State.RUNNING, node=8)
    await rows.instance(connection, State.INIT)

    first = await claims.running_of_node(connection, rows.NODE, 0, 3)
    rest = await claims.running_of_node(connection, rows.NODE, first[-1].held.id, 3)

    assert [row.held._replace(claimed_at=None) for row in (*first, *rest)] == mine
    assert all(row.held.claimed_at is not None for row in (*first, *rest))
    assert {row.claim for row in first} == {rows.CLAIM}


async def test_a_fence_names_its_running_claim_to_its_own_tenant(connection: Superuser):
    held = await rows.instance(connection, State.RUNNING)

    found = await claims.running_by_fence(connection, 1, held.id, held.fence)

    assert found is not None
    assert found._replace(claimed_at=None) == held
    assert await claims.running_by_fence(connection, 1, held.id, held.fence - 1) is None
    assert await claims.running_by_fence(connection, 2, held.id, held.fence) is None
    await SETTLES["release"](connection, held)
    assert await claims.running_by_fence(connection, 1, held.id, held.fence) is None

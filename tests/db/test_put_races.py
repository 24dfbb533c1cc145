"""Seed 000 on a real database: what a put makes of a key that others change at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import make
import pytest
import rows
from databases import Superuser
from key_rows import live_rows, succeed

from horai.core.put import PutDecision
from horai.core.states import CancelReason, State
from horai.db import instances as plans
from horai.db import jobs
from horai.db.claims import ClaimedRow
from horai.db.instances import InsertTarget, NewInstance
from horai.db.single_writes import FreshPut, insert_fresh
from horai.operations.put import Put, PutResult, put_all
from horai.operations.scope import Scope

SOON = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
LATER = SOON + timedelta(hours=1)
KEY = "article:42"


async def place_of(connection: Superuser, scope: Scope) -> InsertTarget:
    job = await jobs.find_job(connection, scope.tenant_id, "publish")
    assert job is not None
    return InsertTarget(job.id, job.tenant_id, job.lane_now, job.payload)


async def test_A11_an_update_decided_on_a_waiting_row_that_began_to_run_hits_nothing(url: str, connection: Superuser):
    """SELECT sees INIT; the row becomes RUNNING; the UPDATE changes no row."""
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, KEY)
        place = await place_of(connection, scope)
        seen = (await plans.live_of_keys(connection, place.job_id, [KEY]))[KEY]
        assert seen.state is State.INIT
        await make.claim(connection, await make.node(connection))
        (running,) = await live_rows(connection)

        assert await plans.move_planned(connection, [(seen, NewInstance(KEY, LATER, '{"a": 1}', 9))]) == {}

        assert await live_rows(connection) == [running]
        assert await rows.events(connection, seen.id) == []


async def test_A10_A12_a_put_by_one_statement_is_undone_if_the_instance_succeeds_while_its_insert_waits(
    url: str, connection: Superuser
):
    """The statement began before the success, and reads the history after its insert, with a later snapshot."""
    async with make.scope(url) as scope, rows.connections(url, 2) as (changing, putting):
        await make.job(scope)
        await make.put(scope, KEY)
        claimed = await make.claim(connection, await make.node(connection))
        async with changing.transaction():
            await succeed(changing, claimed[0])
            puts = [FreshPut(key, LATER, None, None) for key in ("article:41", KEY)]
            made = asyncio.create_task(insert_fresh(putting, 1, (None, "publish"), puts, timedelta(seconds=10)))
            await rows.until_blocked(connection, putting)

        assert await made == {}
        assert await live_rows(connection) == []
        assert (await insert_fresh(putting, 1, (None, "publish"), puts, timedelta(seconds=10))).keys() == {"article:41"}


Change = Callable[[Superuser, ClaimedRow], Awaitable[object]]


async def _put_while(url: str, change: Change, *, running: bool) -> tuple[PutResult, ClaimedRow]:
    """A put that has to wait for `change`, which commits while the put waits."""
    async with make.scope(url) as scope, rows.connections(url, 3) as (watching, changing, putting):
        await make.job(scope)
        await make.put(scope, KEY)
        node = await make.node(watching)
        place = await place_of(watching, scope)
        claimed = (await make.claim(watching, node)) if running else []
        async with changing.transaction():
            if not running:
                claimed = await make.claim(changing, node)
            await change(changing, claimed[0])

            async def put() -> PutResult:
                async with putting.transaction():
                    return (await put_all(putting, place, [Put(KEY, LATER)]))[0]

            answer = asyncio.create_task(put())
            await rows.until_blocked(watching, putting)
        return await answer, claimed[0]


async def _nothing(connection: Superuser, claimed: ClaimedRow) -> None:
    """The claim itself is the change."""


async def _cancel(connection: Superuser, claimed: ClaimedRow) -> None:
    assert await plans.cancel_live(connection, [claimed.held.id], CancelReason.USER, running=True)


async def _vanish(connection: Superuser, claimed: ClaimedRow) -> None:
    await connection.execute("delete from horai.instance_live where id = $1", claimed.held.id)


async def test_A12_a_put_supersedes_an_instance_that_is_claimed_during_the_put(url: str, connection: Superuser):
    answer, claimed = await _put_while(url, _nothing, running=False)

    assert answer.verdict is PutDecision.SUPERSEDED
    (row,) = await live_rows(connection)
    assert (row["supersedes"], row["execute_time"]) == (claimed.held.id, LATER)


async def test_A10_A12_a_put_is_ignored_if_the_instance_succeeds_during_the_put(url: str, connection: Superuser):
    answer, claimed = await _put_while(url, succeed, running=True)

    assert answer == PutResult(PutDecision.IGNORED, claimed.held.id)
    assert await live_rows(connection) == []


@pytest.mark.parametrize("change", [_cancel, _vanish])
async def test_A12_a_put_inserts_an_instance_if_the_old_one_is_cancelled_or_vanishes_during_the_put(
    url: str, connection: Superuser, change: Change
):
    answer, claimed = await _put_while(url, change, running=True)

    assert answer.verdict is PutDecision.INSERTED
    (row,) = await live_rows(connection)
    assert (row["id"], row["execute_time"]) == (answer.instance_id, LATER)
    assert row["id"] != claimed.held.id


@pytest.mark.parametrize("commits", [True, False])
async def test_A12_a_key_inserted_meanwhile_is_decided_again(url: str, connection: Superuser, commits: bool):
    async with make.scope(url) as scope, rows.connections(url, 2) as (first, second):
        await make.job(scope)
        place = await place_of(connection, scope)
        tx = first.transaction()
        await tx.start()
        (made,) = await put_all(first, place, [Put(KEY, SOON)])

        async def put() -> PutResult:
            async with second.transaction():
                return (await put_all(second, place, [Put(KEY, LATER)]))[0]

        waiting = asyncio.create_task(put())
        await rows.until_blocked(connection, second)
        await (tx.commit() if commits else tx.rollback())
        answer = await waiting

        (row,) = await live_rows(connection)
        assert row["execute_time"] == LATER, "the last intent is not lost"
        assert answer.verdict is (PutDecision.UPDATED if commits else PutDecision.INSERTED)
        assert (answer.instance_id == made.instance_id) == commits


async def test_A12_a_put_whose_update_hits_nothing_decides_again(
    url: str, connection: Superuser, monkeypatch: pytest.MonkeyPatch
):
    """Should a row change under a put in spite of its lock, nothing is lost: the key is looked at again."""
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, KEY, SOON)
        looks = 0
        real = plans.move_planned

        async def misses_once(*arguments: object) -> object:
            nonlocal looks
            looks += 1
            return {} if looks == 1 else await real(*arguments)  # pyright: ignore[reportArgumentType]

        monkeypatch.setattr(plans, "move_planned", misses_once)
        verdict, moved = await make.put(scope, KEY, LATER)

        assert (verdict, moved.execute_time, looks) == (PutDecision.UPDATED, LATER, 2)

"""The writes of a settlement, all of them or none."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import asyncpg
import make
import pytest
import rows
from databases import Superuser

from horai.core.outcome import Bury, Complete, Release, RetryAt
from horai.core.states import CancelReason, State
from horai.db import claims, instance_queries, instances, settlements
from horai.db.claims import Claim
from horai.db.instances import LiveOfKey, NewInstance

HOUR = timedelta(hours=1)
AT = datetime(2030, 1, 1, tzinfo=UTC)


def row_of(held: Claim) -> LiveOfKey:
    return LiveOfKey(held.id, State.INIT, None, 0, AT, 1, AT, None, AT)


Write = Callable[[Superuser, Claim], Awaitable[object]]
WRITES: dict[str, tuple[State, Write]] = {
    "fail": (State.RUNNING, lambda c, h: claims.fail_if_running(c, [(h, RetryAt(HOUR, "X", "x"))])),
    "bury": (State.RUNNING, lambda c, h: claims.bury_if_running(c, [(h, Bury("X", "x"))])),
    "release": (State.RUNNING, lambda c, h: claims.release_if_running(c, [(h, Release())])),
    "park": (State.RUNNING, lambda c, h: claims.park_if_running(c, [h])),
    "cancel_if_running": (State.RUNNING, lambda c, h: claims.cancel_if_running(c, [h])),
    "supersede": (
        State.RUNNING,
        lambda c, h: instances.supersede_running(c, [(row_of(h), NewInstance("k", AT, None, None))]),
    ),
    "move": (State.INIT, lambda c, h: instances.move_planned(c, [(row_of(h), NewInstance("k", AT, None, None))])),
    "cancel_live": (State.BLOCKED, lambda c, h: instances.cancel_live(c, [h.id], CancelReason.USER, running=False)),
}
writes = pytest.mark.parametrize(("state", "write"), WRITES.values(), ids=WRITES.keys())


async def prepared(connection: Superuser, state: State) -> Claim:
    return await rows.instance(connection, state, job_id=await rows.job(connection, paused=True))


@writes
async def test_C26_a_change_whose_event_cannot_be_written_does_not_happen(
    connection: Superuser, state: State, write: Write
):
    held = await prepared(connection, state)
    await connection.execute(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;"
        "create trigger refuse before insert on horai.event for each row execute function refuse()"
    )
    before = await rows.everything(connection)

    with pytest.raises(asyncpg.RaiseError):
        await write(connection, held)

    assert await rows.everything(connection) == before


@writes
async def test_C26_a_change_and_its_event_are_written_together(connection: Superuser, state: State, write: Write):
    held = await prepared(connection, state)

    assert await write(connection, held)

    assert [seq for seq, _ in await rows.events(connection, held.id)] == [1]
    counted = await connection.fetchval(
        "select events from horai.instance_live where id = $1 union all select events from horai.instance_history where id = $1",
        held.id,
    )
    assert counted == 1


Finish = Callable[[Superuser, Claim, Complete], Awaitable[set[int]]]
FINISHES: dict[str, Finish] = {
    "if_running": lambda c, held, done: claims.finish_if_running(c, held.node, [(held, done)]),
    "if_free": lambda c, held, done: claims.finish_if_free(c, [(held, done)]),
}
finishes = pytest.mark.parametrize("finish", FINISHES.values(), ids=FINISHES.keys())


@finishes
async def test_C26_C50_the_history_row_of_a_success_is_its_event(connection: Superuser, finish: Finish):
    held = await rows.instance(connection, State.RUNNING)
    await claims.fail_if_running(connection, [(held, RetryAt(timedelta(0), "X", "x"))])
    await connection.execute("update horai.instance_live set state = 1, node = 7, claim = 1, claimed_at = now()")

    assert await finish(connection, held, Complete('{"n": 1}')) == {held.id}

    assert await rows.events(connection, held.id) == [(1, "INSTANCE_FAILED"), (2, "INSTANCE_DONE")]
    data = await connection.fetchval("select data ->> 'worker' from horai.instance_event where kind = 'INSTANCE_DONE'")
    assert data == str(rows.NODE)
    assert await connection.fetchval("select result ->> 'n' from horai.instance_history") == "1"


@finishes
async def test_B11_B12_a_success_clears_the_error_and_keeps_the_failures(
    url: str, connection: Superuser, finish: Finish
):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held
        await claims.fail_if_running(connection, [(held, RetryAt(timedelta(0), "HTTP_503", "busy"))])
        failed = await instance_queries.instance_by_id(connection, 1, held.id)
        assert failed is not None
        assert (failed.error_code, failed.error_msg, failed.retry_count) == ("HTTP_503", "busy", 1)

        (again,) = await make.claim(connection, held.node)
        assert await finish(connection, again.held, Complete())

        done = await instance_queries.instance_by_id(connection, 1, held.id)
        assert done is not None
        assert (done.error_code, done.error_msg, done.retry_count, done.attempt) == (None, None, 1, 2)


@finishes
async def test_a_success_takes_everything_it_was_into_history(url: str, connection: Superuser, finish: Finish):
    """Column by column: nothing that the two tables share is lost or put in another's place."""
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, "k", datetime.now(UTC) - HOUR, payload={"n": 1}, version=7)
        await make.put(scope, "k", datetime.now(UTC) - HOUR / 2, payload={"n": 2}, version=8)
        (first,) = await make.claim(connection, await make.node(connection))
        await make.put(scope, "k", datetime.now(UTC) - HOUR / 4, payload={"n": 3}, version=9)
        (again,) = await make.claim(connection, first.held.node)
        live = await connection.fetchrow("select * from horai.instance_live")

        assert await finish(connection, again.held, Complete())

        past = await connection.fetchrow("select * from horai.instance_history where id = $1", again.held.id)
        assert live is not None
        assert past is not None
        shared = (set(live.keys()) & set(past.keys())) - {"state"}
        assert {name: past[name] for name in shared} == {name: live[name] for name in shared}
        assert past["supersedes"] == first.held.id


async def test_the_outputs_of_a_batch_stay_with_their_instances(connection: Superuser):
    held = [await rows.instance(connection, State.RUNNING) for _ in range(4)]
    outputs = ['"a"', None, "0", None]
    batch = [(each, Complete(output)) for each, output in zip(held, outputs, strict=True)]

    assert len(await claims.finish_if_running(connection, rows.NODE, batch)) == 4

    kept = await connection.fetch("select result from horai.instance_history order by id")
    assert [row["result"] for row in kept] == outputs


async def test_a_failure_is_planned_by_the_databases_clock(connection: Superuser):
    held = await rows.instance(connection, State.RUNNING)
    before = await connection.fetchval("select clock_timestamp()")

    (woken,) = await claims.fail_if_running(connection, [(held, RetryAt(HOUR, "X", "why"))])

    assert timedelta(0) <= woken.due - before - HOUR < timedelta(seconds=5)
    row = await connection.fetchrow("select * from horai.instance_live")
    assert row is not None
    assert (row["state"], row["retry_count"], row["attempt"], row["fence"]) == (State.FAIL, 3, 3, 5)
    assert row["execute_time"] == row["due"] == woken.due
    assert (row["node"], row["claim"], row["claimed_at"]) == (None, None, None)
    tried = await connection.fetchrow(
        "select attempt, fence, node, outcome, error_code, error_msg, late from horai.attempt"
    )
    assert tried is not None
    assert tuple(tried) == (3, 5, rows.NODE, "FAIL", "X", "why", False)


async def test_a_burial_leaves_history_attempt_event_and_letter(connection: Superuser):
    held = await rows.instance(connection, State.RUNNING)

    assert await claims.bury_if_running(
        connection, [(held, Bury("TIMEOUT", "why", ("transient_error", "timeout")))]
    ) == {held.id}

    past = await connection.fetchrow("select state, retry_count, error_code, error_msg from horai.instance_history")
    letter = await connection.fetchrow("select error_code, error_msg, tags, replay_status from horai.dead_letter")
    assert past is not None
    assert letter is not None
    assert tuple(past) == (State.DEAD, 3, "TIMEOUT", "why")
    assert tuple(letter) == ("TIMEOUT", "why", ["transient_error", "timeout"], "NEW")
    assert await connection.fetchval("select count(*) from horai.instance_live") == 0
    assert await rows.events(connection, held.id) == [(1, "INSTANCE_DEAD")]


@pytest.mark.parametrize("postponed", [True, False])
async def test_a_release_counts_no_failure_and_moves_the_time_only_when_asked(connection: Superuser, postponed: bool):
    held = await rows.instance(connection, State.RUNNING)
    before = await connection.fetchrow("select execute_time, clock_timestamp() as now from horai.instance_live")
    assert before is not None

    (woken,) = await claims.release_if_running(connection, [(held, Release(HOUR, postponed))])

    row = await connection.fetchrow("select * from horai.instance_live")
    assert row is not None
    assert (row["state"], row["retry_count"], row["fence"]) == (State.INIT, 2, 5)
    assert row["attempt"] == (3 if postponed else 2), "a claim that started no call is no attempt"
    assert row["due"] == woken.due >= before["now"] + HOUR
    assert row["execute_time"] == (woken.due if postponed else before["execute_time"])


async def test_a_batch_of_all_kinds_is_applied_each_by_its_statement(connection: Superuser):
    kinds = (Complete(), RetryAt(HOUR, "X", "x"), Bury("X", "x"), Release(HOUR))
    batch = [(await rows.instance(connection, State.RUNNING), kinds[n % 4]) for n in range(12)]
    gone = (await rows.instance(connection, State.INIT), Complete())

    applied = await settlements.apply(connection, [*batch, gone])

    assert applied.ids == {held.id for held, _ in batch}
    assert {row.id for row in applied.woken} == {held.id for held, kind in batch if isinstance(kind, RetryAt | Release)}
    states = await connection.fetch("select state, count(*) as n from horai.job_instance group by state")
    assert {row["state"]: row["n"] for row in states} == {"SUCCESS": 3, "FAIL": 3, "DEAD": 3, "INIT": 4}


async def test_still_running_tells_a_locked_row_from_a_lost_one(url: str, connection: Superuser):
    mine = await rows.instance(connection, State.RUNNING)
    lost = await rows.instance(connection, State.INIT)
    async with rows.connections(url, 1) as (holder,):
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", mine.id)

            assert await claims.still_running(connection, [mine, lost]) == {mine.id}


@pytest.mark.parametrize(("is_quiet", "told"), [(True, 0), (False, 1)])
async def test_a_quiet_release_writes_no_event(url: str, connection: Superuser, is_quiet: bool, told: int):
    async with make.scope(url) as scope:
        await make.job(scope)
        held = (await make.running(scope, connection)).held
        before = await connection.fetchval("select events from horai.instance_live where id = $1", held.id)

        await claims.release_if_running(connection, [(held, Release(HOUR, postponed=True, is_quiet=is_quiet))])

        row = await connection.fetchrow("select state, events from horai.instance_live where id = $1", held.id)
        assert row is not None
        assert (row["state"], row["events"]) == (0, before + told)
        released = "select count(*) from horai.event where instance_id = $1 and kind = 'INSTANCE_RELEASED'"
        assert await connection.fetchval(released, held.id) == told

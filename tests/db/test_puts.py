"""Seed 000 on a real database: what a put makes of a key."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import make
import pytest
import rows
from databases import Superuser
from key_rows import live_rows, past_rows, succeed

from horai.core.outcome import Bury, RetryAt
from horai.core.put import PutDecision
from horai.core.states import CancelReason, State
from horai.db import claims
from horai.db import instances as plans
from horai.db.instances import NewInstance, WaitingLanes
from horai.operations import instances
from horai.operations.instances import Item

SOON = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
LATER = SOON + timedelta(hours=1)
KEY = "article:42"


async def test_A2_fifty_concurrent_creates_of_one_key_make_one_live_row(url: str, connection: Superuser):
    async with make.scope(url, size=20) as scope:
        await make.job(scope)

        answers = await asyncio.gather(*(make.put(scope, KEY, SOON + timedelta(seconds=n)) for n in range(50)))

        (row,) = await live_rows(connection)
        verdicts = [verdict for verdict, _ in answers]
        assert verdicts.count(PutDecision.INSERTED) == 1
        assert verdicts.count(PutDecision.UPDATED) == 49
        assert {instance.id for _, instance in answers} == {row["id"]}


async def test_A2_the_database_itself_refuses_a_second_live_row_of_a_key(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, KEY, SOON)

        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(
                "insert into horai.instance_live select (r).* from (select json_populate_record(l, json_build_object("
                "'id', l.id + 1, 'slot', l.slot - 1)) as r from horai.instance_live l) again"
            )


async def test_A4_a_reschedule_leaves_finished_instances_and_attempts_as_they_were(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        first = await make.running(scope, connection)
        await claims.bury_if_running(connection, [(first.held, Bury("X", "x"))])
        before = await rows.everything(connection)

        await make.put(scope, KEY, SOON)
        await make.put(scope, KEY, LATER)

        after = await rows.everything(connection)
        assert after["instance_history"] == before["instance_history"]
        assert after["attempt"] == before["attempt"]
        letter = await connection.fetchval("select replay_status from horai.dead_letter")
        assert letter == "SUPERSEDED", "a new intent needs no replay of the old one"


async def test_A5_A7_a_waiting_instance_is_moved_in_place(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        _, first = await make.put(scope, KEY, SOON)
        moved = first

        for n in range(1, 6):
            verdict, moved = await make.put(scope, KEY, SOON + timedelta(minutes=n))
            assert verdict is PutDecision.UPDATED
            assert moved.id == first.id
            assert moved.execute_time == SOON + timedelta(minutes=n)
            assert moved.due == moved.execute_time

        assert len(await live_rows(connection)) == 1
        assert await past_rows(connection) == []
        assert await rows.events(connection, first.id) == [(n, "INSTANCE_RESCHEDULED") for n in range(1, 6)]
        assert moved.idem_key == first.idem_key, "the key of an instance is fixed at birth"


async def test_A6_a_failed_instance_is_moved_in_place_and_keeps_its_failures(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        claimed = await make.running(scope, connection)
        await claims.fail_if_running(connection, [(claimed.held, RetryAt(timedelta(hours=5), "X", "x"))])

        verdict, moved = await make.put(scope, KEY, SOON)

        assert verdict is PutDecision.UPDATED
        assert (moved.id, moved.state, moved.retry_count, moved.attempt) == (claimed.held.id, State.FAIL, 1, 1)
        assert moved.execute_time == moved.due == SOON


async def test_an_instance_put_into_the_past_is_due_now_and_not_earlier(url: str, connection: Superuser):
    """A claimer's cursor has passed the past: a row put there would not be found."""
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.put(scope, KEY, SOON)
        before = await connection.fetchval("select clock_timestamp()")

        _, moved = await make.put(scope, KEY, datetime(2001, 1, 1, tzinfo=UTC))
        _, made = await make.put(scope, "other", datetime(2001, 1, 1, tzinfo=UTC))
        (unkeyed,) = await make.many(scope, 1, at=datetime(2001, 1, 1, tzinfo=UTC))

        assert moved.execute_time == made.execute_time == datetime(2001, 1, 1, tzinfo=UTC)
        dues = {row["id"]: row["due"] for row in await live_rows(connection)}
        assert all(due >= before for due in dues.values())
        assert set(dues) == {moved.id, made.id, unkeyed}


async def test_A8_the_time_of_a_running_instance_never_changes(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        claimed = await make.running(scope, connection)
        (before,) = await live_rows(connection)
        row = (await plans.live_of_keys(connection, claimed.held.job_id, [KEY]))[KEY]

        assert await plans.move_planned(connection, [(row, NewInstance(KEY, LATER, None, None))]) == {}
        assert await plans.move_to_lane(connection, claimed.held.job_id, WaitingLanes(0, 0), 10) == []
        assert await plans.lock_waiting(connection, claimed.held.job_id, 10) == []
        assert await plans.cancel_live(connection, [row.id], CancelReason.USER, running=False) == []

        assert await live_rows(connection) == [before]
        await make.put(scope, KEY, LATER)
        (old,) = await past_rows(connection)
        assert old["execute_time"] == before["execute_time"]


async def test_A9_a_running_instance_is_superseded_and_replaced(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        old = await make.running(scope, connection)

        verdict, new = await make.put(scope, KEY, LATER)

        assert verdict is PutDecision.SUPERSEDED
        (past,) = await past_rows(connection)
        assert (past["id"], past["state"], past["reason"]) == (old.held.id, State.CANCELLED, CancelReason.SUPERSEDED)
        assert (new.supersedes, new.state, new.execute_time, new.attempt) == (old.held.id, State.INIT, LATER, 0)
        assert new.fence == old.held.fence, "to a receiver the fence grows along the unit"
        assert await rows.events(connection, old.held.id) == [(1, "INSTANCE_CANCELLED")]


async def test_A9_cancel_and_insert_are_one_transaction(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.running(scope, connection)
        before = await rows.everything(connection)
        await connection.execute(
            "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;"
            "create trigger refuse before insert on horai.instance_live for each row execute function refuse()"
        )

        with pytest.raises(asyncpg.RaiseError):
            await make.put(scope, KEY, LATER)

        assert await rows.everything(connection) == before


async def test_A10_a_put_of_a_succeeded_key_writes_nothing(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        done = await make.running(scope, connection)
        await succeed(connection, done)
        before = await rows.everything(connection)

        verdict, instance = await make.put(scope, KEY, LATER)

        assert verdict is PutDecision.IGNORED
        assert (instance.id, instance.state) == (done.held.id, State.SUCCESS)
        assert await rows.everything(connection) == before


async def test_again_runs_a_succeeded_key_once_more(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await succeed(connection, await make.running(scope, connection))

        verdict, _ = await make.put(scope, KEY, LATER, again=True)

        assert verdict is PutDecision.INSERTED
        assert len(await live_rows(connection)) == 1


async def test_A16_a_hundred_reschedules_leave_one_readable_chain(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        node = await make.node(connection)
        await make.put(scope, KEY)
        for n in range(100):
            if n % 4 == 0:
                assert len(await make.claim(connection, node)) == 1
            await make.put(scope, KEY, payload={"n": n})

        past, (live,) = await past_rows(connection), await live_rows(connection)
        assert len(past) == 25
        assert all(row["reason"] == CancelReason.SUPERSEDED for row in past)
        assert [row["supersedes"] for row in (*past, live)] == [None, *(row["id"] for row in past)]
        assert [row["fence"] for row in (*past, live)] == [*range(1, 26), 25]
        for row in past:
            events = await rows.events(connection, row["id"])
            assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
            assert events[-1] == (len(events), "INSTANCE_CANCELLED")


async def test_a_version_orders_events_that_arrive_out_of_order(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        node = await make.node(connection)

        async def put(version: int | None, at: datetime) -> PutDecision:
            return (await make.put(scope, KEY, at, version=version))[0]

        now = datetime.now(UTC)
        assert await put(5, now) is PutDecision.INSERTED
        assert await put(4, LATER) is PutDecision.IGNORED
        assert await put(5, now) is PutDecision.IGNORED, "an equal one with the same time repeats itself"
        assert await put(5, SOON) is PutDecision.UPDATED, "an equal one may bring another time"
        assert await put(5, now) is PutDecision.UPDATED
        (claimed,) = await make.claim(connection, node)
        assert await put(4, LATER) is PutDecision.IGNORED
        assert await put(6, LATER) is PutDecision.SUPERSEDED
        assert await put(None, now) is PutDecision.UPDATED
        assert (await live_rows(connection))[0]["version"] == 6, "a put without a version keeps the last one"
        (claimed,) = await make.claim(connection, node)
        await claims.bury_if_running(connection, [(claimed.held, Bury("X", "x"))])
        assert await put(5, LATER) is PutDecision.IGNORED, "history remembers the version too"
        assert await put(None, LATER) is PutDecision.INSERTED
        assert await put(5, LATER) is PutDecision.IGNORED


async def test_a_put_with_an_equal_version_time_and_payload_changes_nothing(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        node, now = await make.node(connection), datetime.now(UTC)

        async def put(payload: Any = None, **intent: Any) -> PutDecision:
            return (await make.put(scope, KEY, now, payload=payload, version=5, **intent))[0]

        assert await put({"n": 1}) is PutDecision.INSERTED
        (claimed,) = await make.claim(connection, node)
        before = await rows.everything(connection)
        assert [await put({"n": 1}), await put(), await put({"n": 1}, again=True)] == [PutDecision.IGNORED] * 3
        assert await rows.everything(connection) == before, "what runs is not replaced"
        await claims.bury_if_running(connection, [(claimed.held, Bury("X", "x"))])
        before = await rows.everything(connection)
        assert [await put({"n": 1}), await put()] == [PutDecision.IGNORED] * 2
        assert await rows.everything(connection) == before, "what died is not run again"
        assert await put({"n": 2}) is PutDecision.INSERTED, "another payload is a new intent"


async def test_a_batch_follows_the_rules_of_put_and_answers_in_order(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.running(scope, connection, "runs")
        await make.put(scope, "waits", SOON)
        items = [Item(LATER, None, key) for key in ("new", "runs", "waits", "new")] + [Item(LATER, '{"n": 1}')]

        answers = await instances.insert_batch(scope, "publish", items)

        verdicts = [answer.verdict for answer in answers]
        assert verdicts == [
            PutDecision.INSERTED, PutDecision.SUPERSEDED, PutDecision.UPDATED, PutDecision.UPDATED, PutDecision.INSERTED,
        ]  # fmt: skip
        assert answers[0].instance_id == answers[3].instance_id
        assert len(await live_rows(connection)) == 4


async def test_concurrent_batches_over_the_same_keys_do_not_deadlock(url: str, connection: Superuser):
    async with make.scope(url, size=10) as scope:
        await make.job(scope)
        keys = [f"k{n}" for n in range(40)]
        orders = [keys, keys[::-1], keys[20:] + keys[:20]] * 4

        await asyncio.gather(
            *(instances.insert_batch(scope, "publish", [Item(SOON, None, key) for key in order]) for order in orders)
        )

        assert len(await live_rows(connection)) == len(keys)


@pytest.mark.parametrize("ending", ["cancelled", "dead", "succeeded"])
async def test_the_fence_of_a_key_keeps_growing_after_a_cancel_a_death_or_a_success(
    url: str, connection: Superuser, ending: str
):
    """Two calls of one unit may be in flight: a receiver of both must see the later one as the newer one."""
    async with make.scope(url) as scope:
        await make.job(scope)
        running = await make.running(scope, connection, KEY)
        match ending:
            case "cancelled":
                await instances.cancel_by_key(scope, "publish", KEY)
            case "dead":
                assert await claims.bury_if_running(connection, [(running.held, Bury("X", "x"))])
            case _:
                await succeed(connection, running)
        verdict, again = await make.put(scope, KEY, again=True)
        assert (verdict, again.fence) == (PutDecision.INSERTED, running.held.fence)
        (claimed,) = await make.claim(connection, await make.node(connection))
        assert claimed.held.fence > running.held.fence

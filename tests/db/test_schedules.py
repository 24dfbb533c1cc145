"""Schedules on a real database: each slot once, and the cursor as its guard."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import rows
from databases import Superuser

from horai.core.limits import SHARDS
from horai.core.timing import Rhythm
from horai.db import instances, jobs, schedules
from horai.db.instances import WaitingLanes
from horai.db.jobs import WaitingMove
from horai.db.schedules import ScheduleCursor, SkippedRange, Step
from horai.operations import jobs as accepted
from horai.operations.scope import Scope
from horai.time.schedule import CronSchedule

EVERY = {"every": "1h"}
PAST = datetime(2020, 1, 1, tzinfo=UTC)
HOURLY = CronSchedule("0 * * * *")


async def follow(scope: Scope, count: int, **fields: Any) -> int:
    """Jobs that share one schedule; its id."""
    made = [await make.job(scope, f"job-{n}", **{**EVERY, **fields}) for n in range(count)]
    schedule_id = made[0].schedule_id
    assert schedule_id is not None
    assert {job.schedule_id for job in made} == {schedule_id}
    return schedule_id


async def slots(connection: Superuser) -> list[tuple[int, datetime]]:
    found = await connection.fetch("select job_id, fire_time from horai.instance_live order by job_id, fire_time")
    return [(row["job_id"], row["fire_time"]) for row in found]


async def fire_time(connection: Superuser, schedule_id: int) -> datetime | None:
    return await connection.fetchval("select fire_time from horai.schedule where id = $1", schedule_id)


async def test_jobs_with_an_equal_calendar_share_one_schedule(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await follow(scope, 3)
        await make.job(scope, "same", every="60m")
        await make.job(scope, "other", every="61m")

        assert await connection.fetchval("select count(*) from horai.schedule") == 2


async def test_a_slot_is_made_for_every_job_in_chunks_by_the_cursor(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 7)
        slot, last, made = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1), 0, 0
        chunks: list[int] = []
        while found := await schedules.make_slots(connection, [ScheduleCursor(schedule_id, slot, last)], 3):
            chunk = found[schedule_id]
            chunks.append(chunk.jobs)
            made += chunk.made
            last = chunk.last_job

        assert chunks == [3, 3, 1]
        assert made == 7
        ids = [row["id"] for row in await connection.fetch("select id from horai.job order by id")]
        assert await slots(connection) == [(job, slot) for job in ids]
        row = await connection.fetchrow("select * from horai.instance_live limit 1")
        assert row is not None
        assert (row["slot"], row["state"], row["execute_time"], row["born_for"], row["due"]) == (0, 0, slot, slot, slot)
        assert row["shard"] == row["id"] % SHARDS


async def test_a_slot_that_exists_is_left_alone(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 2)
        slot = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        await schedules.make_slots(connection, [ScheduleCursor(schedule_id, slot, 0)], 10)
        before = await rows.everything(connection)

        again = (await schedules.make_slots(connection, [ScheduleCursor(schedule_id, slot, 0)], 10))[schedule_id]

        assert (again.jobs, again.made, again.lanes, again.due) == (2, 0, (), None)
        assert await rows.everything(connection) == before


async def test_a_late_slot_is_due_now_and_not_in_the_past(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 1)
        await connection.execute("update horai.job set active_from = '2019-01-01'")
        before = await connection.fetchval("select clock_timestamp()")

        made = (await schedules.make_slots(connection, [ScheduleCursor(schedule_id, PAST, 0)], 10))[schedule_id]

        assert made.due is not None
        assert made.due >= before
        assert await connection.fetchval("select execute_time from horai.instance_live") == PAST


async def test_no_slot_is_made_for_what_is_paused_deleted_or_not_active_yet(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 4)
        slot = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
        await accepted.pause_job(scope, "job-0", None)
        await accepted.delete_job(scope, "job-1")
        await connection.execute("update horai.job set active_from = $1 where name = 'job-2'", slot)

        made = (await schedules.make_slots(connection, [ScheduleCursor(schedule_id, slot, 0)], 10))[schedule_id]

        assert (made.jobs, made.made) == (2, 1), "job-2 is looked at, and not active before its slot"
        only = await connection.fetchval("select id from horai.job where name = 'job-3'")
        assert await slots(connection) == [(only, slot)]


async def test_the_cursor_moves_only_from_where_it_was_seen(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 1)
        now = await fire_time(connection, schedule_id)
        assert now is not None
        seen, later = ScheduleCursor(schedule_id, now, 0), now + timedelta(hours=1)

        assert (
            await schedules.advance_schedules(
                connection, [Step(ScheduleCursor(schedule_id, now, 5), HOURLY, later, PAST)]
            )
            == set()
        )
        assert (
            await schedules.advance_schedules(
                connection, [Step(ScheduleCursor(schedule_id, later, 0), HOURLY, later, PAST)]
            )
            == set()
        )
        assert await fire_time(connection, schedule_id) == now
        assert await schedules.advance_schedules(connection, [Step(seen, HOURLY, later, PAST)]) == {schedule_id}
        assert (
            await schedules.advance_schedules(connection, [Step(seen, HOURLY, later + timedelta(hours=1), PAST)])
            == set()
        )
        assert await fire_time(connection, schedule_id) == later


async def test_a_sleeping_schedule_is_woken_by_its_next_job(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 1)
        now = await fire_time(connection, schedule_id)
        assert now is not None
        await schedules.advance_schedules(connection, [Step(ScheduleCursor(schedule_id, now, 0), HOURLY, None, PAST)])
        assert await schedules.coming_schedules(connection, now + timedelta(days=9), 10) == []
        assert await schedules.lock_schedules(connection, [schedule_id]) == []

        await make.job(scope, "next", **EVERY)

        assert await schedules.coming_schedules(connection, now + timedelta(days=9), 10) == [(schedule_id, now)]


async def test_a_trigger_is_told_of_the_schedules_of_its_shards_earliest_first(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        for seconds in range(1, 9):
            await make.job(scope, f"job-{seconds}", every=f"{seconds}s")
        until = datetime.now(UTC) + timedelta(hours=1)
        everything = await schedules.coming_schedules(connection, until, 100)
        own = {schedule_id % SHARDS for schedule_id, _ in everything[::2]}

        mine = await schedules.coming_schedules(connection, until, 100, own)
        theirs = await schedules.coming_schedules(connection, until, 100, set(range(SHARDS)) - own)

        assert len(everything) == 8
        assert mine == [row for row in everything if row[0] % SHARDS in own]
        assert theirs == [row for row in everything if row[0] % SHARDS not in own]
        assert [at for _, at in mine] == sorted(at for _, at in mine)
        assert await schedules.coming_schedules(connection, until, 2, own) == mine[:2]
        assert await schedules.coming_schedules(connection, until, 100, ()) == []


async def test_many_jobs_that_wake_one_sleeping_schedule_at_once_all_succeed(url: str, connection: Superuser):
    """Each used to hold it shared and then want it alone: a deadlock."""
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 1)
        for round_ in range(3):
            await connection.execute("update horai.schedule set fire_time = null")
            async with asyncio.timeout(30):
                made = await asyncio.gather(*(make.job(scope, f"r{round_}-{n}", **EVERY) for n in range(8)))

            assert {job.schedule_id for job in made} == {schedule_id}
            assert await fire_time(connection, schedule_id) is not None


async def test_a_sleeping_schedule_that_two_transactions_join_does_not_deadlock(url: str, connection: Superuser):
    schedule = Rhythm(HOURLY)
    joined = (await schedules.join_schedule(connection, schedule, PAST, PAST)).schedule_id
    await connection.execute("update horai.schedule set fire_time = null")
    async with rows.connections(url, 2) as (one, other):
        async with one.transaction():
            await schedules.join_schedule(one, schedule, PAST, PAST)

            async def join() -> ScheduleCursor:
                async with other.transaction():
                    return await schedules.join_schedule(other, schedule, PAST + timedelta(hours=1), PAST)

            waiting = asyncio.create_task(join())
            await rows.until_blocked(connection, other)
        assert await waiting == ScheduleCursor(joined, PAST, 0), "who came second finds it awake"


async def test_the_trigger_leaves_a_schedule_that_a_job_is_joining(url: str, connection: Superuser):
    schedule = Rhythm(HOURLY)
    await schedules.join_schedule(connection, schedule, PAST, PAST)
    async with rows.connections(url, 1) as (joining,):
        async with joining.transaction():
            schedule_id = (await schedules.join_schedule(joining, schedule, PAST, PAST)).schedule_id

            assert await schedules.lock_schedules(connection, [schedule_id]) == []

        (locked,) = await schedules.lock_schedules(connection, [schedule_id])
        assert locked.rhythm == schedule
        assert locked.is_due
        assert locked.cursor == ScheduleCursor(schedule_id, PAST, 0)


async def test_the_database_reports_a_schedule_with_a_future_fire_time_as_not_due(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 1)

        (locked,) = await schedules.lock_schedules(connection, [schedule_id])

        assert not locked.is_due


async def test_two_triggers_do_not_get_the_same_schedule(url: str):
    async with make.scope(url) as scope, rows.connections(url, 2, lock_timeout=2) as (one, other):
        schedule_id = await follow(scope, 1)
        async with one.transaction():
            assert len(await schedules.lock_schedules(one, [schedule_id])) == 1

            assert await schedules.lock_schedules(other, [schedule_id]) == []


async def test_a_pause_that_missed_nothing_leaves_no_trace(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await follow(scope, 1)
        before = await connection.fetchval("select active_from from horai.job")
        await accepted.pause_job(scope, "job-0", "for now")
        resumed = await accepted.resume_job(scope, "job-0", None)

        assert resumed.active_from == before
        assert await connection.fetchval("select count(*) from horai.skip") == 0
        assert await connection.fetchval("select count(*) from horai.catchup") == 0


async def test_a_skip_holds_for_every_job_of_its_schedule(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        schedule_id = await follow(scope, 1)

        await schedules.insert_skip(connection, schedule_id, None, SkippedRange(PAST, PAST, 1, "MISFIRE_ONCE"))

        assert await connection.fetchval("select count(*) from horai.skip where job_id is null and slots = 1") == 1


# Lanes of waiting rows


async def test_a_pause_parks_and_a_resume_brings_back_in_batches(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await make.many(scope, 25)

        for lane in (0, job.lane_id):
            moved: list[int] = []
            sizes: list[int] = []
            while batch := await instances.move_to_lane(connection, job.id, WaitingLanes(lane, lane), 10):
                assert {row.lane for row in batch} == {lane}
                sizes.append(len(batch))
                moved += [row.id for row in batch]

            assert sizes == [10, 10, 5]
            assert len(set(moved)) == 25
            assert not await instances.has_waiting_elsewhere(connection, job.id, WaitingLanes(lane, lane))


async def test_instances_of_a_resumed_job_are_due_now_and_not_earlier(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        await make.many(scope, 3)
        await accepted.pause_job(scope, "publish", None)
        assert await make.claim(connection, await make.node(connection)) == []
        before = await connection.fetchval("select clock_timestamp()")

        await accepted.resume_job(scope, "publish", None)

        assert await connection.fetchval("select min(due) from horai.instance_live") >= before
        assert len(await make.claim(connection, await make.node(connection))) == 3


async def test_a_job_stays_marked_while_another_transaction_locks_one_of_its_rows(url: str, connection: Superuser):
    async with make.scope(url) as scope, rows.connections(url, 1) as (holder,):
        job = await make.job(scope)
        ids = await make.many(scope, 2)
        async with holder.transaction():
            await holder.execute("select from horai.instance_live where id = $1 for update", ids[0])
            await accepted.pause_job(scope, "publish", None)

            assert [relane.job_id for relane in await jobs.jobs_to_move(connection, 10)] == [job.id]
            lanes = await connection.fetch("select id, lane from horai.instance_live order by id")
            assert [row["lane"] for row in lanes] == [job.lane_id, 0]

        await accepted.pause_job(scope, "publish", "again")
        assert await connection.fetchval("select bool_and(lane = 0) from horai.instance_live")
        assert await jobs.jobs_to_move(connection, 10) == []


async def test_a_mark_made_for_an_older_version_does_not_count(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        job = await make.job(scope)
        await connection.execute("update horai.job set relane = true")

        await jobs.mark_moved(connection, WaitingMove(job.id, job.version - 1, is_deleted=False, lane=0))
        assert len(await jobs.jobs_to_move(connection, 10)) == 1

        await jobs.mark_moved(connection, WaitingMove(job.id, job.version, is_deleted=False, lane=0))
        assert await jobs.jobs_to_move(connection, 10) == []


async def test_a_deleted_job_cancels_what_waits_and_leaves_what_runs(url: str, connection: Superuser):
    async with make.scope(url) as scope:
        await make.job(scope)
        running = await make.running(scope, connection)
        waiting = await make.many(scope, 3, at=datetime.now(UTC) + timedelta(hours=1))

        await accepted.delete_job(scope, "publish")

        assert await make.state(connection, running.held.id) == "RUNNING"
        assert {await make.state(connection, each) for each in waiting} == {"CANCELLED"}
        assert await connection.fetchval("select count(*) from horai.instance_history where reason = 5") == 3

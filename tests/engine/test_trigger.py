"""The trigger, step by step: each slot once, late ones by the misfire policy."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import make
import pytest
import rows
from collector import Sent
from stages import Workbench, workbench

from horai.core.limits import SHARDS
from horai.core.timing import Rhythm
from horai.core.trace_context import InstanceTraces
from horai.core.wakes import LaneWake, ScheduleWake
from horai.db import schedules
from horai.db.schedules import MadeSlots, ScheduleCursor, Step
from horai.operations import jobs as accepted
from horai.operations.traces import Traces
from horai.time.schedule import EverySchedule, fires_between, next_after

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = EverySchedule(MINUTE)


async def follow(bench: Workbench, count: int = 1, *, ago: timedelta = timedelta(seconds=30)) -> tuple[int, datetime]:
    """Jobs that have followed one schedule for ages, and its next slot: the first after `ago`."""
    made = [await make.job(bench.scope, f"job-{n}", every="1m") for n in range(count)]
    slot = next_after(EVERY_MINUTE, bench.clock.now() - ago - MINUTE)
    await bench.connection.execute("update horai.job set active_from = '2020-01-01'")
    await bench.connection.execute("update horai.schedule set fire_time = $1, last_job = 0", slot)
    assert slot is not None
    assert made[0].schedule_id is not None
    return made[0].schedule_id, slot


async def slots(bench: Workbench) -> list[datetime]:
    found = await bench.connection.fetch("select fire_time from horai.instance_live order by fire_time")
    return [row["fire_time"] for row in found]


async def cursor(bench: Workbench) -> tuple[datetime | None, int]:
    row = await bench.connection.fetchrow("select fire_time, last_job from horai.schedule")
    assert row is not None
    return row["fire_time"], row["last_job"]


async def catch_up(bench: Workbench, trigger: Any, steps: int = 5) -> None:
    for _ in range(steps):
        await trigger.step(bench.clock.now())


async def test_a_due_slot_is_made_and_the_cursor_moves_on(url: str):
    async with workbench(url) as bench:
        _, slot = await follow(bench)
        woken: list[int] = []
        bench.scope.wakeups.subscribe(LaneWake, lambda wake: woken.append(wake.lane))
        trigger = bench.trigger()

        upcoming = await trigger.step(bench.clock.now())

        assert await slots(bench) == [slot]
        assert await cursor(bench) == (slot + MINUTE, 0)
        assert upcoming <= max(slot + MINUTE, bench.clock.now())
        assert len(woken) == 1


async def test_a_slot_of_the_future_is_not_made_early(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope, every="3650d")
        fire_time, _ = await cursor(bench)
        assert fire_time is not None
        trigger = bench.trigger()

        await trigger.step(bench.clock.now())
        trigger.hear(ScheduleWake(1, fire_time))
        await trigger.step(fire_time + timedelta(milliseconds=1))

        assert await slots(bench) == [], "the database's clock decides, not ours"


@pytest.mark.parametrize("jobs", [1, 25])
async def test_two_triggers_at_once_make_each_slot_once(url: str, jobs: int):
    async with workbench(url, slot_chunk=10) as one, workbench(url, slot_chunk=10) as other:
        await follow(one, jobs)
        triggers = [(one, one.trigger()), (other, other.trigger())]
        for _ in range(6):
            await asyncio.gather(*(trigger.step(bench.clock.now()) for bench, trigger in triggers))

        made = await one.connection.fetch(
            "select job_id, fire_time, count(*) as n from horai.instance_live group by 1, 2"
        )
        assert {row["n"] for row in made} == {1}
        per_job = {row["job_id"] for row in made}
        assert len(per_job) == jobs
        assert len(made) % jobs == 0


async def test_downtime_leaves_one_slot_and_one_skip(url: str):
    async with workbench(url) as bench:
        schedule_id, first = await follow(bench, ago=timedelta(hours=3))
        trigger = bench.trigger()
        now = bench.clock.now()

        await catch_up(bench, trigger)

        late = [first, *fires_between(EVERY_MINUTE, first, now - MINUTE, 1000)]
        made = await slots(bench)
        assert made[0] in late[-2:], "of all late slots the last is made"
        assert len(made) <= 3
        (skip,) = await bench.connection.fetch("select * from horai.skip")
        assert (skip["schedule_id"], skip["job_id"], skip["reason"]) == (schedule_id, None, "MISFIRE_ONCE")
        assert (skip["from_time"], skip["to_time"]) == (first, made[0] - MINUTE)
        assert skip["slots"] == (made[0] - first) / MINUTE


async def test_a_slot_is_made_in_chunks_and_another_trigger_completes_it_after_a_crash(url: str):
    async with workbench(url, slot_chunk=3) as bench:
        _, slot = await follow(bench, 8)

        await bench.trigger().step(bench.clock.now())
        assert (await cursor(bench))[0] == slot
        assert len(await slots(bench)) == 3
        for _ in range(3):
            await bench.trigger().step(bench.clock.now())

        assert [each for each in await slots(bench) if each == slot] == [slot] * 8
        fire_time, _ = await cursor(bench)
        assert fire_time is not None
        assert fire_time > slot


async def test_a_begun_slot_is_finished_however_late(url: str):
    async with workbench(url, slot_chunk=3) as bench:
        _, slot = await follow(bench, 5, ago=timedelta(hours=3))
        first_half = await bench.connection.fetchval(
            "select max(id) from (select id from horai.job order by id limit 3) j"
        )
        await bench.connection.execute("update horai.schedule set last_job = $1", first_half)

        await bench.trigger().step(bench.clock.now())

        assert await slots(bench) == [slot] * 2
        assert await bench.connection.fetchval("select count(*) from horai.skip") == 0


async def test_a_schedule_without_jobs_sleeps_until_a_job_joins_it(url: str):
    async with workbench(url) as bench:
        await follow(bench)
        await accepted.delete_job(bench.scope, "job-0")
        trigger = bench.trigger()
        bench.scope.wakeups.subscribe(ScheduleWake, trigger.hear)

        await trigger.step(bench.clock.now())

        assert await cursor(bench) == (None, 0)
        trigger.signal.clear()
        await make.job(bench.scope, "next", every="1m")
        assert trigger.signal.is_set()
        fire_time, _ = await cursor(bench)
        assert fire_time is not None
        assert await trigger.step(bench.clock.now()) <= fire_time + timedelta(milliseconds=1), (
            "a tick, if it is due now"
        )


async def test_every_slot_of_a_chunk_has_one_fire_in_its_trace(url: str):
    sent, ids = Sent(), InstanceTraces(b"c" * 16)
    async with workbench(url, slot_chunk=2) as bench:
        await follow(bench, 5)
        trigger = bench.trigger()
        trigger.traces = Traces(ids, sent.queue)
        for _ in range(3):
            await trigger.step(bench.clock.now())
        made = await bench.connection.fetch("select id from horai.instance_live order by id")

    assert len(made) == 5
    assert [fire.ids for fire in sent.all()] == [ids.root(row["id"]) for row in made]


async def test_a_schedule_that_a_job_is_joining_is_left_to_the_next_look(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (joining,):
        await follow(bench)
        trigger = bench.trigger()
        async with joining.transaction():
            await schedules.join_schedule(joining, Rhythm(EVERY_MINUTE), bench.clock.now(), bench.clock.now())
            again = await trigger.step(bench.clock.now())
            assert await slots(bench) == []
            assert again - bench.clock.now() < timedelta(seconds=1)

        await trigger.step(again)

        assert len(await slots(bench)) == 1


async def test_a_failed_step_forgets_no_schedule(url: str, monkeypatch: pytest.MonkeyPatch):
    async with workbench(url) as bench:
        await follow(bench)
        trigger = bench.trigger()

        async def fails(*_: object) -> dict[int, MadeSlots]:
            raise ConnectionResetError

        monkeypatch.setattr(schedules, "make_slots", fails)
        with pytest.raises(ConnectionResetError):
            await trigger.step(bench.clock.now())
        monkeypatch.undo()
        trigger.line.drop()
        await trigger.step(bench.clock.now())

        assert len(await slots(bench)) == 1


async def test_without_its_lease_the_trigger_makes_nothing(url: str):
    async with workbench(url) as bench:
        await follow(bench)
        bench.lease.trusted = False

        await bench.trigger().step(bench.clock.now())

        assert await slots(bench) == []


async def test_a_slot_is_not_made_when_its_cursor_has_moved_meanwhile(url: str):
    async with workbench(url) as bench:
        schedule_id, slot = await follow(bench)
        trigger = bench.trigger()
        await trigger.step(bench.clock.now())
        await bench.connection.execute("delete from horai.instance_live")

        trigger.hear(ScheduleWake(schedule_id, slot))
        await trigger.step(bench.clock.now())

        assert slot not in await slots(bench), "the wheel is only a cache"
        step = Step(ScheduleCursor(schedule_id, slot, 0), EVERY_MINUTE, slot, slot)
        assert await schedules.advance_schedules(bench.connection, [step]) == set()


async def test_the_wheel_is_refilled_before_it_runs_out(url: str):
    async with workbench(url, horizon=timedelta(seconds=60)) as bench:
        trigger = bench.trigger()
        now = bench.clock.now()
        assert await trigger.step(now) == now + timedelta(seconds=30)
        await follow(bench, ago=timedelta(seconds=5))

        assert datetime.now(UTC) < now + timedelta(seconds=25)
        await trigger.step(now + timedelta(seconds=30))

        assert len(await slots(bench)) == 1


# Ownership


def others(schedule_id: int) -> frozenset[int]:
    """Every shard but that of this schedule."""
    return frozenset(range(SHARDS)) - {schedule_id % SHARDS}


async def test_a_schedule_of_another_nodes_shard_is_left_alone(url: str):
    async with workbench(url) as bench:
        schedule_id, slot = await follow(bench)
        bench.lease.owned = others(schedule_id)
        trigger = bench.trigger()

        await trigger.step(bench.clock.now())
        trigger.hear(ScheduleWake(schedule_id, slot))

        assert not trigger.signal.is_set(), "the schedule of another node does not wake this trigger"
        await trigger.step(bench.clock.now())
        assert await slots(bench) == []


async def test_taking_a_shard_over_brings_its_past_before_anything_else(url: str):
    async with workbench(url) as bench:
        schedule_id, slot = await follow(bench)
        bench.lease.owned = others(schedule_id)
        trigger = bench.trigger()
        await trigger.step(bench.clock.now())

        bench.lease.owned = frozenset(range(SHARDS))
        trigger.reload()
        await trigger.step(bench.clock.now())

        assert trigger.signal.is_set(), "the step is not waited for"
        assert await slots(bench) == [slot]


async def test_timers_leave_the_wheel_together_with_their_shard(url: str):
    async with workbench(url) as bench:
        schedule_id, _ = await follow(bench, ago=timedelta(0))
        await bench.connection.execute(
            "update horai.schedule set fire_time = clock_timestamp() + interval '5 seconds' where id = $1", schedule_id
        )
        trigger = bench.trigger()
        now = bench.clock.now()
        assert await trigger.step(now) < now + timedelta(seconds=6), "the wheel holds the coming fire"

        bench.lease.owned = others(schedule_id)
        again = await trigger.step(now)

        assert again == now + bench.settings.horizon / 2
        assert (await trigger.step(now + timedelta(seconds=6))) > now + timedelta(seconds=6)
        assert await slots(bench) == []


async def test_a_regained_shard_is_reloaded_even_if_the_set_of_shards_is_the_same(url: str):
    """Meanwhile another node owned the shard, and schedules were added whose wakes were not for this node."""
    async with workbench(url) as bench:
        trigger = bench.trigger()
        now = bench.clock.now()
        await trigger.step(now)
        await follow(bench)

        await trigger.step(now)
        assert await slots(bench) == [], "not looked for before the next filling"
        trigger.reload()
        await trigger.step(now)

        assert len(await slots(bench)) == 1


async def test_a_node_without_trigger_shards_asks_nothing(url: str):
    async with workbench(url) as bench:
        await follow(bench)
        bench.lease.owned = frozenset()
        trigger = bench.trigger()

        await trigger.step(bench.clock.now())

        assert await bench.connection.fetchval(
            "select count(*) from pg_stat_activity where application_name = 'horai trigger'"
        ) == 0  # fmt: skip


async def test_two_nodes_with_a_half_each_make_every_slot_once(url: str):
    async with workbench(url) as one, workbench(url) as other:
        for minutes in range(1, 9):
            await make.job(one.scope, f"every-{minutes}", every=f"{minutes}m")
        await one.connection.execute("update horai.job set active_from = '2020-01-01'")
        await one.connection.execute("update horai.schedule set fire_time = date_trunc('second', now())")
        one.lease.owned = frozenset(range(0, SHARDS, 2))
        other.lease.owned = frozenset(range(1, SHARDS, 2))

        await one.trigger().step(one.clock.now())
        assert len(await slots(one)) == 4
        await other.trigger().step(other.clock.now())

        assert len(await slots(one)) == 8

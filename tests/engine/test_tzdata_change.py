"""A node starts with other zone rules than those its schedules were computed by: the pass and the trigger."""

from datetime import datetime, timedelta
from typing import Any

import make
import pytest
import rows
from stages import Workbench, workbench
from structlog.testing import capture_logs
from zone_rules import HOUR, Clock, Edition

from horai.core.limits import SHARDS
from horai.core.wakes import ScheduleWake
from horai.db import schedules
from horai.db import zone_change as rezone
from horai.db.catalog import sql
from horai.db.schedules import ScheduleCursor, Step
from horai.db.zone_change import Move
from horai.engine import zone_change as rezoning
from horai.engine.zone_change import ZoneChange, rezone_now
from horai.time import zones
from horai.time.schedule import CronSchedule, wall_of
from horai.time.zone_change import mark_before

PLACE = "Europe/Berlin"
DAY = 24 * HOUR

OLD = Edition("2026y", {PLACE: Clock(HOUR)})
NEW = Edition("2026z", {PLACE: Clock(2 * HOUR)})
"""The clock is an hour on: what is at a fixed time comes an hour earlier."""


async def standing(bench: Workbench) -> dict[int, tuple[datetime | None, str]]:
    """Where each schedule stands, and by which rules."""
    found = await bench.connection.fetch("select id, fire_time, tzdata from horai.schedule order by id")
    return {row["id"]: (row["fire_time"], row["tzdata"]) for row in found}


async def follow(bench: Workbench, **fields: Any) -> tuple[int, datetime]:
    """A job by the old rules; its schedule, and where that stands."""
    name = f"job-{len(await standing(bench))}"
    job = await make.job(bench.scope, name, timezone=PLACE, **fields)
    assert job.schedule_id is not None
    fire_time = (await standing(bench))[job.schedule_id][0]
    assert fire_time is not None
    return job.schedule_id, fire_time


def in_hours(bench: Workbench, hours: int) -> str:
    """A daily cron whose next slot is so many hours ahead, by the old rules, on a minute that is not now."""
    wall = wall_of(CronSchedule("0 0 * * *", PLACE), bench.clock.now() + hours * HOUR)
    return f"{wall.minute} {wall.hour} * * *"


async def due_now(bench: Workbench, count: int) -> datetime:
    """Jobs that have followed a daily schedule for ages whose slot is due, by the rules of now; that slot."""
    slot = (bench.clock.now() - timedelta(seconds=1)).replace(second=0, microsecond=0)
    wall = wall_of(CronSchedule("0 0 * * *", PLACE), slot)
    schedule = CronSchedule(f"{wall.minute} {wall.hour} * * *", PLACE)
    for number in range(count):
        await make.job(bench.scope, f"job-{number}", cron=schedule.expression, timezone=PLACE)
    mark = mark_before(schedule, slot, slot - DAY)
    await bench.connection.execute("update horai.job set active_from = '2020-01-01'")
    await bench.connection.execute(
        "update horai.schedule set fire_time = $1, passed = $2, wall = $3", slot, mark.passed, mark.wall
    )
    return slot


async def slots(bench: Workbench) -> dict[datetime, int]:
    """For how many jobs each slot was made."""
    found = await bench.connection.fetch("select fire_time, count(*) as n from horai.instance_live group by 1")
    return {row["fire_time"]: row["n"] for row in found}


async def run(bench: Workbench, pass_: ZoneChange, shards: range = range(SHARDS)) -> dict[int, datetime]:
    """A pass from its beginning to its end, and what it moved."""
    connection, moved = bench.connection, dict[int, datetime]()
    now = bench.clock.now()
    pass_.begin(now)
    while pass_.next_at is not None and pass_.next_at <= now:
        moved |= await pass_.step(connection, shards, now)
    return moved


# The pass over the table


async def test_new_zone_rules_move_a_fixed_time_and_mark_every_schedule_as_recomputed(url: str):
    async with workbench(url) as bench:
        with zones.use(OLD):
            fixed, at_nine = await follow(bench, cron=in_hours(bench, 5))
            interval, coming = await follow(bench, every="1h")
            wild, at_half = await follow(bench, cron="30 * * * *")
            assert {rules for _, rules in (await standing(bench)).values()} == {"2026y"}

        with zones.use(NEW), capture_logs() as logs:
            moved = await run(bench, ZoneChange())

        assert moved == {fixed: at_nine - HOUR}
        assert await standing(bench) == {
            fixed: (at_nine - HOUR, "2026z"),
            interval: (coming, "2026z"),
            wild: (at_half, "2026z"),
        }
        assert [(line["event"], line["moved"], line["tzdata"]) for line in logs] == [
            ("schedules follow other zone rules", 1, "2026z")
        ]


async def test_a_change_and_back_again_leaves_every_schedule_where_it_was(url: str):
    async with workbench(url) as bench:
        with zones.use(OLD):
            for hours in range(1, 24):
                await follow(bench, cron=in_hours(bench, hours))
            before = await standing(bench)
        with zones.use(NEW):
            await run(bench, ZoneChange())
            assert (await standing(bench)).keys() == before.keys()
            assert await standing(bench) != before
        with zones.use(OLD):
            await run(bench, ZoneChange())

        assert await standing(bench) == before


async def test_schedules_by_our_rules_are_not_touched(url: str):
    async with workbench(url) as bench:
        with zones.use(OLD):
            await follow(bench, cron=in_hours(bench, 5))
            before = await bench.connection.fetchval("select xmin::text from horai.schedule")

            assert await run(bench, ZoneChange()) == {}

        assert await bench.connection.fetchval("select xmin::text from horai.schedule") == before


async def test_a_pass_goes_over_many_in_batches_and_over_its_own_shards_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rezoning, "BATCH", 3)
    async with workbench(url) as bench:
        with zones.use(OLD):
            before = dict([await follow(bench, cron=in_hours(bench, hours)) for hours in range(2, 12)])
        ours = sorted(before)[1:]
        with zones.use(NEW):
            pass_, now = ZoneChange(), bench.clock.now()
            pass_.begin(now)
            first = await pass_.step(bench.connection, [i % SHARDS for i in ours], now)
            assert sorted(first) == ours[:3]
            assert pass_.next_at == now, "a batch is one step: what is due is not kept waiting"
            rest = {}
            while pass_.next_at is not None:
                rest |= await pass_.step(bench.connection, [i % SHARDS for i in ours], now)

        assert sorted(first | rest) == ours
        assert first | rest == {i: before[i] - HOUR for i in ours}
        assert (await standing(bench))[min(before)] == (before[min(before)], "2026y")


async def test_a_schedule_locked_by_another_transaction_is_retried_by_a_later_step(url: str):
    async with workbench(url) as bench, rows.connections(url, 1) as (joining,):
        with zones.use(OLD):
            held, _ = await follow(bench, cron=in_hours(bench, 5))
            free, coming = await follow(bench, cron=in_hours(bench, 6))
        with zones.use(NEW):
            pass_ = ZoneChange()
            async with joining.transaction():
                await schedules.share_schedule_of(joining, held)
                assert await run(bench, pass_) == {free: coming - HOUR}
            again = pass_.next_at
            assert again is not None
            assert again <= bench.clock.now() + timedelta(seconds=2)

            assert list(await pass_.step(bench.connection, range(SHARDS), again)) == [held]
            assert pass_.next_at is None


async def test_two_nodes_at_once_move_each_schedule_once(url: str):
    async with workbench(url) as bench, rows.connections(url, 2) as (one, other):
        with zones.use(OLD):
            schedule_id, coming = await follow(bench, cron=in_hours(bench, 5))
        with zones.use(NEW):
            async with one.transaction():
                (stale,) = await rezone.lock_stale_schedules(one, [schedule_id])
                assert await rezone.lock_stale_schedules(other, [schedule_id]) == []
                move = Move(stale.cursor, coming - HOUR)
                assert await rezone.rezone_schedules(one, [move]) == {schedule_id}
            assert await rezone.lock_stale_schedules(other, [schedule_id]) == []
            assert await rezone.rezone_schedules(other, [move]) == set(), "the cursor is not where it was seen"


async def test_a_cursor_that_has_moved_on_meanwhile_is_left_alone(url: str):
    async with workbench(url) as bench:
        with zones.use(OLD):
            schedule_id, coming = await follow(bench, cron=in_hours(bench, 5))
        seen = ScheduleCursor(schedule_id, coming, 0)
        begun = "update horai.schedule set last_job = 7"
        await bench.connection.execute(begun)
        with zones.use(NEW):
            assert await rezone.rezone_schedules(bench.connection, [Move(seen, coming - HOUR)]) == set()
            assert await rezone_now(bench.connection, [schedule_id]) == {}

        assert await standing(bench) == {schedule_id: (coming, "2026y")}, "a slot that was begun is finished as it is"


async def test_a_schedule_that_sleeps_goes_on_sleeping(url: str):
    async with workbench(url) as bench:
        with zones.use(OLD):
            schedule_id, coming = await follow(bench, cron=in_hours(bench, 5))
            step = Step(ScheduleCursor(schedule_id, coming, 0), CronSchedule("0 9 * * *", PLACE), None, coming)
            await schedules.advance_schedules(bench.connection, [step])
        with zones.use(NEW):
            assert await run(bench, ZoneChange()) == {}

        assert (await standing(bench))[schedule_id][0] is None


async def test_a_schedule_in_a_zone_that_the_new_rules_lack_hinders_no_other(url: str):
    async with workbench(url) as bench:
        with zones.use(Edition("2026y", {PLACE: Clock(HOUR), "Asia/Lost": Clock(HOUR)})):
            fixed, coming = await follow(bench, cron=in_hours(bench, 5))
            lost = await make.job(bench.scope, "lost", cron=in_hours(bench, 5), timezone="Asia/Lost")
        with zones.use(NEW), capture_logs() as logs:
            assert await run(bench, ZoneChange()) == {fixed: coming - HOUR}

        assert lost.schedule_id is not None
        assert (await standing(bench))[lost.schedule_id] == (coming, "2026y")
        assert [line["schedule"] for line in logs if line["log_level"] == "warning"] == [lost.schedule_id]


async def test_a_row_from_before_there_were_marks_stays_or_gives_way_to_the_next_slot(url: str):
    async with workbench(url) as bench:
        with zones.use(OLD):
            schedule_id, coming = await follow(bench, cron=in_hours(bench, 5))
        await bench.connection.execute("update horai.schedule set passed = null, wall = null, tzdata = null")
        with zones.use(NEW):
            assert await run(bench, ZoneChange()) == {schedule_id: coming - HOUR + DAY}, "and nothing fires twice"


async def test_the_question_for_stale_schedules_reads_a_portion_of_the_table_by_its_key(url: str):
    async with workbench(url) as bench:
        await bench.connection.execute(
            "insert into horai.schedule (identity, spec, fire_time, tzdata) select n, '{}', now(), 'x' from generate_series(1, 3000) n"
        )
        await bench.connection.execute("analyze horai.schedule")
        plan = await bench.connection.fetch(f"explain analyze {sql('stale_schedules')}", 0, "x", [1, 2], SHARDS, 100)

        text = "\n".join(row[0] for row in plan)
        (read,) = [line for line in text.splitlines() if "schedule_pkey" in line]
        assert "actual" in read
        assert "rows=100.00 " in read.partition("actual")[2], read


@pytest.mark.parametrize(("portion", "batch"), [(1, 500), (2, 500), (3, 500), (100, 2), (4, 1), (100, 500)])
async def test_a_pass_in_small_portions_reaches_every_stale_schedule(
    url: str, monkeypatch: pytest.MonkeyPatch, portion: int, batch: int
):
    monkeypatch.setattr(rezoning, "PORTION", portion)
    monkeypatch.setattr(rezoning, "BATCH", batch)
    async with workbench(url) as bench:
        with zones.use(OLD):
            stale = dict([await follow(bench, cron=in_hours(bench, hours)) for hours in range(3, 7)])
        with zones.use(NEW):
            current = {(await follow(bench, cron=in_hours(bench, hours)))[0] for hours in range(8, 10)}
            assert await run(bench, ZoneChange()) == {key: fire - HOUR for key, fire in stale.items()}

        assert {rules for _, rules in (await standing(bench)).values()} == {"2026z"}
        assert len(stale) + len(current) == 6


async def test_a_pass_pauses_after_a_portion_without_a_stale_schedule_and_goes_on_behind_it(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rezoning, "PORTION", 1)
    async with workbench(url) as bench:
        with zones.use(NEW):
            await follow(bench, cron=in_hours(bench, 3))
        with zones.use(OLD):
            stale, coming = await follow(bench, cron=in_hours(bench, 5))
        with zones.use(NEW):
            pass_, now = ZoneChange(), bench.clock.now()
            pass_.begin(now)
            assert await pass_.step(bench.connection, range(SHARDS), now) == {}
            assert pass_.next_at == now + rezoning.PORTION_PAUSE
            now += rezoning.PORTION_PAUSE
            assert await pass_.step(bench.connection, range(SHARDS), now) == {stale: coming - HOUR}
            assert pass_.next_at == now, "the next portion follows at once"
            assert await pass_.step(bench.connection, range(SHARDS), now) == {}
            assert pass_.next_at is None


async def test_a_due_fire_waits_for_one_portion_of_the_pass_and_not_for_all(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rezoning, "PORTION", 1)
    async with workbench(url) as bench:
        with zones.use(NEW):
            slot = await due_now(bench, 1)
            for hours in range(2, 6):
                await follow(bench, cron=in_hours(bench, hours))
            await bench.trigger().step(bench.clock.now())

            assert await slots(bench) == {slot: 1}, "the first step of the trigger fires"


# The trigger


async def test_a_start_moves_what_is_to_come_and_fills_the_wheel_with_it(url: str):
    async with workbench(url) as bench:
        with zones.use(OLD):
            schedule_id, coming = await follow(bench, cron=in_hours(bench, 5))
        with zones.use(NEW):
            await bench.trigger().step(bench.clock.now())

        assert await standing(bench) == {schedule_id: (coming - HOUR, "2026z")}


async def test_no_slot_is_made_by_old_rules_after_the_start(url: str):
    """A process with the old rules wakes a schedule that a node with the new ones owns: an hour late, by those."""
    async with workbench(url) as bench:
        with zones.use(NEW):
            trigger = bench.trigger()
            await trigger.step(bench.clock.now())
        with zones.use(OLD):
            slot = await due_now(bench, count=1)
        trigger.hear(ScheduleWake(1, slot))
        with zones.use(NEW):
            await trigger.step(bench.clock.now())
            assert await slots(bench) == {}, "it is not one"
            assert await standing(bench) == {1: (slot - HOUR, "2026z")}

            await trigger.step(bench.clock.now())

        assert await slots(bench) == {slot - HOUR: 1}, "but that one is late"


async def test_a_slot_that_was_begun_is_finished_and_is_followed_by_the_next_one_on_the_wall(url: str):
    """By the other rules the clock is an hour back: the wall shows the time of the slot again in an hour."""
    async with workbench(url, slot_chunk=3) as bench:
        with zones.use(NEW):
            slot = await due_now(bench, count=8)
            await bench.trigger().step(bench.clock.now())
        assert await slots(bench) == {slot: 3}
        with zones.use(OLD):
            for _ in range(3):
                await bench.trigger().step(bench.clock.now())

        assert await slots(bench) == {slot: 8}
        assert await standing(bench) == {1: (slot + DAY + HOUR, "2026y")}

"""Jitter, beginning and end, intervals, and clocks that are wrong: a slot comes once, and only where it belongs."""

import re
import time as real
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from timeline import DAY, HOUR, MINUTE, NOON, SECOND, Timeline, timeline

import horai
from horai.core.errors import Invalid
from horai.testing import store
from horai.time import jitter as spread

pytestmark = pytest.mark.usefixtures("horai_server")

MINUTELY = "* * * * *"
SOURCE = Path(horai.__file__).parent


def minutes(*numbers: int) -> list[datetime]:
    return [NOON + number * MINUTE for number in numbers]


# Jitter


async def planned(time: Timeline) -> list[tuple[str, datetime, datetime]]:
    """Of each row: its job, its slot, and when it is to run."""
    found = await time.bench.connection.fetch(
        "select name, fire_time, execute_time from horai.job_instance join horai.job on job.id = job_id order by 1, 2"
    )
    return [(row["name"], row["fire_time"], row["execute_time"]) for row in found]


async def test_apscheduler_291_jitter_never_fires_early_nor_twice():
    async with timeline() as time:
        jobs = [await time.job(f"job-{number}", cron="*/5 * * * *", jitter="20s") for number in range(5)]
        ran: dict[tuple[int, datetime], datetime] = {}
        node = time.node()
        for _ in range(11 * 12):
            await time.pass_by(5 * SECOND)
            seen = len(time.bench.executor.calls)
            await node.step()
            ran |= {(call.job_id, call.fire_time): time.now for call in time.bench.executor.calls[seen:]}

        assert sorted(ran) == [(job.id, slot) for job in jobs for slot in minutes(5, 10)]
        assert len(time.bench.executor.calls) == 10
        for (job, slot), at in ran.items():
            offset = spread.offset(job, 20 * SECOND)
            assert slot + offset <= at < slot + offset + 5 * SECOND


async def test_apscheduler_269_the_end_bounds_the_slot_not_its_jitter():
    async with timeline() as time:
        for number in range(4):
            await time.job(f"job-{number}", cron=MINUTELY, jitter="1h", endAt=NOON + 2 * MINUTE)

        await time.live(time.node(), NOON + 2 * HOUR)

        rows = await planned(time)
        assert [slot for _, slot, _ in rows] == minutes(1, 2) * 4
        assert max(at for _, _, at in rows) > NOON + 2 * MINUTE, "some run after the end, for slots that are before it"
        assert await time.bench.states() == {"SUCCESS": 8}


async def test_symfony_64827_jitter_does_not_swallow_slots():
    async with timeline() as time:
        for number in range(3):
            await time.job(f"job-{number}", every="1m", jitter="1m")
        trigger = time.bench.trigger()

        for _ in range(100):
            await time.pass_by(MINUTE)
            await trigger.step(time.now)

        for number in range(3):
            assert await time.slots(f"job-{number}") == minutes(*range(1, 101))
        rows = await planned(time)
        assert len({at - slot for _, slot, at in rows}) == 3, "each job keeps its own distance"


# Intervals


async def test_apscheduler_97_an_interval_fires_at_its_start():
    start = NOON + 10 * MINUTE
    async with timeline() as time:
        await time.job(every="1h", anchor=start, startAt=start)

        await time.live(time.node(), NOON + 2 * HOUR)

        assert await time.slots() == [start, start + HOUR]


@pytest.mark.parametrize("late", [timedelta(milliseconds=700), 50 * SECOND], ids=str)
async def test_drone_2903_late_steps_accumulate_no_delay(late: timedelta):
    async with timeline() as time:
        await time.job(every="1m")
        trigger = time.bench.trigger()
        for minute in range(1, 101):
            await time.move_to(NOON + minute * MINUTE + late)
            await trigger.step(time.now)

        assert await time.slots() == minutes(*range(1, 101))


# Clocks


@pytest.mark.parametrize("wrong", [-HOUR, HOUR], ids=str)
async def test_gocron_438_a_node_whose_clock_is_changed_fires_as_before(wrong: timedelta):
    """The clock of a node only says when it looks; the clock of the database says whether a slot is due."""
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        node = time.node()
        await time.live(node, NOON + 2 * MINUTE)

        await node.trigger.step(time.now + wrong)
        assert await time.slots() == minutes(1, 2), "nothing comes early"
        node.trigger.reload()
        for _ in range(3):
            await time.pass_by(MINUTE)
            await node.trigger.step(time.now)  # it has heard from the database meanwhile

        assert await time.slots() == minutes(1, 2, 3, 4, 5)
        assert await time.skips() == []


def test_gocron_438_nothing_that_decides_reads_the_clock_of_its_machine():
    files = [file for part in ("core", "db", "accept", "engine") for file in (SOURCE / part).rglob("*.py")]
    reading = re.compile(r"\b(datetime\.now|datetime\.today|utcnow|date\.today|time\.time|time\.time_ns)\(")

    found = {file.relative_to(SOURCE).as_posix() for file in files if reading.search(file.read_text())}

    assert found == {"engine/executors/http.py"}, "for what others write in Retry-After, which is a time of the world"


async def test_sidekiq_scheduler_283_a_database_whose_clock_is_set_back_fires_nothing_twice():
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        node = time.node()
        await time.live(node, NOON + 20 * MINUTE)
        before = await time.slots()

        for minute in range(10, 21):  # once more
            await store.move_to(time.bench.connection, NOON + minute * MINUTE)
            node.trigger.reload()
            await node.trigger.step(NOON + minute * MINUTE)
            assert await time.slots() == before
        await time.live(node, NOON + 23 * MINUTE)

        assert await time.slots() == minutes(*range(1, 24))
        assert await time.skips() == []


async def test_light_task_scheduler_330_nodes_whose_clocks_differ_make_one_row():
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        fast, slow = time.node(), time.node()
        for _ in range(30):
            await time.pass_by(10 * SECOND)
            await fast.trigger.step(time.now + MINUTE)
            await slow.trigger.step(time.now)

        assert await time.slots() == minutes(1, 2, 3, 4, 5)


async def test_chronos_371_regaining_a_lease_does_not_double_a_slot():
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        node = time.node()
        await time.move_to(NOON + MINUTE)
        for _ in range(5):
            await time.pass_by(5 * SECOND)
            time.bench.lease.trusted = False
            await node.trigger.step(time.now)
            time.bench.lease.trusted = True
            node.trigger.reload()
            await node.step()

        assert await time.states() == [(NOON + MINUTE, "SUCCESS")]


# Beginning and end


async def test_quartznet_2307_a_job_whose_end_is_past_never_fires():
    async with timeline() as time:
        with pytest.raises(Invalid) as refused:
            await time.job(cron="0 13 * * *", startAt=NOON - 400 * DAY, endAt=NOON - 300 * DAY)

        assert [fault.field for fault in refused.value.errors] == ["endAt"]
        await time.live(time.node(), NOON + DAY)
        assert await time.bench.states() == {}


async def test_quartznet_636_a_start_in_the_past_fires_nothing_at_once():
    async with timeline() as time:
        await time.job(cron="0 13 * * *", startAt=NOON - 7 * DAY)
        node = time.node()
        await node.step()
        assert await time.slots() == []

        await time.live(node, NOON + DAY)
        assert await time.slots() == [NOON + HOUR]


@pytest.mark.parametrize("misfire", ["once", "all"])
@pytest.mark.parametrize("is_down", [False, True])
async def test_jobbr_25_no_slot_lies_before_the_start_or_after_the_end(is_down: bool, misfire: str):
    """Both ends are included."""
    start, end = NOON + 10 * MINUTE, NOON + 15 * MINUTE
    async with timeline() as time:
        await time.job(cron=MINUTELY, startAt=start, endAt=end, misfire=misfire)
        await time.job("other", cron=MINUTELY, misfire=misfire)
        if is_down:
            await time.move_to(NOON + HOUR)

        await time.live(time.node(), max(time.now, NOON + 17 * MINUTE))

        assert await time.slots() == ([end] if is_down and misfire == "once" else minutes(*range(10, 16)))


# Excluded dates


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "0 9 * * *", "calendar": ["01-01/12-31"]},
        {"every": "1h", "calendar": ["01-01/12-31"]},
        {"cron": "0 9 * * MON", "calendar": ["1970-01-01/2200-01-01"], "endAt": NOON + 36_500 * DAY},
        {"cron": "0 9 * * *", "calendar": [f"{date(2000, 1, 1) + timedelta(days=day):%m-%d}" for day in range(366)]},
    ],
    ids=["every day", "interval", "a century", "366 dates"],
)
async def test_quartz_549_a_calendar_that_excludes_everything_ends_the_search(fields: dict[str, Any]):
    async with timeline() as time:
        begun = real.monotonic()
        with pytest.raises(Invalid):
            await time.job(**fields)

        assert real.monotonic() - begun < 5
        assert await time.coming() == []


@pytest.mark.parametrize("weeks", [400, 1_000])
async def test_quartz_601_a_long_list_of_excluded_dates_is_walked_to_its_end(weeks: int):
    first = date(2026, 3, 9)
    async with timeline() as time:
        calendar = [(first + timedelta(weeks=week)).isoformat() for week in range(weeks)]

        await time.job(cron="0 9 * * MON", calendar=calendar)

        (coming,) = await time.coming()
        assert coming is not None
        assert coming.date() == first + timedelta(weeks=weeks)


async def test_quartz_151_an_excluded_stretch_is_passed_over_by_a_late_trigger_too():
    async with timeline() as time:
        await time.job(cron="0 13 * * *", calendar=["2026-03-05/2026-03-08"], misfire="all")
        await time.move_to(NOON + 6 * DAY)

        await time.node().step()

        assert await time.slots() == [NOON + HOUR, NOON + HOUR + 5 * DAY]
        assert await time.skips() == []

"""A job was changed or declared again: its slots are neither lost nor doubled, and none comes at once."""

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any

import make
import pytest
from timeline import DAY, HOUR, MINUTE, NOON, SECOND, Timeline, timeline

from horai.core.job import JobStatus
from horai.operations import instances
from horai.operations.declarations import DeclaredJob, declare
from horai.operations.declared_owner import DeclaredChanges
from horai.time import jitter as spread
from horai.time.schedule import CronSchedule, fires_between

pytestmark = pytest.mark.usefixtures("horai_server")

MINUTELY = "* * * * *"
SCHEDULE = CronSchedule(MINUTELY)


def minutes(*numbers: int) -> list[datetime]:
    return [NOON + number * MINUTE for number in numbers]


# Changes


async def test_apscheduler_170_an_edit_does_not_resume_a_paused_job():
    async with timeline() as time:
        await time.job(cron="30 * * * *")
        await time.pause()

        changed = await time.change(cron=MINUTELY)
        await time.live(time.node(), NOON + 5 * MINUTE)

        assert changed.status is JobStatus.PAUSED
        assert await time.slots() == []


@pytest.mark.parametrize("is_down", [False, True])
async def test_hangfire_728_a_changed_cron_does_not_fire_slots_before_the_change(is_down: bool):
    async with timeline() as time:
        await time.job(cron="0 13 * * *")
        await time.job("other", cron="0 14 * * *")
        node = time.node()
        await (time.move_to(NOON + 3 * HOUR) if is_down else time.live(node, NOON + 3 * HOUR))
        before = await time.slots()

        await time.change(cron="0 14 * * *")
        await time.live(node, NOON + 4 * HOUR)
        assert await time.slots() == before, "today's 14:00 was before the change"

        await time.live(node, NOON + 2 * HOUR + DAY)
        assert (await time.slots())[len(before) :] == [NOON + 2 * HOUR + DAY]


async def test_db_scheduler_124_a_denser_cron_takes_effect_at_once():
    async with timeline() as time:
        await time.job(cron="0 0 * * *")
        node = time.node()
        await time.live(node, NOON + MINUTE)

        await time.change(cron="*/5 * * * *")
        await time.live(node, NOON + 11 * MINUTE)

        assert await time.slots() == minutes(5, 10)


async def test_db_scheduler_59_a_new_cron_job_waits_for_its_first_slot():
    async with timeline(NOON - 3 * HOUR) as time:
        await time.job("other", cron="25 11 * * *")
        node = time.node()
        await time.live(node, NOON - HOUR)
        await time.job(cron="25 11 * * *")

        await time.live(node, NOON - 36 * MINUTE)
        assert await time.slots() == []

        await time.live(node, NOON)
        assert await time.slots() == [NOON - 35 * MINUTE]


async def far_behind(time: Timeline, jitter: timedelta, **fields: Any) -> timedelta:
    """Makes jobs until one runs in the second half of its jitter, and calls that one `job`; how far behind it runs."""
    newest = 0
    for number in range(100):
        newest = (await time.job(f"filler-{number}")).id
        if (own := spread.offset(newest + 1, jitter)) > jitter / 2:
            assert (await time.job(**fields, jitter=f"{jitter.seconds}s")).id == newest + 1
            return own
    raise AssertionError("spread does not spread")


EDITS: dict[str, dict[str, Any]] = {
    "the same": {"cron": "*/5 * * * *"},
    "no jitter": {"jitter": None},
    "more jitter": {"jitter": "4m"},
    "misfire": {"misfire": "all"},
    "misfireAfter": {"misfireAfter": "10m"},
    "overlap": {"overlap": "queue"},
    "startAt": {"startAt": NOON - DAY},
    "endAt": {"endAt": NOON + DAY},
    "payload": {"tags": ["x"]},
}


@pytest.mark.parametrize("edit", EDITS)
async def test_temporal_4866_an_edit_between_fire_time_and_due_does_not_lose_the_slot(edit: str):
    async with timeline() as time:
        offset = await far_behind(time, MINUTE, cron="*/5 * * * *")
        node = time.node()
        await time.live(node, NOON + 20 * MINUTE)
        assert (await time.states())[-1] == (NOON + 20 * MINUTE, "INIT"), f"due in {offset}"
        await time.live(node, NOON + 20 * MINUTE + 10 * SECOND)

        await time.change(**EDITS[edit])
        await time.live(node, NOON + 29 * MINUTE)

        assert await time.states() == [(slot, "SUCCESS") for slot in minutes(5, 10, 15, 20, 25)]


@pytest.mark.parametrize("company", ["alone", "old", "new", "both"])
@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("misfire", ["once", "all"])
async def test_temporal_4866_another_word_on_late_slots_loses_and_doubles_none(
    company: str, is_down: bool, misfire: str
):
    """A change of the misfire policy moves a job to another cursor, with or without other jobs on the two cursors."""
    before, after = ("once", "all") if misfire == "all" else ("all", "once")
    async with timeline() as time:
        if company in {"old", "both"}:
            await time.job("old", cron=MINUTELY, misfire=before)
        if company in {"new", "both"}:
            await time.job("new", cron=MINUTELY, misfire=after)
        await time.job(cron=MINUTELY, misfire=before)
        node = time.node()
        await time.live(node, NOON + 3 * MINUTE)
        await time.move_to(NOON + (9 if is_down else 4) * MINUTE)

        await time.change(misfire=after)
        await time.live(node, NOON + 12 * MINUTE)

        made = await time.slots()
        assert await time.unaccounted(SCHEDULE, NOON) == []
        assert made[-1] == NOON + 12 * MINUTE
        if misfire == "all" or not is_down:
            assert made == minutes(*range(1, 13))


@pytest.mark.parametrize("edit", [{"misfireAfter": "5m"}, {"misfire": "once"}, {"jitter": "10s"}], ids=str)
async def test_temporal_4866_late_slots_still_to_be_made_outlive_an_edit(edit: dict[str, str]):
    async with timeline() as time:
        await time.job(cron=MINUTELY, misfire="all")
        await time.move_to(NOON + 30 * MINUTE)
        node = time.node()
        await node.trigger.step(time.now)
        assert await time.bench.connection.fetchval("select count(*) from horai.catchup") == 1

        await time.change(**edit)
        await time.live(node, NOON + 32 * MINUTE)

        assert await time.slots() == minutes(*range(1, 33))


async def test_temporal_4866_a_change_that_pauses_as_well_decides_on_late_slots_once():
    """By the policy that it brings; what is changed during the pause is for the slots of the pause."""
    async with timeline() as time:
        await time.job(cron=MINUTELY, misfire="all")
        await time.move_to(NOON + 6 * MINUTE + 30 * SECOND)
        await time.change(misfire="skip", status="PAUSED")
        assert [(skip.first, skip.slots) for skip in await time.skips()] == [(NOON + MINUTE, 5)]
        await time.pass_by(MINUTE)
        await time.change(misfire="all")

        await time.resume()
        await time.live(time.node(), NOON + 9 * MINUTE)

        assert await time.slots() == minutes(6, 7, 8, 9), "the first five are told as skipped"
        assert len(await time.skips()) == 1


async def test_temporal_4866_a_job_that_is_younger_than_its_late_schedule_gets_no_slot_of_before():
    async with timeline() as time:
        await time.job("older", cron=MINUTELY, misfire="all")
        await time.pass_by(5 * MINUTE + 30 * SECOND)
        await time.job(cron=MINUTELY, misfire="all")
        await time.pass_by(3 * MINUTE)

        await time.change(misfire={"policy": "all", "maxCatchup": 100})
        await time.live(time.node(), NOON + 12 * MINUTE)

        assert await time.slots() == minutes(*range(6, 13))


# From the finish


async def test_dkron_605_a_cron_job_that_shall_count_from_the_finish_goes_on():
    async with timeline() as time:
        await time.job(cron="0 * * * *")
        node = time.node()
        await time.live(node, NOON + 90 * MINUTE)

        await time.change(every="10m", everyFrom="finish")
        await time.live(node, NOON + 3 * HOUR)

        _, *later = await time.slots()
        assert len(later) >= 8, "though ten minutes after its last end had passed when it was changed"
        assert later[0] > NOON + 90 * MINUTE


async def test_dkron_605_another_interval_from_the_finish_goes_on_after_a_downtime():
    async with timeline() as time:
        await time.job(every="10m", everyFrom="finish")
        node = time.node()
        await time.live(node, NOON + 5 * MINUTE)
        waiting = await time.bench.connection.fetchval("select id from horai.instance_live")
        await instances.cancel_by_id(time.bench.scope, waiting)
        await time.pass_by(30 * MINUTE)

        await time.change(every="15m")
        await time.live(time.node(), NOON + 3 * HOUR)

        assert len(await time.slots()) >= 9


# Declared by code


async def test_bullmq_2876_declaring_a_job_again_does_not_double_its_slots():
    wish = DeclaredJob({"name": "job", "target": {"type": "worker", "handler": "job"}, "cron": MINUTELY}, None)
    async with timeline() as time, AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(make.scope(time.bench.url, 2)) for _ in range(3)]
        await declare(processes[0], "shop", [wish])
        node = time.node()
        said: set[DeclaredChanges] = set()
        for _ in range(7):
            await time.pass_by(MINUTE)
            stepping = asyncio.create_task(node.step())
            said.update(await asyncio.gather(*(declare(process, "shop", [wish]) for process in processes)))
            await stepping
            await time.pass_by(20 * SECOND)
            node = time.node()
            await node.step()

        assert said == {DeclaredChanges(unchanged=("job",))}
        assert await time.slots() == [*fires_between(SCHEDULE, NOON, time.now, 100)]
        assert await time.bench.connection.fetchval("select version from horai.job") == 1

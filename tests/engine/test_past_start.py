"""A job that is created with a `startAt` in the past: the misfire policy `all` makes the slots since then."""

from datetime import timedelta

import pytest
from timeline import DAY, HOUR, MINUTE, NOON, SECOND, timeline

from horai.core.errors import Invalid

AT_ONE = "0 13 * * *"
WEEK_AGO = NOON - 7 * DAY
ONES = [WEEK_AGO + HOUR + number * DAY for number in range(7)]
"""The slots of `AT_ONE` in the week before noon."""


async def test_the_slots_since_the_start_are_made_once_and_the_schedule_goes_on():
    async with timeline() as time:
        await time.job(cron=AT_ONE, startAt=WEEK_AGO, misfire="all")
        node = time.node()
        await node.step()
        assert await time.states() == [(slot, "SUCCESS") for slot in ONES]

        await time.live(node, NOON + DAY)
        assert await time.slots() == [*ONES, NOON + HOUR]
        assert await time.skips() == []


async def test_the_start_itself_is_a_slot():
    async with timeline() as time:
        await time.job(cron=AT_ONE, startAt=ONES[0], misfire="all")
        await time.node().step()
        assert await time.slots() == ONES


async def test_bounds_of_the_policy_leave_older_slots_out_and_say_so():
    async with timeline() as time:
        await time.job(cron=AT_ONE, startAt=WEEK_AGO, misfire={"policy": "all", "maxCatchup": 2})
        await time.job("window", cron=AT_ONE, startAt=WEEK_AGO, misfire={"policy": "all", "window": "49h"})
        await time.node().step()
        assert await time.slots() == ONES[-2:]
        assert await time.slots("window") == ONES[-2:]
        assert [(skip.first, skip.last, skip.slots, skip.reason) for skip in await time.skips()] == [
            (ONES[0], ONES[4], 5, "MISFIRE_ALL"),
            (ONES[0], ONES[4], 5, "MISFIRE_ALL"),
        ]


@pytest.mark.parametrize("misfire", ["once", "skip"])
async def test_another_policy_makes_no_slot_before_the_creation(misfire: str):
    async with timeline() as time:
        await time.job(cron=AT_ONE, startAt=WEEK_AGO, misfire=misfire)
        await time.node().step()
        assert await time.slots() == []


async def test_a_job_that_joins_a_late_schedule_gets_each_slot_once():
    """Another job has the schedule, and no node made its last slots."""
    async with timeline() as time:
        await time.job("other", cron="* * * * *", misfire="all")
        await time.pass_by(5 * MINUTE + SECOND)
        await time.job(cron="* * * * *", startAt=NOON - 3 * MINUTE, misfire="all")

        await time.live(time.node(), NOON + 6 * MINUTE)

        assert await time.slots() == [NOON + number * MINUTE for number in range(-3, 7)]
        assert await time.slots("other") == [NOON + number * MINUTE for number in range(1, 7)]


async def test_a_paused_job_catches_up_when_it_is_resumed():
    async with timeline() as time:
        bounded = {"policy": "all", "maxCatchup": 2}
        await time.job(cron=AT_ONE, startAt=WEEK_AGO, misfire="all", status="PAUSED")
        await time.job("bounded", cron=AT_ONE, startAt=WEEK_AGO, misfire=bounded, status="PAUSED")
        node = time.node()
        await time.live(node, NOON + DAY)
        assert await time.slots() == []

        await time.resume()
        await time.resume("bounded")
        await node.step()
        assert await time.slots() == [*ONES, NOON + HOUR]
        assert await time.slots("bounded") == [ONES[-1], NOON + HOUR]


async def test_a_job_whose_slots_wait_for_each_other_makes_them_in_their_order():
    async with timeline() as time:
        await time.job(cron=AT_ONE, startAt=WEEK_AGO, misfire="all", overlap="queue")
        await time.node().step()
        assert [call.fire_time for call in time.bench.executor.calls] == ONES


async def test_a_later_change_of_the_start_makes_no_slot_in_the_past():
    async with timeline() as time:
        await time.job(cron=AT_ONE, misfire="all")
        await time.change(startAt=WEEK_AGO)
        await time.node().step()
        assert await time.slots() == []


async def test_more_slots_than_the_limit_are_refused_with_a_hint():
    async with timeline() as time:
        with pytest.raises(Invalid, match="more than 10000 slots in the past") as refused:
            await time.job(every="1m", startAt=NOON - timedelta(minutes=10_003), misfire="all")
        assert [fault.field for fault in refused.value.errors] == ["startAt"]
        assert "maxCatchup" in str(refused.value.hint)

        await time.job(every="1m", startAt=NOON - 400 * DAY, misfire={"policy": "all", "maxCatchup": 3})
        await time.node().step()
        assert await time.slots() == [NOON - number * MINUTE for number in (4, 3, 2, 1, 0)]

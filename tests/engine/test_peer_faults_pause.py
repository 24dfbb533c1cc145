"""A job was paused, resumed, changed or declared again: its slots are neither lost nor doubled, and none comes at once."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from timeline import DAY, HOUR, MINUTE, NOON, SECOND, Skip, timeline

from horai.time.schedule import CronSchedule

pytestmark = pytest.mark.usefixtures("horai_server")

MINUTELY = "* * * * *"


def minutes(*numbers: int) -> list[datetime]:
    return [NOON + number * MINUTE for number in numbers]


# Pause and resume


async def test_kubernetes_45825_a_job_paused_for_a_weekend_fires_again_when_it_is_resumed():
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        node = time.node()
        await time.live(node, NOON + 90 * SECOND)
        await time.pause()
        await time.live(node, NOON + 48 * HOUR + 30 * SECOND)
        assert await time.slots() == minutes(1)

        await time.resume()
        back = 48 * 60
        await time.live(node, NOON + (back + 2) * MINUTE)

        assert await time.slots() == minutes(1, back - 1, back, back + 1, back + 2)
        assert await time.skips() == [
            Skip(NOON + 2 * MINUTE, NOON + (back - 2) * MINUTE, back - 3, "PAUSED_ONCE", "job")
        ]


@pytest.mark.parametrize(("misfire", "made"), [("once", 1), ("skip", 0)])
@pytest.mark.parametrize(
    "field", [{"every": "1d", "anchor": NOON - HOUR}, {"cron": "0 11 * * *"}], ids=["every", "cron"]
)
async def test_airflow_8776_resuming_an_interval_makes_one_catch_up_not_two(
    field: dict[str, Any], misfire: str, made: int
):
    async with timeline() as time:
        await time.job(**field, misfire=misfire)
        node = time.node()
        await time.live(node, NOON + HOUR)
        await time.pause()
        await time.live(node, NOON + 5 * DAY)

        await time.resume()
        await node.step()

        assert await time.slots() == [NOON + 5 * DAY - HOUR][:made]
        await time.live(node, NOON + 6 * DAY)
        assert (await time.slots())[made:] == [NOON + 6 * DAY - HOUR]


@pytest.mark.parametrize(("after", "made", "skipped"), [("60s", [20, 25, 30, 35], 0), ("1s", [], 4)])
async def test_quartz_308_skip_fires_nothing_of_a_pause_that_is_later_than_misfire_after(
    after: str, made: list[int], skipped: int
):
    async with timeline() as time:
        await time.job(cron="0/5 * * * * ?", misfire="skip", misfireAfter=after)
        node = time.node()
        await time.live(node, NOON + 16 * SECOND)
        await time.pause()
        await time.live(node, NOON + 37 * SECOND)

        await time.resume()
        await node.step()

        assert await time.slots() == [NOON + second * SECOND for second in [5, 10, 15, *made]]
        assert sum(skip.slots or 0 for skip in await time.skips()) == skipped
        assert {skip.reason for skip in await time.skips()} <= {"PAUSED_SKIP"}


@pytest.mark.parametrize("misfire", ["once", "all", "skip"])
@pytest.mark.parametrize("node_first", [True, False])
async def test_quartz_939_resuming_at_a_slot_does_not_double_it(misfire: str, node_first: bool):
    """11:00 is late by then and the policy's to decide; 12:00 is due at this very moment and made, once."""
    begin, end = NOON - 90 * MINUTE, NOON
    async with timeline(begin) as time:
        await time.job(cron="0 * * * *", misfire=misfire)
        node = time.node()
        await time.pause()
        await time.live(node, end - SECOND)
        await time.move_to(end)
        if node_first:
            await node.step()

        await time.resume()
        await time.live(node, end + MINUTE)

        assert await time.slots() == [*([] if misfire == "skip" else [NOON - HOUR]), NOON]


@pytest.mark.parametrize("misfire", ["once", "all", "skip"])
async def test_kubernetes_45825_a_pause_during_a_downtime_loses_no_slot(misfire: str):
    """Down from 12:01 on, paused at 12:05, the nodes back at 12:08, resumed at 12:10."""
    async with timeline() as time:
        await time.job(cron=MINUTELY, misfire=misfire)
        await time.job("other", cron=MINUTELY, misfire=misfire)
        await time.live(time.node(), NOON + MINUTE)
        await time.move_to(NOON + 5 * MINUTE + 30 * SECOND)
        await time.pause()
        await time.move_to(NOON + 8 * MINUTE + 30 * SECOND)
        node = time.node()
        await node.step()
        await time.live(node, NOON + 10 * MINUTE + 30 * SECOND)

        await time.resume()
        await time.live(node, NOON + 12 * MINUTE)

        made = await time.slots()
        assert made[-3:] == minutes(10, 11, 12)
        assert await time.unaccounted(CronSchedule(MINUTELY), NOON) == []
        if misfire == "all":
            assert made == minutes(*range(1, 13))


@pytest.mark.parametrize("misfire", ["once", "all", "skip"])
async def test_kubernetes_45825_a_slot_that_a_pause_overtakes_is_made_when_it_is_resumed(misfire: str):
    """Paused some milliseconds after its slot, and before a node has looked."""
    async with timeline() as time:
        await time.job(cron=MINUTELY, misfire=misfire)
        node = time.node()
        await time.live(node, NOON + 59 * SECOND)
        await time.move_to(NOON + MINUTE + timedelta(milliseconds=5))
        await time.pause()
        await node.step()
        await time.pass_by(30 * SECOND)

        await time.resume()
        await time.live(node, NOON + 2 * MINUTE)

        assert await time.slots() == minutes(1, 2), "half a minute is not late"

"""No node could make a slot at its time: the nodes were down, the database was away, a lock was held."""

import time as real
from datetime import UTC, datetime, timedelta

import pytest
from timeline import DAY, HOUR, MINUTE, NOON, SECOND, Skip, timeline

pytestmark = pytest.mark.usefixtures("horai_server")

THREE_OCLOCK = NOON + 3 * HOUR
MINUTELY = "* * * * *"
FOUR_CRONS = ("1 12 * * *", "1 12 4 * *", "1 12 * 3 *", "1 12 * * WED")
"""Different schedules, all of them with a slot one minute after NOON."""


async def test_kubernetes_42649_more_than_a_hundred_missed_slots_do_not_stop_a_job():
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        await time.pass_by(12 * HOUR + 30 * SECOND)

        node = time.node()
        await node.step()

        midnight = NOON + 12 * HOUR
        assert await time.slots() == [midnight - MINUTE, midnight], "the last late one, and the one that is not late"
        assert await time.skips() == [Skip(NOON + MINUTE, midnight - 2 * MINUTE, 718, "MISFIRE_ONCE")]
        await time.live(node, midnight + 2 * MINUTE)
        assert (await time.slots())[2:] == [midnight + MINUTE, midnight + 2 * MINUTE]


@pytest.mark.parametrize("age", [2 * MINUTE, 40 * DAY, 3 * 366 * DAY], ids=str)
async def test_dkron_605_a_cursor_in_the_past_is_caught_up_at_any_age(age: timedelta):
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        await time.pass_by(age + 30 * SECOND)
        begun = real.monotonic()

        await time.node().step()

        assert await time.slots() == [NOON + age - MINUTE, NOON + age]
        assert await time.coming() == [NOON + age + MINUTE]
        assert real.monotonic() - begun < 10


@pytest.mark.parametrize("misfire", ["once", "skip"])
async def test_sidekiq_cron_463_a_daily_slot_inside_a_restart_is_caught_up(misfire: str):
    async with timeline() as time:
        await time.job(cron="0 15 * * *", misfire=misfire)
        await time.live(time.node(), THREE_OCLOCK - 3 * MINUTE)
        await time.pass_by(6 * MINUTE)

        await time.node().step()

        skipped = [Skip(THREE_OCLOCK, THREE_OCLOCK, 1, "MISFIRE_SKIP")]
        assert await time.slots() == ([THREE_OCLOCK] if misfire == "once" else [])
        assert await time.skips() == ([] if misfire == "once" else skipped), "what is left out is told"
        assert await time.coming() == [THREE_OCLOCK + DAY]


@pytest.mark.parametrize("gap", [30 * SECOND, 5 * MINUTE], ids=str)
async def test_dkron_1210_a_slot_between_two_owners_is_not_lost(gap: timedelta):
    async with timeline() as time:
        await time.job(cron="0 15 * * *")
        first = time.node()
        await time.live(first, THREE_OCLOCK - 10 * SECOND)
        lease = time.bench.lease
        owned, lease.owned = lease.owned, frozenset[int]()
        await time.move_to(THREE_OCLOCK)
        await first.step()
        assert await time.slots() == [], "no node owns the shard"

        await time.pass_by(gap)
        lease.owned = owned
        await time.node().step()
        await first.step()

        assert await time.slots() == [THREE_OCLOCK]


async def test_river_791_an_interval_longer_than_the_uptime_still_fires():
    async with timeline() as time:
        await time.job(every="7d", anchor=NOON)

        for _ in range(15):
            await time.live(time.node(), time.now + DAY)

        assert await time.slots() == [NOON + 7 * DAY, NOON + 14 * DAY]


async def test_xxl_job_3447_what_lay_in_the_wheel_of_a_killed_node_is_not_lost():
    async with timeline() as time:
        for number, cron in enumerate(FOUR_CRONS):
            await time.job(f"job-{number}", cron=cron)
        killed = time.node()
        await time.pass_by(30 * SECOND)
        await killed.step()
        assert killed.trigger._wheel.next_at() is not None, "the slots have been read"

        await time.pass_by(45 * SECOND)
        await time.node().step()

        for number in range(4):
            assert await time.states(f"job-{number}") == [(NOON + MINUTE, "SUCCESS")]


# Not too little, not too much


@pytest.mark.parametrize(("late", "is_made"), [(2, True), (60, True), (61, False)])
async def test_apscheduler_292_two_seconds_late_is_not_a_misfire(late: int, is_made: bool):
    async with timeline() as time:
        await time.job(cron="0 15 * * *", misfire="skip")
        await time.move_to(THREE_OCLOCK + late * SECOND)

        await time.node().step()

        assert await time.slots() == ([THREE_OCLOCK] if is_made else [])
        assert len(await time.skips()) == (0 if is_made else 1)


@pytest.mark.parametrize(
    ("after", "down", "made", "skipped"),
    [("60s", 45, [30, 45, 60], 0), ("60s", 75, [45, 60, 75, 90], 1), ("1s", 50, [], 3)],
)
async def test_quartz_239_skip_fires_nothing_that_is_later_than_misfire_after(
    after: str, down: int, made: list[int], skipped: int
):
    """A slot that is less late than `misfireAfter` is no misfire: it is made, and the docs say so."""
    async with timeline() as time:
        await time.job(cron="0/15 * * * * ?", misfire="skip", misfireAfter=after)
        await time.live(time.node(), NOON + 16 * SECOND)
        await time.pass_by(down * SECOND)

        await time.node().step()

        assert await time.slots() == [NOON + 15 * SECOND, *(NOON + second * SECOND for second in made)]
        assert sum(skip.slots or 0 for skip in await time.skips()) == skipped
        assert {skip.reason for skip in await time.skips()} <= {"MISFIRE_SKIP"}


@pytest.mark.parametrize("field", [{"cron": MINUTELY}, {"every": "5s"}], ids=str)
async def test_robfig_cron_26_a_clock_that_jumps_forward_is_one_catch_up(field: dict[str, str]):
    async with timeline() as time:
        await time.job(**field, misfireAfter="1s")
        node = time.node()
        await time.live(node, NOON + 2 * MINUTE)
        before = await time.slots()

        await time.pass_by(HOUR + 3 * SECOND)
        await node.step()

        (last,) = (await time.slots())[len(before) :]
        assert last == NOON + 62 * MINUTE
        (skip,) = await time.skips()
        assert skip.first == before[-1] + (last - skip.last)
        await node.step()
        assert len(await time.slots()) == len(before) + 1


@pytest.mark.parametrize(
    ("misfire", "days"),
    [("once", [2]), ("all", [0, 1, 2]), ({"policy": "all", "maxCatchup": 2}, [1, 2]), ("skip", [])],
    ids=str,
)
async def test_django_q_682_three_missed_days_are_one_run_unless_asked_for(misfire: object, days: list[int]):
    async with timeline() as time:
        await time.job(cron="0 15 * * *", misfire=misfire)
        await time.pass_by(3 * DAY)

        node = time.node()
        await node.step()

        assert await time.states() == [(THREE_OCLOCK + day * DAY, "SUCCESS") for day in days]
        assert sum(skip.slots or 0 for skip in await time.skips()) == 3 - len(days)
        await time.live(node, time.now + DAY)
        assert (await time.slots())[len(days) :] == [THREE_OCLOCK + 3 * DAY]


async def test_celery_4806_a_late_run_carries_the_time_of_its_slot():
    async with timeline() as time:
        await time.job(cron="0 15 * * *")
        await time.move_to(datetime(2026, 3, 5, 17, 23, tzinfo=UTC))
        node = time.node()
        await node.step()

        slot = THREE_OCLOCK + DAY
        (call,) = time.bench.executor.calls
        assert (call.fire_time, call.execute_time) == (slot, slot)
        assert await time.coming() == [slot + DAY], "and the next one is a slot, too"

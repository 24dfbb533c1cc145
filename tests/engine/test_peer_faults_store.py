"""The store was away, was locked, broke off, or held rows that cannot be read.

Slots come once, and those of others on time.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from urllib.parse import urlsplit

import asyncpg
import pytest
import rows
from timeline import DAY, HOUR, MINUTE, NOON, SECOND, Skip, Timeline, timeline

from horai.engine import loop
from horai.engine.loop import Stage

pytestmark = pytest.mark.usefixtures("horai_server")

THREE_OCLOCK = NOON + 3 * HOUR
MINUTELY = "* * * * *"
FOUR_CRONS = ("1 12 * * *", "1 12 4 * *", "1 12 * 3 *", "1 12 * * WED")
"""Different schedules, all of them with a slot one minute after NOON."""


REFUSE = {
    "the write of the cursor": """
        create trigger breaks before update on horai.schedule for each row execute function public.break_off()""",
    "the commit": """
        create constraint trigger breaks after insert on horai.instance_live deferrable initially deferred
        for each row execute function public.break_off()""",
}


@asynccontextmanager
async def breaking(time: Timeline, where: str) -> AsyncGenerator[None]:
    """The database fails there, as it does for a connection that is cut."""
    await time.bench.connection.execute(
        f"""create function public.break_off() returns trigger language plpgsql as
            $$ begin raise exception 'broken off' using errcode = '57P01'; end $$;
            {REFUSE[where]}"""
    )
    yield
    await time.bench.connection.execute("drop function public.break_off() cascade")


@pytest.mark.parametrize("where", REFUSE)
async def test_procrastinate_1495_a_break_between_row_and_cursor_leaves_both_or_none(where: str):
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        node = time.node()
        await time.pass_by(MINUTE)
        async with breaking(time, where):
            with pytest.raises(asyncpg.AdminShutdownError):
                await node.step()
            assert (await time.slots(), await time.coming()) == ([], [NOON + MINUTE])

        node.trigger.line.drop()
        await node.step()

        assert (await time.slots(), await time.coming()) == ([NOON + MINUTE], [NOON + 2 * MINUTE])


async def test_powerjob_780_a_slot_whose_commit_failed_runs_once():
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        node = time.node()
        await node.step()
        await time.pass_by(MINUTE)
        async with breaking(time, "the commit"):
            with pytest.raises(asyncpg.AdminShutdownError):
                await node.step()
        await time.bench.until_idle(node.dispatcher)
        assert time.bench.executor.calls == [], "no dispatcher hears of rows that were not committed"

        node.trigger.line.drop()
        await time.live(node, NOON + MINUTE + 30 * SECOND)

        assert [call.fire_time for call in time.bench.executor.calls] == [NOON + MINUTE]


async def make_unreadable(time: Timeline) -> None:
    """The first schedule is in a zone that there is none of any more."""
    await time.bench.connection.execute(
        """update horai.schedule set spec = spec::jsonb || '{"timezone": "Atlantis/Capital"}'
           where id = (select min(id) from horai.schedule)"""
    )


async def test_quartz_48_one_unreadable_schedule_does_not_stop_the_others():
    async with timeline() as time:
        for number in range(20):
            await time.job(f"job-{number}", cron=f"{number} 13 * * *")
        await make_unreadable(time)
        await time.pass_by(DAY)

        node = time.node()
        await node.step()
        assert [len(await time.slots(f"job-{number}")) for number in range(20)] == [0] + [1] * 19

        await time.live(node, time.now + 2 * HOUR)
        assert [len(await time.slots(f"job-{number}")) for number in range(20)] == [0] + [2] * 19


async def test_quartz_686_one_unreadable_schedule_does_not_stop_the_others_from_catching_up():
    async with timeline() as time:
        for number in range(3):
            await time.job(f"job-{number}", cron=f"{number} 13 * * *", misfire="all")
        await time.pass_by(3 * DAY)
        node = time.node()
        await node.trigger.step(time.now)
        await make_unreadable(time)

        await node.step()

        assert [len(await time.slots(f"job-{number}")) for number in range(3)] == [0, 3, 3]


# The store


@asynccontextmanager
async def at_work(time: Timeline, *stages: Stage) -> AsyncGenerator[None]:
    """Their loops run, as in a node."""
    bench = time.bench
    tasks = [asyncio.create_task(loop.run(stage, bench.clock, bench.health)) for stage in stages]
    try:
        yield
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def shut(time: Timeline) -> AsyncGenerator[None]:
    """Close the database to all connections but the test's own."""
    database = await time.bench.connection.fetchval("select current_database()")
    admin = await asyncpg.connect(urlsplit(time.bench.url)._replace(path="/postgres").geturl())
    await admin.execute(f"alter database {database} allow_connections false")
    await time.bench.connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()",
        database,
    )
    try:
        yield
    finally:
        await admin.execute(f"alter database {database} allow_connections true")
        await admin.close()


async def until_slots(time: Timeline, *expected: datetime) -> None:
    async def are_there() -> bool:
        return await time.slots() == [*expected]

    await rows.until(are_there)


async def test_quartz_105_a_database_that_was_away_longer_than_misfire_after_ends_in_a_catch_up():
    async with timeline() as time:
        await time.job(cron=MINUTELY)
        await time.pass_by(MINUTE)
        async with at_work(time, time.bench.trigger()):
            await until_slots(time, NOON + MINUTE)

            async with shut(time):
                await time.pass_by(11 * MINUTE + 30 * SECOND)

            caught_up = [NOON + MINUTE, NOON + 11 * MINUTE, NOON + 12 * MINUTE]
            await until_slots(time, *caught_up)
            await time.pass_by(MINUTE)
            await until_slots(time, *caught_up, NOON + 13 * MINUTE)
        assert await time.skips() == [Skip(NOON + 2 * MINUTE, NOON + 10 * MINUTE, 9, "MISFIRE_ONCE")]


async def test_sidekiq_cron_187_a_store_that_comes_late_is_waited_for():
    async with timeline() as time, AsyncExitStack() as absence:
        await time.job(cron=MINUTELY)
        await time.pass_by(MINUTE)
        trigger = time.bench.trigger()
        await absence.enter_async_context(shut(time))
        async with at_work(time, trigger):
            with pytest.raises(asyncpg.PostgresError):
                await trigger.line.get()
            assert await time.slots() == []

            await absence.aclose()

            await until_slots(time, NOON + MINUTE)
            await time.pass_by(MINUTE)
            await until_slots(time, NOON + MINUTE, NOON + 2 * MINUTE)


async def test_xxl_job_3699_a_blocked_trigger_makes_its_slots_when_the_lock_is_gone():
    async with timeline() as time, rows.connections(time.bench.url, 1) as (holder,):
        for number, cron in enumerate(FOUR_CRONS):
            await time.job(f"job-{number}", cron=cron)
        node = time.node()
        await node.step()
        async with holder.transaction():
            await holder.execute("select from horai.schedule for update")
            for _ in range(15):
                await time.pass_by(10 * SECOND)
                await node.step()
            assert await time.bench.states() == {}

        await time.pass_by(SECOND)
        await node.step()

        for number in range(4):
            assert await time.slots(f"job-{number}") == [NOON + MINUTE]

"""The gauges of the stage that writes statistics per minute. tests/api/test_overview.py has its counts."""

from datetime import timedelta

import rows
from stages import Workbench, workbench

from horai.core.minute_stats import MINUTE, Gauges, minute_of
from horai.core.outcome import RetryAt
from horai.core.states import State
from horai.db import claims, minute_stats
from horai.engine.minute_stats import MinuteStats


def stage_of(bench: Workbench) -> MinuteStats:
    return MinuteStats(bench.line("minute_stats"), bench.health, bench.clock.now())


async def test_the_first_process_of_a_minute_takes_its_gauges(url: str):
    async with workbench(url) as bench:
        held = await rows.instance(bench.connection, State.RUNNING)
        await claims.fail_if_running(bench.connection, [(held, RetryAt(timedelta(hours=1), "X", "x"))])
        first, second = stage_of(bench), stage_of(bench)
        noon = minute_of(bench.clock.now()) + 2 * MINUTE
        at_noon, later = Gauges(1, 0, 0), Gauges(0, 0, 0)

        for now in (noon, noon + MINUTE / 2, noon + 1.5 * MINUTE):
            bench.health.started += 1
            await first.step(now)
            await second.step(now)
            await bench.connection.execute("delete from horai.instance_live where id = $1", held.id)

        taken = await minute_stats.gauges_since(bench.connection, 1, noon)
        assert taken == {noon: at_noon, noon + MINUTE: later}
        assert not await minute_stats.gauges_since(bench.connection, 1, noon + 2 * MINUTE)


async def test_a_process_that_starts_nothing_takes_gauges_every_five_minutes(url: str):
    async with workbench(url) as bench:
        stage = stage_of(bench)
        noon = minute_of(bench.clock.now()) + 2 * MINUTE

        for number in range(12):
            await stage.step(noon + number * MINUTE)

        assert [*await minute_stats.gauges_since(bench.connection, 1, noon)] == [
            noon,
            noon + 5 * MINUTE,
            noon + 10 * MINUTE,
        ]

"""Maps with thousands of items: the first of them run while more are made, and decisions wait for several ends."""

from datetime import timedelta
from typing import Any

import flows
import pytest
from orchestra import Orchestra
from stages import Workbench, workbench

from horai.core.wakes import RunsWake
from horai.features.workflow import maps
from horai.features.workflow.stage import BULK_PAUSE
from horai.operations import instances

MORE = {"each": {"map": {"overPayload": "", "allowFailures": "all"}}}
MADE = "select map_made from horai.workflow_node where run_id = $1"
ENDED = "select map_ended from horai.workflow_node where run_id = $1"
LIVE = "select id from horai.instance_live where state = 0 order by id limit 5"


async def begun(bench: Workbench, items: int) -> tuple[Orchestra, int]:
    made, band = await flows.workflow(bench.scope, {"each": ()}, more=MORE), Orchestra(bench)
    return band, await flows.start(bench.scope, bench.connection, made, [*range(items)])


@pytest.fixture(autouse=True)
def _smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MADE_AT_ONCE", 10)
    monkeypatch.setattr(maps, "BULK", 10)


async def test_C6_a_decision_makes_a_part_of_the_items_and_the_next_one_follows_at_once(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, 25)
        made, now = list[Any](), bench.clock.now()
        for _ in range(3):
            again = await band.workflow_stage.step(now)
            made.append((await bench.connection.fetchval(MADE, run), again - now))

        assert made == [(10, timedelta(0)), (20, timedelta(0)), (25, BULK_PAUSE)]
        await band.play()
        await band.play()
        assert await flows.phase(bench.connection, run) == "SUCCESS"


async def test_the_ends_of_many_items_are_counted_by_one_decision_after_a_pause(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, 30)
        now = bench.clock.now()
        for _ in range(3):
            await band.workflow_stage.step(now)

        async def ends() -> int:
            for row in await bench.connection.fetch(LIVE):
                await instances.cancel_by_id(bench.scope, row["id"])
            band.workflow_stage.hear(RunsWake([run]))
            return await bench.connection.fetchval(ENDED, run)

        await ends()
        assert await band.workflow_stage.step(now + BULK_PAUSE / 2) == now + BULK_PAUSE
        assert await ends() == 0, "it rests"
        assert await band.workflow_stage.step(now + BULK_PAUSE) == now + 2 * BULK_PAUSE
        assert await ends() == 10
        await band.workflow_stage.step(now - timedelta(hours=1))
        assert await ends() == 15, "a clock that was set back prolongs no pause"
        await band.workflow_stage.step(now - timedelta(hours=1) + BULK_PAUSE)
        assert await ends() == 20
        assert await band.workflow_stage.step(now) > now + BULK_PAUSE, "few items are left"
        assert await ends() == 25

"""Backfills for tests: started over so many slots, stepped, and run."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import make
from stages import Workbench

from horai.engine.dispatch.dispatcher import Dispatcher
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import BackfillRequest, Mode
from horai.features.backfill.stage import BackfillStage
from horai.features.backfill.store import BackfillRow

MINUTE = timedelta(minutes=1)
MOMENT = timedelta(microseconds=1)
BEGIN = datetime(2026, 1, 10, tzinfo=UTC)
"""Long before any job of these tests was there."""


def minutes(count: int, begin: datetime = BEGIN) -> list[datetime]:
    return [begin + n * MINUTE for n in range(count)]


async def started(
    bench: Workbench, count: int = 10, mode: Mode = Mode.missing, begin: datetime = BEGIN, **wish: Any
) -> BackfillRow:
    """A backfill over so many slots of the job `job`, one a minute."""
    asked = BackfillRequest(begin, begin + count * MINUTE, mode, **wish)
    return await backfills.start_backfill(bench.scope, "job", asked)


class Yard:
    """A backfill stage, and an executor that runs its slots."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.backfill_stage = bench.backfill_stage()
        self.dispatcher: Dispatcher = bench.dispatcher()

    async def step(self) -> None:
        """Make as many slots as there is room for, and run none."""
        await until_content(self.bench, self.backfill_stage)

    async def work(self, steps: int = 50) -> None:
        """Makes and runs, until nothing is left or so many rounds are over."""
        self.bench.executor.gate.set()
        for _ in range(steps):
            await self.step()
            if not await self.bench.connection.fetchval("select count(*) from horai.instance_live"):
                return
            await self.bench.until_idle(self.dispatcher)
            await self.bench.settle()

    async def read(self, backfill: BackfillRow) -> BackfillRow:
        return await backfills.read_backfill(self.bench.scope, backfill.id)


async def until_content(bench: Workbench, backfill_stage: BackfillStage) -> None:
    """Steps until it wants to wait."""
    async with asyncio.timeout(30):
        while await backfill_stage.step(now := bench.clock.now()) <= now:
            pass


async def yard(bench: Workbench, **fields: Any) -> Yard:
    await make.job(bench.scope, "job", **{"every": "1m", **fields})
    return Yard(bench)


async def made(bench: Workbench) -> list[tuple[datetime, int]]:
    """Every slot with its generation, in order."""
    found = await bench.connection.fetch(
        """select fire_time, slot from horai.instance_live where slot >= 0
           union all select fire_time, slot from horai.instance_history where slot >= 0 order by 1, 2"""
    )
    return [(row["fire_time"], row["slot"]) for row in found]


async def kinds(bench: Workbench) -> list[str]:
    found = await bench.connection.fetch("select kind from horai.event where kind like 'BACKFILL%' order by id")
    return [row["kind"] for row in found]

"""The stages of durable steps: one forgets what belongs to no instance any more, once an hour; the other serves child calls."""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

from horai.core.shards import Role
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.engine.settler import LOCK_TIMEOUT
from horai.features.parts import StageParts
from horai.features.steps import calls, store
from horai.features.steps.call_stage import build

EVERY = timedelta(hours=1)
INSTANCES_AT_ONCE = 500


class StepSweeper:
    """The stage that removes records whose instance is neither live nor in history. The leading node runs it."""

    name = "step_sweeper"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, lease: Lease) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease

    async def step(self, now: datetime) -> datetime:
        """Read all instances that have records, page by page, and forget those of the past."""
        if not leads(self._lease):
            return now + EVERY
        connection = await self.line.get()
        for forget in (store.forget_steps, store.forget_signals, calls.forget_calls):
            above: int | None = -1
            while above is not None:
                above = await forget(connection, above, INSTANCES_AT_ONCE)
        return now + EVERY


def stages(parts: StageParts) -> list[Stage]:
    """Return the stages of a process: every one that ends instances serves child calls, a scheduler also sweeps."""
    if not parts.roles & {Role.executor, Role.worker, Role.scheduler}:
        return []
    line = parts.line("child_calls", LOCK_TIMEOUT)
    built: list[Stage] = [build(line, parts.lease, parts.wakeups, parts.settings, parts.now)]
    if Role.scheduler in parts.roles:
        built.append(StepSweeper(parts.line("step_sweeper"), parts.lease))
    return built

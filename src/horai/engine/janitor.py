"""The janitor: the stage that does maintenance.

It creates partitions ahead of time, moves waiting rows to other lanes, deletes expired idempotency keys, and runs slow
counts.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog

from horai.core.health import EngineHealth
from horai.core.settings import EngineSettings
from horai.db import idempotency, instance_queries, jobs, minute_stats, nodes
from horai.db.pool import Dedicated
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.operations.job_hooks import JobHooks
from horai.operations.move_waiting import move_waiting_batch

log = structlog.get_logger(__name__)

OFTEN = timedelta(seconds=30)
SELDOM = timedelta(minutes=5)
JOBS_AT_ONCE = 20
KEYS_AT_ONCE = 5_000
MINUTES_KEPT = timedelta(days=2)


class Janitor:
    """The stage that does maintenance."""

    name = "janitor"

    def __init__(
        self,
        line: StageConnection,
        wakeups: Wakeups,
        health: EngineHealth,
        settings: EngineSettings,
        now: datetime,
        hooks: Sequence[JobHooks],
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._wakeups = wakeups
        self._health = health
        self._settings = settings
        self._seldom_at = now
        self._hooks = hooks

    async def step(self, now: datetime) -> datetime:
        """Move the rows of paused, resumed and deleted jobs. Do the other maintenance every five minutes."""
        connection = await self.line.get()
        is_waiting = await self._relane(connection)
        if now >= self._seldom_at:
            await self._seldom(connection)
            self._seldom_at = now + SELDOM
        return now + (timedelta(seconds=1) if is_waiting else OFTEN)

    async def _relane(self, connection: Dedicated) -> bool:
        """Move the waiting rows of each marked job once. Return whether there were marked jobs."""
        after = 0
        while waiting := await jobs.jobs_to_move(connection, JOBS_AT_ONCE, after=after):
            for relane in waiting:
                self._wakeups.announce(await move_waiting_batch(connection, relane, self._hooks))
            after = waiting[-1].job_id
        return after > 0

    async def _seldom(self, connection: Dedicated) -> None:
        await nodes.make_partitions(connection, self._settings.partitions_ahead)
        if strays := await nodes.strays(connection):
            log.error("rows in a default partition: their day had no partition of its own", rows=strays)
        while await idempotency.forget_keys(connection, self._settings.idempotency_keep, KEYS_AT_ONCE) == KEYS_AT_ONCE:
            pass  # one short transaction each: no long lock, and few dead rows at once
        await idempotency.count_keys(connection)
        await minute_stats.forget_minutes(connection, MINUTES_KEPT)
        self._health.retry_backlog = await instance_queries.retry_backlog(connection)

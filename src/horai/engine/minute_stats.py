"""The stage that writes the statistics of each tenant per minute, for the charts of the whole cluster.

It writes the counts of this process every ten seconds while they grow; a crash loses at most ten seconds of them. Once
a minute it also takes the gauges, which count the waiting rows of all processes.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

from horai.core.health import EngineHealth
from horai.core.minute_stats import MINUTE, NOTHING, MinuteCounts, counts_of, minute_of
from horai.db.minute_stats import take_gauges, tenants_of, write_minutes
from horai.db.stage_connection import StageConnection

OFTEN = timedelta(seconds=10)
QUIET_GAUGE = 5 * MINUTE
"""The interval between gauges while this process starts no attempt."""
MOST_JOBS = 100_000
"""The number of jobs whose tenants are remembered."""


class MinuteStats:
    """The stage that writes counts and gauges per minute."""

    name = "minute_stats"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, health: EngineHealth, now: datetime) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._health = health
        self._minute = minute_of(now)
        self._node = health.incarnation
        self._tenants: dict[int, int] = {}  # tenants by their jobs
        self._counted: dict[int, MinuteCounts] = {}  # counts of this minute by their tenants
        self._written: dict[int, MinuteCounts] = {}
        self._gauged: datetime | None = None
        self._started_by_then = 0

    async def step(self, now: datetime) -> datetime:
        """Write the counts if they have grown, start the next minute if it has begun, and take the gauges if due."""
        await self.flush()
        if minute_of(now) != self._minute:
            self._minute, self._node, self._counted, self._written = minute_of(now), self._health.incarnation, {}, {}
        await self._take_gauges(minute_of(now))
        return min(now + OFTEN, minute_of(now) + MINUTE)

    async def _take_gauges(self, minute: datetime) -> None:
        """Take the gauges once a minute, or every five minutes while this process starts nothing.

        In a quiet process little changes, and other processes take gauges too.
        """
        started = self._health.started
        pause = MINUTE if started != self._started_by_then else QUIET_GAUGE
        if self._gauged is None or minute >= self._gauged + pause:
            await take_gauges(await self.line.get(), minute)
            self._gauged, self._started_by_then = minute, started

    async def flush(self) -> None:
        """Write the counts that are not written yet."""
        await self._collect()
        grown = {tenant: counts for tenant, counts in self._counted.items() if counts != self._written.get(tenant)}
        if grown:
            await write_minutes(await self.line.get(), self._minute, self._node, grown)
            self._written |= grown

    async def _collect(self) -> None:
        """Add the counts of jobs to those of their tenants. The counts of a job without a row are dropped."""
        by_job = self._health.by_job
        if len(self._tenants) > MOST_JOBS:
            self._tenants.clear()
        if unknown := [job_id for job_id in by_job if job_id not in self._tenants]:
            self._tenants |= await tenants_of(await self.line.get(), unknown)
        for job_id in [job_id for job_id in by_job if job_id in self._tenants or job_id in unknown]:
            counts = counts_of(by_job.pop(job_id))
            if (tenant := self._tenants.get(job_id)) is not None:
                self._counted[tenant] = self._counted.get(tenant, NOTHING).and_(counts)

"""The stage that writes statistics per minute, for the charts of the whole cluster.

It writes the counts of this process every ten seconds while they grow; a crash loses at most ten seconds of them. Once
a minute it also takes the gauges, which count the waiting rows of all processes.
"""

import asyncio
from datetime import datetime, timedelta

from horai.core.health import EngineHealth
from horai.core.minute_stats import MINUTE, NOTHING, minute_of, totals_of
from horai.db.minute_stats import take_gauges, write_minute
from horai.db.stage_connection import StageConnection

OFTEN = timedelta(seconds=10)
QUIET_GAUGE = 5 * MINUTE
"""The interval between gauges while this process starts no attempt."""


class MinuteStats:
    """The stage that writes counts and gauges per minute."""

    name = "minute_stats"

    def __init__(self, line: StageConnection, health: EngineHealth, now: datetime) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._health = health
        self._minute = minute_of(now)
        self._node = health.incarnation
        self._before = totals_of(health)
        self._written = NOTHING
        self._gauged: datetime | None = None
        self._started_by_then = 0

    async def step(self, now: datetime) -> datetime:
        """Write the counts if they have grown, start the next minute if it has begun, and take the gauges if due."""
        await self.flush()
        if minute_of(now) != self._minute:
            self._before = self._before.and_(self._written)
            self._minute, self._node, self._written = minute_of(now), self._health.incarnation, NOTHING
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
        tally = totals_of(self._health).since(self._before)
        if tally != self._written:
            await write_minute(await self.line.get(), self._minute, self._node, tally)
            self._written = tally

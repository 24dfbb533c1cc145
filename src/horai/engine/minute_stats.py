"""The stage that writes this process's counts per minute, for the charts of the whole cluster.

It sends one statement every ten seconds while there is something new, and none otherwise. A crash loses at most ten
seconds of a statistic.
"""

import asyncio
from datetime import datetime, timedelta

from horai.core.health import EngineHealth
from horai.core.minute_stats import MINUTE, NOTHING, minute_of, totals_of
from horai.db.minute_stats import write_minute
from horai.db.stage_connection import StageConnection

OFTEN = timedelta(seconds=10)


class MinuteStats:
    """The stage that writes counts per minute."""

    name = "minute_stats"

    def __init__(self, line: StageConnection, vitals: EngineHealth, now: datetime) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._vitals = vitals
        self._minute = minute_of(now)
        self._node = vitals.incarnation
        self._before = totals_of(vitals)
        self._written = NOTHING

    async def step(self, now: datetime) -> datetime:
        """Write the counts of the minute if they have grown, then start the next minute if it has begun."""
        await self.flush()
        if minute_of(now) != self._minute:
            self._before = self._before.and_(self._written)
            self._minute, self._node, self._written = minute_of(now), self._vitals.incarnation, NOTHING
        return min(now + OFTEN, minute_of(now) + MINUTE)

    async def flush(self) -> None:
        """Write the counts that are not written yet."""
        tally = totals_of(self._vitals).since(self._before)
        if tally != self._written:
            await write_minute(await self.line.get(), self._minute, self._node, tally)
            self._written = tally

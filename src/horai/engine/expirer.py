"""The expirer: the stage that cancels instances that have expired and do not run.

It makes the end visible. That none of them starts does not depend on it: a claim takes no expired instance. The stage rests
until the next expiry; a call with an earlier one wakes it.
"""

import asyncio
from datetime import datetime, timedelta

from horai.core.settings import EngineSettings
from horai.core.wakes import ExpiriesWake, RunsWake
from horai.db.call_settings import expire_waiting
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups

OFTEN = timedelta(seconds=1)
"""The pause before an instance that has expired is looked at again: it runs, or another transaction has locked it."""
AT_ONCE = 1_000


class Expirer:
    """The stage that cancels expired instances. Of several nodes, each skips the rows that another one has locked."""

    name = "expirer"

    def __init__(self, line: StageConnection, wakeups: Wakeups, settings: EngineSettings) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._wakeups = wakeups
        self._settings = settings
        wakeups.subscribe(ExpiriesWake, lambda _: self.signal.set())

    async def step(self, now: datetime) -> datetime:
        """Cancel up to `AT_ONCE` expired instances. Return when the next one expires, at the latest the next sweep."""
        gone, next_at = await expire_waiting(await self.line.get(), AT_ONCE)
        if gone:
            self._wakeups.publish(RunsWake(gone))
        if len(gone) == AT_ONCE:
            return now
        sweep_at = now + self._settings.sweep
        if next_at is None:
            return sweep_at
        return now + OFTEN if next_at <= now else min(next_at, sweep_at)

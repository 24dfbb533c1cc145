"""The stage of assets: it reads successes of jobs that produce assets, and starts the jobs that wait for them.

It runs in every process that ends instances or creates slots. It is woken when a success of a producer was written here,
when an update was committed anywhere, when a run that may not overlap has ended, and when a job was resumed. A sweep
finds what no wake announced. While no job uses an asset, it asks the database once in two minutes.
"""

import asyncio
import time
from datetime import datetime, timedelta

from horai.core.horizon import ClockWatch
from horai.core.settings import EngineSettings
from horai.core.shards import Duty, Role
from horai.core.wakes import AssetsWake, MoveWaitingWake, OverlapWake, RunsWake
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease
from horai.engine.loop import Stage
from horai.features.assets import engine_store
from horai.features.assets.starting import read_successes, start_ready
from horai.features.parts import StageParts

BUSY_PAUSE = timedelta(milliseconds=20)
SELDOM = timedelta(minutes=2)
"""The time until the next look if no job uses an asset."""
KEPT_FOR = timedelta(days=90)
"""Updates older than this are forgotten, but for the newest of each asset and those that a job has to start with."""
TRIM_EVERY, TRIMMED_AT_ONCE = timedelta(minutes=10), 10_000


class AssetStage:
    """The stage that updates assets and starts jobs."""

    name = "assets"

    def __init__(
        self, line: StageConnection, lease: Lease, wakeups: Wakeups, settings: EngineSettings, now: datetime
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._watch = ClockWatch(time.monotonic)
        self._is_used = True
        self._sweep_at = self._trim_at = now

    def wake(self, _wake: object = None) -> None:
        """Look now: there may be an update, or a job that may start."""
        if self._is_used:
            self._sweep_at = None
            self.signal.set()

    def look_again(self, _wake: object = None) -> None:
        """Look now, also if no job used an asset before."""
        self._is_used = True
        self.wake()

    async def step(self, now: datetime) -> datetime:
        """Record updates and start jobs. Return the time of the next step."""
        if self._sweep_at is not None and now < self._sweep_at:
            return self._sweep_at
        connection = await self.line.get()
        self._is_used = await engine_store.any_assets(connection)
        if not self._is_used:
            self._watch.forget()
            self._sweep_at = now + SELDOM
            return self._sweep_at
        is_all = await read_successes(connection, self._watch)
        started = await start_ready(connection)
        self._wakeups.announce_new(started.woken)
        if not is_all or started.has_more:
            self._sweep_at = None
            return now + BUSY_PAUSE
        self._sweep_at = now + self._settings.sweep
        if now >= self._trim_at and self._lease.shards(Duty.trigger):
            trimmed = await engine_store.trim_asset_updates(connection, now - KEPT_FOR, TRIMMED_AT_ONCE)
            self._trim_at = now if trimmed == TRIMMED_AT_ONCE else now + TRIM_EVERY
        return self._sweep_at


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that end instances or create slots."""
    if not parts.roles & {Role.executor, Role.worker, Role.scheduler}:
        return []
    stage = AssetStage(parts.line("assets"), parts.lease, parts.wakeups, parts.settings, parts.now)
    parts.wakeups.subscribe(AssetsWake, stage.look_again)
    parts.wakeups.subscribe(RunsWake, stage.wake)
    parts.wakeups.subscribe(OverlapWake, stage.wake)
    parts.wakeups.subscribe(MoveWaitingWake, stage.look_again)
    parts.lease.on_change.append(stage.look_again)
    parts.lease.on_lost_node.append(stage.look_again)
    return [stage]

"""The stage that keeps history within its bounds: it folds days that are over, drops old ones, and forgets old rows.

It runs on the owner of the first trigger shard, once an hour. Every step may be repeated: a crash between two of them
loses nothing.
"""

import asyncio
from datetime import date, datetime, timedelta
from typing import Literal

import asyncpg
import structlog

from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.db import archives
from horai.db.pool import Platform, limit_lock_wait
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.parts import StageParts
from horai.features.retention import store
from horai.features.retention.rules import next_to_fold, start_of, to_drop

log = structlog.get_logger(__name__)

EVERY = timedelta(hours=1)
DROP_AGAIN = timedelta(days=1)
"""Days with rows that are still needed are looked at again after this time."""
FOLDED_AT_ONCE = 5_000
FORGOTTEN_AT_ONCE = 5_000
PATIENCE = timedelta(milliseconds=200)
"""The time for which a drop waits for readers of its table; others wait behind it."""
FOLD_PATIENCE = timedelta(seconds=5)
"""The time for which a fold waits for transactions that wrote to its day."""


class RetentionStage:
    """The stage that folds, drops and forgets."""

    name = "retention"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, lease: Lease, settings: EngineSettings) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._settings = settings
        self._looked_at: dict[tuple[str, date], datetime] = {}
        """When each day that keeps rows was last looked at."""

    async def step(self, now: datetime) -> datetime:
        """Fold all days that are over, then drop and forget what is old."""
        if not leads(self._lease):
            return now + EVERY
        connection = await self.line.get()
        try:
            while (day := next_to_fold(await store.history_days(connection))) is not None:
                await self._fold(connection, day)
            await self._drop_days(connection, now)
        except asyncpg.LockNotAvailableError:
            log.warning("history is in use: its old days are tried again in an hour")
        await self._forget(connection)
        return now + EVERY

    async def _fold(self, connection: Platform, day: date) -> None:
        """Fold a day. Its rows are decided from the compact table only when all of them are there."""
        async with connection.transaction():
            await limit_lock_wait(connection, FOLD_PATIENCE)
            await store.watch_history_day(connection, day)
        since, before = start_of(day), start_of(day + timedelta(days=1))
        above = 0
        while (reached := await store.fold_history(connection, since, before, above, FOLDED_AT_ONCE)) is not None:
            above = reached
        await store.move_fold(connection, before)
        log.info("day of history folded", day=day.isoformat())

    async def _drop_days(self, connection: Platform, now: datetime) -> None:
        history = await store.history_days(connection)
        days = [each for each in to_drop(history, self._settings.history_keep) if self._is_due(each, now)]
        if not days:
            return
        await store.move_kept_from(connection, start_of(max(day for _, day in days) + timedelta(days=1)))
        for parent, day in days:
            async with connection.transaction():
                await limit_lock_wait(connection, PATIENCE)
                await store.lock_history_day(connection, parent, day)
                if not await self._may_go(connection, parent, day):
                    log.warning("day of history not dropped: it is not archived", table=parent, day=day.isoformat())
                    continue
                kept = await store.drop_history_day(connection, parent, day)
            self._looked_at.pop((parent, day), None)
            if kept:
                self._looked_at[parent, day] = now
            log.info("day of history dropped", table=parent, day=day.isoformat(), rows_kept=kept)

    async def _may_go(self, connection: Platform, parent: str, day: date) -> bool:
        """Return whether a locked day may be dropped: all of it is in the archive, if there is one."""
        return self._settings.archive_dir is None or await archives.is_archived(connection, parent, day)

    def _is_due(self, each: tuple[str, date], now: datetime) -> bool:
        looked_at = self._looked_at.get(each)
        return looked_at is None or now - looked_at >= DROP_AGAIN

    async def _forget(self, connection: Platform) -> None:
        for rows, statement in store.FORGETTING.items():
            keep = self._settings.dead_letter_keep if rows in _LONG_KEPT else self._settings.history_keep
            total = found = await store.forget(connection, statement, keep, FORGOTTEN_AT_ONCE)
            while found == FORGOTTEN_AT_ONCE:
                found = await store.forget(connection, statement, keep, FORGOTTEN_AT_ONCE)
                total += found
            if total:
                log.info("old rows forgotten", rows=rows, count=total)


_LONG_KEPT = frozenset({"dead letters", "source events"})
"""Rows that are kept as long as dead letters. A repeated event of a source is recognised for that time."""


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    stage = RetentionStage(parts.line("retention"), parts.lease, parts.settings)
    parts.lease.on_change.append(stage.signal.set)
    return [stage]

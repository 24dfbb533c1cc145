"""The stage that keeps history within its bounds: it folds days that are over, drops old ones, and forgets old rows.

It runs on the owner of the first trigger shard, once an hour. Every step may be repeated: a crash between two of them
loses nothing. Rows of tenants and jobs that keep history shorter are deleted from their day in batches; each day is
read for this once a day, and not at all without such tenants and jobs.
"""

import asyncio
from collections.abc import Sequence
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
from horai.features.retention.rules import (
    DROP_AGAIN,
    PARENTS,
    Clearing,
    HistoryDays,
    Look,
    OwnTimes,
    is_due_again,
    next_to_fold,
    start_of,
    to_adopt,
    to_clear,
    to_drop,
)

log = structlog.get_logger(__name__)

EVERY = timedelta(hours=1)
IN_USE_AGAIN = timedelta(minutes=5)
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
        self._looks: dict[tuple[str, date], Look] = {}
        """The last look at each old day that keeps rows."""
        self._cleared: dict[date, tuple[Clearing, datetime]] = {}
        """Whose rows were last deleted from each day, and when."""

    async def step(self, now: datetime) -> datetime:
        """Give rows without a partition one, fold all days that are over, then drop and forget what is old."""
        if not leads(self._lease):
            return now + EVERY
        connection, again = await self.line.get(), EVERY
        try:
            await self._adopt_strays(connection, now)
            while (day := next_to_fold(await store.history_days(connection))) is not None:
                await self._fold(connection, day)
            owns = await store.own_times(connection)
            await self._drop_days(connection, now, owns)
            if owns:
                await self._clear_days(connection, now)
        except asyncpg.LockNotAvailableError:
            log.warning("history is in use: its old days are tried again in five minutes")
            again = IN_USE_AGAIN
        await self._forget(connection)
        return now + again

    async def _adopt_strays(self, connection: Platform, now: datetime) -> None:
        """Move rows whose day had no partition to a partition of that day, so that it is archived and dropped like others."""
        while days := to_adopt(await store.stray_days(connection), now):
            for parent, day in days:
                async with connection.transaction():
                    await limit_lock_wait(connection, PATIENCE)
                    moved = await store.adopt_strays(connection, parent, day)
                if moved is None:
                    log.warning("rows without a partition stay: the outbox has not recorded their day", table=parent)
                    return
                log.info("rows moved to the partition of their day", table=parent, day=day.isoformat(), rows=moved)

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

    async def _drop_days(self, connection: Platform, now: datetime, owns: Sequence[OwnTimes]) -> None:
        history = await store.history_days(connection)
        old = to_drop(history, self._settings.history_keep)
        days = [each for each in old if is_due_again(each[1], self._looks.get(each), now, owns)]
        for parent, day in days:
            async with connection.transaction():
                await limit_lock_wait(connection, PATIENCE)
                await store.lock_history_day(connection, parent, day)
                if not await self._may_go(connection, parent, day):
                    log.warning("day of history not dropped: it is not archived", table=parent, day=day.isoformat())
                    continue
                await store.move_kept_from(connection, start_of(day + timedelta(days=1)))
                kept = await store.drop_history_day(connection, parent, day)
            self._looks.pop((parent, day), None)
            if kept:
                self._looks[parent, day] = Look(now, kept)
            log.info("day of history dropped", table=parent, day=day.isoformat(), rows_kept=kept)

    async def _may_go(self, connection: Platform, parent: str, day: date) -> bool:
        """Return whether a locked day may be dropped: all of it is in the archive, if there is one."""
        return self._settings.archive_dir is None or await archives.is_archived(connection, parent, day)

    async def _clear_days(self, connection: Platform, now: datetime) -> None:
        """Delete rows of tenants and jobs that keep history shorter than the process, day by day."""
        while (begun := await self._begin_day(connection, now)) is not None:
            clearing, history = begun
            above: int | None = 0
            while above is not None:
                async with connection.transaction():
                    await limit_lock_wait(connection, PATIENCE)
                    days = [(parent, clearing.day) for parent in PARENTS]
                    if not await self._are_archived(connection, history, days):
                        log.warning("rows of a day not deleted: it is not archived", day=clearing.day.isoformat())
                        break
                    above = await self._clear_some(connection, clearing, history, above)
            self._cleared[clearing.day] = clearing, now if above is None else now - DROP_AGAIN + EVERY

    async def _begin_day(self, connection: Platform, now: datetime) -> tuple[Clearing, HistoryDays] | None:
        """Return the next day with rows to delete, after it was recorded that their history is not complete any more.

        A tenant or a job gets other times before that, and they count, or after, and learns from where on history is
        complete. Each day is looked at once a day: some of its rows may be needed no longer.
        """
        async with connection.transaction():
            await limit_lock_wait(connection, PATIENCE)
            await store.lock_fold(connection)
            history, owns = await store.history_days(connection), await store.own_times(connection)
            known = to_clear(history, self._settings.history_keep, owns)
            self._cleared = {each.day: self._cleared[each.day] for each in known if each.day in self._cleared}
            clearing = next((each for each in known if self._is_unclear(each, now)), None)
            if clearing is None:
                return None
            await store.move_kept_from_of(connection, clearing, start_of(clearing.day + timedelta(days=1)))
            return clearing, history

    def _is_unclear(self, clearing: Clearing, now: datetime) -> bool:
        """Return whether rows of this day may have to go since it was last looked at."""
        last, at = self._cleared.get(clearing.day, (None, now))
        return last != clearing or now - at >= DROP_AGAIN

    async def _clear_some(
        self, connection: Platform, clearing: Clearing, history: HistoryDays, above: int
    ) -> int | None:
        """Delete one batch of instances with their rows. Return the highest id of it; None if none was left.

        Attempts, events and notes of other days go along, if these are archived; otherwise they stay until their day is
        dropped.
        """
        ids, oldest = await store.forgettable_instances(connection, clearing, above, FORGOTTEN_AT_ONCE)
        if not ids or oldest is None:
            return None
        before = history.folded_before or start_of(clearing.day + timedelta(days=1))
        for parent, day in await store.days_of_rows(connection, ids, oldest, before):
            if day == clearing.day or await self._are_archived(connection, history, [(parent, day)]):
                await store.forget_rows(connection, parent, _bounds(day), ids)
        await store.forget_rows(connection, PARENTS[0], _bounds(clearing.day), ids)
        log.info("rows of a day deleted", day=clearing.day.isoformat(), instances=len(ids))
        return ids[-1]

    async def _are_archived(self, connection: Platform, history: HistoryDays, days: Sequence[tuple[str, date]]) -> bool:
        """Return whether all rows of these days are in the archive, if there is one, and lock the days then."""
        if self._settings.archive_dir is None:
            return True
        for parent, day in days:
            if day not in history.days.get(parent, ()):
                return False
            await store.lock_history_day(connection, parent, day)
            if not await archives.is_archived(connection, parent, day):
                return False
        return True

    async def _forget(self, connection: Platform) -> None:
        for rows, statement in store.FORGETTING.items():
            keep = self._settings.dead_letter_keep if rows in _LONG_KEPT else self._settings.history_keep
            total = found = await store.forget(connection, statement, keep, FORGOTTEN_AT_ONCE)
            while found == FORGOTTEN_AT_ONCE:
                found = await store.forget(connection, statement, keep, FORGOTTEN_AT_ONCE)
                total += found
            if total:
                log.info("old rows forgotten", rows=rows, count=total)


_LONG_KEPT = frozenset({"dead letters", "source events", "parked events"})
"""Rows that are kept as long as dead letters. A repeated event of a source is recognised for that time."""


def _bounds(day: date) -> tuple[datetime, datetime]:
    return start_of(day), start_of(day + timedelta(days=1))


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    stage = RetentionStage(parts.line("retention"), parts.lease, parts.settings)
    parts.lease.on_change.append(stage.signal.set)
    return [stage]

"""The archiver: the stage that archives closed days of history, if this node has an archive.

One node archives, the leader. It looks for closed days at its start and every 15 minutes, and archives one after the
other, in a task of its own: writing a large day takes minutes, and the stage beats meanwhile. If a day cannot be
archived, because the disk is full, the directory is gone or the bucket does not answer, it is recorded, and tried again
after 5 minutes; other days are not held up, and nothing else waits for this stage. Before that it deletes files that have
expired, and those that a crash left behind.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

import structlog

from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.db import archives
from horai.db.archive_strays import Expiry
from horai.db.archives import PartitionDay
from horai.db.cluster import cluster_id
from horai.db.pool import LOOP_LOCK_TIMEOUT, Plans, Platform
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.archive.archiving import archive_partition
from horai.features.archive.writer import ArchiveDamaged
from horai.features.parts import StageParts
from horai.operations.archive_place import ArchiveBusy, ArchivePlace, ArchiveStore, store_of
from horai.operations.archive_removal import SLACK, delete_doomed, expire_files
from horai.operations.parquet import ParquetFailed
from horai.operations.wall_clock import wall_clock

log = structlog.get_logger(__name__)

SWEEP = timedelta(minutes=15)
RETRY = timedelta(minutes=5)
LOOK_AGAIN = timedelta(seconds=10)
"""The time between two beats while a day is being archived. No statement is sent for it."""
CLOSED_AFTER = timedelta(hours=1)
"""The least age of a closed day: transactions of its last moments have ended."""
AT_ONCE = 8
LONGEST_ERROR = 500


class ArchiveStage:
    """The stage that archives. `clock` is that of this machine: nothing expires if the database has another time."""

    name = "archive"
    is_background: Literal[True] = True

    def __init__(
        self,
        line: StageConnection,
        lease: Lease,
        store: ArchiveStore,
        settings: EngineSettings,
        clock: Callable[[], datetime] = wall_clock,
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._store = store
        self._after = max(settings.archive_after, CLOSED_AFTER)
        self._keep = None if settings.archive_keep is None else max(settings.archive_keep, settings.history_keep)
        self._clock = clock
        self._task: asyncio.Task[bool] | None = None

    async def step(self, now: datetime) -> datetime:
        """Begin to archive, or look how far it is. Return the time of the next step."""
        if self._task is None:
            if not leads(self._lease):
                return now + SWEEP
            self._task = asyncio.create_task(self._archive(), name="archive days")
            self._task.add_done_callback(lambda _: self.signal.set())
        if not self._task.done():
            return now + LOOK_AGAIN
        task, self._task = self._task, None
        return now + (RETRY if task.result() else SWEEP)

    async def finished(self) -> None:
        """Wait until the days that are being archived are done."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """End the work under way; the next process begins the day again."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._store.close()

    async def _archive(self) -> bool:
        """Delete old files, and archive all days that are due. Return whether one of them failed."""
        connection = await self.line.get()
        has_failed = not await self._clean(connection)
        while leads(self._lease):
            parts = await archives.partitions_to_archive(connection, self._after, RETRY, AT_ONCE)
            try:
                for part in parts:
                    has_failed |= not await self._try(connection, part)
            except ArchiveBusy:  # a node that led before has not ended its work
                return True
            if not parts:
                break
        return has_failed

    async def _clean(self, connection: Platform) -> bool:
        """Delete files that have expired or have no record. Return False if the archive does not let them be deleted."""
        if self._keep is not None:
            await expire_files(connection, Expiry(self._keep, self._clock(), self._after, SLACK))
        try:
            if deleted := await delete_doomed(connection, self._store):
                log.info("archive files deleted", files=deleted)
        except OSError as error:
            log.error("archive files not deleted", error=str(error)[:LONGEST_ERROR])
            return False
        return True

    async def _try(self, connection: Platform, part: PartitionDay) -> bool:
        try:
            place = ArchivePlace(self._store, await cluster_id(connection))
            await archive_partition(connection, place, part)
        except (ArchiveDamaged, ParquetFailed, OSError) as error:
            told = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
            tries = await archives.mark_failed(connection, part, told)
            log.error("day not archived", table=part.table, day=f"{part.day:%Y-%m-%d}", error=told, tries=tries)
            return False
        return True


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may lead and have an archive."""
    store = store_of(parts.settings) if Role.scheduler in parts.roles else None
    if store is None:
        return []
    line = parts.line("archive", LOOP_LOCK_TIMEOUT, Plans.FRESH)
    stage = ArchiveStage(line, parts.lease, store, parts.settings)
    parts.lease.on_change.append(stage.signal.set)
    return [stage]

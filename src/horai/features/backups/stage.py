"""The stage that makes backups of the embedded database on a schedule.

It runs in the process that supervises the database, which the lock of the data directory makes the only one; a node that
another machine may take over cannot reach the files. A backup is a task beside the steps. Between two backups the stage
sends no statements.
"""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import structlog

from horai.core.actor import ActorKind
from horai.core.settings import BackupSchedule
from horai.db import backups
from horai.db.stage_connection import StageConnection
from horai.embedded import EmbeddedError
from horai.embedded.backup import prune
from horai.engine.loop import Stage
from horai.features.backups.rules import first_at, next_at
from horai.features.parts import StageParts
from horai.operations.backups import BackupAttempt, attempt_backup, record_backup
from horai.operations.process_actor import process_actor

log = structlog.get_logger(__name__)

LOOK = timedelta(minutes=5)
"""The longest time between two steps. The end of a backup wakes the stage."""


class BackupStage:
    """The stage that backs up."""

    name = "backups"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, schedule: BackupSchedule) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._schedule = schedule
        self._due_at: datetime | None = None
        self._task: asyncio.Task[BackupAttempt] | None = None
        self._ended: BackupAttempt | None = None
        """A backup that is not recorded yet."""

    async def step(self, now: datetime) -> datetime:
        """Record a backup that has ended, and begin one that is due."""
        if self._task is not None:
            if not self._task.done():
                return now + LOOK
            task, self._task = self._task, None
            self._due_at = next_at(now, self._schedule.every, has_failed=True)  # if the task has raised
            self._ended = task.result()
        if self._ended is not None:
            await self._record(self._ended)
            self._ended = None
        if self._due_at is None:
            last = await backups.last_scheduled(await self.line.get())
            self._due_at = first_at(last, self._schedule.every, now)
        if now < self._due_at:
            return min(self._due_at, now + LOOK)
        schedule = self._schedule
        self._task = asyncio.create_task(
            attempt_backup(schedule.data_dir, schedule.directory, now, every=schedule.every), name="backup"
        )
        self._task.add_done_callback(lambda _: self.signal.set())
        return now + LOOK

    async def _record(self, attempt: BackupAttempt) -> None:
        """Remove old backups and record the attempt. If the database is away, the next step records it."""
        schedule, run = self._schedule, attempt.run
        removed = list[Path]()
        if attempt.made is not None:
            try:
                removed = await prune(schedule.directory, attempt.made.manifest.content, schedule.keep)
            except EmbeddedError as error:
                log.warning("old backups were not removed", directory=run.directory, error=error.detail)
        await record_backup(await self.line.get(), process_actor(ActorKind.SYSTEM), run, removed)
        self._due_at = next_at(run.started_at, schedule.every, has_failed=run.error is not None)
        if attempt.made is not None:
            took = attempt.made.manifest.finished_at - attempt.made.manifest.started_at
            seconds = round(took.total_seconds(), 1)
            log.info("backup made", path=run.path, bytes=run.size, seconds=seconds, removed=len(removed))
        else:
            log.error("backup failed", directory=run.directory, error=run.error, again_at=self._due_at.isoformat())

    async def close(self) -> None:
        """End a backup that is being made. Nothing of it is kept."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in the process that has a schedule of backups."""
    schedule = parts.settings.backups
    return [] if schedule is None else [BackupStage(parts.line("backups"), schedule)]

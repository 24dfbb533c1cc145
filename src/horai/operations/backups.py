"""Backups of the embedded database: made, recorded in it, and written to its audit log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from horai import __version__
from horai.core.actor import Actor
from horai.core.audit import AuditEntry, AuditVerb
from horai.db import backups
from horai.db.backups import BackupRun
from horai.db.pool import Platform
from horai.embedded import EmbeddedError
from horai.embedded.backup import make_backup
from horai.embedded.backup_manifest import MadeBackup
from horai.operations import audit


@dataclass(frozen=True, slots=True)
class BackupAttempt:
    """A backup that was made, or the error for which it was given up."""

    run: BackupRun
    made: MadeBackup | None = None
    error: EmbeddedError | None = None


async def attempt_backup(
    data_dir: Path, into: Path, now: datetime, keys: Sequence[Path] = (), every: timedelta | None = None
) -> BackupAttempt:
    """Back up the running embedded database of `data_dir` into the absolute path `into`. Does not raise `EmbeddedError`, but returns it."""
    try:
        made = await make_backup(data_dir, into, __version__, keys)
    except EmbeddedError as error:
        run = BackupRun(now, str(into), None, None, None, None, every, error.detail)
        return BackupAttempt(run, error=error)
    manifest = made.manifest
    found = manifest.content.violations
    run = BackupRun(
        now,
        str(made.path.parent),
        str(made.path),
        manifest.size,
        manifest.end_lsn,
        None if found is None else sum(found.values()),
        every,
        None,
    )
    return BackupAttempt(run, made)


async def record_backup(connection: Platform, actor: Actor, run: BackupRun, removed: Sequence[Path] = ()) -> None:
    """Record a backup, and the old ones that were removed for it, with an audit row."""
    after = {"path": run.path, "size": run.size, "lsn": run.lsn, "error": run.error, "removed": [*map(str, removed)]}
    shown = {name: value for name, value in after.items() if value}
    verb = AuditVerb.BACKUP_CREATE if run.error is None else AuditVerb.BACKUP_FAIL
    async with connection.transaction():
        await backups.record_backup(connection, run)
        await audit.record(connection, None, actor, AuditEntry(verb, "backup", "", run.directory, after=shown))

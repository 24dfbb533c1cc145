"""Backups in the database: one function per statement of sql/backups.sql."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.db.catalog import sql
from horai.db.pool import Platform

COUNT_TIMEOUT = 3600.0


@dataclass(frozen=True, slots=True)
class BackupRun:
    """A backup that was made or given up. `every` is the interval of its schedule; None for one by hand."""

    started_at: datetime
    directory: str
    path: str | None
    size: int | None
    lsn: str | None
    violations: int | None
    every: timedelta | None
    error: str | None


@dataclass(frozen=True, slots=True)
class BackupStatus:
    """The last backups: seconds since the start of the last success, and the last failure after it, if there was one."""

    success_at: datetime | None
    path: str | None
    size: int | None
    age: float | None
    failed_at: datetime | None
    error: str | None
    is_overdue: bool


async def identity(connection: Platform) -> tuple[str, str]:
    """Return the id of the cluster and the version of its PostgreSQL."""
    row = await connection.fetchrow(sql("backup_identity"))
    assert row is not None  # noqa: S101 - a cluster has one row
    return str(row["cluster"]), row["postgresql"]


async def count_rows(connection: Platform) -> dict[str, int]:
    """Count the rows of the tables that matter, in one snapshot."""
    rows = await connection.fetch(sql("backup_counts"), timeout=COUNT_TIMEOUT)
    return {row["name"]: row["rows"] for row in rows}


async def record_backup(connection: Platform, run: BackupRun) -> None:
    """Record a backup; the rows of the last 100 are kept."""
    await connection.execute(
        sql("record_backup"),
        run.started_at,
        run.directory,
        run.path,
        run.size,
        run.lsn,
        run.violations,
        run.every,
        run.error,
    )


async def last_scheduled(connection: Platform) -> datetime | None:
    """Return when the last successful backup of the schedule began; None if there was none."""
    return await connection.fetchval(sql("last_scheduled_backup"))


async def backup_status(connection: Platform) -> BackupStatus | None:
    """Return the last backups; None if there was never one."""
    row = await connection.fetchrow(sql("backup_status"))
    return None if row is None else BackupStatus(*row.values())

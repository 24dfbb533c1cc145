"""The records of the archive: one function per statement of sql/archives.sql.

A day of a table is archived when each tenant with rows in it has a file that was read again and compared with the rows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from horai.db.catalog import sql
from horai.db.pool import AnyRead, Platform, TenantRead, TenantWrite

TABLES = ("instance_history", "attempt", "event", "note")
"""The tables that are partitioned by day."""
EXPORT_TIMEOUT = timedelta(hours=2)
"""The time that one statement may read a day for: far longer than a request, as no caller waits."""
_PARTITION = re.compile(r"(?:horai\.)?(\w+)_(\d{4})(\d{2})(\d{2})")


@dataclass(frozen=True, slots=True)
class PartitionDay:
    """A day, in UTC, of a table."""

    table: str
    day: date

    @property
    def bounds(self) -> tuple[datetime, datetime]:
        """Return the first moment of the day, and that of the next day."""
        begin = datetime.combine(self.day, time(), UTC)
        return begin, begin + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ArchiveRecord:
    """A file as it was recorded. `path` is below the archive directory."""

    tenant_id: int
    path: str
    rows: int
    checksum: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ArchiveFigures:
    """The archived days, the bytes of their files when they were written, and the days of tables that failed last."""

    days: int = 0
    bytes: int = 0
    failing: int = 0


@dataclass(frozen=True, slots=True)
class ArchiveFileRow:
    """A file of a tenant, as lists show it."""

    id: int
    table_name: str
    day: date
    path: str
    rows: int
    bytes: int
    sha256: str
    from_time: datetime | None
    to_time: datetime | None
    archived_at: datetime


@dataclass(frozen=True, slots=True)
class FileOfInstances:
    """A file with instances of a tenant."""

    path: str
    rows: int
    bytes: int
    sha256: str


def day_of_partition(table: str, partition: str) -> date:
    """Return the day of a partition by its name, such as `event_20261103`. Raises `ValueError` for another name."""
    match = _PARTITION.fullmatch(partition)
    if match is None or match[1] != table or table not in TABLES:
        raise ValueError(f"{partition!r} is not a day of {table!r}")
    return date(int(match[2]), int(match[3]), int(match[4]))


async def is_archived(connection: Platform, table: str, partition: str | date) -> bool:
    """Return whether all rows of a partition are in the archive now.

    The partition is given by its day or by its name. It counts the rows of each tenant again: rows that were committed
    after the archive was written make it False. So a caller that drops the partition asks in the same transaction,
    after it has locked the partition.
    """
    day = partition if isinstance(partition, date) else day_of_partition(table, partition)
    part = PartitionDay(table, day)
    if await connection.fetchval(sql("archived_since"), table, day) is None:
        return False
    known = {record.tenant_id: record.rows for record in await files_of_day(connection, part)}
    return not lacking(await count_day(connection, part), known)


def lacking(present: dict[int, int], archived: dict[int, int]) -> frozenset[int]:
    """Return the tenants with more rows than their file has. A file keeps rows that were deleted since."""
    return frozenset(tenant_id for tenant_id, rows in present.items() if rows > archived.get(tenant_id, 0))


async def count_day(connection: Platform, part: PartitionDay) -> dict[int, int]:
    """Return the number of rows of each tenant in a day."""
    statement = {
        "instance_history": "count_instance_history_day",
        "attempt": "count_attempt_day",
        "event": "count_event_day",
        "note": "count_note_day",
    }[part.table]
    rows = await connection.fetch(sql(statement), *part.bounds, timeout=EXPORT_TIMEOUT.total_seconds())
    return {row["tenant_id"]: row["rows"] for row in rows}


async def export_day(connection: Platform, part: PartitionDay, to: Path) -> int:
    """Write the rows of a day to a CSV file. Return their number."""
    statement = {
        "instance_history": "export_instance_history",
        "attempt": "export_attempt",
        "event": "export_event",
        "note": "export_note",
    }[part.table]
    with to.open("wb") as output:
        told = await connection.copy_from_query(
            sql(statement),
            *part.bounds,
            output=output,
            format="csv",
            null="\\N",
            timeout=EXPORT_TIMEOUT.total_seconds(),
        )
    return _count(told)


def _count(tag: str) -> int:
    """Return the number of rows in the tag of a command, such as `INSERT 0 3`."""
    return int(tag.rpartition(" ")[2])


async def partitions_to_archive(
    connection: Platform, after: timedelta, retry: timedelta, limit: int
) -> list[PartitionDay]:
    """Return days that ended at least `after` ago and are not archived, oldest first. One that failed waits for `retry`."""
    rows = await connection.fetch(sql("partitions_to_archive"), after, retry, limit)
    return [PartitionDay(row["table_name"], row["day"]) for row in rows]


async def files_of_day(connection: Platform, part: PartitionDay) -> list[ArchiveRecord]:
    """Return the files of all tenants for a day."""
    rows = await connection.fetch(sql("archive_files_of_day"), part.table, part.day)
    return [ArchiveRecord(*row.values()) for row in rows]


async def share_tenant(connection: Platform, tenant_id: int) -> bool:
    """Hold back a deletion of the tenant until the transaction ends. Return False if the tenant is being deleted."""
    return await connection.fetchval(sql("share_tenant_row"), tenant_id) is not None


async def record_file(
    connection: Platform, part: PartitionDay, record: ArchiveRecord, fires: tuple[datetime | None, datetime | None]
) -> None:
    """Record a file that was verified, with the first and the last fire time of its instances."""
    place = (record.tenant_id, part.table, part.day, record.path)
    await connection.execute(
        sql("insert_archive_file"), *place, record.rows, record.checksum, record.bytes, record.sha256, *fires
    )


async def mark_archived(connection: Platform, part: PartitionDay) -> None:
    """Record that each tenant with rows in the day has its file."""
    await connection.execute(sql("mark_archived"), part.table, part.day)


async def mark_failed(connection: Platform, part: PartitionDay, error: str) -> int | None:
    """Record that a day could not be archived. Return the number of tries; None if it is archived."""
    return await connection.fetchval(sql("mark_archive_failed"), part.table, part.day, error)


async def figures(connection: Platform) -> ArchiveFigures:
    """Return the figures of the archive."""
    row = await connection.fetchrow(sql("archive_figures"))
    assert row is not None  # noqa: S101 - a count returns a row
    return ArchiveFigures(*row.values())


async def list_files(
    connection: TenantRead, tenant_id: int, before: tuple[date, int] | None, limit: int, table: str | None
) -> list[ArchiveFileRow]:
    """Return a page of the tenant's files, the newest day first."""
    day, id_ = (None, None) if before is None else before
    rows = await connection.fetch(sql("list_archive_files"), tenant_id, id_, day, limit, table)
    return [ArchiveFileRow(**row) for row in rows]


async def files_of_instances(
    connection: TenantRead, tenant_id: int, since: datetime, until: datetime
) -> list[FileOfInstances]:
    """Return the tenant's files with instances that fired from `since` until `until`."""
    rows = await connection.fetch(sql("archived_instance_files"), tenant_id, since, until)
    return [FileOfInstances(*row.values()) for row in rows]


async def file_of_day(connection: TenantRead, tenant_id: int, day: date) -> FileOfInstances | None:
    """Return the tenant's file with the instances that finished on a day."""
    row = await connection.fetchrow(sql("archive_file_of"), tenant_id, day)
    return None if row is None else FileOfInstances(*row.values())


async def has_archive(connection: AnyRead, tenant_id: int) -> bool:
    """Return whether the tenant has files, or may have one without a record."""
    return await connection.fetchval(sql("tenant_has_archive"), tenant_id)


async def last_restored(connection: TenantWrite, tenant_id: int, day: date) -> tuple[int, int] | None:
    """Return the fire time, in microseconds, and the id of the last instance of a day that is restored."""
    row = await connection.fetchrow(sql("last_restored"), tenant_id, day)
    return None if row is None else (row["fire_time"], row["id"])


async def restore_instances(connection: TenantWrite, tenant_id: int, day: date, documents: str) -> int:
    """Add instances, given as a JSON array, to those that are restored. Return how many were not there yet."""
    return _count(await connection.execute(sql("restore_instances"), tenant_id, day, documents))


async def count_restored(connection: TenantRead, tenant_id: int, day: date) -> int:
    """Return the number of restored instances of a day."""
    return await connection.fetchval(sql("count_restored"), tenant_id, day)


async def delete_restored(connection: TenantWrite, tenant_id: int, day: date, limit: int) -> int:
    """Delete up to `limit` restored instances of a day; return how many."""
    return _count(await connection.execute(sql("delete_restored"), tenant_id, day, limit))


def told_fires(low: int | None, high: int | None) -> tuple[datetime | None, datetime | None]:
    """Return two times that are given in microseconds since 1970."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    made: Sequence[datetime | None] = [None if at is None else epoch + timedelta(microseconds=at) for at in (low, high)]
    return made[0], made[1]

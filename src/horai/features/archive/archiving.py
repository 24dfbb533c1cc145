"""Archive one closed day of a table: export, sort, write, verify, name, record.

Each step can be repeated. Nothing is deleted from the database here. A crash leaves at most files without a record, which
the database names: the next try replaces them, or they are deleted later. The database is read in one snapshot, in which
the rows are counted as well. No transaction is open while files are written or uploaded.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import structlog

from horai.db import archive_strays, archives
from horai.db.archives import ArchiveRecord, PartitionDay, told_fires
from horai.db.pool import Platform
from horai.features.archive.writer import ArchiveDamaged, DayWriter, RowSum, WrittenFile
from horai.operations.archive_place import ArchiveBusy, ArchivePlace, ArchiveStore
from horai.operations.file_cache import CachedFile

log = structlog.get_logger(__name__)

PRIORITY = 10
"""The nice value of the thread that writes files: calls and claims of the process go first."""


def _lower_priority() -> None:
    if sys.platform == "linux":  # elsewhere threads have no priority of their own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), PRIORITY)


_WRITER = ThreadPoolExecutor(1, thread_name_prefix="horai archiver", initializer=_lower_priority)

Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass(slots=True)
class ArchivedDay:
    """The result for one day: its rows, and the tenants whose files were written now or were there already."""

    rows: int = 0
    written: list[int] = field(default_factory=list[int])
    kept: list[int] = field(default_factory=list[int])


async def archive_partition(connection: Platform, place: ArchivePlace, part: PartitionDay) -> ArchivedDay:
    """Write the rows of a closed day to files, one for each tenant, and record those that were verified.

    Raises `ArchiveBusy`, `ArchiveDamaged`, `ParquetFailed` or `OSError`; the day is not archived then, and no row is lost.
    """
    with place.working() as work:
        exported = work / "day.csv"
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            counts = await archives.count_day(connection, part)
            if counts:
                await archives.export_day(connection, part, exported)
        done = ArchivedDay(sum(counts.values()))
        if counts:
            await _write_files(connection, place, part, exported, counts, done)
    await archives.mark_archived(connection, part)
    log.info("day archived", table=part.table, day=f"{part.day:%Y-%m-%d}", rows=done.rows, files=len(done.written))
    return done


async def _write_files(
    connection: Platform,
    place: ArchivePlace,
    part: PartitionDay,
    exported: Path,
    counts: dict[int, int],
    done: ArchivedDay,
) -> None:
    writer = DayWriter(part.table, exported.parent)
    try:
        sums = await _in_thread(writer, writer.sort, exported)
        if (read := {tenant_id: total.rows for tenant_id, total in sums.items()}) != counts:
            raise ArchiveDamaged(f"the export has {sum(read.values())} rows, the database has {done.rows}")
        known = {record.tenant_id: record for record in await archives.files_of_day(connection, part)}
        for tenant_id, wanted in sorted(sums.items()):
            if await _is_kept(place.store, known.get(tenant_id), wanted):
                done.kept.append(tenant_id)
                continue
            written = await _in_thread(writer, writer.write, tenant_id)
            if await _publish(connection, place, part, tenant_id, written):
                done.written.append(tenant_id)
    finally:
        await asyncio.shield(asyncio.to_thread(writer.close))


async def _in_thread(writer: DayWriter, call: Callable[[Given], Made], argument: Given) -> Made:
    """Run a blocking step in a thread. If this task is cancelled, the step is interrupted, and the thread ends soon."""
    step = asyncio.get_running_loop().run_in_executor(_WRITER, call, argument)
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        writer.interrupt()
        await asyncio.gather(step, return_exceptions=True)
        raise


async def _is_kept(store: ArchiveStore, record: ArchiveRecord | None, wanted: RowSum) -> bool:
    """Return whether a recorded file has the rows and is intact. It may have more: rows that were deleted since."""
    if record is None or record.rows < wanted.rows:
        return False
    if record.rows == wanted.rows and record.checksum != wanted.checksum:
        return False
    return await store.is_intact(CachedFile(record.path, record.bytes, record.sha256))


async def _publish(
    connection: Platform, place: ArchivePlace, part: PartitionDay, tenant_id: int, written: WrittenFile
) -> bool:
    """Name, store and record a verified file. A tenant that is being deleted gets none.

    The deletion of a tenant waits until the name is gone or old. Raises `ArchiveBusy` if the file is being deleted.
    """
    path = place.path_of(tenant_id, part, written.sha256)
    async with connection.transaction():
        if not await archives.share_tenant(connection, tenant_id):
            return False
        if not await archive_strays.begin_file(connection, path, tenant_id):
            raise ArchiveBusy(path)
    await place.store.publish(written.place, path, written.bytes, written.sha256)
    async with connection.transaction():
        if not await archives.share_tenant(connection, tenant_id):
            await archive_strays.doom_file(connection, path, tenant_id)
            return False
        if not await archive_strays.end_file(connection, path, tenant_id):
            raise ArchiveBusy(path)
        await archive_strays.doom_replaced(connection, tenant_id, part, path)
        record = ArchiveRecord(tenant_id, path, written.sum.rows, written.sum.checksum, written.bytes, written.sha256)
        await archives.record_file(connection, part, record, told_fires(written.first_fire, written.last_fire))
    return True

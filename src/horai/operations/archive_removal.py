"""Delete files of the archive: those of old days, of deleted tenants, and those that a crash left without a record.

The record goes first, with a mark that names the file; then the file; then the mark. A crash at any step leaves no record
of a missing file, and no file that the database does not name.
"""

import time
from datetime import timedelta

import structlog

from horai.db import archive_strays, archives
from horai.db.archive_strays import Expiry
from horai.db.pool import Platform
from horai.operations.archive_place import ArchivePlace, ArchiveStore

log = structlog.get_logger(__name__)

DEAD_AFTER = timedelta(hours=1)
"""The time after which a file that was begun and not recorded belongs to no process: a file takes less than 50 minutes."""
SLACK = timedelta(days=7)
"""The time by which the newest archived day may be older than it should be. Beyond it, nothing expires."""
AT_ONCE = 100


async def delete_doomed(connection: Platform, store: ArchiveStore, until: float = float("inf")) -> int:
    """Delete marked files, until a time of the monotonic clock. Return how many. Raises `OSError`."""
    deleted = 0
    while time.monotonic() < until and (doomed := await archive_strays.doomed_files(connection, DEAD_AFTER, AT_ONCE)):
        for path, tenant_id in doomed:
            if time.monotonic() >= until:
                return deleted
            await store.delete(path)
            await archive_strays.forget_doomed(connection, path, tenant_id)
            deleted += 1
    return deleted


async def expire_files(connection: Platform, when: Expiry) -> int:
    """Remove the records of old days, and mark their files. Return how many."""
    total = 0
    while True:
        files, day = await archive_strays.expire(connection, when, AT_ONCE)
        if day is None:
            return total
        await archive_strays.forget_days(connection, day)
        total += files
        log.info("archive files expired", files=files, until=day.isoformat())


async def forget_tenant(connection: Platform, place: ArchivePlace, tenant_id: int, until: float) -> bool:
    """Delete all files of a tenant that is being deleted. Return False if some are left. Raises `OSError`."""
    await archive_strays.doom_tenant(connection, tenant_id)
    await delete_doomed(connection, place.store, until)
    if await archives.has_archive(connection, tenant_id):
        return False
    await place.store.forget(place.directory_of(tenant_id))
    return True

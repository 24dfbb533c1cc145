"""Restore archived instances of a day into the table `horai.restored_instance`, and remove them again.

The table is beside the history: no decision of Horai reads it, and retention does not drop it. A restore continues after
the last restored instance, so that it can be interrupted and repeated; sealed values stay sealed.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from horai.core.audit import AuditVerb
from horai.core.errors import NotFound
from horai.db import archives
from horai.db.archives import ArchiveFileRow, FileOfInstances
from horai.operations.archive_place import ArchiveStore
from horai.operations.archive_reads import read_day
from horai.operations.audit import record_write
from horai.operations.scope import Scope
from horai.text import Hint, Refused

AT_ONCE = 200
"""Instances of one transaction: a payload may have 1 MB."""
TIMES = ("fire_time", "execute_time", "created_at", "claimed_at", "finished_at")
SAME = (
    "id", "job_id", "job", "key", "reason", "attempt", "retry_count", "fence", "queue", "priority", "version", "supersedes", "replay_of",
    "error_code", "error_msg", "payload", "result", "encrypted",
)  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RestoredDay:
    """The number of a day's instances in its file, and of those that are restored."""

    day: date
    rows: int
    restored: int


async def list_files(
    scope: Scope, before: tuple[date, int] | None, limit: int, table: str | None
) -> list[ArchiveFileRow]:
    """Return a page of the tenant's files."""
    async with scope.read() as connection:
        return await archives.list_files(connection, scope.tenant_id, before, limit, table)


async def restore_day(scope: Scope, store: ArchiveStore, day: date) -> RestoredDay:
    """Restore the instances that finished on a day, for as long as a request may work. Raises `NotFound`."""
    file = await _file(scope, day)
    async with scope.write() as connection:
        count = await archives.count_restored(connection, scope.tenant_id, day)
        after = await archives.last_restored(connection, scope.tenant_id, day)
    until, is_first, is_again = time.monotonic() + scope.longest, True, after is None
    while count < file.rows and time.monotonic() < until:
        rows = await read_day(store, file, after, AT_ONCE)
        if not rows and is_again:
            break
        if not rows:  # instances before the last one were removed: begin again, and leave those that are there
            after, is_again = None, True
            continue
        async with scope.write() as connection:
            documents = json.dumps([_document(row) for row in rows])
            count += await archives.restore_instances(connection, scope.tenant_id, day, documents)
            if is_first:
                await record_write(connection, scope, AuditVerb.ARCHIVE_RESTORE, str(day), str(day))
        after, is_first = (rows[-1]["fire_time"], rows[-1]["id"]), False
    return RestoredDay(day, file.rows, count)


async def remove_day(scope: Scope, day: date) -> RestoredDay:
    """Remove the restored instances of a day, for as long as a request may work. Raises `NotFound`."""
    file = await _file(scope, day)
    until, removed, is_first = time.monotonic() + scope.longest, AT_ONCE, True
    while removed == AT_ONCE and time.monotonic() < until:
        async with scope.write() as connection:
            removed = await archives.delete_restored(connection, scope.tenant_id, day, AT_ONCE)
            if removed and is_first:
                await record_write(connection, scope, AuditVerb.ARCHIVE_REMOVE_RESTORED, str(day), str(day))
        is_first = False
    async with scope.read() as connection:
        left = await archives.count_restored(connection, scope.tenant_id, day)
    return RestoredDay(day, file.rows, left)


async def _file(scope: Scope, day: date) -> FileOfInstances:
    async with scope.read() as connection:
        file = await archives.file_of_day(connection, scope.tenant_id, day)
    if file is None:
        raise NotFound(Refused.NO_ARCHIVED_DAY(day=str(day)), Hint.LISTED_AT(path="/api/v1/archive"))
    return file


def _document(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an instance of a file as `restore_instances` takes it."""
    times = {name: None if row[name] is None else _iso(row[name]) for name in TIMES}
    return {**{name: row[name] for name in SAME}, **times, "final_state": row["state"], "node": row["node_name"]}


def _iso(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()

"""Files of the archive without a record: one function per statement of sql/archive_strays.sql.

A process names a file before it writes it, and takes the name back in the transaction that records it. A file is deleted
after its name was marked as doomed, and its name goes last. So a crash leaves no file that the database does not name.
"""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from horai.db.archives import PartitionDay
from horai.db.catalog import sql
from horai.db.pool import Platform


@dataclass(frozen=True, slots=True)
class Expiry:
    """The conditions under which records of the archive expire.

    `keep`: the least age of a day. `node_time`: the clock of the node, to compare with that of the database.
    `archived_after`: the age at which days are archived. `slack`: the time by which the newest archived day may be older.
    """

    keep: timedelta
    node_time: datetime
    archived_after: timedelta
    slack: timedelta


async def begin_file(connection: Platform, path: str, tenant_id: int) -> bool:
    """Name a file that is about to be written. Return False if it is being deleted."""
    return await connection.fetchval(sql("begin_archive_file"), path, tenant_id) is not None


async def end_file(connection: Platform, path: str, tenant_id: int) -> bool:
    """Take back the name of a file that this transaction records. Return False if the file is being deleted."""
    return await connection.fetchval(sql("end_archive_file"), path, tenant_id) is not None


async def doom_replaced(connection: Platform, tenant_id: int, part: PartitionDay, path: str) -> None:
    """Mark the recorded file of a day for deletion, if its path is another one."""
    await connection.execute(sql("doom_replaced_file"), tenant_id, part.table, part.day, path)


async def doom_file(connection: Platform, path: str, tenant_id: int) -> None:
    """Mark a file without a record for deletion."""
    await connection.execute(sql("doom_file"), path, tenant_id)


async def doom_tenant(connection: Platform, tenant_id: int) -> None:
    """Mark all files of a tenant that is being deleted, and remove their records."""
    await connection.execute(sql("doom_tenant_files"), tenant_id)


async def doomed_files(connection: Platform, after: timedelta, limit: int) -> list[tuple[str, int]]:
    """Return paths and tenants of files to delete. A file that was begun `after` ago and has no record is one of them."""
    rows = await connection.fetch(sql("doomed_files"), after, limit)
    return [(row["path"], row["tenant_id"]) for row in rows]


async def forget_doomed(connection: Platform, path: str, tenant_id: int) -> None:
    """Forget the name of a file that is deleted."""
    await connection.execute(sql("forget_doomed_file"), path, tenant_id)


async def expire(connection: Platform, when: Expiry, limit: int) -> tuple[int, date | None]:
    """Remove records of old days, and mark their files for deletion. Return how many, and the newest day of them."""
    row = await connection.fetchrow(
        sql("expire_archive_files"), when.keep, when.node_time, when.archived_after, when.slack, limit
    )
    assert row is not None  # noqa: S101 - a count returns a row
    return row["files"], row["day"]


async def forget_days(connection: Platform, until: date) -> None:
    """Forget days up to this one that have neither files nor rows."""
    await connection.execute(sql("forget_archived_days"), until)

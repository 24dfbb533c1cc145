"""Progress notes of attempts: one function per statement of sql/progress.sql."""

from collections.abc import Sequence

from horai.core.progress import ProgressNote
from horai.db.catalog import sql
from horai.db.pool import Platform, TenantRead

STORED = len(ProgressNote._fields) - 1
"""The fields of a note that are stored: all but the last."""


async def insert_notes(connection: Platform, notes: Sequence[ProgressNote]) -> None:
    """Insert notes, also for ended instances. A note that is inserted again is stored once."""
    columns = zip(*(note[:STORED] for note in notes), strict=True)
    await connection.execute(sql("insert_notes"), *map(list, columns))


async def notes_of(connection: TenantRead, instance_id: int, limit: int) -> list[ProgressNote]:
    """Return the last `limit` notes of an instance, oldest first."""
    rows = await connection.fetch(sql("notes_of"), instance_id, limit)
    return [ProgressNote(*row.values()) for row in reversed(rows)]

"""What attempts say of themselves: one function per statement of sql/notes.sql."""

from collections.abc import Sequence

from horai.core.progress import ProgressNote
from horai.db.catalog import sql
from horai.db.pool import Connection


async def insert_notes(connection: Connection, notes: Sequence[ProgressNote]) -> None:
    """Keeps them, each once however often this is asked; whatever has become of their instances."""
    columns = zip(*notes, strict=True)
    await connection.execute(sql("insert_notes"), *map(list, columns))


async def notes_of(connection: Connection, instance_id: int, limit: int) -> list[ProgressNote]:
    """The last ones of an instance, in the order in which they were said."""
    rows = await connection.fetch(sql("notes_of"), instance_id, limit)
    return [ProgressNote(*row.values()) for row in reversed(rows)]

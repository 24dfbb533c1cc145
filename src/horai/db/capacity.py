"""The storage that instances use."""

from dataclasses import dataclass

from horai.core.capacity import CapacityFindings
from horai.db.catalog import sql
from horai.db.pool import Platform


@dataclass(frozen=True, slots=True)
class InstanceStorage:
    """Bytes and estimated rows of waiting instances, and of finished ones with their attempts, events and notes."""

    live_bytes: int
    live_rows: int
    finished_bytes: int
    finished_rows: int

    def findings(self) -> CapacityFindings:
        """Return the bytes of one instance. Space that vacuum has freed and no row uses yet is included."""
        waiting = self.live_bytes / self.live_rows if self.live_rows else None
        finished = self.finished_bytes / self.finished_rows if self.finished_rows else None
        return CapacityFindings(self.live_rows + self.finished_rows, finished, waiting)


async def instance_storage(connection: Platform) -> InstanceStorage:
    """Return the storage of all tenants' instances."""
    rows = {row["is_live"]: (row["bytes"], row["rows"]) for row in await connection.fetch(sql("instance_storage"))}
    return InstanceStorage(*rows[True], *rows[False])

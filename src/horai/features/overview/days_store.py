"""How a job went, day by day: one function per statement of sql/days.sql."""

from collections.abc import Sequence
from dataclasses import dataclass

from horai.db.catalog import sql
from horai.db.pool import Connection
from horai.features.overview.days import Day

LOOKED_AT = 1_000
"""So many instances of a day are looked at."""


@dataclass(frozen=True, slots=True)
class DayCounts:
    """What the finished instances of a day came to; of very many, of `LOOKED_AT` of them."""

    succeeded: int
    dead: int
    cancelled: int
    instances: int

    @property
    def is_full(self) -> bool:
        """Whether there may be more than were looked at."""
        return self.instances >= LOOKED_AT


async def days_of_job(connection: Connection, job_id: int, days: Sequence[Day]) -> dict[Day, DayCounts]:
    """Those of the days on which anything has ended."""
    bounds = [day.since for day in days], [day.until for day in days]
    rows = await connection.fetch(sql("days_of_job"), job_id, *bounds, LOOKED_AT)
    return {days[number - 1]: DayCounts(*counts) for number, *counts in rows}

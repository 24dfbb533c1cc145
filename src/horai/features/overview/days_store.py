"""Outcomes of a job by day: one function per statement of days_store.sql."""

from collections.abc import Sequence
from dataclasses import dataclass

from horai.db.catalog import sql
from horai.db.pool import TenantRead
from horai.features.overview.days import Day

LOOKED_AT = 1_000
"""The maximum number of instances read for one day."""


@dataclass(frozen=True, slots=True)
class DayCounts:
    """The outcomes of the finished instances of a day; at most `LOOKED_AT` of them are counted."""

    succeeded: int
    dead: int
    cancelled: int
    instances: int

    @property
    def is_full(self) -> bool:
        """Return whether there may be more instances than were counted."""
        return self.instances >= LOOKED_AT


async def days_of_job(connection: TenantRead, job_id: int, days: Sequence[Day]) -> dict[Day, DayCounts]:
    """Return the counts of those days that have finished instances."""
    bounds = [day.since for day in days], [day.until for day in days]
    rows = await connection.fetch(sql("days_of_job"), job_id, *bounds, LOOKED_AT)
    return {days[number - 1]: DayCounts(*counts) for number, *counts in rows}

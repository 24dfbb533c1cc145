"""Lists of jobs: the statement list_jobs of sql/jobs.sql, in each of its orders."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from horai.core.bounded_count import COUNTED, BoundedCount
from horai.core.job import BUILTIN, JobStatus
from horai.core.limits import LISTED_PAYLOAD_BYTES
from horai.db.catalog import sql
from horai.db.jobs import JobRow, job_of
from horai.db.pool import TenantRead


@dataclass(frozen=True, slots=True)
class JobFilter:
    """The filters of a list of jobs."""

    names: Sequence[str] | None = None
    tag: str | None = None
    status: JobStatus | None = None
    queue: str | None = None
    is_refresh: bool | None = None
    name_contains: str | None = None
    owner: str | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the values as the statements take them, and the prefix of the handlers of Horai's own jobs."""
        status = None if self.status is None else int(self.status)
        own = (self.queue, self.is_refresh, self.name_contains, self.owner, BUILTIN)
        return self.names, self.tag, status, *own


class JobOrder(Enum):
    """An order of jobs: the statement that lists them in it, and a position before all of them. An index serves each."""

    oldest = ("list_jobs", 0)
    newest = ("list_jobs_newest", 2**63 - 1)
    name_up = ("list_jobs_by_name", "")
    name_down = ("list_jobs_by_name_down", "\U0010ffff")

    @property
    def is_by_name(self) -> bool:
        """Return whether positions are names, and not ids. Both are unique among the jobs of a tenant."""
        return isinstance(self.value[1], str)

    def after(self, job: JobRow) -> int | str:
        """Return the position of a job."""
        return job.name if self.is_by_name else job.id


async def list_jobs(
    connection: TenantRead,
    tenant_id: int,
    after: int | str,
    limit: int,
    only: JobFilter,
    order: JobOrder = JobOrder.oldest,
) -> list[JobRow]:
    """Return a page of jobs after a position of the order, without those that Horai created for itself."""
    statement, _ = order.value
    rows = await connection.fetch(sql(statement), tenant_id, after, limit, *only.values, LISTED_PAYLOAD_BYTES)
    return [job_of(row) for row in rows]


async def count_jobs(connection: TenantRead, tenant_id: int, only: JobFilter) -> BoundedCount:
    """Count matching jobs among the newest `COUNTED`, without those that Horai created for itself."""
    row = await connection.fetchrow(sql("count_jobs"), tenant_id, *only.values, COUNTED + 1)
    assert row is not None  # noqa: S101 — an aggregate always has a row
    return BoundedCount.of(row["matched"], row["looked_at"], COUNTED)

"""Search by a few characters: one function per statement of search_store.sql."""

from dataclasses import dataclass
from datetime import datetime

from horai.core.job import BUILTIN, JobStatus
from horai.core.states import State
from horai.db.catalog import sql
from horai.db.pool import TenantRead

_BEHIND_ALL = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job found by its name or title."""

    id: int
    name: str
    status: JobStatus
    title: str | None


async def search_jobs(connection: TenantRead, tenant_id: int, text: str, limit: int) -> list[FoundJob]:
    """Return jobs whose names or titles contain the text, closest match first."""
    rows = await connection.fetch(sql("search_jobs"), tenant_id, text, text + _BEHIND_ALL, limit, BUILTIN)
    return [FoundJob(id_, name, JobStatus(status), title) for id_, name, status, title in rows]


@dataclass(frozen=True, slots=True)
class FoundWorkflow:
    """A workflow found by its name."""

    id: int
    name: str


async def search_workflows(connection: TenantRead, tenant_id: int, text: str, limit: int) -> list[FoundWorkflow]:
    """Return workflows whose names contain the text, closest match first."""
    return [
        FoundWorkflow(*row.values()) for row in await connection.fetch(sql("search_workflows"), tenant_id, text, limit)
    ]


@dataclass(frozen=True, slots=True)
class FoundInstance:
    """An instance found by its key or its id."""

    id: int
    job_id: int
    job: str
    key: str | None
    state: State
    fire_time: datetime


async def search_keys(connection: TenantRead, tenant_id: int, text: str, limit: int) -> list[FoundInstance]:
    """Return instances whose keys begin with the text."""
    rows = await connection.fetch(sql("search_keys"), tenant_id, text, text + _BEHIND_ALL, limit)
    return [
        FoundInstance(id_, job_id, job, key, State(state), fire_time)
        for id_, job_id, job, key, state, fire_time in rows
    ]

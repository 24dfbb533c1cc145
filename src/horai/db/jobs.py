"""Definitions, lanes and tenants: one function per statement of sql/jobs.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import asyncpg
import structlog

from horai.core.errors import HoraiError
from horai.core.job import HOUSE, Definition, JobStatus, Priority, Recipe, checked, recipe_of, with_instants
from horai.core.queue import QueueSettings, Rate
from horai.core.refresh import ticks_name
from horai.core.settings import LISTED_PAYLOAD_BYTES
from horai.core.timing import Timing
from horai.db.catalog import sql
from horai.db.instance_queries import size_of
from horai.db.pool import Connection

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it is stored; `document` is its definition as people write it.

    It names a priority only when the job states one; `priority` is the one in force.
    """

    id: int
    tenant_id: int
    name: str
    status: JobStatus
    schedule_id: int | None
    lane_id: int
    active_from: datetime
    version: int
    document: Mapping[str, Any]
    payload: str | None
    tags: tuple[str, ...]
    note: str | None
    paused_at: datetime | None
    missed_from: datetime | None
    """While it is paused: the first instant whose slot its schedule did not make for it."""
    created_at: datetime
    updated_at: datetime
    priority: Priority
    payload_size: int | None = None
    ticks_for: int | None = None
    """The refresh job whose ticks its instances are: nobody's but that job's to change."""

    @property
    def lane_now(self) -> int:
        """Where a new instance goes: the parking lane while the job is paused."""
        return 0 if self.status is JobStatus.PAUSED else self.lane_id


def definition_of(document: Mapping[str, Any]) -> Definition:
    """The stored document as a checked definition."""
    return checked(with_instants(document))


def _job(row: asyncpg.Record) -> JobRow:
    return JobRow(
        row["id"],
        row["tenant_id"],
        row["name"],
        JobStatus(row["status"]),
        row["schedule_id"],
        row["lane_id"],
        row["active_from"],
        row["version"],
        json.loads(row["definition"]),
        row["payload"],
        tuple(row["tags"]),
        row["note"],
        row["paused_at"],
        row["missed_from"],
        row["created_at"],
        row["updated_at"],
        Priority(row["priority"]),
        row.get("payload_size", size_of(row["payload"])),
        row["ticks_for"],
    )


@dataclass(frozen=True, slots=True)
class JobWrite:
    """What a job is changed to."""

    status: JobStatus
    schedule_id: int | None
    lane_id: int
    document: Mapping[str, Any]
    payload: str | None
    tags: Sequence[str]
    active_from: datetime
    timing: Timing
    missed_from: datetime | None = None
    note: str | None = None


def _columns(job: JobWrite) -> tuple[Any, ...]:
    """In the order in which both statements take them."""
    return (
        int(job.status),
        job.schedule_id,
        job.lane_id,
        json.dumps(job.document, ensure_ascii=False),
        job.payload,
        list(job.tags),
        job.active_from,
        int(job.timing.overlap),
        job.timing.jitter // timedelta(milliseconds=1),
        job.timing.start_at,
        job.timing.end_at,
        job.timing.after_finish,
        job.missed_from,
    )


async def insert_job(connection: Connection, tenant_id: int, name: str, job: JobWrite) -> JobRow | None:
    """A new job; None when the name is taken."""
    row = await connection.fetchrow(sql("insert_job"), tenant_id, name, *_columns(job))
    return _job(row) if row else None


async def insert_ticks(connection: Connection, refreshed: JobRow, job: JobWrite) -> None:
    """The job that makes a refresh job's ticks."""
    made = await insert_job(connection, refreshed.tenant_id, ticks_name(refreshed.name), job)
    assert made is not None  # noqa: S101 — its name belongs to the refresh job's, which is held
    await connection.execute(sql("link_ticks"), made.id, refreshed.id)


async def ticks_of(connection: Connection, job_id: int) -> JobRow | None:
    """The job that makes a refresh job's ticks; None for any other."""
    row = await connection.fetchrow(sql("ticks_of"), job_id)
    return _job(row) if row else None


async def lock_ticks(connection: Connection, job_id: int) -> JobRow | None:
    """The same, held alone; None for a job that is no refresh job."""
    found = await ticks_of(connection, job_id)
    return None if found is None else await lock_job(connection, found.id)


async def find_job(connection: Connection, tenant_id: int, reference: str) -> JobRow | None:
    """A job by its id (all digits) or its name."""
    if reference.isascii() and reference.isdigit():
        if len(reference) > 18:
            return None
        row = await connection.fetchrow(sql("job_by_id"), tenant_id, int(reference))
    else:
        row = await connection.fetchrow(sql("job_by_name"), tenant_id, reference)
    return _job(row) if row else None


async def jobs_by_name(connection: Connection, tenant_id: int, names: Sequence[str]) -> dict[str, JobRow]:
    """Those of the names that there are."""
    return {row["name"]: _job(row) for row in await connection.fetch(sql("jobs_by_name"), tenant_id, list(names))}


async def names_declared_by(connection: Connection, tenant_id: int, app: str, *, workflows: bool = False) -> list[str]:
    """The names of the jobs that an application's code has declared; or of its workflows."""
    return [row["name"] for row in await connection.fetch(sql("names_declared_by"), tenant_id, app, workflows)]


async def lock_job(connection: Connection, job_id: int) -> JobRow | None:
    """Held alone, for a change of the job; None once it is deleted."""
    return await _held(connection, await connection.fetchrow(sql("lock_job"), job_id))


async def lock_jobs(connection: Connection, tenant_id: int, ids: Sequence[int], without: JobStatus) -> list[JobRow]:
    """Hold those of the tenant's jobs that are not in this status, and the jobs that make their ticks."""
    rows = await connection.fetch(sql("lock_jobs"), tenant_id, list(ids), int(without))
    return [job for row in rows if (job := await _held(connection, row)) is not None]


async def share_job(connection: Connection, job_id: int) -> JobRow | None:
    """Held while instances are added to the job; None once it is deleted."""
    return await _held(connection, await connection.fetchrow(sql("share_job"), job_id))


async def _held(connection: Connection, row: asyncpg.Record | None) -> JobRow | None:
    """A row that was waited for may name a lane made meanwhile, which the statement could not see: it is read again."""
    if row is not None and row["priority"] is None:
        row = await connection.fetchrow(sql("held_job"), row["id"])
    return _job(row) if row else None


async def job_even_deleted(connection: Connection, job_id: int) -> JobRow | None:
    """A job by its id, for who knows of it from its instances: deleted ones too."""
    row = await connection.fetchrow(sql("held_job"), job_id)
    return None if row is None else _job(row)


async def update_job(connection: Connection, job_id: int, job: JobWrite) -> JobRow:
    """Writes a changed job, with a new version."""
    row = await connection.fetchrow(sql("update_job"), job_id, *_columns(job), job.note)
    assert row is not None  # noqa: S101 — the caller holds the row
    return _job(row)


async def delete_job(connection: Connection, job_id: int, document: Mapping[str, Any]) -> None:
    """Takes the job out of sight; its row stays for history's sake, with `document` as its definition."""
    await connection.execute(sql("delete_job"), job_id, json.dumps(document, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class WaitingMove:
    """A job whose waiting instances have to move to `lane`, or to be cancelled when it is deleted.

    `is_gated`: its slots do not allow overlap, and leave the parking lane by its gate alone.
    """

    job_id: int
    version: int
    is_deleted: bool
    lane: int
    is_gated: bool = False


async def jobs_to_move(
    connection: Connection, limit: int, *, after: int = 0, only: Sequence[int] | None = None
) -> list[WaitingMove]:
    """Return the jobs, by id, whose waiting instances are not yet where they belong; `only` some of them."""
    rows = await connection.fetch(sql("jobs_to_relane"), after, limit, None if only is None else list(only))
    return [WaitingMove(*row.values()) for row in rows]


async def share_version(connection: Connection, relane: WaitingMove) -> bool:
    """Whether the job is still the one that was read; held so until the caller's transaction ends."""
    return await connection.fetchval(sql("share_version"), relane.job_id, relane.version) is not None


async def ask_relane(connection: Connection, job_ids: Sequence[int]) -> None:
    """Has the waiting instances of these jobs moved to where the jobs want them."""
    await connection.execute(sql("ask_relane"), list(job_ids))


async def mark_moved(connection: Connection, relane: WaitingMove) -> None:
    """All its waiting instances are where this version of the job wants them."""
    await connection.execute(sql("mark_relaned"), relane.job_id, relane.version)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """What a list of jobs is narrowed to."""

    names: Sequence[str] | None = None
    tag: str | None = None
    status: JobStatus | None = None
    queue: str | None = None
    is_refresh: bool | None = None
    name_contains: str | None = None


async def list_jobs(connection: Connection, tenant_id: int, after_id: int, limit: int, only: JobFilter) -> list[JobRow]:
    """A page of jobs by id, without those that Horai made for itself."""
    status = None if only.status is None else int(only.status)
    names = None if only.names is None else list(only.names)
    wanted = (names, only.tag, status, only.queue, only.is_refresh, only.name_contains)
    rows = await connection.fetch(sql("list_jobs"), tenant_id, after_id, limit, *wanted, HOUSE, LISTED_PAYLOAD_BYTES)
    return [_job(row) for row in rows]


@dataclass(frozen=True, slots=True)
class Runnable:
    """What a dispatcher needs to know of a job to run its instances; without a recipe it cannot be read."""

    id: int
    version: int
    name: str
    tenant: str
    is_paused: bool
    is_deleted: bool
    recipe: Recipe | None
    is_gated: bool = False
    """Whether the end of one run decides on another."""
    is_chained: bool = False
    """Whether it is in a workflow, where others wait for its runs."""

    @property
    def is_held(self) -> bool:
        """Whether it is paused, and there to be resumed."""
        return self.is_paused and not self.is_deleted


async def jobs_to_run(
    connection: Connection, known: Mapping[int, int], chained: Collection[int] = ()
) -> list[Runnable]:
    """Those of the jobs, deleted ones included, whose version is not the known one (0: not known).

    Or that are in a workflow, unless they are `chained` as far as is known; and the other way round.
    """
    rows = await connection.fetch(sql("jobs_to_run"), list(known), list(known.values()), list(chained))
    return [
        Runnable(
            row["id"],
            row["version"],
            row["name"],
            row["tenant"],
            row["status"] == JobStatus.PAUSED,
            row["is_deleted"],
            _recipe(row["recipe"]),
            row["is_gated"],
            row["is_chained"],
        )
        for row in rows
    ]


@lru_cache(maxsize=10_000)
def _recipe(text: str) -> Recipe | None:
    """Jobs that say the same share one: a group of a hundred thousand is read once."""
    try:
        return recipe_of(json.loads(text))
    except (HoraiError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.error("a stored definition cannot be read", error=repr(error))
        return None


@dataclass(frozen=True, slots=True)
class Lane:
    """A unit of claiming: what it holds can be run by whoever has its handler (empty: HTTP)."""

    id: int
    tenant_id: int
    queue: str
    priority: Priority
    handler: str
    queue_id: int = 0
    weight: int = 1
    limits: QueueSettings = field(default_factory=QueueSettings)
    """What its queue allows."""


async def lane_of(connection: Connection, tenant_id: int, definition: Definition) -> int:
    """The lane of a job's instances, made when need be."""
    stated = None if definition.priority is None else int(definition.priority)
    for _ in range(2):
        lane = await connection.fetchval(sql("lane_of"), tenant_id, definition.queue, stated, definition.handler)
        if lane is not None:
            return lane
    raise RuntimeError("a lane that is neither there nor can be made")


async def lanes(connection: Connection) -> list[Lane]:
    """Every lane."""
    return [_lane(row) for row in await connection.fetch(sql("lanes"))]


def _lane(row: asyncpg.Record) -> Lane:
    rate = None if row["rate_count"] is None else Rate(row["rate_count"], row["rate_per"])
    return Lane(
        row["id"],
        row["tenant_id"],
        row["queue"],
        Priority(row["priority"]),
        row["handler"],
        row["queue_id"],
        row["weight"],
        QueueSettings(None, row["max_concurrency"], rate, row["paused"]),
    )


async def tenant_id(connection: Connection, name: str) -> int | None:
    """The id of a tenant."""
    return await connection.fetchval(sql("tenant_by_name"), name)


async def insert_event(
    connection: Connection, tenant_id: int, job_id: int | None, kind: str, data: Mapping[str, Any]
) -> None:
    """An event about a definition, or with no job about a queue."""
    await connection.execute(sql("insert_event"), tenant_id, job_id, kind, json.dumps(data, ensure_ascii=False))


async def insert_events(
    connection: Connection, tenant_id: int, job_ids: Sequence[int], kind: str, data: Mapping[str, Any]
) -> None:
    """Insert the same event about several jobs."""
    await connection.execute(sql("insert_events"), tenant_id, list(job_ids), kind, json.dumps(data, ensure_ascii=False))

"""Definitions, lanes and tenants: one function per statement of sql/jobs.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

import asyncpg
import structlog

from horai.core.errors import HoraiError
from horai.core.job import Definition, JobStatus, Priority, Recipe, checked, recipe_of, with_instants
from horai.core.refresh import ticks_name
from horai.core.sealed_values import StoredPayload, parted
from horai.core.timing import Rhythm, Timing
from horai.db import payload_digests, quotas
from horai.db.catalog import sql
from horai.db.instance_queries import size_of
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead, TenantWrite
from horai.time.schedule import Schedule
from horai.time.work_calendar import WorkCalendar

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A stored job. `document` is its definition as the user wrote it.

    The document has a priority only if the job sets one; `priority` is the effective priority.
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
    """While the job is paused: the first instant whose slot its schedule did not create for it."""
    created_at: datetime
    updated_at: datetime
    priority: Priority
    payload_size: int | None = None
    ticks_for: int | None = None
    """For a tick job: its refresh job. A tick job changes only together with its refresh job."""
    is_metered: bool = False
    """New instances are charged to the quotas of the tenant."""
    is_encrypted: bool = False
    search_paths: tuple[str, ...] = ()

    @property
    def lane_now(self) -> int:
        """Return the lane of a new instance: the parking lane while the job is paused."""
        return 0 if self.status is JobStatus.PAUSED else self.lane_id


def definition_of(document: Mapping[str, Any], days: WorkCalendar | None = None) -> Definition:
    """Return the stored document as a validated definition.

    It computes no fire if the document names a calendar and `days` is None: db/calendars.py reads both.
    """
    return checked(with_instants(document), days)


def job_of(row: asyncpg.Record) -> JobRow:
    """Return the job of a row."""
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
        row.get("metered", False),
        row["encrypted"],
        tuple(row["search_paths"]),
    )


@dataclass(frozen=True, slots=True)
class JobWrite:
    """The columns of a job to write."""

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
    """Return the columns in the order of both statements, `insert_job` and `update_job`."""
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


async def insert_job(connection: TenantWrite, tenant_id: int, name: str, job: JobWrite) -> JobRow | None:
    """Insert a job; return None if the name is taken."""
    job, payload = _parted(job)
    with quotas.translated():
        row = await connection.fetchrow(sql("insert_job"), tenant_id, name, *_columns(job))
    if row is not None and payload.digests is not None:
        await payload_digests.index_job_payload(connection, row["id"], payload.digests)
    return job_of(row) if row else None


def _parted(job: JobWrite) -> tuple[JobWrite, StoredPayload]:
    """Return the columns to write, and the payload apart from its digests, which only an encrypted job has."""
    payload = parted(job.payload) if job.document.get("encrypted") else StoredPayload(job.payload, None)
    return replace(job, payload=payload.text), payload


async def insert_ticks(connection: TenantWrite, refreshed: JobRow, job: JobWrite) -> None:
    """Insert the tick job of a refresh job."""
    made = await insert_job(connection, refreshed.tenant_id, ticks_name(refreshed.name), job)
    assert made is not None  # noqa: S101 — the name is reserved for the refresh job, which is locked
    await connection.execute(sql("link_ticks"), made.id, refreshed.id)


async def ticks_of(connection: TenantRead, job_id: int) -> JobRow | None:
    """Return the tick job of a refresh job; None for any other job."""
    row = await connection.fetchrow(sql("ticks_of"), job_id)
    return job_of(row) if row else None


async def lock_ticks(connection: TenantWrite, job_id: int) -> JobRow | None:
    """Lock the tick job of a refresh job for update; return None if the job is not a refresh job."""
    found = await ticks_of(connection, job_id)
    return None if found is None else await lock_job(connection, found.id)


JobReference: TypeAlias = tuple[int, None] | tuple[None, str]
"""The id or the name of a job."""


def reference_of(text: str) -> JobReference | None:
    """Return the id (all digits) or the name of a job; None if no job can have it."""
    if text.isascii() and text.isdigit():
        return None if len(text) > 18 else (int(text), None)
    return None if "\x00" in text else (None, text)


async def find_job(connection: AnyRead, tenant_id: int, reference: str) -> JobRow | None:
    """Return a job by its id (all digits) or its name."""
    match reference_of(reference):
        case None:
            return None
        case (None, name):
            row = await connection.fetchrow(sql("job_by_name"), tenant_id, name)
        case (id_, None):
            row = await connection.fetchrow(sql("job_by_id"), tenant_id, id_)
    return job_of(row) if row else None


async def jobs_by_name(connection: TenantRead, tenant_id: int, names: Sequence[str]) -> dict[str, JobRow]:
    """Return the jobs with these names, by name; names without a job are absent."""
    return {row["name"]: job_of(row) for row in await connection.fetch(sql("jobs_by_name"), tenant_id, list(names))}


async def names_declared_by(connection: TenantRead, tenant_id: int, app: str, *, workflows: bool = False) -> list[str]:
    """Return the names of the jobs, or with `workflows` of the workflows, that an application's code has declared."""
    return [row["name"] for row in await connection.fetch(sql("names_declared_by"), tenant_id, app, workflows)]


async def lock_job(connection: TenantWrite, job_id: int) -> JobRow | None:
    """Lock the job for update; return None if it is deleted."""
    return await _held(connection, await connection.fetchrow(sql("lock_job"), job_id))


async def lock_jobs(connection: TenantWrite, tenant_id: int, ids: Sequence[int], without: JobStatus) -> list[JobRow]:
    """Lock those of the tenant's jobs that do not have the status `without`, and their tick jobs."""
    rows = await connection.fetch(sql("lock_jobs"), tenant_id, list(ids), int(without))
    return [job for row in rows if (job := await _held(connection, row)) is not None]


async def share_job(connection: AnyWrite, job_id: int) -> JobRow | None:
    """Lock the job FOR KEY SHARE while instances are added to it; return None if it is deleted."""
    return await _held(connection, await connection.fetchrow(sql("share_job"), job_id))


async def _held(connection: AnyRead, row: asyncpg.Record | None) -> JobRow | None:
    """Return the locked job. Read it again if the statement waited and its lane was created meanwhile, unseen by it."""
    if row is not None and row["priority"] is None:
        row = await connection.fetchrow(sql("held_job"), row["id"])
    return job_of(row) if row else None


async def job_even_deleted(connection: TenantRead, job_id: int) -> JobRow | None:
    """Return a job by its id, also if it is deleted, for callers that know the id from an instance."""
    row = await connection.fetchrow(sql("held_job"), job_id)
    return None if row is None else job_of(row)


async def update_job(connection: TenantWrite, job_id: int, job: JobWrite) -> JobRow:
    """Update a job that the caller has locked, and increase its version."""
    job, payload = _parted(job)
    with quotas.translated():
        row = await connection.fetchrow(sql("update_job"), job_id, *_columns(job), job.note)
    assert row is not None  # noqa: S101 — the caller has locked the row
    if row["search_paths"] and (payload.text is None or payload.digests is not None):  # otherwise it is as it was
        await payload_digests.index_job_payload(connection, job_id, payload.digests)
    return job_of(row)


async def delete_job(connection: TenantWrite, job_id: int, document: Mapping[str, Any]) -> None:
    """Mark the job as deleted. Its row stays for history, with `document` as its definition."""
    await connection.execute(sql("delete_job"), job_id, json.dumps(document, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class WaitingMove:
    """A job whose waiting instances have to move to `lane`, or be cancelled if the job is deleted.

    `is_gated`: its slots may not overlap, and only the overlap gate moves them out of the parking lane.
    """

    job_id: int
    version: int
    is_deleted: bool
    lane: int
    is_gated: bool = False


async def jobs_to_move(connection: Platform, limit: int, *, after: int = 0) -> list[WaitingMove]:
    """Return a page of jobs of all tenants, by id, whose waiting instances have to move."""
    rows = await connection.fetch(sql("jobs_to_relane"), after, limit)
    return [WaitingMove(*row.values()) for row in rows]


async def moves_of_jobs(connection: TenantRead, job_ids: Sequence[int], limit: int) -> list[WaitingMove]:
    """Return those of the jobs whose waiting instances have to move, by id."""
    rows = await connection.fetch(sql("marked_jobs"), list(job_ids), limit)
    return [WaitingMove(*row.values()) for row in rows]


async def share_version(connection: AnyWrite, move: WaitingMove) -> bool:
    """Return whether the job still has this version, and lock it FOR KEY SHARE until the caller's transaction ends."""
    return await connection.fetchval(sql("share_version"), move.job_id, move.version) is not None


async def ask_relane(connection: Platform, job_ids: Sequence[int]) -> None:
    """Mark these jobs, so that their waiting instances are moved to the right lanes."""
    await connection.execute(sql("ask_relane"), list(job_ids))


async def mark_moved(connection: AnyWrite, move: WaitingMove) -> None:
    """Clear the mark of a job if it still has this version: all its waiting instances are in the right lanes."""
    await connection.execute(sql("mark_relaned"), move.job_id, move.version)


@dataclass(frozen=True, slots=True)
class Runnable:
    """The data of a job that a dispatcher needs to run its instances. `recipe` is None if it is unreadable."""

    id: int
    version: int
    name: str
    tenant: str
    is_paused: bool
    is_deleted: bool
    recipe: Recipe | None
    is_gated: bool = False
    """True if the end of one run decides on another."""
    is_chained: bool = False
    """True if the job is in a workflow, where other jobs wait for its runs, or produces assets that they wait for."""
    tenant_id: int = 0
    is_encrypted: bool = False
    interval_from: Schedule | datetime | None = None
    """The schedule that the data intervals of its instances follow, or the start of the interval of one instance."""
    schedule_id: int = 0
    """The row of that schedule, which a change of its calendar replaces; 0 if there is none."""


async def jobs_to_run(
    connection: AnyRead,
    known: Mapping[int, int],
    chained: Collection[int] = (),
    schedules: Mapping[int, int] | None = None,
) -> list[Runnable]:
    """Return the jobs, including deleted ones, whose version is not the known one (0: not known).

    Also returns jobs that have entered or left a workflow: `chained` are those that the caller knows to be in one; and
    jobs whose schedule is not the known one, if `schedules` are given.
    """
    seen = [None if schedules is None else schedules.get(job_id, 0) for job_id in known]
    rows = await connection.fetch(sql("jobs_to_run"), list(known), list(known.values()), list(chained), seen)
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
            row["tenant_id"],
            row["encrypted"],
            None if row["spec"] is None else Rhythm.from_spec(json.loads(row["spec"])).schedule,
            row["schedule_id"],
        )
        for row in rows
    ]


@lru_cache(maxsize=10_000)
def _recipe(text: str) -> Recipe | None:
    """Parse a recipe. Jobs with the same text share one: a group of 100,000 jobs is parsed once."""
    try:
        return recipe_of(json.loads(text))
    except (HoraiError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.error("a stored definition cannot be read", error=repr(error))
        return None


async def tenant_id(connection: Platform, name: str) -> int | None:
    """Return the id of a tenant by name, or None."""
    return await connection.fetchval(sql("tenant_by_name"), name)


async def has_encrypted(connection: TenantRead, tenant_id: int) -> bool:
    """Return whether the tenant has an encrypted job."""
    return await connection.fetchval(sql("has_encrypted"), tenant_id)


async def insert_event(
    connection: AnyWrite, tenant_id: int, job_id: int | None, kind: str, data: Mapping[str, Any]
) -> None:
    """Insert an event about a job, or without a job about a queue."""
    await connection.execute(sql("insert_event"), tenant_id, job_id, kind, json.dumps(data, ensure_ascii=False))


async def insert_events(
    connection: TenantWrite, tenant_id: int, job_ids: Sequence[int], kind: str, data: Mapping[str, Any]
) -> None:
    """Insert the same event about several jobs."""
    await connection.execute(sql("insert_events"), tenant_id, list(job_ids), kind, json.dumps(data, ensure_ascii=False))

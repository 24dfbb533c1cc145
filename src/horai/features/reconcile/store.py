"""Reconcilers and their reports: one function per statement of features/reconcile/store.sql."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from horai.core.job import JobStatus
from horai.core.states import CancelReason, State
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.instances import InsertTarget, NewInstance, insert_keyed
from horai.db.pool import AnyRead, AnyWrite, TenantRead, TenantWrite
from horai.features.reconcile.rules import MOST_EXAMPLES, EndedKey, ReconcileCounts


@dataclass(frozen=True, slots=True)
class ReconcilerRow:
    """A stored reconciler; `document` is the definition of the job whose runs are its comparisons."""

    id: int
    tenant_id: int
    job_id: int
    name: str
    target_id: int
    target: str
    source: Mapping[str, Any]
    source_version: int
    document: Mapping[str, Any]
    status: JobStatus
    note: str | None
    version: int
    """The version of its job; a change of the job or of the reconciler increases it."""
    created_at: datetime
    updated_at: datetime

    @property
    def declared_by(self) -> str | None:
        """The application whose code declares the reconciler; None if the API created it."""
        return self.document.get("declaredBy")


@dataclass(frozen=True, slots=True)
class Report:
    """The counts of a run so far.

    `surplus` is None if it is not known; `finished_at` is None until the run has ended.
    """

    id: int
    reconciler_id: int
    instance_id: int
    attempt: int
    source_version: int
    started_at: datetime
    finished_at: datetime | None
    cursor: str | None
    is_read: bool
    pages: int
    tally: ReconcileCounts
    live: int
    surplus: int | None
    surplus_keys: tuple[str, ...]
    error: str | None


def _reconciler(row: asyncpg.Record) -> ReconcilerRow:
    return ReconcilerRow(
        row["id"],
        row["tenant_id"],
        row["job_id"],
        row["name"],
        row["target_id"],
        row["target"],
        json.loads(row["source"]),
        row["source_version"],
        json.loads(row["definition"]),
        JobStatus(row["status"]),
        row["note"],
        row["version"],
        row["created_at"],
        row["updated_at"],
    )


def _report(row: asyncpg.Record) -> Report:
    examples = json.loads(row["examples"])
    tally = ReconcileCounts(
        row["found"],
        row["missing"],
        row["created"],
        row["left_alone"],
        row["faulty"],
        tuple(examples.get("missing", ())),
        tuple((fault["key"], fault["why"]) for fault in examples.get("faulty", ())),
    )
    return Report(
        row["id"],
        row["reconciler_id"],
        row["instance_id"],
        row["attempt"],
        row["source_version"],
        row["started_at"],
        row["finished_at"],
        row["cursor"],
        row["is_read"],
        row["pages"],
        tally,
        row["live"],
        row["surplus"],
        tuple(examples.get("surplus", ())),
        row["error"],
    )


def examples_of(tally: ReconcileCounts, surplus: Sequence[str] = ()) -> dict[str, Any]:
    """Return the examples in the form in which they are stored and shown."""
    faulty = [{"key": key, "why": why} for key, why in tally.faults]
    return {"missing": list(tally.missing_keys), "surplus": list(surplus), "faulty": faulty}


async def insert_reconciler(
    connection: TenantWrite, tenant_id: int, job_id: int, target_id: int, source: Mapping[str, Any]
) -> int:
    """Insert a reconciler and return its id."""
    return await connection.fetchval(sql("insert_reconciler"), tenant_id, job_id, target_id, json.dumps(source))


async def bind_reconciler(
    connection: TenantWrite, tenant_id: int, job_id: int, target_id: int, source: Mapping[str, Any]
) -> None:
    """Insert or update the reconciler of a job that code declares."""
    await connection.execute(sql("bind_reconciler"), tenant_id, job_id, target_id, json.dumps(source))


async def list_reconcilers(connection: TenantRead, tenant_id: int, before: int, limit: int) -> list[ReconcilerRow]:
    """Return a page of the reconcilers of a tenant, newest first."""
    return [_reconciler(row) for row in await connection.fetch(sql("list_reconcilers"), tenant_id, before, limit)]


async def find_reconciler(connection: TenantRead, tenant_id: int, reference: str) -> ReconcilerRow | None:
    """Return a reconciler by its id (all digits) or its name."""
    is_id = reference.isascii() and reference.isdigit()
    if "\x00" in reference or (is_id and len(reference) > 18):
        return None
    by_id, by_name = (int(reference), None) if is_id else (None, reference)
    row = await connection.fetchrow(sql("find_reconciler"), tenant_id, by_id, by_name)
    return _reconciler(row) if row else None


async def reconciler_of_job(connection: AnyRead, job_id: int) -> ReconcilerRow | None:
    """Return the reconciler whose comparisons are the runs of this job."""
    row = await connection.fetchrow(sql("reconciler_of_job"), job_id)
    return _reconciler(row) if row else None


async def reconcilers_of_target(connection: TenantRead, job_id: int) -> list[str]:
    """Return the names of the reconcilers that watch this job."""
    return [row["name"] for row in await connection.fetch(sql("reconcilers_of_target"), job_id)]


async def change_source(connection: TenantWrite, reconciler_id: int, source: Mapping[str, Any]) -> None:
    """Replace the source; current runs also read the new one, from its beginning."""
    await connection.execute(sql("change_source"), reconciler_id, json.dumps(source))


async def wipe_source(connection: TenantWrite, reconciler_id: int, shown: Mapping[str, Any]) -> None:
    """Store the source of a deleted reconciler without its secrets."""
    await connection.execute(sql("wipe_source"), reconciler_id, json.dumps(shown))


async def begin_report(
    connection: AnyWrite, reconciler: ReconcilerRow, instance_id: int, attempt: int
) -> Report | None:
    """Create or take over the report of a run; None if a later attempt has it."""
    values = (reconciler.id, instance_id, attempt, reconciler.source_version)
    row = await connection.fetchrow(sql("begin_report"), *values)
    return _report(row) if row else None


async def rewind_report(connection: AnyWrite, report: Report, source_version: int) -> Report | None:
    """Reset a report to read a source of this version from its beginning; None if a later attempt has it."""
    row = await connection.fetchrow(sql("rewind_report"), report.id, report.attempt, source_version)
    return _report(row) if row else None


async def lock_report(connection: AnyWrite, report: Report) -> Report | None:
    """Lock the report and return it; None if this attempt must not write any more."""
    row = await connection.fetchrow(sql("lock_report"), report.id, report.attempt)
    return _report(row) if row else None


async def write_report(
    connection: AnyWrite, report: Report, tally: ReconcileCounts, cursor: str | None, met: int
) -> None:
    """Record one more page.

    `tally` counts all pages so far, `cursor` is the start of the next page (None after the last), and `met` is the
    number of live instances that this page met for the first time.
    """
    counts = (tally.found, tally.missing, tally.created, tally.left_alone, tally.faulty)
    examples = json.dumps(examples_of(tally))
    await connection.execute(sql("write_report"), report.id, cursor, *counts, met, examples)


async def finish_report(
    connection: AnyWrite, report: Report, surplus: int | None, surplus_keys: Sequence[str]
) -> Report:
    """Mark the run of a report as finished."""
    examples = json.dumps(examples_of(report.tally, surplus_keys))
    row = await connection.fetchrow(sql("finish_report"), report.id, surplus, examples)
    assert row is not None  # noqa: S101 — the caller has locked the row
    return _report(row)


async def fail_report(connection: AnyWrite, instance_id: int, attempt: int, error: str) -> None:
    """Record why an attempt failed; the next attempt continues after its last page."""
    await connection.execute(sql("fail_report"), instance_id, attempt, error)


async def list_reports(connection: TenantRead, reconciler_id: int, before: int, limit: int) -> list[Report]:
    """Return a page of the reports of a reconciler, newest first."""
    return [_report(row) for row in await connection.fetch(sql("list_reports"), reconciler_id, before, limit)]


async def last_reports(connection: TenantRead, reconciler_ids: Sequence[int]) -> dict[int, Report]:
    """Return the newest report of each reconciler that has one, by reconciler id."""
    rows = await connection.fetch(sql("last_reports"), list(reconciler_ids))
    return {row["reconciler_id"]: _report(row) for row in rows}


async def forget_reports(connection: AnyWrite, report: Report, keep: int, most: int) -> int:
    """Delete up to `most` reports older than the newest `keep` up to this one; return how many were deleted."""
    done = await connection.execute(sql("forget_reports"), report.reconciler_id, report.id, keep, most)
    return int(done.rpartition(" ")[2])


async def live_keys(connection: AnyRead, job_id: int, keys: Sequence[str]) -> dict[str, int]:
    """Return the ids of the live instances of keys."""
    return {row["key"]: row["id"] for row in await connection.fetch(sql("live_keys"), job_id, list(keys))}


async def ends_of_keys(connection: AnyRead, job_id: int, keys: Sequence[str]) -> dict[str, EndedKey]:
    """Return the ends of the keys that are in history."""
    rows = await connection.fetch(sql("ends_of_keys"), job_id, list(keys))
    return {
        row["key"]: EndedKey(
            row["succeeded"],
            State(row["state"]),
            None if row["reason"] is None else CancelReason(row["reason"]),
            row["version"],
            row["fence"],
        )
        for row in rows
    }


async def note_seen(connection: AnyWrite, report: Report, instance_ids: Sequence[int]) -> int:
    """Record that the run has met these instances; return how many it met for the first time."""
    return await connection.fetchval(sql("note_seen"), report.id, list(instance_ids))


async def count_seen(connection: AnyRead, report: Report) -> int:
    """Return the number of instances that are recorded as met."""
    return await connection.fetchval(sql("count_seen"), report.id)


async def surplus_of(connection: AnyRead, job_id: int, report: Report) -> tuple[int, list[str]]:
    """Return the number of live instances that the source does not list, and up to `MOST_EXAMPLES` of their keys."""
    row = await connection.fetchrow(sql("surplus_of"), job_id, report.id, report.started_at, MOST_EXAMPLES)
    assert row is not None  # noqa: S101 — an aggregate has one row
    return row["surplus"], row["keys"]


async def forget_seen(connection: AnyWrite, report: Report) -> None:
    """Delete the records of the instances that this run has met."""
    await connection.execute(sql("forget_seen"), report.id)


async def forget_seen_before(connection: AnyWrite, report: Report) -> None:
    """Delete such records of earlier runs that ended without a result."""
    await connection.execute(sql("forget_seen_before"), report.reconciler_id, report.id)


async def insert_unless_held(
    connection: AnyWrite, place: InsertTarget, wishes: Sequence[NewInstance], patience: timedelta
) -> dict[str, Claimable] | None:
    """Insert live instances of keys as `insert_keyed` does.

    Return None, with nothing inserted, if another transaction holds a key for longer than `patience`.
    """
    try:
        async with connection.transaction():
            await connection.execute(sql("wait_at_most"), f"{patience // timedelta(milliseconds=1)}ms")
            return await insert_keyed(connection, place, wishes)
    except asyncpg.LockNotAvailableError:
        return None

"""Reconcilers and their reports: one function per statement of sql/reconcilers.sql."""

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
from horai.db.pool import Connection
from horai.features.reconcile.rules import MOST_EXAMPLES, EndedKey, ReconcileCounts


@dataclass(frozen=True, slots=True)
class ReconcilerRow:
    """A reconciler; `document` is the definition of the job whose runs are its comparisons."""

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
    """That of its job: each change of either is one."""
    created_at: datetime
    updated_at: datetime

    @property
    def declared_by(self) -> str | None:
        """The application whose code declares it."""
        return self.document.get("declaredBy")


@dataclass(frozen=True, slots=True)
class Report:
    """What a run has come to so far. `surplus` is None while, or when, it is not known; `finished_at` while it is under way."""

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
    """The examples as they are stored and shown."""
    faulty = [{"key": key, "why": why} for key, why in tally.faults]
    return {"missing": list(tally.missing_keys), "surplus": list(surplus), "faulty": faulty}


async def insert_reconciler(
    connection: Connection, tenant_id: int, job_id: int, target_id: int, source: Mapping[str, Any]
) -> int:
    """A new one; its id."""
    return await connection.fetchval(sql("insert_reconciler"), tenant_id, job_id, target_id, json.dumps(source))


async def bind_reconciler(
    connection: Connection, tenant_id: int, job_id: int, target_id: int, source: Mapping[str, Any]
) -> None:
    """Makes a job a reconciler of another, whether it was one before or not."""
    await connection.execute(sql("bind_reconciler"), tenant_id, job_id, target_id, json.dumps(source))


async def list_reconcilers(connection: Connection, tenant_id: int, before: int, limit: int) -> list[ReconcilerRow]:
    """A page of a tenant's, the newest first."""
    return [_reconciler(row) for row in await connection.fetch(sql("list_reconcilers"), tenant_id, before, limit)]


async def find_reconciler(connection: Connection, tenant_id: int, reference: str) -> ReconcilerRow | None:
    """By its id (all digits) or its name."""
    is_id = reference.isascii() and reference.isdigit()
    if "\x00" in reference or (is_id and len(reference) > 18):
        return None
    by_id, by_name = (int(reference), None) if is_id else (None, reference)
    row = await connection.fetchrow(sql("find_reconciler"), tenant_id, by_id, by_name)
    return _reconciler(row) if row else None


async def reconciler_of_job(connection: Connection, job_id: int) -> ReconcilerRow | None:
    """The reconciler whose comparisons are the runs of this job."""
    row = await connection.fetchrow(sql("reconciler_of_job"), job_id)
    return _reconciler(row) if row else None


async def reconcilers_of_target(connection: Connection, job_id: int) -> list[str]:
    """The names of those that watch over this job."""
    return [row["name"] for row in await connection.fetch(sql("reconcilers_of_target"), job_id)]


async def change_source(connection: Connection, reconciler_id: int, source: Mapping[str, Any]) -> None:
    """Another source, from its beginning, for the runs under way too."""
    await connection.execute(sql("change_source"), reconciler_id, json.dumps(source))


async def wipe_source(connection: Connection, reconciler_id: int, shown: Mapping[str, Any]) -> None:
    """Store the source of a deleted reconciler without its secrets."""
    await connection.execute(sql("wipe_source"), reconciler_id, json.dumps(shown))


async def begin_report(
    connection: Connection, reconciler: ReconcilerRow, instance_id: int, attempt: int
) -> Report | None:
    """The run's report, as far as it is; None for an attempt that has been overtaken."""
    values = (reconciler.id, instance_id, attempt, reconciler.source_version)
    row = await connection.fetchrow(sql("begin_report"), *values)
    return _report(row) if row else None


async def rewind_report(connection: Connection, report: Report, source_version: int) -> Report | None:
    """Begins to read anew, a source of this version; None for an attempt that has been overtaken."""
    row = await connection.fetchrow(sql("rewind_report"), report.id, report.attempt, source_version)
    return _report(row) if row else None


async def lock_report(connection: Connection, report: Report) -> Report | None:
    """The report as it is now, held; None when this attempt has nothing to say any more."""
    row = await connection.fetchrow(sql("lock_report"), report.id, report.attempt)
    return _report(row) if row else None


async def write_report(
    connection: Connection, report: Report, tally: ReconcileCounts, cursor: str | None, met: int
) -> None:
    """One page more: what all of them have come to, where the next begins (None: there is none), how many live instances this one met."""
    counts = (tally.found, tally.missing, tally.created, tally.left_alone, tally.faulty)
    examples = json.dumps(examples_of(tally))
    await connection.execute(sql("write_report"), report.id, cursor, *counts, met, examples)


async def finish_report(
    connection: Connection, report: Report, surplus: int | None, surplus_keys: Sequence[str]
) -> Report:
    """The run is over."""
    examples = json.dumps(examples_of(report.tally, surplus_keys))
    row = await connection.fetchrow(sql("finish_report"), report.id, surplus, examples)
    assert row is not None  # noqa: S101 — the caller holds the row
    return _report(row)


async def fail_report(connection: Connection, instance_id: int, attempt: int, error: str) -> None:
    """Why an attempt broke off; another goes on from its last page."""
    await connection.execute(sql("fail_report"), instance_id, attempt, error)


async def list_reports(connection: Connection, reconciler_id: int, before: int, limit: int) -> list[Report]:
    """A page of a reconciler's reports, the newest first."""
    return [_report(row) for row in await connection.fetch(sql("list_reports"), reconciler_id, before, limit)]


async def last_reports(connection: Connection, reconciler_ids: Sequence[int]) -> dict[int, Report]:
    """The newest report of each of the reconcilers that have one."""
    rows = await connection.fetch(sql("last_reports"), list(reconciler_ids))
    return {row["reconciler_id"]: _report(row) for row in rows}


async def forget_reports(connection: Connection, report: Report, keep: int, most: int) -> int:
    """Deletes up to `most` of the reports that lie behind the newest `keep` up to this one; how many."""
    done = await connection.execute(sql("forget_reports"), report.reconciler_id, report.id, keep, most)
    return int(done.rpartition(" ")[2])


async def live_keys(connection: Connection, job_id: int, keys: Sequence[str]) -> dict[str, int]:
    """The live instances of keys."""
    return {row["key"]: row["id"] for row in await connection.fetch(sql("live_keys"), job_id, list(keys))}


async def ends_of_keys(connection: Connection, job_id: int, keys: Sequence[str]) -> dict[str, EndedKey]:
    """How keys have ended, of those that history knows."""
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


async def note_seen(connection: Connection, report: Report, instance_ids: Sequence[int]) -> int:
    """The run has met these instances; how many of them for the first time."""
    return await connection.fetchval(sql("note_seen"), report.id, list(instance_ids))


async def count_seen(connection: Connection, report: Report) -> int:
    """How many instances are noted as met."""
    return await connection.fetchval(sql("count_seen"), report.id)


async def surplus_of(connection: Connection, job_id: int, report: Report) -> tuple[int, list[str]]:
    """How many live instances the source does not have, and the keys of some."""
    row = await connection.fetchrow(sql("surplus_of"), job_id, report.id, report.started_at, MOST_EXAMPLES)
    assert row is not None  # noqa: S101 — an aggregate has one row
    return row["surplus"], row["keys"]


async def forget_seen(connection: Connection, report: Report) -> None:
    """Nothing that this run has met is needed any more."""
    await connection.execute(sql("forget_seen"), report.id)


async def forget_seen_before(connection: Connection, report: Report) -> None:
    """The same of the runs before it that have ended without a result."""
    await connection.execute(sql("forget_seen_before"), report.reconciler_id, report.id)


async def insert_unless_held(
    connection: Connection, place: InsertTarget, wishes: Sequence[NewInstance], patience: timedelta
) -> dict[str, Claimable] | None:
    """Makes live instances of keys, as `insert_keyed` does; None, and nothing made, when somebody's transaction holds one."""
    try:
        async with connection.transaction():
            await connection.execute(sql("wait_at_most"), f"{patience // timedelta(milliseconds=1)}ms")
            return await insert_keyed(connection, place, wishes)
    except asyncpg.LockNotAvailableError:
        return None

"""Reports of drills: one function per statement of sql/drill_reports.sql."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.db.catalog import sql
from horai.db.pool import Platform

KEPT_REPORTS = 1_000
"""The newest reports that are kept."""


@dataclass(frozen=True, slots=True)
class DrillSummary:
    """The figures of a report that lists show. `rto_seconds` is the recovery time, `rpo_seconds` the recovery point."""

    id: int
    kind: str
    cluster: str | None
    failed_at: datetime
    rto_seconds: float
    rpo_seconds: float
    kept: bool
    filed_at: datetime
    filed_by: str


@dataclass(frozen=True, slots=True)
class FiledReport:
    """A report, and its figures."""

    summary: DrillSummary
    report: str


@dataclass(frozen=True, slots=True)
class NewReport:
    """A report to store."""

    digest: bytes
    """The SHA-256 of `report`: the same report is stored once."""
    kind: str
    cluster: str | None
    failed_at: datetime
    rto_seconds: float
    rpo_seconds: float
    kept: bool
    filed_by: str
    report: str


async def insert_report(connection: Platform, new: NewReport) -> tuple[FiledReport, bool]:
    """Store a report unless it is stored already. Return it, and whether it is new."""
    figures = (new.kind, new.cluster, new.failed_at, new.rto_seconds, new.rpo_seconds, new.kept)
    row = await connection.fetchrow(sql("insert_drill_report"), new.digest, *figures, new.filed_by, new.report)
    assert row is not None  # noqa: S101 — a report that is stored already is returned, too
    *filed, is_new = row.values()
    if is_new:
        await connection.execute(sql("trim_drill_reports"), KEPT_REPORTS)
    return _filed(filed), is_new


async def find_report(connection: Platform, report_id: int) -> FiledReport | None:
    """Return a report."""
    row = await connection.fetchrow(sql("find_drill_report"), report_id)
    return None if row is None else _filed(row.values())


async def list_reports(connection: Platform, before: int, limit: int, kind: str | None) -> list[DrillSummary]:
    """Return reports, the newest filed first."""
    rows = await connection.fetch(sql("list_drill_reports"), before, limit, kind)
    return [DrillSummary(*row.values()) for row in rows]


def _filed(values: Iterable[Any]) -> FiledReport:
    *figures, report = values
    return FiledReport(DrillSummary(*figures), report)

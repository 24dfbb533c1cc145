"""Operations on reports of drills: file, list, read."""

import hashlib
from typing import NamedTuple

import msgspec

from horai.core.audit import AuditEntry, AuditVerb
from horai.core.digits import number_in
from horai.core.errors import Invalid, NotFound
from horai.db import drill_reports
from horai.db.drill_reports import DrillSummary, FiledReport, NewReport
from horai.features.drills.wire import DrillReport
from horai.operations import audit
from horai.operations.scope import PlatformScope
from horai.text import Hint, Refused, Wrong


class Filing(NamedTuple):
    """A filed report, and whether this request has filed it."""

    filed: FiledReport
    is_new: bool


async def file_report(scope: PlatformScope, report: DrillReport) -> Filing:
    """File a report. The same report is filed once. Raise `Invalid` if its verdict is not that of its promises."""
    if report.kept != all(each.kept for each in report.promises):
        raise Invalid.field("kept", Wrong.NOT_OF_PROMISES(), Hint.FILE_AS_WRITTEN())
    text = msgspec.json.encode(report.model_dump(mode="json", by_alias=True)).decode()
    new = NewReport(
        hashlib.sha256(text.encode()).digest(),
        report.kind,
        report.cluster,
        report.failed_at,
        report.rto_seconds,
        report.rpo_seconds,
        report.kept,
        scope.actor.name,
        text,
    )
    async with scope.write() as connection:
        filed, is_new = await drill_reports.insert_report(connection, new)
        if is_new:
            summary = filed.summary
            after = {"kind": summary.kind, "kept": summary.kept, "failedAt": summary.failed_at.isoformat()}
            name = summary.cluster or summary.kind
            entry = AuditEntry(AuditVerb.DRILL_FILE, "drill", str(summary.id), name, after=after)
            await audit.record(connection, None, scope.actor, entry)
    return Filing(filed, is_new)


async def list_reports(scope: PlatformScope, before: int, limit: int, kind: str | None) -> list[DrillSummary]:
    """Return a page of reports, the newest filed first."""
    async with scope.read() as connection:
        return await drill_reports.list_reports(connection, before, limit, kind)


async def read_report(scope: PlatformScope, reference: str) -> FiledReport:
    """Return a report. Raise `NotFound` if there is none of this id."""
    number = number_in(reference)
    async with scope.read() as connection:
        found = None if number is None else await drill_reports.find_report(connection, number)
    if found is None:
        raise NotFound(Refused.NO_DRILL(drill=reference[:40]), Hint.LISTED_AT(path="/api/v1/drills"))
    return found

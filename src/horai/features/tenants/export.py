"""The export of a tenant's data: JSON lines, kind after kind, in pages. Values that may be secret are `***`."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from horai.core.limits import PAGE_BYTES
from horai.core.masking import shown_database_url, shown_target
from horai.db.catalog import sql
from horai.operations.scope import Scope

KINDS = {
    "job": "export_jobs",
    "queue": "export_queues",
    "calendar": "export_calendars",
    "workflow": "export_workflows",
    "reconciler": "export_reconcilers",
    "alertChannel": "export_alert_channels",
    "alertRule": "export_alert_rules",
    "sink": "export_sinks",
    "heartbeat": "export_heartbeats",
    "instance": "export_live",
    "deadLetter": "export_letters",
    "history": "export_history",
    "archiveFile": "export_archive_files",
    "audit": "export_writes",
}
"""The statement of each kind, in the order of the export."""
ROWS = 500
FIRST = (datetime(1, 1, 1, tzinfo=UTC), 0)

Position = tuple[datetime, int]


async def export_lines(scope: Scope) -> AsyncIterator[bytes]:
    """Yield the data of the tenant in pages of lines. No connection is held while a page is sent.

    Rows that are written meanwhile may be missing. The last line has the number of rows of each kind: without it, the
    export is not complete.
    """
    counts = dict[str, int]()
    for kind, pages in ((kind, _rows(scope, statement)) for kind, statement in KINDS.items()):
        counts[kind] = 0
        async for lines in pages:
            counts[kind] += len(lines)
            yield b"".join(lines)
    counts["entity"] = 0
    async for lines in _entities(scope):
        counts["entity"] += len(lines)
        yield b"".join(lines)
    yield json.dumps({"kind": "end", "tenant": scope.tenant, "counts": counts}).encode() + b"\n"


async def _rows(scope: Scope, statement: str) -> AsyncIterator[list[bytes]]:
    """Yield the rows of one kind, page after page."""
    position: Position = FIRST
    while True:
        async with scope.read() as connection:
            rows = await connection.fetch(sql(statement), scope.tenant_id, *position, ROWS, PAGE_BYTES)
        if not rows:
            return
        position = rows[-1]["at"], rows[-1]["id"]
        yield [_line(row["body"], row["secretive"]) for row in rows]


async def _entities(scope: Scope) -> AsyncIterator[list[bytes]]:
    """Yield the entities of all refresh jobs, job after job."""
    job_id = 0
    while True:
        async with scope.read() as connection:
            jobs = await connection.fetch(sql("refresh_jobs"), scope.tenant_id, job_id, ROWS)
        for job_id in [job["id"] for job in jobs]:
            key = ""
            while True:
                async with scope.read() as connection:
                    rows = await connection.fetch(
                        sql("export_entities"), scope.tenant_id, job_id, key, ROWS, PAGE_BYTES
                    )
                if not rows:
                    break
                key = rows[-1]["key"]
                yield [_line(row["body"], None) for row in rows]
        if not jobs:
            return


def _line(body: str, secretive: str | None) -> bytes:
    """Return one line. The body stays to the letter; only the values beside it are read and masked."""
    text = " ".join(body.splitlines())
    if secretive is not None:
        field = json.dumps(_shown(json.loads(secretive)), ensure_ascii=False)
        text = f'{text.rstrip().removesuffix("}")}, "definition": {field}}}'
    return text.encode() + b"\n"


def _shown(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a job or the source of a reconciler with `***` for secret values."""
    if isinstance(target := document.get("target"), dict):
        return {**document, "target": shown_target(target)}  # pyright: ignore[reportUnknownArgumentType]
    shown = shown_target(document)
    if isinstance(url := shown.get("databaseUrl"), str):
        shown["databaseUrl"] = shown_database_url(url)
    return shown

"""Entities of encrypted jobs as a caller may see them: payloads and remarks are sealed as those of instances are.

The remark of a failed run is its error code in clear text, then its sealed error text.
"""

from collections.abc import Sequence
from dataclasses import replace

from horai.core.sealed_values import HIDDEN_JSON, SealedColumn
from horai.db.instance_queries import size_of
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead
from horai.features.refresh.store import EntityRow
from horai.operations.readable_values import ValueReader
from horai.operations.scope import Scope

ENVELOPE = '{"$enc"'
REMARK_LIMIT = 2_000
"""The length of a remark that is shown; that of another job is cut when it is stored."""


async def readable_entities(
    connection: TenantRead, scope: Scope, job: JobRow, rows: Sequence[EntityRow]
) -> Sequence[EntityRow]:
    """Return entities as the caller may see them."""
    if not job.is_encrypted:
        return rows
    reader = ValueReader(scope)
    await reader.load(
        connection,
        (
            (job.name, column, text)
            for row in rows
            for column, text in (
                (SealedColumn.PAYLOAD, row.payload),
                (SealedColumn.ERROR, None if row.remark is None else parted_remark(row.remark)[1]),
            )
        ),
    )
    return [_readable(reader, job.name, row) for row in rows]


def parted_remark(remark: str) -> tuple[str, str | None]:
    """Return the clear part of a remark, and its sealed part if it has one."""
    start = remark.find(ENVELOPE)
    return (remark, None) if start < 0 else (remark[:start], remark[start:])


def _readable(reader: ValueReader, job: str, row: EntityRow) -> EntityRow:
    payload, remark = reader.json(job, SealedColumn.PAYLOAD, row.payload), row.remark
    if remark is not None:
        clear, sealed = parted_remark(remark)
        remark = (clear + (reader.text(job, SealedColumn.ERROR, sealed) or ""))[:REMARK_LIMIT]
    size = row.payload_size if payload in {None, HIDDEN_JSON} else size_of(payload)
    return replace(row, payload=payload, payload_size=size, remark=remark)

"""Calls that are added once: one function per statement of sql/unique_calls.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.put import PutDecision
from horai.db import quotas
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.instances import InsertTarget
from horai.db.pool import Platform, TenantWrite

Position = tuple[int, int, bytes]
"""A row of the table: job, kind and digest."""
BEGINNING: Position = (-1, 0, b"")


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call as it is stored. Without a digest, the database computes that of the payload; no time means now."""

    kind: int
    span: timedelta
    at: datetime | None
    payload: str | None
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class AddedCall:
    """The decision on a call, its instance, and the row to claim if the instance is new or was moved."""

    verdict: PutDecision
    instance_id: int
    woken: Claimable | None


async def add_calls(connection: TenantWrite, place: InsertTarget, calls: Sequence[StoredCall]) -> list[AddedCall]:
    """Add calls of a job, in order. Other calls of the same arguments wait until the caller's transaction ends."""
    with quotas.translated():
        rows = await connection.fetch(
            sql("add_calls"),
            *(place.job_id, place.tenant_id, place.lane, place.payload, place.is_metered),
            [call.kind for call in calls],
            [call.digest for call in calls],
            [call.at for call in calls],
            [call.payload for call in calls],
            [call.span for call in calls],
        )
    return [
        AddedCall(PutDecision(verdict), chosen, None if lane is None else Claimable(chosen, lane, due))
        for verdict, chosen, lane, due in rows
    ]


async def prune_unique_calls(connection: Platform, after: Position, limit: int) -> Position:
    """Delete the calls of a page whose window is over and whose instance has ended. Return where the next page begins."""
    row = await connection.fetchrow(sql("prune_unique_calls"), *after, limit)
    return BEGINNING if row is None or row["rows"] < limit else (row["job_id"], row["kind"], row["digest"])

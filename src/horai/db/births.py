"""Instances that are claimed at birth: one function per statement of sql/births.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from horai.core.limits import SHARDS
from horai.db import quotas
from horai.db.catalog import sql
from horai.db.claims import Claim, ClaimedBy, ClaimedRow
from horai.db.pool import Platform


class BornRow(NamedTuple):
    """A new instance; `claimed` is its claim if the statement that inserted it has claimed it."""

    id: int
    lane: int
    due: datetime
    claimed: ClaimedRow | None


async def enqueue_running(
    connection: Platform, tenant_id: int, job: str, payloads: Sequence[str | None], by: ClaimedBy, lane: int, most: int
) -> list[BornRow]:
    """Insert instances of the named job that are due now, and claim the first `most` of them at birth.

    All wait unclaimed if this node is fenced, or the job does not run in `lane` any more. Returns an empty list if the
    job does not exist or is encrypted.
    """
    has_gap = None in payloads
    with quotas.translated():
        rows = await connection.fetch(
            sql("enqueue_running"), by.node, by.claim, tenant_id, job, SHARDS, payloads, lane, most, has_gap
        )
    texts = [row["payload"] for row in rows] if has_gap else payloads
    return [
        BornRow(id_, its_lane, due, _born(by, id_, job_id, its_lane, due, at, text) if is_claimed else None)
        for (id_, job_id, its_lane, due, at, is_claimed, _), text in zip(rows, texts, strict=False)
    ]


def _born(
    by: ClaimedBy, id_: int, job_id: int, lane: int, due: datetime, at: datetime, payload: str | None
) -> ClaimedRow:
    return ClaimedRow(Claim(id_, job_id, 1, 1, by.node, 0, by.at), lane, due, -id_, None, at, at, at, payload, False)

"""The outbox: one function per statement of sql/outbox.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from horai.core.horizon import HorizonSample, read_samples, samples_text
from horai.db.catalog import sql
from horai.db.pool import Platform, TenantWrite


@dataclass(frozen=True, slots=True)
class OutboxCursor:
    """The state of the recording: rows of transactions below `xid` are recorded, up to `position`."""

    is_on: bool
    xid: int
    samples: tuple[HorizonSample, ...]
    position: int
    now: datetime
    has_sinks: bool
    """False if there may be no sink: one may have been created while the lock was waited for."""


@dataclass(frozen=True, slots=True)
class RecordedEvents:
    """The result of one recording. Rows of transactions below `horizon` are recorded; `next_id` was not assigned yet."""

    horizon: int
    next_id: int
    recorded: int
    now: datetime


@dataclass(frozen=True, slots=True)
class OutboxEvent:
    """A recorded event. `data` is JSON."""

    position: int
    event_id: str
    tenant_id: int
    job_id: int | None
    instance_id: int | None
    at: datetime
    type: str
    data: str


async def lock_outbox(connection: Platform) -> OutboxCursor:
    """Lock the cursor until the end of the transaction."""
    row = await connection.fetchrow(sql("lock_outbox"))
    assert row is not None  # noqa: S101 — the migration inserts it
    samples = read_samples(row["samples"])
    return OutboxCursor(row["is_on"], row["xid"], samples, row["position"], row["now"], row["has_sinks"])


async def record_events(connection: Platform, from_xid: int, earliest: datetime, position: int) -> RecordedEvents:
    """Record the events of finished transactions from `from_xid` on, none of which is older than `earliest`."""
    row = await connection.fetchrow(sql("record_events"), from_xid, earliest, position)
    assert row is not None  # noqa: S101 — one row of counts
    return RecordedEvents(**row)


async def move_outbox(
    connection: Platform, xid: int, samples: Sequence[HorizonSample], position: int, held_since: datetime | None
) -> None:
    """Store how far events are recorded, and since when an open transaction keeps others back. The caller holds the lock on the cursor."""
    await connection.execute(sql("move_outbox"), str(xid), samples_text(samples), position, held_since)


async def open_outbox(connection: TenantWrite) -> int:
    """Record events from now on. Return the position after which a new sink begins."""
    return await connection.fetchval(sql("open_outbox"))


async def close_outbox(connection: Platform) -> None:
    """Stop the recording if there is no sink."""
    await connection.execute(sql("close_outbox"))


async def summarize_events(connection: Platform) -> None:
    """Let the indexes by time cover the rows that were written since the last call."""
    await connection.execute(sql("summarize_events"))


async def read_outbox(
    connection: Platform, tenant_id: int, after: int, types: Sequence[str] | None, limit: int
) -> list[OutboxEvent]:
    """Return events of a tenant after a position, in order."""
    rows: Sequence[Any] = await connection.fetch(sql("read_outbox"), tenant_id, after, types, limit)
    return [OutboxEvent(**row) for row in rows]


async def newest_position(connection: Platform) -> tuple[int, datetime]:
    """Return the position of the last recorded event, and the time."""
    row = await connection.fetchrow(sql("newest_position"))
    assert row is not None  # noqa: S101 — the migration inserts it
    return row["position"], row["now"]


async def trim_outbox(connection: Platform, older_than: datetime, limit: int) -> int:
    """Delete up to `limit` of the oldest events that were recorded before a time. Return how many."""
    status: str = await connection.execute(sql("trim_outbox"), older_than, limit)
    return int(status.rsplit(maxsplit=1)[-1])


KEPT_FOR = timedelta(days=7)
"""The time for which recorded events are kept. A replay reaches back as far."""

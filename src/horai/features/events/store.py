"""Events and parked messages of event sources: one function per statement of features/events/store.sql."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

import asyncpg

from horai.db.catalog import sql
from horai.db.pool import TenantRead, TenantWrite
from horai.features.events.change import Change, Effect

BODY_KEPT = 64 * 1024


Event: TypeAlias = tuple[int, str]
"""An event of a job: the id of the job, and the id of the event within its source."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The result of an event; `instance_id` is None if the event affected no instance."""

    effect: Effect
    instance_id: int | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message that cannot take effect, as received, and the reason."""

    place: str
    subject: str
    headers: Mapping[str, str]
    body: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Parked:
    """A parked message. Only the first `BODY_KEPT` bytes of its body are stored."""

    id: int
    source: str
    place: str
    subject: str
    headers: Mapping[str, str]
    body: bytes
    size: int
    reason: str
    at: datetime
    is_sealed: bool = False
    """True while the body is an envelope: it has to be opened to be read."""

    @property
    def is_whole(self) -> bool:
        """True if the whole body is stored, so that the message can be retried."""
        return self.size <= BODY_KEPT if self.is_sealed else len(self.body) == self.size


async def wait_briefly(connection: TenantWrite, patience: timedelta) -> None:
    """Limit the time that this transaction waits for a lock, from here on."""
    await connection.execute(sql("wait_briefly"), str(int(patience.total_seconds() * 1000)))


async def take_events(connection: TenantWrite, source: str, events: Mapping[Event, Change]) -> set[Event]:
    """Store the ids of new events and return those events; they are taken once the caller's transaction commits."""
    jobs, ids = [job_id for job_id, _ in events], [event_id for _, event_id in events]
    times, versions = [c.occurred_at for c in events.values()], [c.version for c in events.values()]
    return {(row[0], row[1]) for row in await connection.fetch(sql("take_events"), source, jobs, ids, times, versions)}


async def bind_events(connection: TenantWrite, source: str, bound: Mapping[Event, Bound]) -> None:
    """Store the results of the events that this transaction has taken."""
    jobs, ids = [job_id for job_id, _ in bound], [event_id for _, event_id in bound]
    effects, instances = [one.effect.value for one in bound.values()], [one.instance_id for one in bound.values()]
    await connection.execute(sql("bind_events"), source, jobs, ids, effects, instances)


async def park_events(
    connection: TenantWrite,
    tenant_id: int,
    source: str,
    unreadable: Sequence[Unreadable],
    sealed: Sequence[bytes] | None = None,
) -> None:
    """Park messages; a message that is parked already stays unchanged. `sealed` are their bodies in envelopes."""
    await connection.execute(
        sql("park_events"),
        tenant_id,
        source,
        [_kept(one.place) for one in unreadable],
        [_kept(one.subject) for one in unreadable],
        [json.dumps({_kept(name): _kept(value) for name, value in one.headers.items()}) for one in unreadable],
        [one.body[:BODY_KEPT] for one in unreadable] if sealed is None else list(sealed),
        [len(one.body) for one in unreadable],
        [_kept(one.reason) for one in unreadable],
        sealed is not None,
    )


def _kept(text: str) -> str:
    """Return text that PostgreSQL can store: without NUL and lone surrogates, at most 2,000 characters."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")[:2_000]


async def parked_events(
    connection: TenantRead, tenant_id: int, source: str | None, after: int, limit: int
) -> list[Parked]:
    """Return a page of parked messages, oldest first."""
    return [_parked(row) for row in await connection.fetch(sql("parked_events"), tenant_id, after, source, limit)]


async def parked_event(connection: TenantRead, tenant_id: int, parked_id: int) -> Parked | None:
    """Return one parked message; None if there is none with this id."""
    row = await connection.fetchrow(sql("parked_event"), tenant_id, parked_id)
    return None if row is None else _parked(row)


def _parked(row: asyncpg.Record) -> Parked:
    id_, source, place, subject, headers, *rest = row
    return Parked(id_, source, place, subject, json.loads(headers), *rest)


async def drop_parked(connection: TenantWrite, tenant_id: int, ids: Sequence[int]) -> list[Parked]:
    """Delete parked messages and return those that were deleted."""
    return [_parked(row) for row in await connection.fetch(sql("drop_parked"), tenant_id, list(ids))]


async def forget_events(connection: TenantWrite, tenant_id: int, older_than: timedelta, limit: int) -> None:
    """Delete up to `limit` event ids of the tenant older than `older_than`; sources no longer repeat such events."""
    await connection.execute(sql("forget_events"), older_than, limit, tenant_id)

"""What comes from event sources: one function per statement of sql/sources.sql."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

import asyncpg

from horai.db.catalog import sql
from horai.db.pool import Connection
from horai.features.events.change import Change, Effect

BODY_KEPT = 64 * 1024


Event: TypeAlias = tuple[int, str]
"""An event as a job knows it: the job's id, and its own within its source."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What became of an event; `instance_id` is None where it concerned none."""

    effect: Effect
    instance_id: int | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A message that cannot take effect, as it came."""

    place: str
    subject: str
    headers: Mapping[str, str]
    body: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class Parked:
    """A message that was put aside. Only its beginning is kept when it is long."""

    id: int
    source: str
    place: str
    subject: str
    headers: Mapping[str, str]
    body: bytes
    size: int
    reason: str
    at: datetime

    @property
    def is_whole(self) -> bool:
        """Whether it could be read once more."""
        return len(self.body) == self.size


async def wait_briefly(connection: Connection, patience: timedelta) -> None:
    """From here on this transaction waits no longer than this for any lock."""
    await connection.execute(sql("wait_briefly"), str(int(patience.total_seconds() * 1000)))


async def take_events(connection: Connection, source: str, events: Mapping[Event, Change]) -> set[Event]:
    """Those that are new; they are taken when the caller's transaction commits."""
    jobs, ids = [job_id for job_id, _ in events], [event_id for _, event_id in events]
    times, versions = [c.occurred_at for c in events.values()], [c.version for c in events.values()]
    return {(row[0], row[1]) for row in await connection.fetch(sql("take_events"), source, jobs, ids, times, versions)}


async def bind_events(connection: Connection, source: str, bound: Mapping[Event, Bound]) -> None:
    """Remembers what became of the events this transaction has taken."""
    jobs, ids = [job_id for job_id, _ in bound], [event_id for _, event_id in bound]
    effects, instances = [one.effect.value for one in bound.values()], [one.instance_id for one in bound.values()]
    await connection.execute(sql("bind_events"), source, jobs, ids, effects, instances)


async def park_events(connection: Connection, tenant_id: int, source: str, unreadable: Sequence[Unreadable]) -> None:
    """Puts messages aside, each once."""
    await connection.execute(
        sql("park_events"),
        tenant_id,
        source,
        [_kept(one.place) for one in unreadable],
        [_kept(one.subject) for one in unreadable],
        [json.dumps({_kept(name): _kept(value) for name, value in one.headers.items()}) for one in unreadable],
        [one.body[:BODY_KEPT] for one in unreadable],
        [len(one.body) for one in unreadable],
        [_kept(one.reason) for one in unreadable],
    )


def _kept(text: str) -> str:
    """What PostgreSQL can hold as text, whatever it was that could not be read."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")[:2_000]


async def parked_events(
    connection: Connection, tenant_id: int, source: str | None, after: int, limit: int
) -> list[Parked]:
    """A page of what was put aside, oldest first."""
    return [_parked(row) for row in await connection.fetch(sql("parked_events"), tenant_id, after, source, limit)]


async def parked_event(connection: Connection, tenant_id: int, parked_id: int) -> Parked | None:
    """One message that was put aside."""
    row = await connection.fetchrow(sql("parked_event"), tenant_id, parked_id)
    return None if row is None else _parked(row)


def _parked(row: asyncpg.Record) -> Parked:
    id_, source, place, subject, headers, *rest = row
    return Parked(id_, source, place, subject, json.loads(headers), *rest)


async def drop_parked(connection: Connection, tenant_id: int, ids: Sequence[int]) -> list[Parked]:
    """Lets go of what was put aside; those that were."""
    return [_parked(row) for row in await connection.fetch(sql("drop_parked"), tenant_id, list(ids))]


async def forget_events(connection: Connection, older_than: timedelta, limit: int) -> None:
    """Drops up to `limit` ids of events that nobody will repeat any more."""
    await connection.execute(sql("forget_events"), older_than, limit)

"""Sinks: one function per statement of store.sql."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import asyncpg

from horai.db.catalog import sql
from horai.db.pool import Platform, TenantRead, TenantWrite


class SinkKind(StrEnum):
    """The kinds of receivers."""

    WEBHOOK = "webhook"
    NATS = "nats"
    KAFKA = "kafka"
    LOG = "log"


class SinkStatus(StrEnum):
    """ACTIVE: events are delivered. PARKED: deliveries fail and are tried once a minute. PAUSED: nothing is sent."""

    ACTIVE = "ACTIVE"
    PARKED = "PARKED"
    PAUSED = "PAUSED"


@dataclass(frozen=True, slots=True)
class SinkRow:
    """A stored sink. `place` holds its address as it is stored, with sealed secrets."""

    id: int
    tenant_id: int
    name: str
    kind: SinkKind
    place: Mapping[str, Any]
    types: Sequence[str] | None
    batch: int
    position: int
    status: SinkStatus
    delivered: int
    delivered_at: datetime | None
    failures: int
    failing_since: datetime | None
    last_error: str | None
    next_try: datetime | None
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """A sink as a user defines it."""

    kind: SinkKind
    place: Mapping[str, Any]
    types: Sequence[str] | None
    batch: int


@dataclass(frozen=True, slots=True)
class ServedSink:
    """A sink to deliver to. `has_more`: there may be events for it."""

    row: SinkRow
    tenant: str
    has_more: bool


@dataclass(frozen=True, slots=True)
class SinkLag:
    """The events that a sink has not got, at most 10,000, and the age of the oldest in seconds."""

    events: int = 0
    age: float = 0.0


def _sink(row: asyncpg.Record) -> SinkRow:
    known: dict[str, Any] = {name: row[name] for name in SinkRow.__slots__}
    known |= {
        "kind": SinkKind(row["kind"]),
        "place": json.loads(row["place"]),
        "status": SinkStatus(row["status"]),
    }
    return SinkRow(**known)


def _found(row: asyncpg.Record | None) -> SinkRow | None:
    return None if row is None else _sink(row)


async def list_sinks(connection: TenantRead, tenant_id: int, after: str, limit: int) -> list[SinkRow]:
    """Return a page of the tenant's sinks by name."""
    return [_sink(row) for row in await connection.fetch(sql("list_sinks"), tenant_id, after, limit)]


async def find_sink(connection: TenantRead, tenant_id: int, name: str) -> SinkRow | None:
    """Return the sink of this name."""
    return _found(await connection.fetchrow(sql("find_sink"), tenant_id, name))


async def lock_sink(connection: TenantWrite, tenant_id: int, name: str) -> SinkRow | None:
    """Lock the sink of this name until commit."""
    return _found(await connection.fetchrow(sql("lock_sink"), tenant_id, name))


async def count_sinks(connection: TenantRead, tenant_id: int) -> int:
    """Return how many sinks the tenant has."""
    return await connection.fetchval(sql("count_sinks"), tenant_id)


async def insert_sink(
    connection: TenantWrite, tenant_id: int, name: str, spec: SinkSpec, position: int
) -> SinkRow | None:
    """Insert a sink that begins after `position`. Return None if the name is taken."""
    place = json.dumps(spec.place, ensure_ascii=False)
    return _found(
        await connection.fetchrow(
            sql("insert_sink"), tenant_id, name, spec.kind, place, spec.types, spec.batch, position
        )
    )


async def change_sink(connection: TenantWrite, tenant_id: int, name: str, spec: SinkSpec) -> SinkRow:
    """Replace the definition of a sink that the caller has locked. Its position stays."""
    place = json.dumps(spec.place, ensure_ascii=False)
    row = await connection.fetchrow(sql("change_sink"), tenant_id, name, spec.kind, place, spec.types, spec.batch)
    assert row is not None  # noqa: S101 — locked by the caller
    return _sink(row)


async def set_sink_status(connection: TenantWrite, tenant_id: int, name: str, status: SinkStatus) -> SinkRow:
    """Pause or resume a sink that the caller has locked."""
    row = await connection.fetchrow(sql("set_sink_status"), tenant_id, name, status)
    assert row is not None  # noqa: S101 — locked by the caller
    return _sink(row)


async def rewind_sink(connection: TenantWrite, tenant_id: int, name: str, since: datetime) -> int:
    """Move a sink back to the first event since a time. Return how many events it gets again."""
    return await connection.fetchval(sql("rewind_sink"), tenant_id, name, since)


async def delete_sink(connection: TenantWrite, tenant_id: int, name: str) -> bool:
    """Delete a sink. Return whether there was one."""
    return await connection.fetchval(sql("delete_sink"), tenant_id, name) is not None


async def lags_of_sinks(connection: TenantRead, tenant_id: int, sinks: Sequence[int]) -> dict[int, SinkLag]:
    """Return how far sinks are behind, by id."""
    rows = await connection.fetch(sql("lags_of_sinks"), tenant_id, sinks)
    return {row["id"]: SinkLag(row["events"], row["age"]) for row in rows}


async def sinks_to_serve(connection: Platform) -> list[ServedSink]:
    """Return the sinks of all tenants that are not paused."""
    return [
        ServedSink(_sink(row), row["tenant"], row["has_more"]) for row in await connection.fetch(sql("sinks_to_serve"))
    ]


async def sink_delivered(connection: Platform, sink: SinkRow, position: int, events: int) -> SinkStatus | None:
    """Record that a sink has the events up to `position`. Return its status before; None if it was moved or paused meanwhile."""
    return _status(await connection.fetchval(sql("sink_delivered"), sink.id, sink.position, position, events))


async def sink_failed(
    connection: Platform, sink: SinkRow, error: str, pause: timedelta, parked_after: timedelta, *, is_final: bool
) -> tuple[SinkStatus, SinkStatus] | None:
    """Record a failure. Return the status before and after; None if the sink was moved or paused meanwhile."""
    row = await connection.fetchrow(sql("sink_failed"), sink.id, sink.position, error, pause, is_final, parked_after)
    return None if row is None else (SinkStatus(row["before"]), SinkStatus(row["after"]))


def _status(text: str | None) -> SinkStatus | None:
    return None if text is None else SinkStatus(text)

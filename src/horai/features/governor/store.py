"""The governor in the database: one function per statement of store.sql."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import TypeAdapter

from horai.core.controls import Controls, GovernorMode
from horai.core.health import Reading, merged, reading_from
from horai.db.catalog import sql
from horai.db.controls import GovernedRate
from horai.db.pool import AnyRead, Platform
from horai.features.governor.rules import GovernorState, ModeChange, Thresholds

_STATE = TypeAdapter(GovernorState)
_THRESHOLDS = TypeAdapter(Thresholds)


@dataclass(frozen=True, slots=True)
class Governor:
    """The stored governor, with the merged health of all live nodes."""

    version: int
    thresholds: Thresholds
    state: GovernorState
    now: datetime
    reading: Reading


@dataclass(frozen=True, slots=True)
class ModeChangeRow:
    """An entry into or an exit from a mode."""

    id: int
    at: datetime
    mode: GovernorMode
    level: int
    is_dry_run: bool
    cause: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TenantHold:
    """A hold that a tenant puts on itself."""

    kind: str
    note: str | None
    actor: str
    created_at: datetime
    expires_at: datetime | None


async def governor_now(connection: Platform) -> Governor:
    """Return the governor, the database time and the merged health of all live nodes."""
    row = await connection.fetchrow(sql("governor_now"))
    assert row is not None  # noqa: S101 — the migration inserts the row
    readings = [reading_from(json.dumps(vitals), name) for name, vitals in json.loads(row["readings"])]
    return Governor(
        row["version"],
        _THRESHOLDS.validate_json(row["thresholds"]),
        _STATE.validate_json(row["memory"]),
        row["now"],
        merged(readings),
    )


async def lock_governor(connection: Platform) -> None:
    """Lock the governor until the end of the transaction. Read it afterwards."""
    await connection.fetchval(sql("lock_governor"))


async def write_governor(
    connection: Platform, version: int, thresholds: Thresholds, state: GovernorState, controls: Controls
) -> int | None:
    """Write the governor if it still has this version, and return the new one. Every process obeys it after the commit."""
    for rate, per_second in ((GovernedRate.LOW, state.low_rate), (GovernedRate.RETRIES, state.retry_rate)):
        await connection.execute(sql("set_governed_rate"), rate, per_second)
    documents = _THRESHOLDS.dump_json(thresholds).decode(), _STATE.dump_json(state).decode()
    row = await connection.fetchrow(sql("write_governor"), version, *documents, json.dumps(controls.document()))
    return None if row is None else row["version"]


async def release_retries(connection: Platform, limit: int) -> int:
    """Make up to `limit` retries due that were moved to a later time. Return their number."""
    return await connection.fetchval(sql("release_retries"), limit)


async def insert_mode_changes(connection: Platform, changes: Sequence[ModeChange]) -> None:
    """Add changes of modes to the history."""
    await connection.execute(
        sql("insert_mode_changes"),
        [change.mode for change in changes],
        [change.level for change in changes],
        [change.is_dry_run for change in changes],
        [json.dumps(change.cause) for change in changes],
    )


async def list_mode_changes(connection: Platform, before: int | None, limit: int) -> list[ModeChangeRow]:
    """Return changes of modes, newest first."""
    rows = await connection.fetch(sql("list_mode_changes"), before, limit)
    return [
        ModeChangeRow(
            row["id"], row["at"], GovernorMode(row["mode"]), row["level"], row["is_dry_run"], json.loads(row["cause"])
        )
        for row in rows
    ]


async def forget_mode_changes(connection: Platform, keep: timedelta) -> None:
    """Delete changes of modes that are older than `keep`."""
    await connection.execute(sql("forget_mode_changes"), keep)


async def hold_every_tenant(connection: Platform) -> None:
    """Lock every tenant, and wait for claims under way in all queues."""
    await connection.execute(sql("hold_every_tenant"))
    await connection.execute(sql("shut_every_queue"))


async def hold_every_queue(connection: Platform) -> list[int]:
    """Hold or release the queues of all tenants, as the holds on their dispatch say; return those that changed."""
    return [row["id"] for row in await connection.fetch(sql("hold_every_queue"))]


async def put_tenant_hold(
    connection: Platform, tenant_id: int, kind: str, actor: str, note: str | None, lasts: timedelta | None
) -> TenantHold:
    """Put a hold on a tenant, or replace it."""
    row = await connection.fetchrow(sql("put_tenant_hold"), tenant_id, kind, note, actor, lasts)
    assert row is not None  # noqa: S101 — an upsert with RETURNING always returns a row
    return TenantHold(row["kind"], row["note"], row["actor"], row["created_at"], row["expires_at"])


async def delete_tenant_hold(connection: Platform, tenant_id: int, kind: str) -> bool:
    """Remove a hold; return whether there was one."""
    return await connection.fetchrow(sql("delete_tenant_hold"), tenant_id, kind) is not None


async def tenant_holds(connection: AnyRead, tenant_id: int) -> list[TenantHold]:
    """Return the holds of a tenant that have not expired."""
    return [TenantHold(*row.values()) for row in await connection.fetch(sql("tenant_holds"), tenant_id)]

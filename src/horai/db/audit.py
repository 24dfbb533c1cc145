"""The rows of the audit log: one function per statement of sql/audit.sql."""

import json
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from horai.core.actor import Actor
from horai.core.audit import AuditEntry
from horai.db.catalog import sql
from horai.db.pool import AnyWrite, Platform


async def insert_audit(connection: AnyWrite, tenant_id: int | None, actor: Actor, entry: AuditEntry) -> None:
    """Add a row in the caller's transaction. A row without a tenant concerns the platform."""
    await connection.execute(
        sql("insert_audit"),
        tenant_id,
        actor.kind,
        actor.id,
        actor.name,
        actor.role,
        actor.address,
        actor.request_id,
        entry.verb,
        entry.object_kind,
        entry.object_id,
        entry.object_name,
        json_of(entry.before),
        json_of(entry.after),
        json_of(entry.counts),
    )


async def continue_audit(connection: Platform) -> int:
    """Move the order of the audit log on after a restore from a dump. Return by how many transactions; usually 0."""
    return await connection.fetchval(sql("continue_audit"))


def json_of(fields: Mapping[str, Any] | None) -> str | None:
    """Return values as the log stores them."""
    return None if fields is None else json.dumps(fields, ensure_ascii=False, separators=(",", ":"), default=str)


async def old_audit_months(connection: Platform, keep: timedelta) -> list[date]:
    """Return the months that ended at least `keep` ago and are not dropped, oldest first."""
    return [row["month"] for row in await connection.fetch(sql("old_audit_months"), keep)]


async def drop_audit_month(connection: Platform, month: date) -> int | None:
    """Drop a month and return the number of its rows. Return None, and keep it, if rows of it are not sealed."""
    return await connection.fetchval(sql("drop_audit_month"), month)

"""The audit of a write: a row in the transaction of the write."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from horai.core.actor import Actor
from horai.core.audit import AuditEntry, AuditVerb, changed_fields, masked
from horai.db import audit
from horai.db.pool import AnyWrite, TenantWrite
from horai.operations.scope import Scope


async def record(connection: AnyWrite, tenant_id: int | None, actor: Actor, entry: AuditEntry) -> None:
    """Add the entry to the log in the caller's transaction, with its values masked. It rolls back with the write.

    The statement notifies the sealer, which hears of the row after the commit.
    """
    before = None if entry.before is None else masked(entry.before)
    after = None if entry.after is None else masked(entry.after)
    await audit.insert_audit(connection, tenant_id, actor, replace(entry, before=before, after=after))


async def record_write(
    connection: TenantWrite,
    scope: Scope,
    verb: AuditVerb,
    object_id: int | str,
    name: str,
    after: Mapping[str, Any] | None = None,
    counts: Mapping[str, int] | None = None,
) -> None:
    """Record a write of the caller. The first word of the verb is the kind of the object."""
    kind = verb.partition(".")[0]
    entry = AuditEntry(verb, kind, str(object_id), name, after=after, counts=counts)
    await record(connection, scope.tenant_id, scope.actor, entry)


async def record_change(
    connection: TenantWrite,
    scope: Scope,
    verb: AuditVerb,
    object_id: int | str,
    name: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> None:
    """Record a change of the caller, with the fields that differ."""
    old, new = changed_fields(before, after)
    entry = AuditEntry(verb, verb.partition(".")[0], str(object_id), name, old, new)
    await record(connection, scope.tenant_id, scope.actor, entry)

"""Operations of the platform on tenants: create, change, pause, resume, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from horai.core.audit import AuditEntry, AuditVerb, changed_fields
from horai.core.errors import Conflict, Duplicate, Invalid, NotFound
from horai.core.quotas import MOST_WEIGHT, Quotas, amended_quotas
from horai.core.retention import KeepTimes, amended_keep_times
from horai.core.wakes import EverywhereWake, QueueWake
from horai.db import queues as stored_queues
from horai.db import quotas as stored_quotas
from horai.db import signing_secrets, tenants
from horai.db.pool import AnyRead, Platform, retrying
from horai.db.quotas import TenantUsage
from horai.db.tenants import TenantRow, TenantStatus
from horai.operations import audit
from horai.operations.scope import AnyScope, PlatformScope, require_version
from horai.operations.signing_secrets import sealed_signing_secret
from horai.text import Hint, Refused, Wrong


@dataclass(frozen=True, slots=True)
class TenantSettings:
    """A tenant with its quotas, their use and its retention."""

    row: TenantRow
    quotas: Quotas
    usage: TenantUsage
    keep: KeepTimes


@dataclass(frozen=True, slots=True)
class TenantChange:
    """The content of a PATCH: a weight, and the quotas and times to change by their public names; None removes one."""

    weight: int | None = None
    quotas: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keep: Mapping[str, Any] = field(default_factory=dict[str, Any])
    if_version: int | None = None


async def create_tenant(scope: PlatformScope, name: str) -> TenantRow:
    """Create a tenant with its signing secret. It has no key yet."""
    async with scope.write() as connection:
        row = await tenants.insert_tenant(connection, name)
        known = None if row is not None else await tenants.find_tenant(connection, name)
        if row is not None:
            if (secret := await sealed_signing_secret(connection, scope.keyring, row.id)) is not None:
                await signing_secrets.replace_signing_secret(connection, row.id, secret)
            await _record(connection, scope, AuditVerb.TENANT_CREATE, row)
    if row is not None:
        return row
    if known is not None and known.status is TenantStatus.DELETING:
        raise Duplicate(Refused.TENANT_DELETING(name=name), Hint.WAIT_FOR_DELETION())
    raise Duplicate(Refused.TENANT_NAME_TAKEN(name=name), Hint.CHOOSE_ANOTHER_NAME())


async def list_tenants(scope: PlatformScope, after: str, limit: int) -> Sequence[TenantRow]:
    """Return a page of tenants, by name."""
    async with scope.read() as connection:
        return await tenants.list_tenants(connection, after, limit)


async def read_tenant(scope: AnyScope, name: str) -> TenantSettings:
    """Return a tenant with its quotas and their use. Raise `NotFound` if there is none of this name."""
    async with scope.read() as connection:
        row = None if "\x00" in name else await tenants.find_tenant(connection, name)
        if row is None:
            raise no_tenant(name)
        return await settings_of(connection, row)


async def settings_of(connection: AnyRead, row: TenantRow) -> TenantSettings:
    """Return the tenant with its quotas, their use and its retention."""
    quotas = await stored_quotas.read_quotas(connection, row.id)
    keep = await tenants.read_keep_times(connection, row.id)
    return TenantSettings(row, quotas, await stored_quotas.usage_of(connection, row.id), keep)


async def change_tenant(scope: PlatformScope, name: str, change: TenantChange) -> TenantSettings:
    """Change the weight, the quotas and the retention. Writes that began before may still use the former quotas.

    A change of `concurrency` holds for every claim from the commit on, and instances that run then count. A shorter
    retention takes effect within an hour.
    """
    if change.weight is not None and not 1 <= change.weight <= MOST_WEIGHT:
        raise Invalid.field("weight", Wrong.NOT_BETWEEN(low=1, high=MOST_WEIGHT))

    async def attempt() -> tuple[TenantSettings, int | None]:
        async with scope.write() as connection:
            before = await lock_tenant(connection, name)
            require_version(f"tenant {name!r}", before.version, change.if_version)
            known = await stored_quotas.read_quotas(connection, before.id)
            quotas = amended_quotas(known, change.quotas)
            kept = await tenants.read_keep_times(connection, before.id)
            keep = amended_keep_times(kept, change.keep)
            weight = before.weight if change.weight is None else change.weight
            row = await tenants.write_tenant(connection, before.id, weight, is_paused=before.paused_at is not None)
            if quotas != known:
                await stored_quotas.write_quotas(connection, row.id, quotas)
            if keep != kept:
                await tenants.write_keep_times(connection, row.id, keep)
            pool_id = None
            if quotas.concurrency != known.concurrency:
                await tenants.shut_queues(connection, row.id)
                pool_id = await stored_queues.set_pool(connection, row.id, quotas.concurrency)
            old = {"weight": before.weight, **known.document(), **kept.document()}
            new = {"weight": weight, **quotas.document(), **keep.document()}
            await _record(connection, scope, AuditVerb.TENANT_CHANGE, row, old, new)
            return await settings_of(connection, row), pool_id

    settings, pool_id = await retrying(attempt)
    if pool_id is not None:
        scope.wakeups.publish(QueueWake(pool_id))
    scope.wakeups.publish(EverywhereWake())
    return settings


async def pause_tenant(scope: PlatformScope, name: str, note: str | None = None) -> TenantSettings:
    """Hold all dispatch of the tenant: no instance of it starts, those that run finish. Its keys go on working."""
    return await _hold(scope, name, AuditVerb.TENANT_PAUSE, note, is_held=True)


async def resume_tenant(scope: PlatformScope, name: str, note: str | None = None) -> TenantSettings:
    """Let the instances of the tenant start again. Queues that the tenant has paused itself stay paused."""
    return await _hold(scope, name, AuditVerb.TENANT_RESUME, note, is_held=False)


async def _hold(scope: PlatformScope, name: str, verb: AuditVerb, note: str | None, *, is_held: bool) -> TenantSettings:
    async def attempt() -> tuple[TenantSettings, list[int]]:
        async with scope.write() as connection:
            before = await lock_tenant(connection, name)
            if is_held == (before.paused_at is not None):
                return await settings_of(connection, before), []
            row = await tenants.write_tenant(connection, before.id, before.weight, is_paused=is_held)
            queues = await tenants.hold_queues(connection, row.id)
            after = {"status": row.status} | ({} if note is None else {"note": note})
            await _record(connection, scope, verb, row, {"status": before.status}, after)
            return await settings_of(connection, row), queues

    settings, queues = await retrying(attempt)
    for queue_id in queues:
        scope.wakeups.publish(QueueWake(queue_id))
    return settings


async def delete_tenant(scope: PlatformScope, name: str, confirm: str | None) -> TenantSettings:
    """Delete a paused tenant: its keys are revoked at once, its data goes in batches, and the audit log stays.

    A second request finds the deletion under way and changes nothing.
    """
    async with scope.write() as connection:
        row = None if "\x00" in name else await tenants.lock_tenant(connection, name)
        if row is None:
            raise no_tenant(name)
        if row.status is not TenantStatus.DELETING:
            _require_deletable(row, confirm)
            row = await tenants.mark_deleting(connection, row.id)
            await _record(connection, scope, AuditVerb.TENANT_DELETE, row)
        settings = await settings_of(connection, row)
    scope.wakeups.publish(EverywhereWake())
    return settings


def _require_deletable(row: TenantRow, confirm: str | None) -> None:
    if row.name == "default":
        raise Conflict(Refused.TENANT_DEFAULT_STAYS())
    if row.status is not TenantStatus.PAUSED:
        raise Conflict(Refused.TENANT_NOT_PAUSED(name=row.name), Hint.PAUSE_TENANT_FIRST(name=row.name))
    if confirm != row.name:
        raise Invalid(Refused.TENANT_NOT_CONFIRMED(name=row.name), Hint.CONFIRM_NAME(name=row.name))


async def lock_tenant(connection: Platform, name: str) -> TenantRow:
    """Lock a tenant for a change. Raise `NotFound`, or `Conflict` if it is being deleted."""
    row = None if "\x00" in name else await tenants.lock_tenant(connection, name)
    if row is None:
        raise no_tenant(name)
    if row.status is TenantStatus.DELETING:
        raise Conflict(Refused.TENANT_DELETING(name=name), Hint.WAIT_FOR_DELETION())
    return row


def no_tenant(name: str) -> NotFound:
    """Return the error for a name that no tenant has."""
    return NotFound(Refused.NO_TENANT(name=name[:64]), Hint.LISTED_AT(path="/api/v1/tenants"))


async def _record(
    connection: Platform,
    scope: PlatformScope,
    verb: AuditVerb,
    row: TenantRow,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Record a write of the platform, with the fields that differ."""
    old, new = changed_fields(before, after) if before is not None and after is not None else (None, None)
    await audit.record(connection, None, scope.actor, AuditEntry(verb, "tenant", str(row.id), row.name, old, new))

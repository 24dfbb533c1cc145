"""Operations on group mappings: the roles that groups of the identity provider have."""

from collections.abc import Sequence
from typing import Any

from horai.core.audit import AuditEntry, AuditVerb
from horai.core.digits import number_in
from horai.core.errors import Duplicate, Invalid, NotFound
from horai.core.roles import AccessRole
from horai.db import tenants
from horai.db.pool import Platform
from horai.db.tenants import TenantRow
from horai.features.oidc import store
from horai.features.oidc.store import GroupMapping
from horai.operations import audit
from horai.operations.scope import PlatformScope
from horai.text import Hint, Refused, Wrong


async def create_mapping(scope: PlatformScope, group: str, tenant: str | None, role: AccessRole) -> GroupMapping:
    """Give a group a role in a tenant, or that of the platform. Users who are signed in have it within a second."""
    async with scope.write() as connection:
        row = await _tenant(connection, tenant, role)
        tenant_id = None if row is None else row.id
        actor = scope.actor
        by = f"{actor.kind}:{actor.id}" if actor.id else str(actor.kind)
        mapping = await store.insert_group_mapping(connection, group, tenant_id, role, by)
        if mapping is None:
            raise await _taken(connection, group, tenant_id)
        entry = AuditEntry(AuditVerb.GROUP_CREATE, "group", str(mapping.id), group, after=_fields(mapping))
        await audit.record(connection, tenant_id, actor, entry)
    return mapping


async def list_mappings(scope: PlatformScope, before: int, limit: int) -> Sequence[GroupMapping]:
    """Return a page of mappings, newest first."""
    async with scope.read() as connection:
        return await store.list_group_mappings(connection, before, limit)


async def delete_mapping(scope: PlatformScope, mapping_id: str) -> GroupMapping:
    """Take the role from the group. Sessions that rest on it end within a second, on every node."""
    number = number_in(mapping_id) or 0
    async with scope.write() as connection:
        found = await store.delete_group_mapping(connection, number)
        if found is not None:
            mapping, tenant_id = found
            entry = AuditEntry(AuditVerb.GROUP_DELETE, "group", str(mapping.id), mapping.name, before=_fields(mapping))
            await audit.record(connection, tenant_id, scope.actor, entry)
            return mapping
    raise NotFound(Refused.NO_GROUP_MAPPING(mapping=mapping_id[:64]), Hint.LISTED_AT(path="/api/v1/groups"))


async def _tenant(connection: Platform, name: str | None, role: AccessRole) -> TenantRow | None:
    if role is AccessRole.PLATFORM_ADMIN:
        if name is not None:
            raise Invalid.field("tenant", Wrong.PLATFORM_KEY_WITH_TENANT())
        return None
    if name is None:
        raise Invalid.field("tenant", Wrong.GROUP_WITHOUT_TENANT())
    tenant = await tenants.find_tenant(connection, name)
    if tenant is None or tenant.deleting_at is not None:
        raise NotFound(Refused.NO_TENANT(name=name), Hint.LISTED_AT(path="/api/v1/tenants"))
    return tenant


async def _taken(connection: Platform, group: str, tenant_id: int | None) -> Duplicate:
    known = await store.find_group_mapping(connection, group, tenant_id)
    if known is None:  # deleted since: a repeat of the request succeeds
        return Duplicate(Refused.GROUP_MAPPED(group=group, role=""), Hint.READ_AGAIN())
    mapping = str(known.id)
    return Duplicate(
        Refused.GROUP_MAPPED(group=group, role=known.role),
        Hint.DELETE_MAPPING(mapping=mapping),
        extra={"mappingId": mapping},
    )


def _fields(mapping: GroupMapping) -> dict[str, Any]:
    return {"group": mapping.name, "tenant": mapping.tenant, "role": str(mapping.role)}

"""Roles: what the holder of a key may do, as one table."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class AccessRole(StrEnum):
    """The role of a key. A route names the lowest role that it serves."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"
    PLATFORM_ADMIN = "platform-admin"


SERVES: Final[dict[AccessRole, frozenset[AccessRole]]] = {
    AccessRole.VIEWER: frozenset({AccessRole.VIEWER}),
    AccessRole.OPERATOR: frozenset({AccessRole.VIEWER, AccessRole.OPERATOR}),
    AccessRole.ADMIN: frozenset({AccessRole.VIEWER, AccessRole.OPERATOR, AccessRole.ADMIN}),
    AccessRole.WORKER: frozenset({AccessRole.WORKER}),
    AccessRole.PLATFORM_ADMIN: frozenset({AccessRole.PLATFORM_ADMIN}),
}
"""The roles that each role includes.

| role | may |
|---|---|
| viewer | read the tenant's jobs, instances and reports |
| operator | also act: put, trigger, cancel, pause, resume, backfill, replay, discard |
| admin | also define: jobs, queues, workflows, reconcilers, secrets and keys of the tenant |
| worker | run instances, nothing else |
| platform-admin | create tenants and their keys, read nodes and shards; belongs to no tenant and reads no tenant's data |
"""


def may_call(role: AccessRole, needed: Collection[AccessRole]) -> bool:
    """Return whether the holder of `role` may call a route that serves the roles `needed` and those that include one."""
    return not SERVES[role].isdisjoint(needed)


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """A role in a tenant; the role platform-admin has none."""

    tenant_id: int | None
    tenant: str | None
    role: AccessRole


def best_grants(grants: Iterable[RoleGrant]) -> tuple[RoleGrant, ...]:
    """Return one grant for each tenant, with the role that includes the most, by name; that of the platform is last."""
    best: dict[int | None, RoleGrant] = {}
    for grant in grants:
        known = best.get(grant.tenant_id)
        if known is None or SERVES[known.role] < SERVES[grant.role]:
            best[grant.tenant_id] = grant
    return tuple(sorted(best.values(), key=lambda grant: (grant.tenant is None, grant.tenant or "")))

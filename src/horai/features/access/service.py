"""Operations on keys and sessions. Only the creator of a key sees its text, once."""

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from horai.api.authentication import Caller, unauthenticated
from horai.api.session_cookie import SESSION
from horai.core.access_keys import hash_of, new_key
from horai.core.actor import Actor, ActorKind
from horai.core.audit import AuditEntry, AuditVerb
from horai.core.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from horai.core.roles import AccessRole
from horai.db import access, nodes, tenants, user_sessions
from horai.db.access import KeyRow, KeysOf, KeyWrite
from horai.db.pool import Platform, PlatformConnections, transaction
from horai.db.tenants import TenantRow
from horai.operations import audit
from horai.operations.process_actor import process_actor
from horai.operations.scope import PlatformScope
from horai.text import Hint, Refused, Wrong


@dataclass(frozen=True, slots=True)
class KeyWish:
    """The fields that the creator of a key gives."""

    role: AccessRole
    tenant: str | None = None
    name: str | None = None
    networks: Sequence[str] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A new key with its text, which is not in its repr."""

    text: str
    row: KeyRow

    def __repr__(self) -> str:
        return f"ShownKey(id={self.row.id!r})"


async def create_key(scope: PlatformScope, caller: Caller, wish: KeyWish) -> ShownKey:
    """Create a key. The first one closes the server to requests without a key, in the same transaction."""
    networks = _networks(wish.networks)
    async with scope.write() as connection:
        tenant = await _tenant_of(connection, caller, wish)
        await _require_future(connection, wish.expires_at)
        is_first = await access.mark_keyed(connection)
        if caller.is_keyless and not is_first:
            raise unauthenticated()  # another request has created the first key since this one was let in
        return await _insert(connection, tenant, networks, wish, caller.actor)


async def create_key_by_operator(connection: Platform, wish: KeyWish) -> ShownKey:
    """Create a key for the operator of the database, who needs no other key: the way back in when all are lost."""
    networks = _networks(wish.networks)
    async with connection.transaction():
        tenant = None if wish.role is AccessRole.PLATFORM_ADMIN else await _find(connection, wish.tenant or "default")
        await _require_future(connection, wish.expires_at)
        await access.mark_keyed(connection)
        return await _insert(connection, tenant, networks, wish, process_actor(ActorKind.SYSTEM))


async def first_keys(connection: Platform) -> list[ShownKey]:
    """Create the first keys of a server, of the platform and of the tenant `default`. Return none if it has keys."""
    async with connection.transaction():
        if not await access.mark_keyed(connection):
            return []
        roles = (AccessRole.PLATFORM_ADMIN, AccessRole.ADMIN)
        return [await create_key_by_operator(connection, KeyWish(role)) for role in roles]


async def _insert(
    connection: Platform, tenant: TenantRow | None, networks: Sequence[str], wish: KeyWish, actor: Actor
) -> ShownKey:
    key = new_key()
    by = f"{actor.kind}:{actor.id}" if actor.id else str(actor.kind)
    write = KeyWrite(
        key.id,
        hash_of(key.text),
        None if tenant is None else tenant.id,
        wish.role,
        wish.name or wish.role,
        networks,
        by,
        wish.expires_at,
    )
    row = await access.insert_key(connection, write)
    tenant_id = None if tenant is None else tenant.id
    await audit.record(
        connection, tenant_id, actor, AuditEntry(AuditVerb.KEY_CREATE, "key", key.id, row.name, after=_fields(row))
    )
    return ShownKey(key.text, row)


def _fields(key: KeyRow) -> dict[str, Any]:
    expires = None if key.expires_at is None else key.expires_at.isoformat()
    return {"role": str(key.role), "tenant": key.tenant, "networks": list(key.networks), "expiresAt": expires}


async def _tenant_of(connection: Platform, caller: Caller, wish: KeyWish) -> TenantRow | None:
    """Return the tenant of a new key, None for the platform. Raise `Forbidden` if the caller may not create it."""
    if caller.is_platform:
        if wish.role is AccessRole.PLATFORM_ADMIN:
            if wish.tenant is not None:
                raise Invalid.field("tenant", Wrong.PLATFORM_KEY_WITH_TENANT())
            return None
        name = wish.tenant or caller.tenant
        if name is None:
            raise Invalid.field("tenant", Wrong.TENANT_MISSING())
        return await _find(connection, name)
    if wish.role is AccessRole.PLATFORM_ADMIN or wish.tenant not in {None, caller.tenant}:
        raise Forbidden(
            Refused.KEY_OF_OTHER_TENANT(own=caller.tenant or ""), Hint.ASK_FOR_ROLE(needed="platform-admin")
        )
    return await _find(connection, caller.tenant or "")


async def _find(connection: Platform, name: str) -> TenantRow:
    tenant = await tenants.find_tenant(connection, name)
    if tenant is None or tenant.deleting_at is not None:
        raise NotFound(Refused.NO_TENANT(name=name), Hint.LISTED_AT(path="/api/v1/tenants"))
    return tenant


def _networks(given: Sequence[str]) -> list[str]:
    """Return the networks in their canonical text. Raise `Invalid` if one cannot be read or has host bits."""
    known, errors = list[str](), list[FieldError]()
    for number, text in enumerate(given):
        try:
            known.append(str(ipaddress.ip_network(text)))
        except ValueError:
            errors.append(FieldError(f"networks.{number}", Wrong.NOT_A_NETWORK()))
    if errors:
        raise Invalid.fields(errors)
    return known


async def _require_future(connection: Platform, expires_at: datetime | None) -> None:
    if expires_at is not None and expires_at <= await nodes.database_time(connection):
        raise Invalid.field("expiresAt", Wrong.IN_THE_PAST())


def keys_of(caller: Caller) -> KeysOf:
    """Return the keys that the caller may list and revoke: those of its tenant, or every key."""
    return KeysOf(caller.tenant_id, caller.is_platform)


async def list_keys(scope: PlatformScope, caller: Caller, before: int, limit: int) -> Sequence[KeyRow]:
    """Return a page of the keys that the caller may see, newest first."""
    async with scope.read() as connection:
        return await access.list_keys(connection, keys_of(caller), before, limit)


async def revoke_key(scope: PlatformScope, caller: Caller, key_id: str) -> KeyRow:
    """Revoke a key. Every node refuses it within a second, also in open streams and sessions."""
    async with scope.write() as connection:
        row = None if "\x00" in key_id else await access.revoke_key(connection, keys_of(caller), key_id)
        if row is not None:
            tenant = None if row.tenant is None else await tenants.find_tenant(connection, row.tenant)
            entry = AuditEntry(AuditVerb.KEY_REVOKE, "key", row.id, row.name)
            await audit.record(connection, None if tenant is None else tenant.id, caller.actor, entry)
    if row is None:
        raise NotFound(Refused.NO_ACCESS_KEY(key=key_id[:64]), Hint.LISTED_AT(path="/api/v1/keys"))
    return row


async def open_session(pool: PlatformConnections, key_id: str) -> str:
    """Open a session that stands for the key for 12 hours. Return its id, of which only the hash is stored."""
    session = secrets.token_urlsafe(32)
    async with transaction(pool) as connection:
        await access.insert_session(connection, hash_of(session), key_id, SESSION)
    return session


@dataclass(frozen=True, slots=True)
class SwitchedSession:
    """A session after a switch: its new id, which is not in its repr, its remaining seconds and its user."""

    session: str
    seconds_left: float
    caller: Caller

    def __repr__(self) -> str:
        return f"SwitchedSession(caller={self.caller!r})"


async def switch_tenant(pool: PlatformConnections, caller: Caller, session: str, tenant: str | None) -> SwitchedSession:
    """Move a user's session to another tenant, under a new id. It ends when the old one would have ended."""
    if caller.actor.kind is not ActorKind.USER:
        raise Conflict(Refused.KEY_HAS_ONE_TENANT(), Hint.SIGN_IN_AS_USER())
    grant = next((grant for grant in caller.grants if grant.tenant == tenant), None)
    if grant is None:
        raise Forbidden(Refused.NO_GRANT(tenant=tenant or "platform"), Hint.ASK_FOR_GROUP())
    moved = secrets.token_urlsafe(32)
    async with transaction(pool) as connection:
        left = await user_sessions.move_user_session(connection, hash_of(session), hash_of(moved), grant.tenant_id)
    if left is None:
        raise unauthenticated()
    actor = replace(caller.actor, role=grant.role)
    return SwitchedSession(
        moved, left, replace(caller, actor=actor, role=grant.role, tenant_id=grant.tenant_id, tenant=grant.tenant)
    )


async def end_session(pool: PlatformConnections, session: str) -> None:
    """End a session on every node."""
    async with transaction(pool) as connection:
        await access.delete_session(connection, hash_of(session))

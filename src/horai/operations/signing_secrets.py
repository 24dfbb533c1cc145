"""Operations that show and rotate the secret that signs a tenant's calls."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from horai.core.audit import AuditVerb
from horai.core.callbacks import new_signing_secret
from horai.core.encryption import EnvelopeBroken, Place
from horai.core.errors import Conflict, Invalid, KeyUnavailable
from horai.db import jobs, signing_secrets
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead
from horai.db.signing_secrets import SigningSecret
from horai.operations import audit
from horai.operations.keyring import Keyring
from horai.operations.scope import Scope
from horai.text import Hint, Refused, Wrong, told_by
from horai.time.durations import parse_duration

SIGNING_PLACE: Place = ("signing-secret",)
OVERLAP = timedelta(hours=24)
LONGEST_OVERLAP = timedelta(days=30)
MOST_IN_FORCE = 8
"""Each secret in force adds a signature of 47 bytes to the headers of every call."""


async def list_secrets(scope: Scope) -> Sequence[SigningSecret]:
    """Return the tenant's secrets in force, newest first."""
    async with scope.read() as connection:
        return await _listed(connection, scope)


async def secrets_in_force(connection: Platform, keyring: Keyring, tenant_id: int) -> list[str]:
    """Return the texts of a tenant's secrets in force, without those that cannot be opened."""
    found: list[str] = []
    for each in await signing_secrets.list_signing_secrets(connection, tenant_id):
        with suppress(KeyUnavailable, EnvelopeBroken):
            found.append(await _opened(connection, keyring, tenant_id, each.secret))
    return found


async def _listed(connection: TenantRead, scope: Scope) -> list[SigningSecret]:
    """Return the secrets in force with their texts. Raises `KeyUnavailable` if one cannot be opened."""
    stored = await signing_secrets.list_signing_secrets(connection, scope.tenant_id)
    return [
        replace(each, secret=await _opened(connection, scope.keyring, scope.tenant_id, each.secret)) for each in stored
    ]


async def _opened(connection: AnyRead, keyring: Keyring, tenant_id: int, stored: str) -> str:
    if not stored.startswith("{"):
        return stored
    return await keyring.open(connection, tenant_id, SIGNING_PLACE, json.loads(stored))


async def sealed_signing_secret(connection: AnyWrite, keyring: Keyring, tenant_id: int) -> str | None:
    """Return a new secret as it is stored, in an envelope. Return None without an encryption key."""
    if not keyring.is_on:
        return None
    return json.dumps(await keyring.seal(connection, tenant_id, SIGNING_PLACE, new_signing_secret()))


async def rotate(scope: Scope, expire_old: str | None) -> Sequence[SigningSecret]:
    """Create a new secret. The others keep signing beside it for `expire_old` (default 24 h)."""
    overlap = _overlap(expire_old)
    async with scope.write() as connection:
        await signing_secrets.lock_signing_secrets(connection, scope.tenant_id)
        known = await signing_secrets.list_signing_secrets(connection, scope.tenant_id)
        if overlap and len(known) >= MOST_IN_FORCE:
            raise Conflict(Refused.TOO_MANY_SECRETS(most=MOST_IN_FORCE), Hint.EXPIRE_OLD_SECRETS())
        fresh = await sealed_signing_secret(connection, scope.keyring, scope.tenant_id)
        await signing_secrets.rotate_signing_secret(connection, scope.tenant_id, overlap, fresh)
        made = await _listed(connection, scope)
        event = {"id": str(made[0].id), "inForce": len(made)}
        await jobs.insert_event(connection, scope.tenant_id, None, "SIGNING_SECRET_ROTATED", event)
        verb = AuditVerb.SIGNING_SECRET_ROTATE
        await audit.record_write(connection, scope, verb, made[0].id, "", {"inForce": len(made)})
    return made


def _overlap(expire_old: str | None) -> timedelta:
    if expire_old is None:
        return OVERLAP
    try:
        overlap = parse_duration(expire_old)
    except ValueError as error:
        raise Invalid.field("expireOld", told_by(error)) from error
    if overlap > LONGEST_OVERLAP:
        raise Invalid.field("expireOld", Wrong.LONGER_THAN(most=LONGEST_OVERLAP // timedelta(hours=1)))
    return overlap

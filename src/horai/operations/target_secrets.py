"""Secrets of targets and sources at rest: sealed before they are stored, opened where they are used.

The envelope is bound to the tenant, the name of the job or reconciler, and the origin of the address. A URL that is
changed in the database to lead to another host therefore gets no secret.
"""

import json
from collections.abc import Mapping
from typing import Any

from horai.core.encryption import Place
from horai.core.errors import FieldError, Invalid
from horai.core.masking import HIDDEN, SEALED, joined_secrets, origin_text, shown_target, split_secrets
from horai.db import secrets
from horai.db.pool import AnyRead, AnyWrite, TenantRead, TenantWrite
from horai.operations.keyring import Keyring
from horai.operations.scope import Scope
from horai.text import Hint, Wrong


def place_of_target(job: str, target: Mapping[str, Any]) -> Place:
    """Return the place of the secrets of a job's target."""
    return ("job", job, "target", origin_text(target))


def place_of_source(reconciler: str, source: Mapping[str, Any]) -> Place:
    """Return the place of the secrets of a reconciler's source."""
    return ("reconciler", reconciler, "source", origin_text(source))


def place_of_secret(name: str) -> Place:
    """Return the place of a named secret."""
    return ("secret", name)


async def sealed(
    connection: AnyWrite, keyring: Keyring, tenant_id: int, place: Place, target: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the document to store: as responses show it, with its secrets in an envelope. Without a key, unchanged."""
    shown, hidden = split_secrets(target)
    if not keyring.is_on or not hidden:
        return dict(target)
    text = json.dumps(hidden, ensure_ascii=False)
    return {**shown, SEALED: await keyring.seal(connection, tenant_id, place, text)}


async def opened(
    connection: AnyRead, keyring: Keyring, tenant_id: int, place: Place, stored: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a stored target or source with its secrets. Raises `KeyUnavailable` or `EnvelopeBroken`."""
    if (envelope := stored.get(SEALED)) is None:
        return dict(stored)
    return joined_secrets(stored, json.loads(await keyring.open(connection, tenant_id, place, envelope)))


async def kept_by(
    connection: TenantRead, scope: Scope, place: Place, stored: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the stored target or source with its secrets if `given` keeps one of them, as responses show it otherwise.

    So a change that gives every value again succeeds after the data keys were erased. Raises as `opened` does.
    """
    if HIDDEN not in json.dumps(given):
        return shown_target(stored)
    return await opened(connection, scope.keyring, scope.tenant_id, place, stored)


async def open_named(connection: TenantRead, scope: Scope, target: Mapping[str, Any]) -> None:
    """Open the named secrets of a target's headers, to learn whether it can be done. Raises as `opened` does."""
    headers: Mapping[str, Any] = target.get("headers") or {}
    names = {value["secret"] for value in headers.values() if not isinstance(value, str)}
    if not names:
        return
    for found in await secrets.secret_values(connection, [(scope.tenant_id, name) for name in names]):
        await scope.keyring.open(connection, scope.tenant_id, place_of_secret(found.name), found.value)


async def require_named(connection: TenantWrite, scope: Scope, named: Mapping[str, str]) -> None:
    """Lock the named secrets of headers until commit, so that they are not deleted meanwhile. Raise `Invalid` if one is missing."""
    if not named:
        return
    found = await secrets.share_secrets(connection, scope.tenant_id, set(named.values()))
    faults = [
        FieldError(f"target.headers.{header}", Wrong.NO_SECRET_NAMED(name=name))
        for header, name in named.items()
        if name not in found
    ]
    if faults:
        raise Invalid.fields(faults, Hint.CREATE_SECRET_FIRST())

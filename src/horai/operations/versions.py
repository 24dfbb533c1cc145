"""Versions of definitions: each change of a definition keeps one, in the transaction of the change."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec

from horai.db import definition_versions
from horai.db.definition_versions import VersionsOf
from horai.db.pool import TenantWrite
from horai.operations.scope import Scope

Kind = Literal["job", "workflow", "queue", "reconciler"]


@dataclass(frozen=True, slots=True)
class StoredDefinition:
    """A definition as it is stored now, without its secrets. `text` is its JSON; payloads are in it to the letter."""

    kind: Kind
    id: int
    name: str
    version: int
    updated_at: datetime
    declared_by: str | None
    text: str


def definition_text(document: Mapping[str, Any]) -> str:
    """Return a definition as JSON text. Payloads in it are `msgspec.Raw`."""
    return msgspec.json.encode(document).decode()


async def keep(
    connection: TenantWrite, scope: Scope, now: StoredDefinition, before: StoredDefinition | None = None
) -> None:
    """Keep a version of a definition that the caller has written in this transaction, and holds.

    Nothing is kept if only other things changed, such as a pause. `before` is kept as well if it is the first that is known.
    """
    of = VersionsOf(scope.tenant_id, now.kind, now.id)
    if before is not None:
        if before.text == now.text:
            return
        await definition_versions.keep_first_version(connection, of, before.version, before.updated_at, before.text)
    await definition_versions.keep_version(connection, of, now.version, now.updated_at, scope.actor, now.text)


async def forget(connection: TenantWrite, scope: Scope, kind: Kind, object_id: int) -> None:
    """Delete the versions of an object that is being deleted in this transaction."""
    await definition_versions.forget_versions(connection, VersionsOf(scope.tenant_id, kind, object_id))

"""The data keys of a database, reached without a server."""

import os
from collections.abc import Sequence
from typing import Any

from horai.cli.database import opened_database
from horai.cli.errors import BadUsage, CommandFailed
from horai.cli.node_flags import with_encryption_keys
from horai.core.actor import ActorKind
from horai.core.audit import AuditEntry, AuditVerb
from horai.core.settings import EngineSettings
from horai.db import data_keys, tenants
from horai.db.database_location import DatabaseLocation
from horai.db.pool import Platform
from horai.embedded.visit import directory_of
from horai.operations import audit
from horai.operations.keyring import Keyring, encryption_key_in, keyring_of
from horai.operations.process_actor import process_actor

PAGE = 500


def given_keyring(place: DatabaseLocation, file: str | None, command: str | None) -> Keyring:
    """Return the keyring of the given keys: of the file, the command, the variable, or beside the embedded database."""
    settings = with_encryption_keys(EngineSettings(), file, command, os.environ)
    if settings.encryption_keys or settings.encryption_key_file is not None or place.url is not None:
        return keyring_of(settings)
    return keyring_of(EngineSettings(encryption_key_file=encryption_key_in(directory_of(place))))


async def count_keys(place: DatabaseLocation, keyring: Keyring) -> list[dict[str, Any]]:
    """Count the data keys by the key that wraps them; given keys that wrap none are listed as well."""
    async with opened_database(place, may_create=False) as connection:
        return await _counts(connection, keyring.ids)


async def rotate_keys(place: DatabaseLocation, keyring: Keyring) -> tuple[int, list[dict[str, Any]]]:
    """Wrap all data keys again under the first key, in pages. Return how many there were, and the counts afterwards."""
    if not keyring.is_on:
        raise BadUsage(
            "No encryption key is given.",
            "Give --encryption-key-file or --encryption-key-command, or set HORAI_ENCRYPTION_KEY.",
        )
    async with opened_database(place, may_create=False) as connection:
        count = 0
        while wrapped := await _rewrap(connection, keyring):
            count += wrapped
        return count, await _counts(connection, keyring.ids)


async def _rewrap(connection: Platform, keyring: Keyring) -> int:
    """Wrap a page of data keys again, with an audit row. Return how many there were."""
    async with connection.transaction():
        if wrapped := await keyring.rewrap(connection, PAGE):
            entry = AuditEntry(AuditVerb.KEYRING_ROTATE, "keyring", keyring.ids[0], "", counts={"dataKeys": wrapped})
            await audit.record(connection, None, process_actor(ActorKind.SYSTEM), entry)
        return wrapped


async def _counts(connection: Platform, given: Sequence[str]) -> list[dict[str, Any]]:
    found = {one.kek: one for one in await data_keys.count_data_keys(connection)}
    return [
        {
            "key": kek,
            "dataKeys": found[kek].keys if kek in found else 0,
            "since": found[kek].since.isoformat() if kek in found else None,
            "isGiven": kek in given,
        }
        for kek in dict.fromkeys([*given, *found])
    ]


async def erase_keys(place: DatabaseLocation, name: str) -> int:
    """Delete all data keys of a tenant, with an audit row. Return how many there were."""
    async with opened_database(place, may_create=False) as connection, connection.transaction():
        tenant = await tenants.find_tenant(connection, name)
        if tenant is None:
            raise CommandFailed(f"There is no tenant {name!r}.", "`horai tenants list` lists them.")
        count = await data_keys.erase_data_keys(connection, tenant.id)
        entry = AuditEntry(AuditVerb.KEYRING_ERASE, "keyring", name, name, counts={"dataKeys": count})
        await audit.record(connection, tenant.id, process_actor(ActorKind.SYSTEM), entry)
        return count

"""The stage that encrypts secrets which were stored before there was an encryption key.

It reads the jobs and reconcilers once after the start of a process, in pages by id: a process that stops in between
begins again, and sealed rows are passed over. Signing secrets that the database itself has made, for a new tenant, are
sealed within a minute. One node does this, the owner of the first trigger shard.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog

from horai.core.encryption import Place
from horai.core.errors import HoraiError
from horai.core.masking import SEALED
from horai.core.shards import Role
from horai.db import signing_secrets
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.parts import StageParts
from horai.features.secrets import store
from horai.features.secrets.store import PlainDocument
from horai.operations.keyring import Keyring, keyring_of
from horai.operations.signing_secrets import SIGNING_PLACE
from horai.operations.target_secrets import place_of_source, place_of_target, sealed

log = structlog.get_logger(__name__)

PAGE = 500
INTERVAL = timedelta(seconds=60)
"""Time between two looks at the signing secrets: one statement on a small table."""

Reader = Callable[[Platform, int, int], Awaitable[list[PlainDocument]]]


class SecretSealer:
    """The stage that seals stored secrets."""

    name = "secrets"

    def __init__(self, line: StageConnection, lease: Lease, keyring: Keyring) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._keyring = keyring
        self._has_read_all = False

    async def step(self, now: datetime) -> datetime:
        """Seal the secrets that are stored as they are. Return the time of the next look."""
        if not leads(self._lease):
            return now + INTERVAL
        connection = await self.line.get()
        try:
            count = await self._signing(connection)
        except HoraiError as error:
            log.warning("signing secrets were not encrypted", error=error.code)
            return now + INTERVAL
        if not self._has_read_all:
            count += await self._all_of(connection, store.plain_targets, self._target)
            count += await self._all_of(connection, store.plain_sources, self._source)
            self._has_read_all = True
        if count:
            log.info("stored secrets were encrypted", secrets=count)
        return now + INTERVAL

    async def _signing(self, connection: Platform) -> int:
        count = 0
        while True:
            async with connection.transaction():
                plain = await signing_secrets.plain_signing_secrets(connection, PAGE)
                for secret_id, tenant_id, text in plain:
                    envelope = await self._keyring.seal(connection, tenant_id, SIGNING_PLACE, text)
                    await signing_secrets.store_sealed_secret(connection, secret_id, json.dumps(envelope))
            count += len(plain)
            if len(plain) < PAGE:
                return count

    async def _all_of(
        self, connection: Platform, read: Reader, seal: Callable[[Platform, PlainDocument], Awaitable[bool]]
    ) -> int:
        """Seal page by page. A row that cannot be sealed is passed over, so that it does not stop the others."""
        after = count = 0
        while rows := await read(connection, after, PAGE):
            for row in rows:
                try:
                    async with connection.transaction():
                        count += await seal(connection, row)
                except HoraiError as error:
                    log.warning(
                        "a stored secret was not encrypted", of=row.name, tenant=row.tenant_id, error=error.code
                    )
            after = rows[-1].id
        return count

    async def _target(self, connection: Platform, row: PlainDocument) -> bool:
        target = row.document["target"]
        place = place_of_target(row.name, target)
        if (stored := await self._sealed(connection, row, place, target)) is None:
            return False
        await store.store_sealed_target(connection, row, {**row.document, "target": stored})
        return True

    async def _source(self, connection: Platform, row: PlainDocument) -> bool:
        place = place_of_source(row.name, row.document)
        if (stored := await self._sealed(connection, row, place, row.document)) is None:
            return False
        await store.store_sealed_source(connection, row, stored)
        return True

    async def _sealed(
        self, connection: Platform, row: PlainDocument, place: Place, document: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        stored = await sealed(connection, self._keyring, row.tenant_id, place, document)
        return stored if SEALED in stored else None


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards and have an encryption key."""
    keyring = keyring_of(parts.settings)
    if Role.scheduler not in parts.roles:
        return []
    if not keyring.is_on:
        log.warning("secrets are stored without encryption: no --encryption-key-file is given")
        return []
    stage = SecretSealer(parts.line("secrets"), parts.lease, keyring)
    parts.lease.on_change.append(stage.signal.set)
    return [stage]

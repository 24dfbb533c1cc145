"""The eraser: the stage that deletes the data of deleted tenants, in batches.

The owner of the first trigger shard erases. Each batch is a transaction, so that a crash leaves the rest for the next
node; the row of the tenant goes last, with a row in the audit log. The files of the archive go first: the archiver adds
none for a tenant that is being deleted. Without such tenants the stage sends one statement every three minutes.
"""

import asyncio
import time
from datetime import datetime, timedelta
from typing import Literal

import structlog

from horai.core.actor import ActorKind
from horai.core.audit import AuditEntry, AuditVerb
from horai.core.wakes import OutcomeWake
from horai.db import archives, tenants
from horai.db.cluster import cluster_id
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease, leads
from horai.operations import audit
from horai.operations.archive_place import ArchivePlace, ArchiveStore
from horai.operations.archive_removal import forget_tenant
from horai.operations.process_actor import process_actor

log = structlog.get_logger(__name__)

BATCH = 1_000
"""Rows of each table in one transaction."""
IDLE, PAUSE = timedelta(minutes=3), timedelta(milliseconds=20)
FILES_TIME, LONGEST_FILE = 5.0, 20.0
"""Seconds of one step for files of the archive, and those until it gives up: a bucket may have many, and be slow."""


class Eraser:
    """The stage that erases."""

    name = "eraser"
    is_background: Literal[True] = True

    def __init__(
        self,
        line: StageConnection,
        lease: Lease,
        wakeups: Wakeups,
        batch: int = BATCH,
        archive: ArchiveStore | None = None,
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._batch = batch
        self._archive = archive
        self._without_files: set[int] = set()
        """Tenants whose files of the archive are deleted."""
        self._has_more_files = False
        """The time of the step was over before the files were."""

    async def step(self, now: datetime) -> datetime:
        """Delete one batch of each tenant that is being deleted. Return the time of the next step."""
        if not self._lease.holds() or not leads(self._lease):
            return now + IDLE
        connection = await self.line.get()
        self._has_more_files = False
        leaving = await tenants.tenants_to_erase(connection)
        erasable = [one for one in leaving if await self._delete_files(connection, one, leaving[one])]
        for tenant_id in erasable:
            await self._erase(connection, tenant_id, leaving[tenant_id])
        return now + (PAUSE if erasable or self._has_more_files else IDLE)

    async def close(self) -> None:
        """Close the archive."""
        if self._archive is not None:
            await self._archive.close()

    async def _delete_files(self, connection: Platform, tenant_id: int, name: str) -> bool:
        """Delete the tenant's files of the archive. Return False, and keep the tenant, if they cannot be deleted."""
        if tenant_id in self._without_files:
            return True
        try:
            if self._archive is not None:
                if not await self._forget(connection, self._archive, tenant_id):
                    log.info("tenant not deleted yet: files of the archive are left", tenant=name)
                    return False
            elif await archives.has_archive(connection, tenant_id):
                log.error("tenant not deleted: it has archive files, and this node no --archive-dir", tenant=name)
                return False
        except OSError as error:
            log.error("tenant not deleted: its archive files cannot be deleted", tenant=name, error=str(error))
            return False
        self._without_files.add(tenant_id)
        return True

    async def _forget(self, connection: Platform, archive: ArchiveStore, tenant_id: int) -> bool:
        place, until = ArchivePlace(archive, await cluster_id(connection)), time.monotonic() + FILES_TIME
        async with asyncio.timeout(LONGEST_FILE):
            is_done = await forget_tenant(connection, place, tenant_id, until)
        self._has_more_files |= not is_done and time.monotonic() >= until
        return is_done

    async def _erase(self, connection: Platform, tenant_id: int, name: str) -> None:
        ended = await tenants.end_running(connection, tenant_id, self._batch)
        for instance_id, fence in ended:
            self._wakeups.publish(OutcomeWake(instance_id, fence))
        if ended or await tenants.erase_some(connection, tenant_id, self._batch):
            return
        async with connection.transaction():
            await tenants.erase_tenant(connection, tenant_id)
            entry = AuditEntry(AuditVerb.TENANT_DELETED, "tenant", str(tenant_id), name)
            await audit.record(connection, None, process_actor(ActorKind.SYSTEM), entry)
        log.info("tenant deleted", tenant=name, id=tenant_id)

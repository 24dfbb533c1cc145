"""The eraser: the stage that deletes the data of deleted tenants, in batches.

The owner of the first trigger shard erases. Each batch is a transaction, so that a crash leaves the rest for the next
node; the row of the tenant goes last, with a row in the audit log. The files of the archive go first: the archiver adds
none for a tenant that is being deleted. Without such tenants the stage sends one statement every three minutes.
"""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
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
from horai.operations.archive_directory import ArchiveDirectory
from horai.operations.process_actor import process_actor

log = structlog.get_logger(__name__)

BATCH = 1_000
"""Rows of each table in one transaction."""
IDLE, PAUSE = timedelta(minutes=3), timedelta(milliseconds=20)


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
        archive_dir: str | None = None,
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._batch = batch
        self._archive_dir = archive_dir
        self._without_files: set[int] = set()
        """Tenants whose files of the archive are deleted."""

    async def step(self, now: datetime) -> datetime:
        """Delete one batch of each tenant that is being deleted. Return the time of the next step."""
        if not self._lease.holds() or not leads(self._lease):
            return now + IDLE
        connection = await self.line.get()
        leaving = await tenants.tenants_to_erase(connection)
        erasable = [one for one in leaving if await self._delete_files(connection, one, leaving[one])]
        for tenant_id in erasable:
            await self._erase(connection, tenant_id, leaving[tenant_id])
        return now + (PAUSE if erasable else IDLE)

    async def _delete_files(self, connection: Platform, tenant_id: int, name: str) -> bool:
        """Delete the tenant's files of the archive. Return False, and keep the tenant, if they cannot be deleted."""
        if tenant_id in self._without_files:
            return True
        try:
            if self._archive_dir is not None:
                place = ArchiveDirectory(Path(self._archive_dir), await cluster_id(connection))
                await asyncio.to_thread(place.forget_tenant, tenant_id)
            elif await archives.has_archive(connection, tenant_id):
                log.error("tenant not deleted: it has archive files, and this node no --archive-dir", tenant=name)
                return False
        except OSError as error:
            log.error("tenant not deleted: its archive files cannot be deleted", tenant=name, error=str(error))
            return False
        self._without_files.add(tenant_id)
        return True

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

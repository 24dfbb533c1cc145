"""The eraser: the stage that deletes the data of deleted tenants, in batches.

The owner of the first trigger shard erases. Each batch is a transaction, so that a crash leaves the rest for the next
node; the row of the tenant goes last, with a row in the audit log. Without such tenants the stage sends one statement
every three minutes.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

import structlog

from horai.core.actor import ActorKind
from horai.core.audit import AuditEntry, AuditVerb
from horai.core.wakes import OutcomeWake
from horai.db import tenants
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease, leads
from horai.operations import audit
from horai.operations.process_actor import process_actor

log = structlog.get_logger(__name__)

BATCH = 1_000
"""Rows of each table in one transaction."""
IDLE, PAUSE = timedelta(minutes=3), timedelta(milliseconds=20)


class Eraser:
    """The stage that erases."""

    name = "eraser"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, lease: Lease, wakeups: Wakeups, batch: int = BATCH) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._batch = batch

    async def step(self, now: datetime) -> datetime:
        """Delete one batch of each tenant that is being deleted. Return the time of the next step."""
        if not self._lease.holds() or not leads(self._lease):
            return now + IDLE
        connection = await self.line.get()
        leaving = await tenants.tenants_to_erase(connection)
        for tenant_id, name in leaving.items():
            await self._erase(connection, tenant_id, name)
        return now + (PAUSE if leaving else IDLE)

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

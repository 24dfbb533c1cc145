"""The janitor: the stage that does maintenance.

It creates partitions ahead of time, drops old months of the audit log, moves waiting rows to other lanes, deletes
expired idempotency keys, digests of payloads that are gone and unique calls that no longer count, and runs slow counts.
"""

import asyncio
from collections.abc import Sequence
from datetime import date, datetime, timedelta

import asyncpg
import structlog

from horai.core.actor import SYSTEM
from horai.core.audit import AuditEntry, AuditVerb
from horai.core.health import EngineHealth
from horai.core.settings import EngineSettings
from horai.core.wakes import ParkedKeysWake
from horai.db import audit as audit_rows
from horai.db import (
    concurrency_keys,
    idempotency,
    instance_queries,
    jobs,
    minute_stats,
    nodes,
    payload_digests,
    unique_calls,
)
from horai.db.pool import Platform, limit_lock_wait
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.operations import audit
from horai.operations.job_hooks import JobHooks
from horai.operations.move_waiting import move_waiting_batch

log = structlog.get_logger(__name__)

OFTEN = timedelta(minutes=1)
SELDOM = timedelta(minutes=10)
JOBS_AT_ONCE = 20
KEYS_AT_ONCE = 5_000
MINUTES_KEPT = timedelta(days=2)
DIGESTS_AT_ONCE = 2_000
CALLS_AT_ONCE = 2_000
CALL_PAGES = 50
"""Most pages of unique calls that are checked every ten minutes. The next time continues behind them."""
DROP_PATIENCE = timedelta(milliseconds=200)
"""The time that dropping a month of the audit log waits for its readers; writers of the log wait behind it."""


class Janitor:
    """The stage that does maintenance."""

    name = "janitor"

    def __init__(
        self,
        line: StageConnection,
        wakeups: Wakeups,
        health: EngineHealth,
        settings: EngineSettings,
        now: datetime,
        hooks: Sequence[JobHooks],
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._wakeups = wakeups
        self._health = health
        self._settings = settings
        self._seldom_at = now
        self._hooks = hooks
        self._digests_after = payload_digests.BEGINNING
        self._calls_after = unique_calls.BEGINNING

    async def step(self, now: datetime) -> datetime:
        """Move the rows of paused, resumed and deleted jobs, and wake the key gates if rows wait for a key.

        Do the other maintenance every ten minutes.
        """
        connection = await self.line.get()
        is_waiting = await self._relane(connection)
        if await concurrency_keys.any_parked_keys(connection):
            self._wakeups.publish(ParkedKeysWake())
        if now >= self._seldom_at:
            await self._seldom(connection)
            self._seldom_at = now + SELDOM
        return now + (timedelta(seconds=1) if is_waiting else OFTEN)

    async def _relane(self, connection: Platform) -> bool:
        """Move the waiting rows of each marked job once. Return whether there were marked jobs."""
        after = 0
        while waiting := await jobs.jobs_to_move(connection, JOBS_AT_ONCE, after=after):
            for relane in waiting:
                self._wakeups.announce(await move_waiting_batch(connection, relane, self._hooks))
            after = waiting[-1].job_id
        return after > 0

    async def _seldom(self, connection: Platform) -> None:
        await self._make_partitions(connection)
        if strays := await nodes.strays(connection):
            log.error("rows in a default partition: their day had no partition of its own", rows=strays)
        while await idempotency.forget_keys(connection, self._settings.idempotency_keep, KEYS_AT_ONCE) == KEYS_AT_ONCE:
            pass  # one short transaction each: no long lock, and few dead rows at once
        await idempotency.count_keys(connection)
        await self._drop_audit(connection)
        await minute_stats.forget_minutes(connection, MINUTES_KEPT)
        self._digests_after = await payload_digests.prune_payload_digests(
            connection, self._digests_after, DIGESTS_AT_ONCE
        )
        await self._forget_calls(connection)
        self._health.retry_backlog = await instance_queries.retry_backlog(connection)

    async def _forget_calls(self, connection: Platform) -> None:
        """Delete unique calls that no longer count, page by page, each in a short transaction."""
        for _ in range(CALL_PAGES):
            self._calls_after = await unique_calls.prune_unique_calls(connection, self._calls_after, CALLS_AT_ONCE)
            if self._calls_after == unique_calls.BEGINNING:
                return

    async def _make_partitions(self, connection: Platform) -> None:
        """Create the partitions of the coming days. If the database refuses, rows go to the default partitions meanwhile."""
        try:
            await nodes.make_partitions(connection, self._settings.partitions_ahead)
        except asyncpg.PostgresError as error:
            log.error("partitions of the coming days not created: tried again in ten minutes", error=repr(error))

    async def _drop_audit(self, connection: Platform) -> None:
        """Drop the months of the audit log that are older than `audit_keep`, oldest first, and record each of them.

        A month that is not sealed, or that a transaction reads, is left for the next time.
        """
        for month in await audit_rows.old_audit_months(connection, self._settings.audit_keep):
            try:
                rows = await self._drop_month(connection, month)
            except asyncpg.LockNotAvailableError:
                log.warning("month of the audit log not dropped: it is being read", month=f"{month:%Y-%m}")
                return
            if rows is None:
                log.warning("month of the audit log not dropped: rows are not sealed", month=f"{month:%Y-%m}")
                return
            log.info("month of the audit log dropped", month=f"{month:%Y-%m}", rows=rows)

    async def _drop_month(self, connection: Platform, month: date) -> int | None:
        async with connection.transaction():
            await limit_lock_wait(connection, DROP_PATIENCE)
            rows = await audit_rows.drop_audit_month(connection, month)
            if rows is not None:
                name = f"{month:%Y-%m}"
                entry = AuditEntry(AuditVerb.AUDIT_DROP_MONTH, "month", name, name, counts={"rows": rows})
                await audit.record(connection, None, SYSTEM, entry)
            return rows

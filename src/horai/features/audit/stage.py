"""The sealer: the stage that seals finished rows of the audit log in a chain of hashes.

Rows are sealed by transaction, not by id: all rows of transactions below the oldest open one are final, while a row
with a lower id may still be committed. One node seals, the owner of the first trigger shard; an advisory lock and the
numbers of the seals prevent a second chain while ownership moves. The stage is woken by new rows and steps at most once
a second. While an open transaction keeps rows from being sealed, it tries again with exponential back-off, 1 s to 30 s.
Without rows it sends no statements between two sweeps.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

import structlog

from horai.core.shards import Role
from horai.core.wakes import AuditWake
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.audit import store
from horai.features.audit.heads import HeadPublisher
from horai.features.audit.rules import Seal, make_seal
from horai.features.audit.signing import AuditKey, load_key
from horai.features.audit.store import SealingHorizon, StoredSeal
from horai.features.parts import StageParts

log = structlog.get_logger(__name__)

AT_ONCE = 2_000
"""Rows per seal; a transaction with more rows is not divided."""
PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=30)
SWEEP = timedelta(minutes=5)
"""The time until rows are found that no wake announced."""


class Sealer:
    """The stage that seals."""

    name = "audit"
    is_background: Literal[True] = True

    def __init__(
        self, line: StageConnection, lease: Lease, now: datetime, key: AuditKey | None, heads: HeadPublisher
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._key = key
        self._heads = heads
        self._is_woken = True
        self._ready_at = now
        self._sweep_at = now
        self._pause = PAUSE

    def wake(self) -> None:
        """Seal soon: there are new rows, or this node may have become the one that seals."""
        self._is_woken = True
        self._pause = PAUSE
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Seal the rows of finished transactions. Return the time of the next step."""
        if not leads(self._lease):
            return now + SWEEP
        if not self._is_woken and now < self._sweep_at:
            return await self._sent(now)
        if now < self._ready_at:
            return self._ready_at
        self._is_woken = False
        is_done = await self._seal_all(await self.line.get())
        self._sweep_at, self._ready_at = now + SWEEP, now + PAUSE
        if is_done:
            self._pause = PAUSE
            return await self._sent(now)
        self._is_woken, self._ready_at = True, now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return self._ready_at

    async def _sent(self, now: datetime) -> datetime:
        """Send the newest head; the time of the next step."""
        again = await self._heads.send(now)
        return self._sweep_at if again is None else min(again, self._sweep_at)

    async def _seal_all(self, connection: Platform) -> bool:
        """Seal all rows that can be sealed now. Return whether no row is left."""
        while True:
            async with connection.transaction():
                made, is_done = await self._seal_next(connection)
            if made is None:
                return is_done
            self._heads.publish(made)
            if is_done:
                return True

    async def _seal_next(self, connection: Platform) -> tuple[StoredSeal | None, bool]:
        """Add one seal, if rows can be sealed. The second value tells whether no row is left after it."""
        if not await store.lock_sealing(connection):
            return None, False
        stored = await store.last_seal(connection)
        last = None if stored is None else stored.seal
        sealed_to = 0 if last is None else last.to_xid
        found = await store.sealing_horizon(connection, sealed_to)
        _require_forward(found, sealed_to)
        if not found.has_rows:
            return None, True
        rows = await store.rows_to_seal(connection, sealed_to, found.horizon, AT_ONCE)
        if not rows:
            return None, False
        is_all = len(rows) < AT_ONCE
        to_xid = found.horizon - 1 if is_all else rows[-1].xid
        ordered = sorted((row.as_sealed() for row in rows), key=lambda row: (row.xid, row.id))
        made = self._signed(make_seal(last, to_xid, ordered, found.now))
        await store.insert_seal(connection, made)
        left = await store.sealing_horizon(connection, to_xid)
        return made, not left.has_rows

    def _signed(self, seal: Seal) -> StoredSeal:
        signature = None if self._key is None else self._key.sign(seal.head)
        key_id = None if self._key is None or signature is None else self._key.id
        return StoredSeal(seal, seal.rows, key_id, signature)


def _require_forward(found: SealingHorizon, sealed_to: int) -> None:
    """Raise if the server counts transactions below the sealed ones: new rows would never be sealed.

    A process that starts after a restore from a dump moves the order on (`continue_audit`), so that this does not happen.
    """
    if found.horizon <= sealed_to:
        raise RuntimeError(
            f"the audit log is sealed up to transaction {sealed_to}, but the server is at {found.horizon}: "
            "the database was restored while this process ran, restart the process"
        )


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    settings = parts.settings
    key = load_key(settings.audit_key_file)
    if key is None:
        log.warning("audit heads are not signed: no --audit-key-file is given")
    elif key.private is None:
        log.warning("audit heads are not signed: the key file has only a public key", file=settings.audit_key_file)
    heads = HeadPublisher(settings.audit_heads_file, settings.audit_heads_url)
    stage = Sealer(parts.line("audit"), parts.lease, parts.now, key, heads)
    parts.wakeups.subscribe(AuditWake, lambda _: stage.wake())
    parts.lease.on_change.append(stage.wake)
    return [stage]

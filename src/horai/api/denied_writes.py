"""Denied writes in the audit log: ten a minute for each caller and route as rows, the others as a count.

They are written in a transaction of their own: the request that they record has none. A database that is away loses
them, not the answer.
"""

import time
from collections import Counter
from collections.abc import Callable

import asyncpg
import structlog

from horai.core.actor import Actor
from horai.core.audit import AuditEntry, AuditVerb
from horai.core.errors import HoraiError
from horai.db.pool import GONE, Pool, transaction
from horai.operations import audit

log = structlog.get_logger(__name__)

MOST = 10
WINDOW = 60.0
MOST_COUNTED = 10_000
"""Callers and routes that are counted apart in one minute; further ones are left out of the log."""


class DeniedWrites:
    """The denied writes of this minute, counted by caller and route."""

    def __init__(self, pool: Pool, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._monotonic = monotonic
        self._ends_at = 0.0
        self._counts: Counter[tuple[int | None, Actor, str]] = Counter()

    async def note(self, tenant_id: int | None, actor: Actor, route: str, status: int) -> None:
        """Record a denied write, or count it if the caller had `MOST` of them on this route within the minute."""
        if self._monotonic() >= self._ends_at:
            await self.flush()
            self._ends_at = self._monotonic() + WINDOW
        known = (tenant_id, _nameless(actor), route)
        if known not in self._counts and len(self._counts) >= MOST_COUNTED:
            return
        self._counts[known] += 1
        if self._counts[known] <= MOST:
            await self._write(tenant_id, actor, _entry(route, {"status": status}))

    async def flush(self) -> None:
        """Write the counts of the last minute."""
        counts, self._counts = self._counts, Counter()
        for (tenant_id, actor, route), count in counts.items():
            if count > MOST:
                await self._write(tenant_id, actor, _entry(route, None, {"denied": count - MOST}))

    async def _write(self, tenant_id: int | None, actor: Actor, entry: AuditEntry) -> None:
        try:
            async with transaction(self._pool) as connection:
                await audit.record(connection, tenant_id, actor, entry)
        except (HoraiError, asyncpg.PostgresError, *GONE) as error:
            log.warning("denied write not recorded", route=entry.object_name, error=repr(error))


def _nameless(actor: Actor) -> Actor:
    return Actor(actor.kind, actor.id, actor.name, actor.role, actor.address, "")


def _entry(route: str, after: dict[str, int] | None, counts: dict[str, int] | None = None) -> AuditEntry:
    return AuditEntry(AuditVerb.ACCESS_DENIED, "route", route, route, after=after, counts=counts)

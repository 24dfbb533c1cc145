"""The audit of a write: a row in the transaction of the write, and a wake for the sealer after its commit."""

from dataclasses import replace

from horai.core.actor import Actor
from horai.core.audit import AuditEntry, masked
from horai.core.wakes import AuditWake
from horai.db import audit
from horai.db.pool import Connection
from horai.db.wakeups import Wakeups


async def record(connection: Connection, tenant_id: int | None, actor: Actor, entry: AuditEntry) -> None:
    """Add the entry to the log in the caller's transaction, with its values masked. It rolls back with the write.

    Call `announce` after the commit. Without it, the sealer finds the row with its next sweep.
    """
    before = None if entry.before is None else masked(entry.before)
    after = None if entry.after is None else masked(entry.after)
    await audit.insert_audit(connection, tenant_id, actor, replace(entry, before=before, after=after))


def announce(wakeups: Wakeups) -> None:
    """Wake the sealer, in this process or another one. Call this after the commit."""
    wakeups.publish(AuditWake())

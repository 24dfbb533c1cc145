"""The recovery of the cluster after an incident, in three steps.

1. Shards of dead nodes are freed, and all nodes take their share at once.
2. All sinks get the events of the last 15 minutes again.
3. Up to 5,000 dead letters with the tag `transient_error` run again, oldest first.

Each step is done once for an incident: a repeated request returns the first result, and one after a crash continues.
"""

from datetime import timedelta
from typing import Final

import structlog

from horai.core.audit import AuditEntry, AuditVerb
from horai.core.digits import number_in
from horai.core.errors import Conflict, NotFound
from horai.core.wakes import EventsWake
from horai.db import incidents, nodes
from horai.db.dead_letters import LetterFilter
from horai.features.recovery import store
from horai.features.recovery.store import RecoveryRow
from horai.operations import audit, letter_replay
from horai.operations.letter_replay import ReplayRequest
from horai.operations.scope import PlatformScope
from horai.text import Hint, Refused

log = structlog.get_logger(__name__)

REPLAYED_SINCE: Final = timedelta(minutes=15)
REQUEUED_TAG: Final = "transient_error"
MOST_REQUEUED: Final = 5_000
TAKEN_OVER_AFTER: Final = timedelta(minutes=1)
"""A request that has done no step for this long is given up."""


async def recover(scope: PlatformScope, incident: str) -> RecoveryRow:
    """Recover the cluster once for an incident. Raise `Conflict` while another request does it."""
    incident_id = await _require_incident(scope, incident)
    async with scope.write(autocommit=True) as connection:
        row = await store.begin_recovery(connection, incident_id, scope.actor.name, TAKEN_OVER_AFTER)
        if row is None:
            found = await store.find_recovery(connection, incident_id)
            if found is None or found.completed_at is None:
                raise Conflict(Refused.RECOVERY_RUNNING(incident=incident_id), Hint.REPEAT_LATER())
            return found
    if row.resumed is None:
        await _resume(scope, incident_id)
    if row.replayed is None:
        await _replay(scope, incident_id)
    await _requeue(scope, row)
    return await _complete(scope, incident_id)


async def _require_incident(scope: PlatformScope, incident: str) -> int:
    number = number_in(incident)
    async with scope.read() as connection:
        row = None if number is None else await incidents.find_incident(connection, number)
    if row is None:
        raise NotFound(Refused.NO_INCIDENT(incident=incident[:40]), Hint.LISTED_AT(path="/api/v1/incidents"))
    return row.id


async def _resume(scope: PlatformScope, incident_id: int) -> None:
    async with scope.write() as connection:
        await store.note_resumed(connection, incident_id, await store.resume_shards(connection))


async def _replay(scope: PlatformScope, incident_id: int) -> None:
    async with scope.write() as connection:
        now = await nodes.database_time(connection)
        await store.note_replayed(connection, incident_id, await store.rewind_sinks(connection, now - REPLAYED_SINCE))
    scope.wakeups.publish(EventsWake())


async def _requeue(scope: PlatformScope, row: RecoveryRow) -> None:
    """Replay dead letters tenant by tenant. After a crash, letters that were replayed before are not open any more."""
    left = MOST_REQUEUED - row.dlq_moved
    async with scope.read() as connection:
        tenants = await store.tenants_with_letters(connection, REQUEUED_TAG)
    for tenant_id, tenant in tenants:
        if left <= 0:
            return
        done = await letter_replay.replay_matching(
            scope.of_tenant(tenant_id, tenant), ReplayRequest(LetterFilter(tag=REQUEUED_TAG), left)
        )
        left -= done.replayed
        async with scope.write() as connection:
            await store.note_moved(connection, row.incident_id, tenant_id, done.replayed)


async def _complete(scope: PlatformScope, incident_id: int) -> RecoveryRow:
    row = await _completed(scope, incident_id)
    scope.wakeups.publish(EventsWake())
    return row


async def _completed(scope: PlatformScope, incident_id: int) -> RecoveryRow:
    async with scope.write() as connection:
        row = await store.complete_recovery(connection, incident_id)
        if row is not None:
            counts = {"resumed": row.resumed or 0, "replayed": row.replayed or 0, "dlqMoved": row.dlq_moved}
            await incidents.insert_incident_entry(
                connection, incident_id, "RECOVERED", scope.actor.name, None, {"status": "RECOVERY_COMPLETED", **counts}
            )
            entry = AuditEntry(AuditVerb.RECOVERY_COMPLETE, "recovery", str(incident_id), "", counts=counts)
            await audit.record(connection, None, scope.actor, entry)
            log.warning("RECOVERY_COMPLETED", incident=incident_id, **counts)
            return row
        found = await store.find_recovery(connection, incident_id)
        assert found is not None  # noqa: S101 — this request or another one has begun it
        return found

"""Triggers of one job that arrive at the same time (request_batches.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from horai.core.audit import masked
from horai.core.call_settings import NO_SETTINGS, CallSettings
from horai.core.wakes import AuditWake
from horai.db import jobs, single_writes
from horai.db.instance_queries import InstanceRow
from horai.db.pool import retrying
from horai.db.single_writes import AuditedTrigger, FreshRow
from horai.operations.instances import note_made, write_trigger
from horai.operations.request_batches import PATIENCE, RequestBatches
from horai.operations.request_keys import BODY, Once, check_request_key, request_key
from horai.operations.scope import Scope


@dataclass(frozen=True, slots=True)
class AskedTrigger:
    """A trigger as a client asks for it, in the scope of its own request: the audit log names its actor."""

    scope: Scope
    payload: str | None
    once: Once
    settings: CallSettings = NO_SETTINGS


class TriggerBatches(RequestBatches[AskedTrigger, InstanceRow]):
    """The triggers of a process that wait.

    New Idempotency-Keys are the common case, for a job that is neither encrypted, metered nor a refresh job, while a node is live
    that executes.
    """

    async def trigger(
        self, scope: Scope, reference: str, payload: str | None, once: Once, settings: CallSettings = NO_SETTINGS
    ) -> InstanceRow:
        """Run the job now, once per Idempotency-Key, as `trigger` does, together with other triggers of the job that wait."""
        check_request_key(once.key)
        triggered = await self._written(scope, reference, AskedTrigger(scope, payload, once, settings))
        note_made(scope, [triggered.id])
        return triggered

    async def _write_common(self, scope: Scope, job: str, asked: Sequence[AskedTrigger]) -> Mapping[int, InstanceRow]:
        """Of a key that occurs twice, the first trigger comes before the others."""
        firsts = {each.once.key: position for position, each in reversed([*enumerate(asked)])}
        found = jobs.reference_of(job)
        wanted = [_audited(asked[position]) for position in firsts.values()]
        triggers = [each for each in wanted if each is not None]
        if found is None or not triggers:
            return {}

        async def attempt() -> dict[str, FreshRow]:
            async with scope.write(autocommit=True) as connection:
                return await single_writes.insert_triggered(connection, scope.tenant_id, found, triggers, PATIENCE)

        made = await retrying(attempt)
        scope.wakeups.announce(row.woken for row in made.values())
        if made:
            scope.wakeups.publish(AuditWake())
        return {firsts[key]: row.instance for key, row in made.items()}

    async def _write_alone(self, scope: Scope, job: str, asked: AskedTrigger) -> InstanceRow:
        return await write_trigger(asked.scope, job, asked.payload, asked.once, settings=asked.settings)


def _audited(asked: AskedTrigger) -> AuditedTrigger | None:
    """Return the row of a trigger and of its audit.

    Returns None if the digest of its body needs a key that is not in memory, or if it has settings.
    """
    if not asked.settings.is_empty:
        return None
    request = request_key(asked.scope, "", asked.once)
    keyring = asked.scope.keyring
    digest = keyring.digest_in_memory(asked.scope.tenant_id, BODY, request.digest) if keyring.is_on else request.digest
    if digest is None:
        return None
    return AuditedTrigger(request.key, digest, asked.payload, asked.scope.actor, masked({"payload": asked.payload}))

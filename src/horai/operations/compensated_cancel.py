"""Cancels with compensation: the finished steps of a durable function are undone before its instance ends.

An instance without anything to compensate is cancelled at once. Any other is marked and due now: its next claim runs the
compensations and ends it. If it runs, its current step finishes first, and the claim ends with the record of the step.
"""

from dataclasses import dataclass

from horai.core.audit import AuditVerb
from horai.core.errors import NotFound
from horai.core.states import CancelReason, State
from horai.db import compensations, instances
from horai.db.claims import Claimable
from horai.db.instance_queries import InstanceRow
from horai.db.instances import CancelledRow
from horai.db.pool import TenantWrite
from horai.operations import audit
from horai.operations.instances import cancelled_instance, read_one, tell_cancelled
from horai.operations.scope import Scope, require_job
from horai.text import Hint, Refused


@dataclass(frozen=True, slots=True)
class CompensatedCancel:
    """The instance after the request, and the steps that are compensated before it ends, the last first."""

    instance: InstanceRow
    compensates: tuple[str, ...] = ()


@dataclass(slots=True)
class _Found:
    cancelled: list[CancelledRow]
    steps: list[str]
    woken: Claimable | None = None


async def cancel_by_id_compensated(scope: Scope, instance_id: int) -> CompensatedCancel:
    """Cancel a live instance after its compensations. A second call changes nothing. Raises `AlreadyFinal` if it has ended."""
    async with scope.write() as connection:
        row = await read_one(connection, scope, instance_id)
        found = await _cancel(connection, scope, row)
    return await _answer(scope, instance_id, found)


async def cancel_by_key_compensated(scope: Scope, reference: str, key: str) -> CompensatedCancel:
    """Cancel the live instance of a key after its compensations."""
    async with scope.write() as connection:
        job = await require_job(connection, scope, reference)
        live = (await instances.live_of_keys(connection, job.id, [key])).get(key)
        if live is None:
            raise NotFound(Refused.NO_LIVE_KEY(key=key[:128], job=job.name), Hint.KEY_HISTORY())
        found = await _cancel(connection, scope, await read_one(connection, scope, live.id))
    return await _answer(scope, live.id, found)


async def _cancel(connection: TenantWrite, scope: Scope, row: InstanceRow) -> _Found:
    """Decide while the row is locked: no step is recorded, and no claim begins, until this is committed."""
    state = await compensations.hold_for_cancel(connection, scope.tenant_id, row.id)
    if state is None:
        return _Found([], [])
    is_running = state is State.RUNNING
    steps = await compensations.open_compensations(connection, scope.tenant_id, row.id, is_running=is_running)
    if steps:
        found = _Found([], steps, await compensations.mark_cancel(connection, scope.tenant_id, row.id))
    else:
        found = _Found(await instances.cancel_live(connection, [row.id], CancelReason.USER, running=True), [])
    after = {"key": row.key, "compensates": steps}
    await audit.record_write(connection, scope, AuditVerb.INSTANCE_CANCEL, row.id, row.job, after)
    return found


async def _answer(scope: Scope, instance_id: int, found: _Found) -> CompensatedCancel:
    tell_cancelled(scope, found.cancelled)
    if found.woken is not None:
        scope.wakeups.announce([found.woken])
    return CompensatedCancel(
        await cancelled_instance(scope, instance_id, took_effect=bool(found.cancelled or found.steps)),
        tuple(found.steps),
    )

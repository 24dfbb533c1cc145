"""Signals by request: stored first, then they wake the instance that waits for them. Records of an instance for its users."""

from collections.abc import Sequence
from dataclasses import dataclass

from horai.core.audit import AuditVerb
from horai.core.errors import AlreadyFinal, Invalid, NotFound
from horai.core.states import State
from horai.db.claims import Claimable
from horai.db.pool import TenantWrite
from horai.features.steps import store, timeline
from horai.features.steps.rules import Signal
from horai.features.steps.store import SentSignal
from horai.features.steps.timeline import StepRow, WaitingSignal
from horai.operations import audit
from horai.operations.instances import read_one
from horai.operations.scope import Scope, require_job
from horai.text import Hint, Refused


async def signal_by_id(scope: Scope, instance_id: int, signal: Signal) -> SentSignal:
    """Send a signal to a live instance. Raises `AlreadyFinal` if the instance has ended."""
    async with scope.write() as connection:
        row = await read_one(connection, scope, instance_id)
        sent = await _send(connection, scope, instance_id, row.job, signal, is_encrypted=row.is_encrypted)
    if sent is None:
        state = (await _state(scope, instance_id)).name
        raise AlreadyFinal(
            Refused.NO_MORE_SIGNALS(instance=instance_id, state=state),
            extra={"instanceId": str(instance_id), "state": state},
        )
    return _woken(scope, instance_id, sent)


async def signal_by_key(scope: Scope, reference: str, key: str, signal: Signal) -> tuple[int, SentSignal]:
    """Send a signal to the live instance of a key; return the instance and the signal."""
    async with scope.write() as connection:
        job = await require_job(connection, scope, reference)
        instance_id = await store.signalled_instance(connection, scope.tenant_id, job.id, key)
        sent = None
        if instance_id is not None:
            sent = await _send(connection, scope, instance_id, job.name, signal, is_encrypted=job.is_encrypted)
    if sent is None or instance_id is None:
        raise NotFound(Refused.NO_LIVE_KEY(key=key[:128], job=job.name), Hint.KEY_HISTORY())
    return instance_id, _woken(scope, instance_id, sent)


@dataclass(frozen=True, slots=True)
class StepPage:
    """A page of the records of an instance, the signals that no wait has taken, and what the instance waits for and could compensate."""

    rows: list[StepRow]
    signals: Sequence[WaitingSignal]
    waits: Sequence[str]
    open_compensations: int


async def list_steps(scope: Scope, instance_id: int, after: int, limit: int) -> StepPage:
    """Return a page of the records of an instance, live or final. Raises `NotFound`."""
    async with scope.read() as connection:
        await read_one(connection, scope, instance_id)
        rows = await timeline.steps_of_instance(connection, instance_id, after, limit)
        signals = await timeline.signals_of_instance(connection, instance_id)
        pending = await timeline.pending_of_instance(connection, instance_id)
    return StepPage(rows, signals, pending.waits, pending.open_compensations)


async def _send(
    connection: TenantWrite, scope: Scope, instance_id: int, job: str, signal: Signal, *, is_encrypted: bool
) -> SentSignal | None:
    if is_encrypted and signal.payload is not None:
        raise Invalid(Refused.SIGNAL_OF_ENCRYPTED(job=job), Hint.SIGNAL_WITHOUT_PAYLOAD())
    sent = await store.send_signal(
        connection, instance_id, scope.tenant_id, signal.name, signal.payload, signal.request_key
    )
    if sent is not None and sent.is_new:
        after = {"name": signal.name}
        await audit.record_write(connection, scope, AuditVerb.INSTANCE_SIGNAL, instance_id, job, after)
    return sent


async def _state(scope: Scope, instance_id: int) -> State:
    async with scope.read() as connection:
        return (await read_one(connection, scope, instance_id)).state


def _woken(scope: Scope, instance_id: int, sent: SentSignal) -> SentSignal:
    if sent.lane is not None and sent.due is not None:
        scope.wakeups.announce([Claimable(instance_id, sent.lane, sent.due)])
    return sent

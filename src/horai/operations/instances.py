"""Instances by request: put, batch, trigger, cancel, and outcomes that are reported from outside."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from horai.core.audit import AuditVerb
from horai.core.call_settings import NO_SETTINGS, CallSettings
from horai.core.call_windows import CallWindow
from horai.core.errors import AlreadyFinal, NotFound
from horai.core.put import PutDecision, PutOptions
from horai.core.states import FINAL, CancelReason, State
from horai.core.wakes import OutcomeWake, RunsWake
from horai.db import instance_queries, instances, jobs, nodes, single_writes
from horai.db.claims import Claimable
from horai.db.instance_queries import InstanceRow
from horai.db.instances import CancelledRow, InsertTarget, target_of
from horai.db.jobs import JobRow
from horai.db.pool import Plans, TenantRead, TenantWrite, limit_lock_wait, retrying
from horai.db.single_writes import FreshPut, FreshRow
from horai.operations import audit, request_keys
from horai.operations.call_settings import apply_settings
from horai.operations.cancel import CancelResult
from horai.operations.new_payloads import sealed_payloads
from horai.operations.put import CREATED, Put, PutResult, put_all
from horai.operations.readable_values import readable_instance
from horai.operations.request_keys import Once
from horai.operations.runnable_jobs import job_to_run, require_dispatcher
from horai.operations.scope import Scope, job_not_found, require_job
from horai.operations.windowed_calls import WindowedCall, add_windowed
from horai.text import Hint, Refused


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a batch. With a key it follows the rules of put, without one it is new. No time means now.

    An item with a window has no key; it may be joined with an earlier call of the same payload.
    """

    at: datetime | None
    payload: str | None
    key: str | None = None
    window: CallWindow | None = None
    settings: CallSettings = NO_SETTINGS


@dataclass(frozen=True, slots=True)
class AskedPut:
    """A put as a client asks for it. Without a time it means now, by the clock of the database."""

    key: str
    at: datetime | None
    payload: str | None = None
    intent: PutOptions = field(default_factory=PutOptions)
    needs_payload: bool = False
    settings: CallSettings = NO_SETTINGS
    """The settings of the instance if the put creates or moves it. An instance that is moved keeps those that are not given."""

    @property
    def fresh(self) -> FreshPut:
        """Return the put as the row of a key that has no instance yet."""
        return FreshPut(self.key, self.at, self.payload, self.intent.version)

    def put(self, now: datetime | None) -> Put:
        """Return the put with its time; `now` is the time of the database."""
        at = self.at or now
        assert at is not None  # noqa: S101 — the caller reads the clock if a put has no time
        return Put(self.key, at, self.payload, self.intent, self.needs_payload)


@dataclass(frozen=True, slots=True)
class WrittenPut:
    """The decision on a put, and its instance as it was in the transaction; None if it had ended before."""

    job_id: int
    key: str
    verdict: PutDecision
    instance_id: int
    row: InstanceRow | None

    @property
    def is_new(self) -> bool:
        """Return whether the put has created the instance."""
        return self.verdict in CREATED


async def put_instance(scope: Scope, reference: str, asked: AskedPut) -> tuple[PutDecision, InstanceRow]:
    """Create or reschedule the instance of a key."""
    (written,) = await write_puts(scope, reference, [asked])
    return written.verdict, await answer_put(scope, written)


async def write_puts(
    scope: Scope, reference: str, asked: Sequence[AskedPut], patience: timedelta | None = None
) -> list[WrittenPut]:
    """Decide puts of a job in one transaction, all of them or none. `patience` bounds the wait for each lock.

    The request of each put continues with `answer_put`.
    """

    async def attempt() -> tuple[list[WrittenPut], list[PutResult]]:
        async with scope.write() as connection:
            if patience is not None:
                await limit_lock_wait(connection, patience)
            place = await find_place(connection, scope, reference)
            now = await nodes.database_time(connection) if any(each.at is None for each in asked) else None
            answers = await put_all(connection, place, [each.put(now) for each in asked], scope.keyring)
            answers = await apply_settings(connection, place, answers, [each.settings for each in asked])
            rows = await instance_queries.live_instances(connection, [each.instance_id for each in answers])
            return [
                WrittenPut(place.job_id, each.key, made.verdict, made.instance_id, rows.get(made.instance_id))
                for each, made in zip(asked, answers, strict=True)
            ], answers

    written, answers = await retrying(attempt)
    _wake(scope, answers)
    return written


async def write_fresh_puts(
    scope: Scope, reference: str, asked: Sequence[AskedPut], patience: timedelta
) -> dict[str, WrittenPut]:
    """Create the instances of keys that have neither a live instance nor a past, by one statement. Return their puts by key.

    The other puts have to be decided by `write_puts`. `asked` has each key once. `patience` bounds the wait for each lock.
    """
    common = [put for put in asked if not put.needs_payload and put.settings.is_empty]
    job, fresh = jobs.reference_of(reference), [put.fresh for put in common]
    if job is None or not fresh:
        return {}

    async def attempt() -> dict[str, FreshRow]:
        async with scope.write(autocommit=True) as connection:
            return await single_writes.insert_fresh(connection, scope.tenant_id, job, fresh, patience)

    made = await retrying(attempt)
    scope.wakeups.announce(row.woken for row in made.values())
    return {
        key: WrittenPut(row.instance.job_id, key, PutDecision.INSERTED, row.instance.id, row.instance)
        for key, row in made.items()
    }


async def answer_put(scope: Scope, written: WrittenPut) -> InstanceRow:
    """Record the fire of a new instance, and return the instance of a put as the caller may see it.

    The fire is linked with the request that calls this. The instance is nearly always live: this spares a look into history.
    """
    if written.is_new:
        note_made(scope, [written.instance_id])
    if (live := written.row) is not None and not live.is_encrypted:
        return live
    async with scope.read(Plans.KEPT) as connection:
        found = live or await instance_queries.instance_by_id(connection, scope.tenant_id, written.instance_id)
        found = found or await instance_queries.remembered_instance(
            connection, scope.tenant_id, written.job_id, written.key
        )
        if found is None:
            raise no_instance(written.instance_id)
        return await readable_instance(connection, scope, found)


async def insert_batch(scope: Scope, reference: str, items: Sequence[Item]) -> list[PutResult]:
    """Insert all items or none. Return the results in the order of the items."""

    async def attempt() -> list[PutResult]:
        async with scope.write() as connection:
            place = await find_place(connection, scope, reference)
            return await _insert(connection, scope, place, items)

    answers = await retrying(attempt)
    publish_wakes(scope, answers)
    return answers


def publish_wakes(scope: Scope, answers: Sequence[PutResult | CancelResult]) -> None:
    """Wake the claimers of new rows and the holders of superseded claims, and record fires. Call this after the commit."""
    _wake(scope, answers)
    note_made(scope, [each.instance_id for each in answers if isinstance(each, PutResult) and each.is_new])


def note_made(scope: Scope, ids: Sequence[int]) -> None:
    """Record the fires of new instances, linked with the request that calls this."""
    if scope.wakeups.on_made is not None:
        scope.wakeups.on_made(ids)


def _wake(scope: Scope, answers: Sequence[PutResult | CancelResult]) -> None:
    scope.wakeups.announce(answer.woken for answer in answers if answer.woken)
    for answer in answers:
        if answer.ended:
            scope.wakeups.publish(OutcomeWake(answer.ended.instance_id, answer.ended.fence))


async def _insert(connection: TenantWrite, scope: Scope, place: InsertTarget, items: Sequence[Item]) -> list[PutResult]:
    now = await nodes.database_time(connection)
    keyed = [Put(item.key, item.at or now, item.payload) for item in items if item.key is not None]
    calls = [WindowedCall(item.at, item.payload, item.window) for item in items if item.window is not None]
    fresh = [item for item in items if item.key is None and item.window is None]
    payloads = await sealed_payloads(connection, scope, place, [item.payload for item in fresh])
    unkeyed = [(item.at, payload) for item, payload in zip(fresh, payloads, strict=True)]
    put = iter(await put_all(connection, place, keyed, scope.keyring))
    called = iter(await add_windowed(connection, scope, place, calls) if calls else ())
    made = iter(await instances.insert_many(connection, place, unkeyed) if unkeyed else ())
    answers = [
        next(put) if item.key is not None else next(called) if item.window is not None else _inserted(next(made))
        for item in items
    ]
    return await apply_settings(connection, place, answers, [item.settings for item in items])


def _inserted(woken: Claimable) -> PutResult:
    return PutResult(PutDecision.INSERTED, woken.id, woken)


async def trigger(
    scope: Scope,
    reference: str,
    payload: str | None,
    once: Once,
    verb: AuditVerb = AuditVerb.JOB_TRIGGER,
    *,
    at: datetime | None = None,
    settings: CallSettings = NO_SETTINGS,
) -> InstanceRow:
    """Run the job now, once per idempotency key. Raise `DispatcherDown` if no live node or worker can run it.

    `at` is the fire time of the instance, now or in the past; None means now.
    """
    row = await write_trigger(scope, reference, payload, once, verb, at=at, settings=settings)
    note_made(scope, [row.id])
    return row


async def write_trigger(
    scope: Scope,
    reference: str,
    payload: str | None,
    once: Once,
    verb: AuditVerb = AuditVerb.JOB_TRIGGER,
    *,
    at: datetime | None = None,
    settings: CallSettings = NO_SETTINGS,
) -> InstanceRow:
    """Write a trigger. Its request continues with `note_made`."""
    row, _ = await _write_trigger(scope, reference, payload, once, verb, at=at, settings=settings)
    return row


async def trigger_once(
    scope: Scope, reference: str, payload: str | None, once: Once, window: CallWindow, settings: CallSettings
) -> tuple[InstanceRow, bool]:
    """Run the job now, unless another unique call of the same payload counts. Return the instance, and whether it is new."""
    row, is_new = await _write_trigger(
        scope, reference, payload, once, AuditVerb.JOB_TRIGGER, window=window, settings=settings
    )
    if is_new:
        note_made(scope, [row.id])
    return row, is_new


async def trigger_in(
    connection: TenantWrite, scope: Scope, reference: str, payload: str | None, at: datetime | None
) -> PutResult:
    """Run the job in the transaction of the caller, at a time or now, and record it. Call `publish_wakes` after the commit."""
    job = await job_to_run(connection, await _share(connection, scope, reference), payload)
    await require_dispatcher(connection, job)
    made = await _insert_call(connection, scope, target_of(job), payload, at)
    after = {"instance": str(made.instance_id), "payload": payload}
    await audit.record_write(connection, scope, AuditVerb.JOB_TRIGGER, job.id, job.name, after)
    return made


async def _insert_call(
    connection: TenantWrite, scope: Scope, place: InsertTarget, payload: str | None, at: datetime | None
) -> PutResult:
    (stored,) = await sealed_payloads(connection, scope, place, [payload])
    return _inserted((await instances.insert_many(connection, place, [(at, stored)], execute_now=True))[0])


async def _write_trigger(
    scope: Scope,
    reference: str,
    payload: str | None,
    once: Once,
    verb: AuditVerb,
    *,
    at: datetime | None = None,
    window: CallWindow | None = None,
    settings: CallSettings = NO_SETTINGS,
) -> tuple[InstanceRow, bool]:
    made: PutResult | None = None
    row: InstanceRow | None = None
    async with scope.write() as connection:
        job = await job_to_run(connection, await _share(connection, scope, reference), payload)
        request = request_keys.request_key(scope, f"trigger:{job.id}", once)
        if await request_keys.take(connection, scope, request):
            await require_dispatcher(connection, job)
            place = target_of(job)
            if window is not None:
                (made,) = await add_windowed(connection, scope, place, [WindowedCall(at, payload, window)])
            else:
                made = await _insert_call(connection, scope, place, payload, at)
            (made,) = await apply_settings(connection, place, [made], [settings])
            await request_keys.bind(connection, request, job.id, made.instance_id)
            if made.is_new:
                row = await instance_queries.made_just_now(connection, made.instance_id)
                row = await readable_instance(connection, scope, row)
                after = {"instance": str(made.instance_id), "payload": payload}
                await audit.record_write(connection, scope, verb, job.id, job.name, after)
            else:
                row = await read_one(connection, scope, made.instance_id)
    if made is None or row is None:
        raise await request_keys.duplicate_of(scope, request)
    _wake(scope, [made])
    return row, made.is_new


async def cancel_by_key(scope: Scope, reference: str, key: str) -> InstanceRow:
    """Cancel the live instance of a key. Requests that it has already sent are not undone."""
    async with scope.write() as connection:
        job = await require_job(connection, scope, reference)
        live = (await instances.live_of_keys(connection, job.id, [key])).get(key)
        if live is None:
            raise NotFound(Refused.NO_LIVE_KEY(key=key[:128], job=job.name), Hint.KEY_HISTORY())
        cancelled = await instances.cancel_live(connection, [live.id], CancelReason.USER, running=True)
        await audit.record_write(connection, scope, AuditVerb.INSTANCE_CANCEL, live.id, job.name, {"key": key})
    tell_cancelled(scope, cancelled)
    return await read_instance(scope, live.id)


async def cancel_by_id(scope: Scope, instance_id: int) -> InstanceRow:
    """Cancel a live instance. A second cancel changes nothing; a finished instance raises `AlreadyFinal`."""
    async with scope.write() as connection:
        row = await read_one(connection, scope, instance_id)
        cancelled = await instances.cancel_live(connection, [instance_id], CancelReason.USER, running=True)
        if cancelled:
            after = {"key": row.key}
            await audit.record_write(connection, scope, AuditVerb.INSTANCE_CANCEL, instance_id, row.job, after)
    tell_cancelled(scope, cancelled)
    return await cancelled_instance(scope, instance_id, took_effect=bool(cancelled))


async def cancelled_instance(scope: Scope, instance_id: int, *, took_effect: bool) -> InstanceRow:
    """Return an instance after a cancel. Raises `AlreadyFinal` if it had ended in another way before."""
    instance = await read_instance(scope, instance_id)
    if not took_effect and instance.state in FINAL - {State.CANCELLED}:
        raise AlreadyFinal(
            Refused.INSTANCE_FINAL(instance=instance_id, state=instance.state.name),
            extra={"instanceId": str(instance_id), "state": instance.state.name},
        )
    return instance


def tell_cancelled(scope: Scope, cancelled: Sequence[CancelledRow]) -> None:
    """Tell the holders of the claims and the workflows of the instances. Call this after the commit."""
    for row in cancelled:
        if row.fence is not None:
            scope.wakeups.publish(OutcomeWake(row.id, row.fence))
    scope.wakeups.publish(RunsWake([row.id for row in cancelled]))


async def read_instance(scope: Scope, instance_id: int) -> InstanceRow:
    """Return one instance of this tenant."""
    async with scope.read(Plans.KEPT) as connection:
        return await read_one(connection, scope, instance_id)


def no_instance(instance_id: int) -> NotFound:
    """Build the error for an instance that does not exist, or belongs to another tenant."""
    return NotFound(Refused.NO_INSTANCE(instance=instance_id), Hint.LISTED_AT(path="/api/v1/instances"))


async def read_one(connection: TenantRead, scope: Scope, instance_id: int) -> InstanceRow:
    """Return one instance of this tenant as the caller may see it, using the caller's connection."""
    instance = await instance_queries.instance_by_id(connection, scope.tenant_id, instance_id)
    if instance is None:
        raise no_instance(instance_id)
    return await readable_instance(connection, scope, instance)


async def _share(connection: TenantWrite, scope: Scope, reference: str) -> JobRow:
    found = await require_job(connection, scope, reference)
    job = await jobs.share_job(connection, found.id)
    if job is None:
        raise job_not_found(reference)
    return job


async def find_place(connection: TenantWrite, scope: Scope, reference: str) -> InsertTarget:
    """Return where new instances of a job go. The job stays locked until the caller's transaction ends."""
    return target_of(await _share(connection, scope, reference))

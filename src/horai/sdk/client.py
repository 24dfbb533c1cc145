"""The client of a process that adds instances: its connections, the wakes it sends, and the waits for results."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any

from horai.core.actor import ActorKind
from horai.core.call_settings import NO_SETTINGS, CallSettings
from horai.core.call_windows import CallWindow
from horai.core.errors import AlreadyFinal, Duplicate, HoraiError, NotFound
from horai.core.health import EngineHealth
from horai.core.job import checked
from horai.core.progress import ProgressNote
from horai.core.put import PutDecision, PutOptions, check_key
from horai.core.sealed_values import SealedColumn
from horai.core.settings import EngineSettings
from horai.core.stored_text import TRUNCATED
from horai.core.timing import Timing, calendar_named
from horai.db import instance_queries, jobs, progress
from horai.db.clock import DatabaseClock
from horai.db.database_location import DatabaseLocation
from horai.db.instance_queries import EndedInstance, InstanceRow
from horai.db.instances import SealedPaths
from horai.db.migrate import pending_migrations
from horai.db.pool import Plans, Pool, TenantPool, acquire, close_pool, open_pool, opened
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.db.watch import watched
from horai.embedded.visit import directory_of, require_url
from horai.engine import loop
from horai.engine.dispatch.births import Births
from horai.engine.notifier import Notifier
from horai.features.refresh import service as refreshes
from horai.features.registry import JOB_HOOKS
from horai.features.steps.rules import Signal
from horai.features.steps.service import signal_by_key
from horai.features.workflow.compositions import start_composition
from horai.operations import enqueue as enqueues
from horai.operations import instances
from horai.operations.calendars import require_calendar
from horai.operations.compensated_cancel import cancel_by_id_compensated, cancel_by_key_compensated
from horai.operations.instances import AskedPut
from horai.operations.keyring import Keyring, keyring_of, with_process_keys
from horai.operations.process_actor import process_actor
from horai.operations.request_keys import Once
from horai.operations.scope import Scope
from horai.operations.sealed_values import SealedJob, SealedText, open_text, seal_texts
from horai.operations.windowed_calls import WindowedCall
from horai.sdk.enqueue_batcher import EnqueueBatcher
from horai.sdk.results import Results

When = datetime | timedelta | None
"""At a time, after a delay, or now."""

CONNECTIONS = 10
CLOCK_TRUSTED_FOR = 60.0
"""Seconds for which the client tells the database's time without asking the database."""
TENANT = "default"
NOTES_READ = 3_000
"""The last notes of an instance that a handle reads."""


class NotMigrated(HoraiError):
    """The database has no Horai schema yet, or one of an older version."""

    code = "SCH_503_NOT_MIGRATED"
    status = 503
    title = "Database not ready"


class Client:
    """The client of one event loop. `open_client` opens it, `close` closes it."""

    def __init__(
        self, stack: AsyncExitStack, scope: Scope, clock: DatabaseClock, inserts: EnqueueBatcher, results: Results
    ) -> None:
        self._stack = stack
        self._clock = clock
        self._asked_at = time.monotonic()
        self.scope = scope
        self._inserts = inserts
        self._results = results

    async def enqueue(
        self,
        job: str,
        when: When,
        payload: str | None,
        *,
        sealed: SealedPaths = None,
        settings: CallSettings = NO_SETTINGS,
    ) -> int:
        """Add one instance and return its id. Concurrent callers share a statement if the job is not encrypted."""
        if sealed is not None or not settings.is_empty:
            given = None if settings.is_empty else [settings]
            (made,) = await self.enqueue_many(job, when, [[payload]], sealed=sealed, settings=given)
            return made
        return await self._inserts.add(job, await self._moment(when), payload)

    async def enqueue_many(
        self,
        job: str,
        when: When,
        payloads: Iterable[Sequence[str | None]],
        *,
        sealed: SealedPaths = None,
        settings: Sequence[CallSettings] | None = None,
    ) -> list[int]:
        """Add all instances or none, batch after batch; return their ids in order.

        A single batch that is due now and has no settings may be claimed as it is inserted.
        """
        if settings is not None:
            at = await self._moment(when)
            return await enqueues.enqueue_with_settings(self.scope, job, at, payloads, settings, sealed=sealed)
        batches = iter(payloads)
        first = list(islice(batches, 2))
        if len(first) == 1 and when is None and sealed is None:
            made = await self._inserts.add_now(job, first[0])
            if made is not None:
                return made
        return await enqueues.enqueue_many(
            self.scope, job, await self._moment(when), chain(first, batches), sealed=sealed
        )

    async def enqueue_once(
        self,
        job: str,
        when: When,
        payload: str | None,
        once: Once,
        *,
        sealed: SealedPaths = None,
        settings: CallSettings = NO_SETTINGS,
    ) -> tuple[int, bool]:
        """Add one instance per idempotency key; return its id and whether this call created it."""
        item = (await self._moment(when), payload)
        return await enqueues.enqueue_once(self.scope, job, item, once, sealed=sealed, settings=settings)

    async def start_composition(self, form: str, when: When, payload: str, key: str | None) -> tuple[int, bool]:
        """Start a composition of a form that is defined; return the id of its run, and whether this call started it."""
        return await start_composition(self.scope, form, await self._moment(when), payload, key)

    async def enqueue_calls(
        self,
        job: str,
        when: When,
        payloads: Sequence[str | None],
        window: CallWindow,
        settings: Sequence[CallSettings] | None = None,
    ) -> list[tuple[PutDecision, int]]:
        """Add calls with a window, all or none; return the decisions and the ids of the instances that stand for them."""
        at = await self._moment(when)
        calls = zip(payloads, settings or [NO_SETTINGS] * len(payloads), strict=True)
        made = await enqueues.enqueue_calls(
            self.scope, job, [WindowedCall(at, payload, window, own) for payload, own in calls]
        )
        return [(each.verdict, each.instance_id) for each in made]

    async def digests_of_calls(self, job: str, payloads: Sequence[str | None]) -> list[bytes | None]:
        """Return the digests of arguments of an encrypted job, for a transaction of the caller."""
        return await enqueues.digests_of_calls(self.scope, job, payloads)

    async def sealed(self, job: str, payloads: Sequence[str | None], paths: Sequence[str]) -> list[str | None]:
        """Return payloads of an encrypted job as they are stored, for a transaction of the caller.

        The data key is committed before; the SQL function that stores the payloads keeps it from being erased.
        """
        async with self.scope.write() as connection:
            own = SealedJob(self.scope.tenant_id, job, paths)
            return await seal_texts(connection, self.scope.keyring, own, SealedColumn.PAYLOAD, payloads)

    async def put(
        self,
        job: str,
        key: str,
        when: When,
        payload: str | None,
        intent: PutOptions,
        needs_payload: bool,
        settings: CallSettings = NO_SETTINGS,
    ) -> tuple[PutDecision, int]:
        """Put a key; return the decision and the instance id.

        Raises `PayloadMissing` if a new instance would lack its payload.
        """
        at = await self._moment(when)
        asked = AskedPut(check_key(key), at, payload, intent, needs_payload, settings)
        verdict, instance = await instances.put_instance(self.scope, job, asked)
        return verdict, instance.id

    async def cancel(self, job: str, key: str, *, compensate: bool = False) -> bool:
        """Cancel the live instance of a key. Return False if it has none."""
        try:
            await (cancel_by_key_compensated if compensate else instances.cancel_by_key)(
                self.scope, job, check_key(key)
            )
        except NotFound:
            return False
        return True

    async def signal(self, job: str, key: str, sent: Signal) -> None:
        """Send a signal to the live instance of a key. Raises `NotFound` if it has none."""
        await signal_by_key(self.scope, job, key, sent)

    async def trigger(
        self,
        job: str,
        payload: str | None,
        once: Once,
        window: CallWindow | None = None,
        settings: CallSettings = NO_SETTINGS,
    ) -> tuple[int, bool]:
        """Run the job now, once per idempotency key; return the instance id and whether this call created it."""
        try:
            if window is not None:
                row, is_new = await instances.trigger_once(self.scope, job, payload, once, window, settings)
                return row.id, is_new
            return (await instances.trigger(self.scope, job, payload, once, settings=settings)).id, True
        except Duplicate as first:
            if (made := first.extra.get("instanceId")) is None:
                raise
            return int(made), False

    async def add_entities(self, job: str, items: Mapping[str, str | None]) -> int:
        """Add entities with their payloads; return how many are new."""
        return await refreshes.add_entities(self.scope, job, items)

    async def remove_entity(self, job: str, key: str) -> bool:
        """Remove an entity; return whether it existed."""
        return await refreshes.remove_entity(self.scope, job, key)

    async def _moment(self, when: When) -> datetime | None:
        """Return the time of an instance. A delay counts from now, by the database's clock."""
        return await self.now() + when if isinstance(when, timedelta) else when

    async def now(self) -> datetime:
        """Return the database's time. Asks the database again if the last answer is older than `CLOCK_TRUSTED_FOR`."""
        if time.monotonic() > self._asked_at + CLOCK_TRUSTED_FOR:
            async with self.scope.read(Plans.KEPT) as connection:
                await self._clock.ask(connection)
            self._asked_at = time.monotonic()
        return self._clock.now()

    async def timing_of(self, document: Mapping[str, Any]) -> Timing:
        """Return the timing of a declared job, with the calendar that it names. Raise `Invalid` if there is none."""
        name = calendar_named(document) or ""
        async with self.scope.read(Plans.KEPT) as connection:
            found = await require_calendar(connection, self.scope.tenant_id, name)
        return checked(document, found.days).timing

    async def ended(self, instance_id: int) -> EndedInstance:
        """Wait until the instance is final and return it, opened if its job is encrypted.

        Raises `KeyUnavailable` if this process lacks the key.
        """
        return await self.readable(await self._results.of(instance_id))

    async def readable(self, ended: EndedInstance) -> EndedInstance:
        """Return an ended instance with its result and its error text opened if its job is encrypted."""
        if ended.sealed_for is None:
            return ended
        job = SealedJob(self.scope.tenant_id, ended.sealed_for)
        async with self.scope.read() as connection:
            result, error = ended.result, ended.error_msg
            if result is not None and result != TRUNCATED:
                sealed = SealedText(job, SealedColumn.RESULT, result)
                result = await open_text(connection, self.scope.keyring, sealed)
            if error is not None:
                error = await open_text(connection, self.scope.keyring, SealedText(job, SealedColumn.ERROR, error))
        return replace(ended, result=result, error_msg=error)

    async def instance(self, instance_id: int) -> InstanceRow:
        """Return one instance of this tenant. Raises `NotFound`."""
        return await instances.read_instance(self.scope, instance_id)

    async def notes(self, row: InstanceRow) -> Sequence[ProgressNote]:
        """Return the last notes of an instance, in order, opened if its job is encrypted."""
        async with self.scope.read() as connection:
            notes = await progress.notes_of(connection, row.id, NOTES_READ)
            if not row.is_encrypted:
                return notes
            job = SealedJob(self.scope.tenant_id, row.job)
            keyring = self.scope.keyring
            return [
                note
                if note.message is None
                else note._replace(
                    message=await open_text(connection, keyring, SealedText(job, SealedColumn.NOTE, note.message))
                )
                for note in notes
            ]

    async def cancel_instance(self, instance_id: int, *, compensate: bool = False) -> bool:
        """Cancel an instance by its id. Return False if it has already ended. Raises `NotFound`."""
        try:
            await (cancel_by_id_compensated if compensate else instances.cancel_by_id)(self.scope, instance_id)
        except AlreadyFinal:
            return False
        return True

    async def standing(self, instance_id: int) -> str:
        """Describe the state of the instance now, for a message."""
        async with self.scope.read() as connection:
            row = await instance_queries.instance_by_id(connection, self.scope.tenant_id, instance_id)
        if row is None:
            return "it is not in the database; if it was added with conn=, commit that transaction first"
        if row.attempt == 0:
            return f"it is {row.state.name}, planned for {row.execute_time.isoformat()}, and no worker has started it"
        return f"it is {row.state.name} in attempt {row.attempt}"

    async def rest(self, seconds: float, reads: int) -> None:
        """Wait before the state of something is read again; `reads` counts the earlier rests of the same wait."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Send the last wakes and close all connections."""
        await self._stack.aclose()


async def open_client(place: DatabaseLocation, births: Callable[[], Births | None] = lambda: None) -> Client:
    """Open a client of the database. Raises `NoDatabase` at once if none is named and none runs.

    `births` returns the claims at birth of the worker in this process, if one runs.
    """
    async with AsyncExitStack() as stack:
        url = require_url(place)
        await _require_migrated(url)
        await stack.enter_async_context(watched(url))
        pool = await open_pool(url, "horai client", CONNECTIONS)
        stack.push_async_callback(close_pool, pool)
        wakeups = Wakeups()
        scope = await process_scope(pool, wakeups, await asyncio.to_thread(process_keyring, place))
        clock = await _send_wakes(stack, url, wakeups)
        results = Results(pool, scope.tenant_id)
        stack.push_async_callback(results.close)
        inserts = EnqueueBatcher(StageConnection(url, "horai inserts"), wakeups, scope.tenant_id, births)
        stack.push_async_callback(inserts.close)
        return Client(stack.pop_all(), scope, clock, inserts, results)
    raise AssertionError("unreachable")


async def _require_migrated(url: str) -> None:
    async with opened(url, "horai client") as connection:
        if missing := await pending_migrations(connection):
            raise NotMigrated(
                f"The database lacks {len(missing)} migrations: run `horai migrate`.",
                "A node or a worker of this version applies them too, when it starts.",
            )


def process_keyring(place: DatabaseLocation) -> Keyring:
    """Return the keyring of a process with the SDK. Raises `EncryptionKeyUnusable`."""
    data_dir = directory_of(place) if place.url is None else None
    return keyring_of(with_process_keys(EngineSettings(), os.environ, data_dir))


async def process_scope(pool: Pool, wakeups: Wakeups, keyring: Keyring | None = None) -> Scope:
    """Return the scope of a process with the SDK: that of the default tenant."""
    async with acquire(pool) as connection:
        found = await jobs.tenant_id(connection, TENANT)
    if found is None:
        raise NotMigrated(f"The tenant `{TENANT}` is missing from the database: run `horai migrate`.")
    own = TenantPool(pool, found)
    actor = process_actor(ActorKind.SDK)
    return Scope(own, wakeups, found, TENANT, actor, JOB_HOOKS, keyring=keyring or Keyring())


async def _send_wakes(stack: AsyncExitStack, url: str, wakeups: Wakeups) -> DatabaseClock:
    """Run a notifier that sends wakes to other processes until the stack is closed; return its clock."""
    notifier, clock = Notifier(StageConnection(url, "horai notifier")), DatabaseClock()
    await clock.ask(await notifier.line.get())
    wakeups.pass_on_to(notifier.tell)
    sending = asyncio.create_task(loop.run(notifier, clock, EngineHealth()), name="horai notifier")

    async def end() -> None:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await notifier.flush()
        await notifier.line.close()

    stack.push_async_callback(end)
    return clock

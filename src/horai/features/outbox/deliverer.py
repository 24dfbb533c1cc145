"""The deliverer: the stage that sends recorded events to sinks.

Each sink has a position of its own and a task of its own, so that one that does not answer delays no other. A position
moves after the receiver has accepted the events: they are sent at least once, in order. One node delivers, the owner of
the first trigger shard. A node that is stopped for longer than its lease may send events once more when it goes on.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from horai.core.controls import ControlBoard
from horai.core.encryption import EnvelopeBroken
from horai.core.errors import KeyUnavailable
from horai.db import jobs, outbox, signing_secrets
from horai.db.outbox import OutboxEvent
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.features.outbox import store
from horai.features.outbox.places import place_of_sink
from horai.features.outbox.rules import PARKED_AFTER, pause_after
from horai.features.outbox.sender import Parcel, ParcelResult, Sender, SendFailure
from horai.features.outbox.store import ServedSink, SinkKind, SinkRow, SinkStatus
from horai.operations import target_secrets
from horai.operations.keyring import Keyring
from horai.operations.signing_secrets import secrets_in_force

log = structlog.get_logger(__name__)

SWEEP = timedelta(minutes=5)
PAGE = 100
"""Events that are read at once, and the most that are sent again after a crash, unless a batch is larger."""
Senders = Mapping[SinkKind, Sender]


class Deliverer:
    """The stage that delivers."""

    name = "sinks"

    def __init__(
        self, line: StageConnection, lease: Lease, controls: ControlBoard, keyring: Keyring, senders: Senders
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._controls = controls
        self._keyring = keyring
        self._senders = senders
        self._turn = asyncio.Lock()
        """One statement at a time: all tasks share the connection."""
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.on_event: Callable[[], None] = lambda: None
        """Called when this stage writes an event."""

    def wake(self) -> None:
        """Deliver soon: events were recorded, or a sink has changed."""
        self.signal.set()

    @property
    def _is_leading(self) -> bool:
        return leads(self._lease)

    async def step(self, now: datetime) -> datetime:
        """Start a task for each sink that has events to get. Return when the next one may be tried."""
        if not self._is_leading or not self._controls.current.records_events:
            return now + SWEEP
        async with self._turn:
            sinks = await store.sinks_to_serve(await self.line.get())
        later = [now + SWEEP]
        for sink in sinks:
            if not sink.has_more or sink.row.id in self._tasks:
                continue
            if sink.row.next_try is not None and sink.row.next_try > now:
                later.append(sink.row.next_try)
                continue
            task = asyncio.create_task(self._serve(sink), name=f"horai sink {sink.row.name}")
            self._tasks[sink.row.id] = task
            task.add_done_callback(self._ended(sink.row.id))
        return min(later)

    def _ended(self, sink_id: int) -> Callable[[asyncio.Task[None]], None]:
        def forget(task: asyncio.Task[None]) -> None:
            del self._tasks[sink_id]
            if not task.cancelled() and (error := task.exception()) is not None:
                log.warning("events were not delivered", sink=sink_id, error=repr(error))
                self.line.drop()
            self.signal.set()

        return forget

    async def idle(self) -> None:
        """Wait until no delivery is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def close(self) -> None:
        """End the deliveries and close the connections of the senders."""
        for task in self._tasks.values():
            task.cancel()
        await self.idle()
        for sender in self._senders.values():
            await sender.close()

    async def _serve(self, served: ServedSink) -> None:
        """Send events until the sink has all of them, or a delivery fails."""
        sink: SinkRow | None = served.row
        while sink is not None and self._is_leading:
            async with self._turn:
                connection = await self.line.get()
                newest, now = await outbox.newest_position(connection)
                events = await outbox.read_outbox(
                    connection, sink.tenant_id, sink.position, sink.types, max(sink.batch, PAGE)
                )
                parcel = await self._parcel(connection, served.tenant, sink, events, now) if events else None
            if parcel is None:
                await self._passed(sink, newest)
                return
            result = parcel if isinstance(parcel, ParcelResult) else await self._sent(sink, parcel)
            if result.accepted:
                sink = await self._moved(sink, events[result.accepted - 1].position, result.accepted)
            if result.failure is not None:
                if sink is not None:
                    await self._failed(sink, result.failure)
                return

    async def _sent(self, sink: SinkRow, parcel: Parcel) -> ParcelResult:
        sender = self._senders.get(sink.kind)
        if sender is None:
            reason = f"the package for {sink.kind.value} is not installed: pip install 'horai[{sink.kind.value}]'"
            return ParcelResult(0, SendFailure(reason))
        return await sender.send(parcel)

    async def _parcel(
        self, connection: Platform, tenant: str, sink: SinkRow, events: Sequence[OutboxEvent], now: datetime
    ) -> Parcel | ParcelResult:
        place = place_of_sink(sink.name, sink.place)
        try:
            opened = await target_secrets.opened(connection, self._keyring, sink.tenant_id, place, sink.place)
        except (KeyUnavailable, EnvelopeBroken) as error:
            return ParcelResult(0, SendFailure(f"the secrets of the sink cannot be opened: {type(error).__name__}"))
        reach = await signing_secrets.reach_of(connection, sink.tenant_id)
        is_signed = sink.kind is SinkKind.WEBHOOK
        secrets = await secrets_in_force(connection, self._keyring, sink.tenant_id) if is_signed else ()
        return Parcel(sink.name, tenant, opened, events, sink.batch, now, reach, tuple(secrets))

    async def _passed(self, sink: SinkRow, newest: int) -> None:
        """Move a sink past events of other types and tenants, so that they are not read again."""
        if newest > sink.position:
            await self._moved(sink, newest, 0)

    async def _moved(self, sink: SinkRow, position: int, events: int) -> SinkRow | None:
        async with self._turn:
            connection = await self.line.get()
            async with connection.transaction():
                before = await store.sink_delivered(connection, sink, position, events)
                if before is SinkStatus.PARKED:
                    await jobs.insert_event(connection, sink.tenant_id, None, "SINK_RESUMED", {"sink": sink.name})
                    self.on_event()
        if before is SinkStatus.PARKED:
            log.info("a parked sink accepts events again", sink=sink.name)
        return None if before is None else replace(sink, position=position, failures=0, failing_since=None)

    async def _failed(self, sink: SinkRow, failure: SendFailure) -> None:
        """Count the failure. A sink that has failed for long is parked, one that wants no more events is paused."""
        async with self._turn:
            connection = await self.line.get()
            async with connection.transaction():
                changed = await store.sink_failed(
                    connection,
                    sink,
                    failure.reason,
                    pause_after(sink.failures + 1),
                    PARKED_AFTER,
                    is_final=failure.is_final,
                )
                if changed is not None and changed[0] is not changed[1]:
                    told = {"sink": sink.name, "error": failure.reason}
                    await jobs.insert_event(connection, sink.tenant_id, None, f"SINK_{changed[1].value}", told)
                    self.on_event()
        if changed is not None:
            log.warning("events were not accepted", sink=sink.name, error=failure.reason, status=changed[1].value)

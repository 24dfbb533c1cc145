"""The recorder: the stage that puts events into the outbox, in their final order.

One node records, the owner of the first trigger shard; a lock on the cursor orders it against an earlier owner that is
still at work. It is woken by outcomes and other changes, and records at most once a second. While an open transaction
keeps rows from being final, it tries again with exponential back-off, 1 s to 30 s. Without a sink it sends no
statements.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from horai.core.controls import ControlBoard
from horai.core.horizon import LONG_OVERLAP, ClockWatch, HorizonSample, earliest_row, kept_samples
from horai.db import outbox
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads

log = structlog.get_logger(__name__)

PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=30)
SWEEP = timedelta(minutes=5)
"""The time until events are found that no wake announced."""
TRIM_EVERY, TRIMMED_AT_ONCE = timedelta(minutes=10), 10_000
SUMMARIZE_AFTER = 5_000
"""Events after which the indexes by time are brought up to date."""


class Recorder:
    """The stage that records."""

    name = "outbox"

    def __init__(
        self,
        line: StageConnection,
        lease: Lease,
        controls: ControlBoard,
        now: datetime,
        on_recorded: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._controls = controls
        self._on_recorded = on_recorded
        self._watch = ClockWatch(monotonic)
        self._is_woken = True
        self._ready_at = self._sweep_at = now
        self._trim_at = now + TRIM_EVERY
        self._pause = PAUSE
        self._unsummarized = 0

    def wake(self) -> None:
        """Record soon: there may be new events, or this node may have become the one that records."""
        if self._controls.current.records_events:
            self._is_woken = True
            self._pause = PAUSE
            self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Record the events of finished transactions. Return the time of the next step."""
        if not leads(self._lease) or not self._controls.current.records_events:
            self._watch.forget()
            return now + SWEEP
        if not self._is_woken and now < self._sweep_at:
            return self._sweep_at
        if now < self._ready_at:
            return self._ready_at
        self._is_woken = False
        connection = await self.line.get()
        async with connection.transaction():
            recorded, is_all = await self._record(connection)
        self._sweep_at = now + SWEEP
        if recorded:
            self._on_recorded()
            self._pause = PAUSE
        await self._maintain(connection, now, recorded)
        self._is_woken = self._is_woken or recorded > 0 or not is_all
        self._ready_at = now + self._pause
        if not recorded and not is_all:
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return self._ready_at if self._is_woken else self._sweep_at

    async def _record(self, connection: Platform) -> tuple[int, bool]:
        """Record once. Return the number of events, and whether no transaction was open."""
        cursor = await outbox.lock_outbox(connection)
        if not cursor.is_on:
            return 0, True
        if not cursor.has_sinks:
            await outbox.close_outbox(connection)
            return 0, True
        earliest = earliest_row(cursor.samples, self._watch.overlap(cursor.now)) or cursor.now - LONG_OVERLAP
        made = await outbox.record_events(connection, cursor.xid, earliest, cursor.position)
        if made.next_id < cursor.xid:
            log.warning("transaction ids began again, as after a restored dump: events are recorded by their time")
            made = await outbox.record_events(connection, 0, earliest, cursor.position)
        samples = kept_samples(cursor.samples, HorizonSample(cursor.now, made.next_id), made.horizon)
        is_all = made.horizon >= made.next_id - 1
        held_since = None if is_all else samples[0].at
        await outbox.move_outbox(connection, made.horizon, samples, cursor.position + made.recorded, held_since)
        self._unsummarized += made.recorded
        return made.recorded, is_all

    async def _maintain(self, connection: Platform, now: datetime, recorded: int) -> None:
        if recorded and self._unsummarized >= SUMMARIZE_AFTER:
            self._unsummarized = 0
            await outbox.summarize_events(connection)
        if now >= self._trim_at:
            trimmed = await outbox.trim_outbox(connection, now - outbox.KEPT_FOR, TRIMMED_AT_ONCE)
            self._trim_at = now + (PAUSE if trimmed == TRIMMED_AT_ONCE else TRIM_EVERY)

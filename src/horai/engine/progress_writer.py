"""The progress writer: the stage that stores progress and log lines of functions, in batches.

A function only adds a note, from any thread, and waits for nothing; neither does the settlement of its attempt. While
the database is away, notes are kept as long as there is room, and written when it is back.
"""

import asyncio
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import asyncpg
import structlog

from horai.core.calls import Call
from horai.core.encryption import EnvelopeBroken
from horai.core.errors import Conflict, KeyUnavailable
from horai.core.masking import HIDDEN
from horai.core.progress import ProgressNote, ProgressNotes
from horai.core.sealed_values import SealedColumn
from horai.db import progress as notes
from horai.db.clock import DatabaseClock
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.operations.keyring import Keyring
from horai.operations.sealed_values import SealedJob, seal_texts

log = structlog.get_logger(__name__)

IDLE = timedelta(minutes=1)
PAUSE = timedelta(milliseconds=200)
"""The pause between batches: of the progress values that an attempt reports meanwhile, only the last is written."""
BATCH = 1_000


class ProgressWriter:
    """The stage that writes notes. Without notes it sends nothing to the database."""

    name = "progress_writer"

    def __init__(self, line: StageConnection, clock: DatabaseClock, keyring: Keyring | None = None) -> None:
        self.line = line
        self._keyring = keyring or Keyring()
        self.signal = asyncio.Event()
        self._clock = clock
        self._notebook = ProgressNotes()
        self._lock = threading.RLock()  # a finalizer may add a note during garbage collection
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_roused = False
        self._rests_until = datetime.min.replace(tzinfo=UTC)
        self._refused = 0
        self._told_dropped = 0

    @property
    def dropped(self) -> int:
        """Return how many notes were dropped because there was no room or the database refused them."""
        return self._notebook.dropped + self._refused

    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        """Add a note: the progress of this attempt (0 to 1), a line of its log, or both.

        Any thread may call this. It does not block.
        """
        at = self._clock.now()
        with self._lock:
            self._notebook.add(call, at, progress, message)
            if self._is_roused or self._loop is None:
                return
            self._is_roused, loop = True, self._loop
        with suppress(RuntimeError):  # the loop is closed: notes are no longer written
            loop.call_soon_threadsafe(self.signal.set)

    async def step(self, now: datetime) -> datetime:
        """Write the waiting notes, unless the last batch was less than a pause ago."""
        self._loop = asyncio.get_running_loop()
        self._rests_until = min(self._rests_until, now + PAUSE)  # a clock that was set back must not lengthen it
        if now < self._rests_until:
            return self._rests_until
        if len(self._notebook):
            await self.flush()
            self._rests_until = now + PAUSE
        return now + IDLE

    async def flush(self) -> None:
        """Write the waiting notes now. Notes that could not be written keep waiting."""
        self._say_what_was_dropped()
        while batch := self._take():
            try:
                await self._write(batch)
            except BaseException:
                with self._lock:
                    self._notebook.put_back(batch)
                raise
            if len(batch) < BATCH:
                return

    def _take(self) -> list[ProgressNote]:
        with self._lock:
            self._is_roused = False
            return self._notebook.take(BATCH)

    async def _write(self, batch: list[ProgressNote]) -> None:
        """Write a batch. A note that the database refuses does not fail the others."""
        try:
            connection = await self.line.get()
            if any(note.sealed_for for note in batch):
                batch = await self._sealed(connection, batch)
            await notes.insert_notes(connection, batch)
        except asyncpg.DataError as error:
            if len(batch) > 1:
                for note in batch:
                    await self._write([note])
            else:
                self._refused += 1
                log.error("the database refused a progress note", instance=batch[0].instance_id, error=repr(error))

    async def _sealed(self, connection: Platform, batch: list[ProgressNote]) -> list[ProgressNote]:
        """Seal the messages of encrypted jobs. A message whose key is not available is stored as `***`."""
        sealed = list(batch)
        for own in {note.sealed_for for note in batch if note.sealed_for is not None}:
            indices = [index for index, note in enumerate(batch) if note.sealed_for == own]
            texts: list[str | None] = [batch[index].message for index in indices]
            try:
                texts = await seal_texts(connection, self._keyring, SealedJob(*own), SealedColumn.NOTE, texts)
            except (Conflict, KeyUnavailable, EnvelopeBroken):
                texts = [None if text is None else HIDDEN for text in texts]
            for index, text in zip(indices, texts, strict=True):
                sealed[index] = batch[index]._replace(message=text, sealed_for=None)
        return sealed

    def _say_what_was_dropped(self) -> None:
        dropped = self._notebook.dropped
        if dropped > self._told_dropped:
            log.warning("progress notes dropped: the buffer is full", dropped=dropped - self._told_dropped)
            self._told_dropped = dropped

"""The loop that receives changes from a source, applies them, and reports each result after the commit."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

import asyncpg
import structlog

from horai.core.errors import DatabaseUnavailable
from horai.db.pool import GONE, Plans
from horai.features.events import store as sources
from horai.features.events.change import read_change
from horai.features.events.service import AppliedChange, Arrival, Fate, NotNow, PutAside, RepeatedChange, accept_changes
from horai.features.events.source import Message, Source, SourceUnavailable
from horai.operations.scope import Scope

log = structlog.get_logger(__name__)

REMEMBERED = timedelta(days=7)
FORGOTTEN_AT_ONCE = 10_000
TIDY_EVERY = timedelta(minutes=10)
FIRST_DELAY = timedelta(seconds=1)
LONGEST_DELAY = timedelta(minutes=1)
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


@dataclass(frozen=True, slots=True)
class IntakeSettings:
    """`job` is the job of all changes of the source; None if each event names its own."""

    job: str | None = None
    batch: int = 500


class Intake:
    """The reader of one source; it runs until the source ends or the caller sets `stop`."""

    def __init__(self, scope: Scope, source: Source, settings: IntakeSettings | None = None) -> None:
        self._scope = scope
        self._source = source
        self._settings = settings or IntakeSettings()
        self._failures = 0
        self._tidied_at: float | None = None
        self.counts: Counter[str] = Counter()
        """The number of messages by result: an effect of a change, REPEATED, PARKED, or DELAYED."""

    async def run(self, stop: asyncio.Event) -> None:
        """Read until the source ends, or until soon after `stop`; messages already received are applied first."""
        while not stop.is_set():
            try:
                is_open = await self.step()
                self._failures = 0 if is_open is not None else self._failures + 1
            except (SourceUnavailable, DatabaseUnavailable, asyncpg.PostgresError, *GONE) as error:
                self._failures += 1
                log.warning(
                    "reading the source failed, will retry",
                    source=self._source.name,
                    error=str(error),
                    failures=self._failures,
                )
                is_open = None
            if is_open is False:
                return
            if is_open is None:
                await _pause(stop, min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE))

    async def step(self) -> bool | None:
        """Process one batch. Return True to continue, None to continue after a pause, False if the source has ended."""
        await self._tidy()
        messages = await self._source.receive(self._settings.batch)
        if messages is None:
            return False
        fates = await accept_changes(self._scope, self._source.name, [self._read(message) for message in messages])
        for message, fate in zip(messages, fates, strict=True):
            await self._settle(message, fate)
        is_stuck = bool(fates) and all(isinstance(fate, NotNow) for fate in fates)
        return None if is_stuck else True

    def _read(self, message: Message) -> Arrival:
        read = read_change(message.body, message.headers, self._settings.job)
        return Arrival(message.place, message.subject, message.headers, message.body, read)

    async def _settle(self, message: Message, fate: Fate) -> None:
        self.counts[fate.word] += 1
        match fate:
            case AppliedChange() | RepeatedChange():
                await self._source.ack(message)
            case PutAside(reason):
                log.warning("event parked", source=self._source.name, place=message.place, reason=reason)
                await self._source.park(message)
            case NotNow(reason):
                log.info("event delayed", source=self._source.name, place=message.place, reason=reason)
                await self._source.nak(message, delay_of(message.deliveries))
            case _:
                assert_never(fate)

    async def _tidy(self) -> None:
        """Delete up to `FORGOTTEN_AT_ONCE` event ids older than `REMEMBERED`, at most once per `TIDY_EVERY`."""
        now = asyncio.get_running_loop().time()
        if self._tidied_at is not None and now < self._tidied_at + TIDY_EVERY.total_seconds():
            return
        async with self._scope.write(Plans.FRESH, autocommit=True) as connection:
            await sources.forget_events(connection, self._scope.tenant_id, REMEMBERED, FORGOTTEN_AT_ONCE)
        self._tidied_at = now


def delay_of(deliveries: int) -> timedelta:
    """Return the delay before a message is delivered again: 1 s, doubled with each delivery, up to 1 minute."""
    return min(FIRST_DELAY * 2 ** min(deliveries - 1, 10), LONGEST_DELAY)


def summary_of(counts: Mapping[str, int]) -> str:
    """Return the counts of results as text, for example `2 INSERTED, 1 PARKED`."""
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items())) or "no messages"


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()

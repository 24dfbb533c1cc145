"""Apply the changes of event sources: many per transaction, each exactly once, by the same rules as `put`.

The id of an event is stored in the transaction of its change. After a crash before the commit neither exists; after a
crash that follows the commit both do, and the redelivered event is recognised. A message that can never take effect is
parked in the same transaction and does not delay other messages.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby
from typing import ClassVar, TypeAlias

import asyncpg

from horai.core.errors import Conflict, DatabaseUnavailable, KeyUnavailable, NotFound, RetryLimited, TooLarge
from horai.core.put import PutOptions
from horai.db.instances import InsertTarget
from horai.db.pool import GONE, TenantWrite, retrying
from horai.features.events import store as sources
from horai.features.events.change import Change, Effect
from horai.features.events.cloudevents import Poison
from horai.features.events.sealed_bodies import park
from horai.features.events.store import Bound, Event, Unreadable
from horai.operations.cancel import Cancel, CancelResult, cancel_all
from horai.operations.instances import find_place, publish_wakes
from horai.operations.put import Put, PutResult, put_all
from horai.operations.scope import Scope

LOCK_PATIENCE = timedelta(milliseconds=500)
UNACCEPTABLE = ("22", "23", "54")
"""SQLSTATE classes that mean a bad value, for which a retry does not help."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A received message and its parsed content. `place` is its position in the source, the same at every delivery."""

    place: str
    subject: str
    headers: Mapping[str, str]
    body: bytes
    read: Change | Poison

    def event_of(self, change: Change, job_id: int) -> Event:
        """Return the key that identifies the event: its own identity, or its place if it has none."""
        return job_id, change.identity or f"place:{self.place}"

    def unreadable(self, poison: Poison) -> Unreadable:
        """Return the message in the form in which it is parked."""
        return Unreadable(self.place, self.subject, self.headers, self.body, poison.words)


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change that was applied and committed."""

    effect: Effect
    instance_id: int | None

    @property
    def word(self) -> str:
        """The name under which this result is counted; every `Fate` has one."""
        return self.effect.value


@dataclass(frozen=True, slots=True)
class RepeatedChange:
    """An event that took effect before: nothing was done."""

    word: ClassVar[str] = "REPEATED"


@dataclass(frozen=True, slots=True)
class PutAside:
    """A message that was parked, and the reason."""

    reason: str
    word: ClassVar[str] = "PARKED"


@dataclass(frozen=True, slots=True)
class NotNow:
    """A message that had no effect yet, because of the database, a quota, or another transaction with its key. Retry it."""

    reason: str
    word: ClassVar[str] = "DELAYED"


Fate: TypeAlias = AppliedChange | RepeatedChange | PutAside | NotNow


async def accept_changes(scope: Scope, source: str, arrivals: Sequence[Arrival]) -> list[Fate]:
    """Apply the arrivals and return the result of each, in order; results are committed on return.

    If the database refuses one arrival, the batch is split in halves until that arrival is alone, so the others
    succeed.
    """
    if not arrivals:
        return []
    try:
        return await retrying(lambda: _attempt(scope, source, arrivals))
    except (DatabaseUnavailable, *GONE) as error:
        return [NotNow(type(error).__name__)] * len(arrivals)
    except (RetryLimited, Conflict, KeyUnavailable) as error:  # over a quota, or a payload or body cannot be sealed
        if len(arrivals) == 1:
            return [NotNow(error.detail)]
    except (asyncpg.PostgresError, TooLarge) as error:
        if len(arrivals) == 1:
            return [await _refused(scope, source, arrivals[0], error)]
    half = len(arrivals) // 2
    first = await accept_changes(scope, source, arrivals[:half])
    delayed = {_unit(one) for one, fate in zip(arrivals[:half], first, strict=True) if isinstance(fate, NotNow)}
    rest = [one for one in arrivals[half:] if _unit(one) not in delayed]
    fates = iter(await accept_changes(scope, source, rest))
    behind = NotNow("an earlier change of the same key is delayed")
    return first + [behind if _unit(one) in delayed else next(fates) for one in arrivals[half:]]


def _unit(arrival: Arrival) -> tuple[str | None, str] | None:
    return (arrival.read.job, arrival.read.key) if isinstance(arrival.read, Change) else None


async def _refused(scope: Scope, source: str, arrival: Arrival, error: asyncpg.PostgresError | TooLarge) -> Fate:
    if isinstance(error, asyncpg.PostgresError) and not (error.sqlstate or "").startswith(UNACCEPTABLE):
        return NotNow(type(error).__name__)
    is_quota = isinstance(error, TooLarge)
    poison = Poison(error.detail.rstrip("."), error.hint) if is_quota else Poison(f"the database refused it: {error}")
    try:
        async with scope.write() as connection:
            await park(connection, scope, source, [arrival.unreadable(poison)])
    except (Conflict, KeyUnavailable, DatabaseUnavailable, asyncpg.PostgresError, *GONE) as failure:
        return NotNow(type(failure).__name__)
    return PutAside(poison.words)


async def _attempt(scope: Scope, source: str, arrivals: Sequence[Arrival]) -> list[Fate]:
    async with scope.write() as connection:
        await sources.wait_briefly(connection, LOCK_PATIENCE)
        batch = _Batch(connection, scope, source)
        fates = await batch.accept(arrivals)
    publish_wakes(scope, batch.answers)
    return fates


@dataclass(slots=True)
class _Batch:
    """One transaction, and the answers to publish after its commit."""

    connection: TenantWrite
    scope: Scope
    source: str
    answers: list[PutResult | CancelResult] = field(default_factory=list[PutResult | CancelResult])

    async def accept(self, arrivals: Sequence[Arrival]) -> list[Fate]:
        places, unknown = await self._places(arrivals)
        bad = {n: one.read for n, one in enumerate(arrivals) if isinstance(one.read, Poison)}
        bad |= {n: unknown[c.job] for n, c in _changes(arrivals) if c.job in unknown}
        if bad:
            put_aside = [arrivals[n].unreadable(poison) for n, poison in bad.items()]
            await park(self.connection, self.scope, self.source, put_aside)
        events: dict[Event, Change] = {}
        first: dict[int, Event] = {}
        for n, change in _changes(arrivals):
            if n not in bad and (event := arrivals[n].event_of(change, places[change.job].job_id)) not in events:
                events[event], first[n] = change, event
        applied = await self._apply(await self._new(events), places)
        return [
            PutAside(bad[n].words)
            if n in bad
            else applied.get(first[n], RepeatedChange())
            if n in first
            else RepeatedChange()
            for n in range(len(arrivals))
        ]

    async def _new(self, events: Mapping[Event, Change]) -> dict[Event, Change]:
        """Take the events that have not taken effect before, and return them in order."""
        new = await sources.take_events(self.connection, self.source, events) if events else set[Event]()
        return {event: change for event, change in events.items() if event in new}

    async def _places(
        self, arrivals: Sequence[Arrival]
    ) -> tuple[dict[str | None, InsertTarget], dict[str | None, Poison]]:
        """Lock the named jobs in order of name; return their insert targets, and the reasons for missing jobs."""
        places: dict[str | None, InsertTarget] = {}
        unknown: dict[str | None, Poison] = {}
        for job in sorted({change.job or "" for _, change in _changes(arrivals)}):
            if not job:
                unknown[None] = Poison("job: is missing", "Name it in the event, or start the source with --job.")
                continue
            try:
                places[job] = await find_place(self.connection, self.scope, job)
            except NotFound as error:
                unknown[job] = Poison(error.detail.rstrip("."), "Create the job, then retry the parked event.")
        return places, unknown

    async def _apply(
        self, events: Mapping[Event, Change], places: Mapping[str | None, InsertTarget]
    ) -> dict[Event, AppliedChange]:
        """Apply the changes of one key one after the other, and those of different keys together."""
        applied: dict[Event, AppliedChange] = {}
        for wave in _waves(events):
            for job, group in groupby(sorted(wave, key=lambda one: one[1].job or ""), key=lambda one: one[1].job):
                applied |= await self._apply_to(places[job], dict(group))
        if applied:
            bound = {event: Bound(one.effect, one.instance_id) for event, one in applied.items()}
            await sources.bind_events(self.connection, self.source, bound)
        return applied

    async def _apply_to(self, place: InsertTarget, events: Mapping[Event, Change]) -> dict[Event, AppliedChange]:
        puts = {event: change for event, change in events.items() if change.execute_time is not None}
        cancels = {event: change for event, change in events.items() if change.execute_time is None}
        answers = await put_all(self.connection, place, [_put(change) for change in puts.values()], self.scope.keyring)
        wishes = [Cancel(change.key, change.version) for change in cancels.values()]
        cancelled = await cancel_all(self.connection, place, wishes)
        self.answers += [*answers, *cancelled.values()]
        put = zip(puts, answers, strict=True)
        applied = {event: AppliedChange(Effect(answer.verdict.value), answer.instance_id) for event, answer in put}
        return applied | {event: _applied(cancelled[change.key]) for event, change in cancels.items()}


def _changes(arrivals: Sequence[Arrival]) -> Iterator[tuple[int, Change]]:
    return ((n, one.read) for n, one in enumerate(arrivals) if isinstance(one.read, Change))


def _put(change: Change) -> Put:
    assert change.execute_time is not None  # noqa: S101 — changes without one are cancels
    return Put(change.key, change.execute_time, change.payload, PutOptions(change.version))


def _applied(cancelled: CancelResult) -> AppliedChange:
    return AppliedChange(Effect.CANCELLED if cancelled.took_effect else Effect.IGNORED, cancelled.instance_id)


def _waves(events: Mapping[Event, Change]) -> list[list[tuple[Event, Change]]]:
    """Group the changes: the first of every key, then the second of every key, …; a key occurs once per wave."""
    waves: list[list[tuple[Event, Change]]] = []
    turns: Counter[tuple[int, str]] = Counter()
    for event, change in events.items():
        unit = (event[0], change.key)
        if turns[unit] == len(waves):
            waves.append([])
        waves[turns[unit]].append((event, change))
        turns[unit] += 1
    return waves

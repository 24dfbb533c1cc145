"""Replay of dead letters: one new instance each, in one transaction with its letter.

Letters are taken oldest first, in batches of one transaction each: a crash between batches leaves every letter either
NEW without an instance, or REPLAYED with one. A concurrent request gets other letters (SKIP LOCKED); a repeated request
finds none of them NEW.

A put locks its key first and the letters of the key second; a replay locks them in the opposite order. So a replay
gives way: it waits for a key at most `PATIENCE`, far less than deadlock detection takes, then releases its letters and
takes them one by one. Letters whose keys are still locked then stay NEW.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from horai.core.put import Past
from horai.core.queue import Rate
from horai.core.wakes import RunsWake
from horai.db import instances, nodes
from horai.db.claims import Claimable
from horai.db.instance_queries import FIRST
from horai.db.instances import KeyPast
from horai.db.pool import Connection, Plans, acquire, limit_lock_wait, transaction
from horai.features.dead_letters import store as dead_letters
from horai.features.dead_letters.store import LetterFilter, LockedLetter, ReplayStatus
from horai.operations.bulk import HELD_UP, PATIENCE
from horai.operations.scope import Scope

BATCH = 500
LIMIT_DEFAULT = 1_000
LIMIT = 10_000


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The letters to replay: at most `limit`, oldest first, starting at `rate` if there is one."""

    only: LetterFilter
    limit: int = LIMIT_DEFAULT
    rate: Rate | None = None


@dataclass(slots=True)
class LetterReplaySummary:
    """The result of a replay.

    `held`: another transaction had locked their keys, they are still NEW; `more`: other letters match.
    """

    matched: int = 0
    replayed: int = 0
    superseded: int = 0
    held: int = 0
    more: bool = False


@dataclass(slots=True)
class ReplayResult:
    """The result for locked letters: the created instances by letter id, and the letters whose keys ran otherwise."""

    made: dict[int, Claimable] = field(default_factory=dict[int, Claimable])
    superseded: list[int] = field(default_factory=list[int])


async def count_matching(scope: Scope, wanted: ReplayRequest) -> LetterReplaySummary:
    """Count the letters that a replay would take now, without writing."""
    async with acquire(scope.pool) as connection:
        only = until(wanted.only, await nodes.database_time(connection))
        found = await dead_letters.count_replayable(connection, scope.tenant_id, only, wanted.limit + 1)
    return LetterReplaySummary(min(found, wanted.limit), more=found > wanted.limit)


async def replay_matching(scope: Scope, wanted: ReplayRequest) -> LetterReplaySummary:
    """Replay letters that match and existed when the call began.

    Instances that die again meanwhile are left for the next call.
    """
    async with acquire(scope.pool) as connection:
        now = await nodes.database_time(connection)
    only = until(wanted.only, now)
    run = _Replay(scope, wanted, now, time.monotonic() + scope.longest)
    await run.through(only)
    async with acquire(scope.pool) as connection:
        run.summary.more = await dead_letters.count_replayable(connection, scope.tenant_id, only, 1) > 0
    return run.summary


def until(only: LetterFilter, now: datetime) -> LetterFilter:
    """Limit a filter to letters created before `now`."""
    return replace(only, until=now if only.until is None else min(only.until, now))


@dataclass(slots=True)
class _Replay:
    """One replay request in progress."""

    scope: Scope
    wanted: ReplayRequest
    now: datetime
    ends_at: float
    summary: LetterReplaySummary = field(default_factory=LetterReplaySummary)

    async def through(self, only: LetterFilter) -> None:
        """Replay batch after batch until the limit is reached, no letter is left, or time is up."""
        after = FIRST
        while (left := self.wanted.limit - self.summary.matched) > 0 and not self.is_late:
            letters = await self._batch(only, after, min(left, BATCH))
            if not letters:
                return
            after = letters[-1].created_at, letters[-1].id

    @property
    def is_late(self) -> bool:
        return time.monotonic() >= self.ends_at

    async def _batch(self, only: LetterFilter, after: tuple[datetime, int], limit: int) -> Sequence[LockedLetter]:
        letters: list[LockedLetter] = []
        done = ReplayResult()
        first = self.summary.matched
        try:
            async with self._transaction() as connection:
                letters = await dead_letters.lock_replayable(connection, self.scope.tenant_id, only, after, limit)
                done = await replay_locked(
                    connection, [(letter, self._at(first + n)) for n, letter in enumerate(letters)]
                )
        except HELD_UP:
            await self._singly(letters)
        self.summary.matched += len(letters)
        self._note(done)
        return letters

    async def _singly(self, letters: Sequence[LockedLetter]) -> None:
        for number, letter in enumerate(letters, self.summary.matched):
            done = ReplayResult()
            if self.is_late:
                self.summary.held += 1
                continue
            try:
                async with self._transaction() as connection:
                    locked = await dead_letters.lock_letter(connection, self.scope.tenant_id, letter.id)
                    if locked is not None and locked.replay_status is ReplayStatus.NEW:
                        done = await replay_locked(connection, [(locked, self._at(number))])
            except HELD_UP:
                self.summary.held += 1
            self._note(done)

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[Connection]:
        async with transaction(self.scope.pool, Plans.FRESH) as connection:
            await limit_lock_wait(connection, PATIENCE)
            yield connection

    def _at(self, number: int) -> datetime:
        return self.now if self.wanted.rate is None else self.now + self.wanted.rate.offset(number)

    def _note(self, done: ReplayResult) -> None:
        self.summary.replayed += len(done.made)
        self.summary.superseded += len(done.superseded)
        self.scope.wakeups.announce(done.made.values())
        self.scope.wakeups.publish(RunsWake([woken.id for woken in done.made.values()]))


async def replay_locked(connection: Connection, letters: Sequence[tuple[LockedLetter, datetime]]) -> ReplayResult:
    """Replay NEW letters that the caller's transaction has locked, each at its time.

    The caller announces the instances after the commit. A letter of a deleted job is left unchanged. A key that is
    live, or that has succeeded since the death, is not run again: its letter is superseded.
    """
    lanes = await dead_letters.share_lanes(connection, {letter.job_id for letter, _ in letters})
    able = [(letter, at) for letter, at in letters if letter.job_id in lanes]
    if not able:
        return ReplayResult()
    found = await dead_letters.insert_replays(connection, [(letter.instance_id, at) for letter, at in able], lanes)
    needless = await _inherit(connection, [woken.id for woken in found.values()])
    made = {dead: woken for dead, woken in found.items() if woken.id not in needless}
    done = ReplayResult({letter.id: made[letter.instance_id] for letter, _ in able if letter.instance_id in made})
    done.superseded = [letter.id for letter, _ in able if letter.id not in done.made]
    if done.made:
        await dead_letters.mark_replayed(connection, {letter: woken.id for letter, woken in done.made.items()})
    if done.superseded:
        await dead_letters.mark_superseded(connection, done.superseded)
    return done


async def _inherit(connection: Connection, made: Sequence[int]) -> set[int]:
    """Give new replays the version and fence of their keys' history; remove those that history makes needless."""
    pasts = await dead_letters.pasts_of_replays(connection, made) if made else {}
    needless = {instance_id for instance_id, past in pasts.items() if past.succeeded}
    if needless:
        await instances.take_back(connection, list(needless))
    heirs = {id_: KeyPast(Past(False, p.version), p.fence) for id_, p in pasts.items() if id_ not in needless}
    if heirs:
        await instances.inherit(connection, heirs)
    return needless

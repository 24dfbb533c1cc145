"""Replay of dead letters: one new instance each, in one transaction with its letter.

Letters are taken oldest first, in pages of `BATCH`: see operations/bulk.py. A crash between pages leaves every letter
either NEW without an instance, or REPLAYED with one. A concurrent request gets other letters (SKIP LOCKED); a repeated
request finds none of them NEW.

A put locks its key first and the letters of the key second; a replay locks them in the opposite order. So a replay
gives way: it waits for a key at most `bulk.PATIENCE`, far less than deadlock detection takes, then releases its letters
and takes them one by one. Letters whose keys are still locked then stay NEW.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from horai.core.audit import AuditVerb
from horai.core.put import Past
from horai.core.queue import Rate
from horai.core.wakes import RunsWake
from horai.db import dead_letters, instances, nodes, quotas
from horai.db.claims import Claimable
from horai.db.dead_letters import LetterFilter, LockedLetter, ReplayStatus
from horai.db.instance_queries import FIRST
from horai.db.instances import KeyPast
from horai.db.pool import Plans, TenantWrite
from horai.operations import audit
from horai.operations.bulk import BulkPage, brief_transaction, change_pages
from horai.operations.scope import Scope

BATCH = 500
LIMIT_DEFAULT = 1_000
LIMIT = 10_000

TimedLetter = tuple[LockedLetter, datetime]
"""A letter and the time at which its replay starts."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """The letters to replay: at most `limit`, oldest first, starting at `rate` if there is one."""

    only: LetterFilter
    limit: int = LIMIT_DEFAULT
    rate: Rate | None = None


@dataclass(frozen=True, slots=True)
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
    async with scope.read() as connection:
        only = until(wanted.only, await nodes.database_time(connection))
        found = await dead_letters.count_replayable(connection, scope.tenant_id, only, wanted.limit + 1)
    return LetterReplaySummary(min(found, wanted.limit), more=found > wanted.limit)


async def replay_matching(scope: Scope, wanted: ReplayRequest) -> LetterReplaySummary:
    """Replay letters that match and existed when the call began.

    Instances that die again meanwhile are left for the next call.
    """
    async with scope.read() as connection:
        now = await nodes.database_time(connection)
    verb = _Replay(scope, until(wanted.only, now), now, wanted.rate)
    done = await change_pages(scope, verb, FIRST, wanted.limit, BATCH)
    async with scope.read() as connection:
        more = await dead_letters.count_replayable(connection, scope.tenant_id, verb.only, 1) > 0
    return LetterReplaySummary(done.matched, verb.replayed, verb.superseded, done.held, more)


def until(only: LetterFilter, now: datetime) -> LetterFilter:
    """Limit a filter to letters created before `now`."""
    return replace(only, until=now if only.until is None else min(only.until, now))


async def record_replays(connection: TenantWrite, scope: Scope, verb: AuditVerb, done: ReplayResult) -> None:
    """Record the replays of a page, if there are any, as one row of the audit log."""
    if done.made:
        await audit.record_write(connection, scope, verb, "", "", counts={"instances": len(done.made)})


@dataclass(slots=True)
class _Replay:
    scope: Scope
    only: LetterFilter
    now: datetime
    rate: Rate | None
    replayed: int = 0
    superseded: int = 0

    async def change_page(self, page: BulkPage[TimedLetter, tuple[datetime, int]]) -> int:
        """Lock and replay in the same transaction: a concurrent request skips letters while they are locked."""
        async with brief_transaction(self.scope, Plans.FRESH) as connection:
            letters = await dead_letters.lock_replayable(
                connection, self.scope.tenant_id, self.only, page.start, page.size
            )
            page.rows = [(letter, self._at(number)) for number, letter in enumerate(letters, page.matched_before)]
            page.next = (letters[-1].created_at, letters[-1].id) if letters else None
            done = await replay_locked(connection, page.rows)
            await record_replays(connection, self.scope, AuditVerb.DEAD_LETTERS_REPLAY_MATCHING, done)
        self._count(done)
        return len(letters)

    async def change_row(self, row: TimedLetter) -> int:
        """Replay a letter that is still NEW."""
        letter, at = row
        done = ReplayResult()
        async with brief_transaction(self.scope, Plans.FRESH) as connection:
            locked = await dead_letters.lock_letter(connection, self.scope.tenant_id, letter.id)
            if locked is not None and locked.replay_status is ReplayStatus.NEW:
                done = await replay_locked(connection, [(locked, at)])
                await record_replays(connection, self.scope, AuditVerb.DEAD_LETTERS_REPLAY_MATCHING, done)
        self._count(done)
        return 1

    def _at(self, number: int) -> datetime:
        return self.now if self.rate is None else self.now + self.rate.offset(number)

    def _count(self, done: ReplayResult) -> None:
        self.replayed += len(done.made)
        self.superseded += len(done.superseded)
        tell_replayed(self.scope, done)


def tell_replayed(scope: Scope, done: ReplayResult) -> None:
    """Announce the new instances and tell the workflows of them. Call this after the commit."""
    scope.wakeups.announce_new(done.made.values())
    scope.wakeups.publish(RunsWake([woken.id for woken in done.made.values()]))


async def replay_locked(connection: TenantWrite, letters: Sequence[TimedLetter]) -> ReplayResult:
    """Replay NEW letters that the caller's transaction has locked, each at its time.

    The caller calls `tell_replayed` after the commit. A letter of a deleted job is left unchanged. A key that is
    live, or that has succeeded since the death, is not run again: its letter is superseded.
    """
    lanes = await dead_letters.share_lanes(connection, {letter.job_id for letter, _ in letters})
    able = [(letter, at) for letter, at in letters if letter.job_id in lanes]
    if not able:
        return ReplayResult()
    await quotas.charge_jobs(connection, [letter.job_id for letter, _ in able])
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


async def _inherit(connection: TenantWrite, made: Sequence[int]) -> set[int]:
    """Give new replays the version and fence of their keys' history; remove those that history makes needless."""
    pasts = await dead_letters.pasts_of_replays(connection, made) if made else {}
    needless = {instance_id for instance_id, past in pasts.items() if past.succeeded}
    if needless:
        await instances.take_back(connection, list(needless))
    heirs = {id_: KeyPast(Past(False, p.version), p.fence) for id_, p in pasts.items() if id_ not in needless}
    if heirs:
        await instances.inherit(connection, heirs)
    return needless

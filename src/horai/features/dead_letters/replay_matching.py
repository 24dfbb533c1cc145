"""Bulk replay of the dead instances that match and whose letter is open, in pages of `PORTION`: see operations/bulk.py.

A dead instance stays unchanged when it is replayed; its letter records the replay. A crash between pages leaves each
letter either NEW without an instance, or REPLAYED with one, and the same request again skips the latter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from horai.core.audit import AuditVerb
from horai.core.queue import Rate
from horai.db import dead_letters, nodes
from horai.db.instance_lists import InstanceFilter, Position
from horai.operations.bulk import BulkPage, brief_transaction, change_pages
from horai.operations.cancel_matching import PORTION, page_before
from horai.operations.letter_replay import record_replays, replay_locked, tell_replayed
from horai.operations.scope import Scope


@dataclass(frozen=True, slots=True)
class ReplaySummary:
    """The result of a replay. `held`: locked by another transaction; `reached`: the next request continues after it."""

    matched: int
    replayed: int
    superseded: int
    held: int
    reached: Position | None


@dataclass(frozen=True, slots=True)
class InstanceReplayRequest:
    """The dead instances to replay: at most `limit`, newest fire time first, starting at `rate` if there is one."""

    only: InstanceFilter
    limit: int
    rate: Rate | None = None


async def replay_matching(
    scope: Scope, wanted: InstanceReplayRequest, before: Position, *, dry_run: bool = False
) -> ReplaySummary:
    """Replay the dead instances that match after the position `before`.

    A dry run counts them and writes nothing.
    """
    async with scope.read() as connection:
        now = await nodes.database_time(connection)
    verb = _InstanceReplay(scope, wanted.only, wanted.rate, now, dry_run)
    done = await change_pages(scope, verb, before, wanted.limit, PORTION)
    return ReplaySummary(done.matched, verb.replayed, verb.superseded, done.held, done.next)


@dataclass(slots=True)
class _InstanceReplay:
    scope: Scope
    only: InstanceFilter
    rate: Rate | None
    now: datetime
    dry_run: bool
    taken: int = 0
    """Letters that have got their times."""
    replayed: int = 0
    superseded: int = 0

    async def change_page(self, page: BulkPage[int, Position]) -> int:
        """Count only instances whose letter is open: `only` matches the others as well."""
        found = await page_before(self.scope, self.only, page.start, page.size)
        page.rows, page.next = [row.id for row in found.rows], found.next
        if not page.rows:
            return 0
        if self.dry_run:
            async with self.scope.read() as connection:
                return await dead_letters.count_open_of(connection, page.rows)
        return await self._replay(page.rows)

    async def change_row(self, row: int) -> int:
        return await self._replay([row])

    async def _replay(self, ids: Sequence[int]) -> int:
        async with brief_transaction(self.scope) as connection:
            letters = await dead_letters.lock_open_of(connection, ids)
            done = await replay_locked(
                connection, [(letter, self._at(n)) for n, letter in enumerate(letters, self.taken)]
            )
            await record_replays(connection, self.scope, AuditVerb.INSTANCES_REPLAY_MATCHING, done)
        self.taken += len(letters)
        self.replayed += len(done.made)
        self.superseded += len(done.superseded)
        tell_replayed(self.scope, done)
        return len(letters)

    def _at(self, number: int) -> datetime:
        return self.now if self.rate is None else self.now + self.rate.offset(number)

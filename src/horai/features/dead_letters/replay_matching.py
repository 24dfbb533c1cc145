"""Bulk replay of the dead instances that match and whose letter is open, in portions of one transaction each.

A dead instance stays unchanged when it is replayed; its letter records the replay. A crash between portions leaves each
letter either NEW without an instance, or REPLAYED with one, and the same request again skips the latter.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from horai.core.wakes import RunsWake
from horai.db import nodes
from horai.db.instance_lists import InstanceFilter, Position
from horai.db.pool import acquire, limit_lock_wait, transaction
from horai.features.dead_letters import store as dead_letters
from horai.features.dead_letters.replay import ReplayResult, replay_locked
from horai.operations.bulk import HELD_UP, PATIENCE
from horai.operations.cancel_matching import PORTION, page_before
from horai.operations.scope import Scope


@dataclass(slots=True)
class ReplaySummary:
    """The result of a replay. `held`: locked by another transaction; `reached`: the next request continues after it."""

    matched: int = 0
    replayed: int = 0
    superseded: int = 0
    held: int = 0
    reached: Position | None = None


async def replay_matching(
    scope: Scope, only: InstanceFilter, before: Position, limit: int, *, dry_run: bool = False
) -> ReplaySummary:
    """Replay the dead instances that match after the position `before`, newest fire time first, at most `limit`.

    A dry run counts them and writes nothing.
    """
    swept, ends_at = ReplaySummary(), time.monotonic() + scope.longest
    while True:
        page = await page_before(scope, only, before, min(limit - swept.matched, PORTION))
        ids = [row.id for row in page.rows]
        if ids and dry_run:
            async with acquire(scope.pool) as connection:
                swept.matched += await dead_letters.count_open_of(connection, ids)
        elif ids:
            await _replay(scope, ids, swept, ends_at)
        if page.next is None:
            return swept
        before = page.next
        if swept.matched >= limit or time.monotonic() >= ends_at:
            swept.reached = before
            return swept


async def _replay(scope: Scope, ids: Sequence[int], swept: ReplaySummary, ends_at: float) -> None:
    try:
        await _portion(scope, ids, swept)
    except HELD_UP:
        for id_ in ids:
            if time.monotonic() >= ends_at:
                swept.matched += 1
                swept.held += 1
                continue
            try:
                await _portion(scope, [id_], swept)
            except HELD_UP:
                swept.matched += 1
                swept.held += 1


async def _portion(scope: Scope, ids: Sequence[int], swept: ReplaySummary) -> None:
    async with transaction(scope.pool) as connection:
        await limit_lock_wait(connection, PATIENCE)
        letters = await dead_letters.lock_open_of(connection, ids)
        now = await nodes.database_time(connection)
        done = await replay_locked(connection, [(letter, now) for letter in letters])
    _note(scope, done, swept, len(letters))


def _note(scope: Scope, done: ReplayResult, swept: ReplaySummary, matched: int) -> None:
    swept.matched += matched
    swept.replayed += len(done.made)
    swept.superseded += len(done.superseded)
    scope.wakeups.announce(done.made.values())
    scope.wakeups.publish(RunsWake([woken.id for woken in done.made.values()]))

"""Bulk cancel of live instances that match a filter, in pages, each in its own transaction.

A crash in between leaves the rest unchanged; the same request again cancels the rest. If a row of the page is locked,
retry row by row; rows still locked are skipped.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from horai.core.states import CancelReason, State
from horai.db import instance_lists, instances
from horai.db.instance_lists import InstanceFilter, InstancePage, PageStart, Position
from horai.db.instance_queries import LAST
from horai.db.pool import acquire, limit_lock_wait, transaction
from horai.operations.bulk import HELD_UP, PATIENCE
from horai.operations.instances import tell_cancelled
from horai.operations.scope import Scope

PORTION = 500


@dataclass(slots=True)
class CancelSummary:
    """The result of a bulk cancel. `held`: locked by another transaction; `more`: further instances may match."""

    matched: int = 0
    cancelled: int = 0
    held: int = 0
    more: bool = False


async def cancel_matching(scope: Scope, only: InstanceFilter, limit: int, *, dry_run: bool = False) -> CancelSummary:
    """Cancel matching instances, the newest fire time first, at most `limit`. A dry run counts and writes nothing.

    Instances that have started meanwhile are left alone unless RUNNING is among the states.
    """
    swept, before, ends_at = CancelSummary(), LAST, time.monotonic() + scope.longest
    while True:
        size = min(limit - swept.matched, PORTION)
        page = await page_before(scope, only, before, max(size, 1))
        if size <= 0 or time.monotonic() >= ends_at:
            swept.more = bool(page.rows) or page.next is not None
            return swept
        ids = [row.id for row in page.rows]
        swept.matched += len(ids)
        if ids and not dry_run:
            await _cancel(scope, ids, swept, ends_at, running=State.RUNNING in only.states)
        if page.next is None:
            return swept
        before = page.next


async def page_before(scope: Scope, only: InstanceFilter, before: Position, size: int) -> InstancePage:
    """Return the next page of matching instances, newest fire time first."""
    async with acquire(scope.pool) as connection:
        return await instance_lists.list_instances(connection, scope.tenant_id, PageStart(before), size, only)


async def _cancel(scope: Scope, ids: Sequence[int], swept: CancelSummary, ends_at: float, *, running: bool) -> None:
    try:
        swept.cancelled += await _portion(scope, ids, running=running)
    except HELD_UP:
        for id_ in ids:
            if time.monotonic() >= ends_at:
                swept.held += 1
                continue
            try:
                swept.cancelled += await _portion(scope, [id_], running=running)
            except HELD_UP:
                swept.held += 1


async def _portion(scope: Scope, ids: Sequence[int], *, running: bool) -> int:
    async with transaction(scope.pool) as connection:
        await limit_lock_wait(connection, PATIENCE)
        gone = await instances.cancel_live(connection, ids, CancelReason.USER, running=running)
    tell_cancelled(scope, gone)
    return len(gone)

"""Bulk cancel of live instances that match a filter, in pages of `PORTION`: see operations/bulk.py."""

from collections.abc import Sequence
from dataclasses import dataclass

from horai.core.audit import AuditVerb
from horai.core.states import CancelReason, State
from horai.db import instance_lists, instances
from horai.db.instance_lists import InstanceFilter, InstancePage, PageStart, Position
from horai.db.instance_queries import LAST
from horai.operations import audit
from horai.operations.bulk import BulkPage, brief_transaction, change_pages
from horai.operations.instances import tell_cancelled
from horai.operations.scope import Scope

PORTION = 500


@dataclass(frozen=True, slots=True)
class CancelSummary:
    """The result of a bulk cancel. `held`: locked by another transaction; `more`: further instances may match."""

    matched: int
    cancelled: int
    held: int
    more: bool


async def cancel_matching(scope: Scope, only: InstanceFilter, limit: int, *, dry_run: bool = False) -> CancelSummary:
    """Cancel matching instances, the newest fire time first, at most `limit`. A dry run counts and writes nothing.

    Instances that have started meanwhile are left alone unless RUNNING is among the states.
    """
    verb = _Cancel(scope, only, dry_run)
    done = await change_pages(scope, verb, LAST, limit, PORTION)
    more = False
    if done.next is not None:
        page = await page_before(scope, only, done.next, 1)
        more = bool(page.rows) or page.next is not None
    return CancelSummary(done.matched, verb.cancelled, done.held, more)


async def page_before(scope: Scope, only: InstanceFilter, before: Position, size: int) -> InstancePage:
    """Return the next page of matching instances, newest fire time first."""
    async with scope.read() as connection:
        return await instance_lists.list_instances(connection, scope.tenant_id, PageStart(before), size, only)


@dataclass(slots=True)
class _Cancel:
    scope: Scope
    only: InstanceFilter
    dry_run: bool
    cancelled: int = 0

    async def change_page(self, page: BulkPage[int, Position]) -> int:
        found = await page_before(self.scope, self.only, page.start, page.size)
        page.rows, page.next = [row.id for row in found.rows], found.next
        if page.rows and not self.dry_run:
            await self._cancel(page.rows)
        return len(page.rows)

    async def change_row(self, row: int) -> int:
        await self._cancel([row])
        return 1

    async def _cancel(self, ids: Sequence[int]) -> None:
        running = State.RUNNING in self.only.states
        async with brief_transaction(self.scope) as connection:
            gone = await instances.cancel_live(connection, ids, CancelReason.USER, running=running)
            if gone:
                counts = {"instances": len(gone)}
                verb = AuditVerb.INSTANCES_CANCEL_MATCHING
                await audit.record_write(connection, self.scope, verb, "", "", counts=counts)
        tell_cancelled(self.scope, gone)
        self.cancelled += len(gone)

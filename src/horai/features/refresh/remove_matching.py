"""Bulk removal of the entities of a refresh job that match a filter, in pages of `PORTION`: see operations/bulk.py.

A crash leaves the entities of later pages as they are, and the same request again removes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from horai.db.jobs import JobRow
from horai.db.pool import Plans
from horai.features.refresh import store as entities
from horai.features.refresh.store import EntityFilter
from horai.operations.bulk import BulkPage, brief_transaction, change_pages
from horai.operations.scope import Scope

PORTION = 200
"""Entities per transaction: it also cancels their waiting runs."""


@dataclass(frozen=True, slots=True)
class RemovalSummary:
    """The result. `held`: locked by another transaction; `more`: further entities may match."""

    matched: int
    removed: int
    held: int
    more: bool


async def remove_matching(
    scope: Scope, job: JobRow, only: EntityFilter, limit: int, *, dry_run: bool = False
) -> RemovalSummary:
    """Remove matching entities in the order of their keys, at most `limit`. A dry run only counts them."""
    removal = _Removal(scope, job, only, dry_run)
    done = await change_pages(scope, removal, "", limit, PORTION)
    more = done.next is not None and bool(await removal.find(done.next, 1))
    return RemovalSummary(done.matched, removal.removed, done.held, more)


@dataclass(slots=True)
class _Removal:
    scope: Scope
    job: JobRow
    only: EntityFilter
    dry_run: bool
    removed: int = 0

    async def find(self, after: str, size: int) -> list[str]:
        async with self.scope.read(Plans.FRESH) as connection:
            return await entities.matching_keys(connection, self.job.id, after, size, self.only)

    async def change_page(self, page: BulkPage[str, str]) -> int:
        page.rows = await self.find(page.start, page.size)
        page.next = page.rows[-1] if len(page.rows) == page.size else None
        if page.rows and not self.dry_run:
            await self._remove(page.rows)
        return len(page.rows)

    async def change_row(self, row: str) -> int:
        await self._remove([row])
        return 1

    async def _remove(self, keys: Sequence[str]) -> None:
        async with brief_transaction(self.scope) as connection:
            removed = await entities.drop_entities(connection, self.job.id, keys)
        self.removed += removed

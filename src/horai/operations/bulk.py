"""The loop of the bulk verbs: cancel, pause, resume and replay the rows that match a filter, page by page.

- A page has at most `page_size` rows and is changed in one transaction. A crash leaves the rows of later pages
  unchanged, and the same request again changes them. The verb publishes the wakes of a page after its commit.
- A transaction waits at most `PATIENCE` for a lock. If another transaction has locked a row of the page, the page is
  rolled back, and its rows are changed one by one, each in its own transaction. Rows that are still locked are left
  unchanged and count as `held`.
- The loop stops after the last page, at the limit of the request, or `Scope.longest` seconds after it began. It checks
  the time before each page, and before each row of a page that it changes row by row: the remaining rows of that page
  count as `held` too.
- A row that is held counts as matched, so the limit bounds the rows that a request looks at, not those that it changes.
- `more` means that the same request again may find further rows: the loop returns where it stopped, and each verb looks
  or counts whether rows are left.
"""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

import asyncpg

from horai.db.pool import Plans, TenantWrite, limit_lock_wait
from horai.operations.scope import Scope

PATIENCE = timedelta(milliseconds=50)
"""The longest wait for a lock, far less than PostgreSQL takes to notice a deadlock (1 s)."""
HELD_UP = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)

Row = TypeVar("Row")
At = TypeVar("At")


@dataclass(slots=True)
class BulkPage(Generic[Row, At]):
    """A page to change: at most `size` rows from the position `start` on, after `matched_before` rows of earlier pages.

    Before it changes them, the verb sets `rows`, and `next` to the start of the next page: None on the last page.
    """

    start: At
    size: int
    matched_before: int
    rows: Sequence[Row] = ()
    next: At | None = None


class BulkVerb(Protocol[Row, At]):
    """A verb: its change of a page and of one row. Both return how many rows they count as matched."""

    async def change_page(self, page: BulkPage[Row, At]) -> int:
        """Find the rows of a page and change them in one transaction."""
        ...

    async def change_row(self, row: Row) -> int:
        """Change one row of a page that could not be changed as a whole."""
        ...


@dataclass(slots=True)
class BulkResult(Generic[At]):
    """The result of the loop: the rows that matched, those of them that are `held`, and the start of the next page.

    `next` is None after the last page.
    """

    next: At | None
    matched: int = 0
    held: int = 0

    def leave(self, rows: int) -> None:
        """Count rows of a page that match and are left unchanged."""
        self.matched += rows
        self.held += rows


async def change_pages(scope: Scope, verb: BulkVerb[Row, At], start: At, limit: int, page_size: int) -> BulkResult[At]:
    """Change the rows that a verb finds from `start` on, at most `limit`, in pages of at most `page_size`."""
    result, ends_at = BulkResult(start), time.monotonic() + scope.longest
    while result.next is not None and result.matched < limit and time.monotonic() < ends_at:
        page = BulkPage[Row, At](result.next, min(limit - result.matched, page_size), result.matched)
        try:
            result.matched += await verb.change_page(page)
        except HELD_UP:
            if not page.rows:
                raise  # the search was held up, not the change: there is no row to retry
            await _change_each(verb, page.rows, result, ends_at)
        result.next = page.next
    return result


async def _change_each(verb: BulkVerb[Row, At], rows: Sequence[Row], result: BulkResult[At], ends_at: float) -> None:
    for done, row in enumerate(rows):
        if time.monotonic() >= ends_at:
            result.leave(len(rows) - done)
            return
        try:
            result.matched += await verb.change_row(row)
        except HELD_UP:
            result.leave(1)


@asynccontextmanager
async def brief_transaction(scope: Scope, plans: Plans = Plans.KEPT) -> AsyncGenerator[TenantWrite]:
    """Open a transaction that waits at most `PATIENCE` for each lock."""
    async with scope.write(plans) as connection:
        await limit_lock_wait(connection, PATIENCE)
        yield connection

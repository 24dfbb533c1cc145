"""Bulk cancel and rerun of the runs of a workflow that match a filter: see operations/bulk.py.

A page has one run: a decision on a run may write thousands of rows, and a run that cannot be changed must not undo the change
of another one. A crash leaves later runs unchanged, and the same request again changes them: a cancelled run is not found
again, and neither is one that runs again.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from horai.core.errors import AlreadyFinal, Conflict
from horai.db import nodes
from horai.db.pool import TenantRead
from horai.features.workflow.graph import RunState
from horai.features.workflow.rerun import cancel_in, read_run, rerun_in
from horai.features.workflow.rerun_store import RunFilter, pending_runs, runs_matching
from horai.features.workflow.service import WorkflowRequest, require_workflow
from horai.operations.bulk import BulkPage, brief_transaction, change_pages
from horai.operations.scope import Scope
from horai.operations.spread_starts import Spread, Starts
from horai.text import Refused

COUNTED_AT_ONCE = 500
REASONS = 20
"""Skipped runs that an answer names."""

OPEN = (RunState.RUNNING, RunState.BLOCKED)


@dataclass(frozen=True, slots=True)
class RunWish:
    """The runs to change: those that match the filter and, if given, have one of these ids; at most `limit`."""

    only: RunFilter
    ids: Sequence[int] | None
    limit: int

    @property
    def is_everything(self) -> bool:
        """Return whether no field narrows the runs."""
        return self.ids is None and self.only == RunFilter()


@dataclass(frozen=True, slots=True)
class SkippedRun:
    """A run that matched and was left as it is, and why."""

    run: int
    reason: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The result. `skipped` runs could not be changed: `reasons` names the first of them.

    `held`: locked by another transaction. `more`: further runs may match.
    """

    matched: int
    changed: int
    skipped: int
    held: int
    more: bool
    reasons: Sequence[SkippedRun] = ()
    next_start: datetime | None = None
    """The time of the next start, if a rate spreads them."""


async def cancel_matching(scope: Scope, reference: str, wish: RunWish, *, dry_run: bool = False) -> RunSummary:
    """Cancel the unfinished runs that match, oldest id first. A dry run only counts them.

    Runs that are named by their ids are cancelled before they have started as well.
    """
    workflow = await _workflow(scope, reference)

    async def cancel(run: int) -> None:
        async with brief_transaction(scope) as connection:
            done = await cancel_in(connection, scope, workflow, run)
        done.tell(scope)

    return await _change(_RunChange(scope, workflow, wish, OPEN, cancel, dry_run))


async def rerun_matching(
    scope: Scope, reference: str, wish: RunWish, spread: Spread | None = None, *, dry_run: bool = False
) -> RunSummary:
    """Rerun the BLOCKED runs that match, each from all dead nodes that block it. A dry run only counts them.

    `spread` gives each run its time to start; a run that is skipped takes none.
    """
    workflow = await _workflow(scope, reference)
    async with scope.read() as connection:
        starts = Starts(await nodes.database_time(connection), spread)

    async def rerun(run: int) -> None:
        causes = [cause.node for cause in (await read_run(scope, reference, run)).causes]
        if not causes:
            raise Conflict(Refused.RUN_NOT_BLOCKED(run=run))
        async with brief_transaction(scope) as connection:
            done = [await rerun_in(connection, scope, workflow, run, node) for node in causes]
            if (at := starts.next_at) is not None:
                done = [await each.start_at(connection, at) for each in done]
        starts.made += 1
        for each in done:
            each.tell(scope)

    told = await _change(_RunChange(scope, workflow, wish, (RunState.BLOCKED,), rerun, dry_run))
    return replace(told, next_start=starts.next_at)


async def _workflow(scope: Scope, reference: str) -> WorkflowRequest:
    async with scope.read() as connection:
        return await require_workflow(connection, scope, reference)


async def _change(change: "_RunChange") -> RunSummary:
    done = await change_pages(change.scope, change, 0, change.wish.limit, COUNTED_AT_ONCE if change.dry_run else 1)
    more = done.next is not None and bool(await change.find(done.next, 1))
    return RunSummary(done.matched, change.changed, change.skipped, done.held, more, change.reasons)


@dataclass(slots=True)
class _RunChange:
    scope: Scope
    workflow: WorkflowRequest
    wish: RunWish
    states: Sequence[RunState]
    change: Callable[[int], Awaitable[None]]
    dry_run: bool
    changed: int = 0
    skipped: int = 0
    reasons: list[SkippedRun] = field(default_factory=list[SkippedRun])

    async def find(self, after: int, size: int) -> list[int]:
        async with self.scope.read() as connection:
            return await self._find(connection, after, size)

    async def _find(self, connection: TenantRead, after: int, size: int) -> list[int]:
        only = self.wish.only
        states = self.states if only.state is None else [state for state in self.states if state is only.state]
        flow, page = self.workflow.row.id, (after, size)
        found = await runs_matching(connection, flow, page, states, only, self.wish.ids)
        if self.wish.ids is None or only.state is not None or self.states != OPEN:
            return found
        return sorted({*found, *await pending_runs(connection, flow, page, only, self.wish.ids)})[:size]

    async def change_page(self, page: BulkPage[int, int]) -> int:
        page.rows = await self.find(page.start, page.size)
        page.next = page.rows[-1] if len(page.rows) == page.size else None
        if not self.dry_run:
            for run in page.rows:
                await self.change_row(run)
        return len(page.rows)

    async def change_row(self, row: int) -> int:
        try:
            await self.change(row)
        except (AlreadyFinal, Conflict) as error:
            self.skipped += 1
            if len(self.reasons) < REASONS:
                self.reasons.append(SkippedRun(row, error.detail))
        else:
            self.changed += 1
        return 1

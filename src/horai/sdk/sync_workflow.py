"""The methods of a workflow and of its runs without `await`: `nightly.sync.run().wait()`."""

from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, Literal, cast, overload

from horai.sdk.backfills import Backfill, BackfillPlan, ModeName
from horai.sdk.job_api import Verbs
from horai.sdk.portal import PORTAL
from horai.sdk.runs import MapItem, Run, RunInfo
from horai.sdk.sync import SyncBackfill
from horai.sdk.workflow_api import WorkflowVerbs


class SyncRun:
    """A run whose methods need no `await`."""

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    def __repr__(self) -> str:
        return repr(self._run)

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._run.id

    @property
    def duplicate(self) -> bool:
        """Return whether the idempotency key had started the run before."""
        return self._run.duplicate

    @property
    def fire_time(self) -> datetime:
        """The time that the run stands for."""
        return self._run.fire_time

    @property
    def last(self) -> RunInfo:
        """The run as it was last read."""
        return self._run.last

    def read(self) -> RunInfo:
        """Return the run with its nodes as they are now."""
        return PORTAL.run(self._run.read())

    def state(self) -> str:
        """Return the state now."""
        return PORTAL.run(self._run.state())

    def wait(self, timeout: float | str | timedelta | None = None) -> str:
        """Wait until the run stops and return its state."""
        return PORTAL.run(self._run.wait(timeout))

    def result(self, node: Verbs[..., Any] | str, timeout: float | str | timedelta | None = None) -> Any:
        """Wait for a node and return its result."""
        return PORTAL.run(self._run.result(node, timeout))

    def items(self, node: Verbs[..., Any] | str, *, failed: bool = False) -> list[MapItem]:
        """Return the items of a map that have been started, in order; with `failed` only those that failed."""

        async def collect() -> list[MapItem]:
            return [item async for item in self._run.items(node, failed=failed)]

        return PORTAL.run(collect())

    def rerun(self, *, from_node: Verbs[..., Any] | str) -> RunInfo:
        """Run a node and all nodes after it again, in this run."""
        return PORTAL.run(self._run.rerun(from_node=from_node))

    def cancel(self) -> RunInfo:
        """Cancel the run: waiting nodes and all items of maps are cancelled, running nodes finish."""
        return PORTAL.run(self._run.cancel())


class SyncWorkflow:
    """The methods of a workflow without `await`."""

    def __init__(self, workflow: WorkflowVerbs) -> None:
        self._workflow = workflow

    def run(
        self, payload: object = None, *, logical_date: datetime | None = None, idempotency_key: str | None = None
    ) -> SyncRun:
        """Start a run now and return its handle."""
        verb = self._workflow.run(payload, logical_date=logical_date, idempotency_key=idempotency_key)
        return SyncRun(PORTAL.run(verb))

    def trigger(self, payload: object = None, *, idempotency_key: str | None = None) -> int:
        """Start a run now, once per key; return its id."""
        return PORTAL.run(self._workflow.trigger(payload, idempotency_key=idempotency_key))

    def find_run(self, run_id: int | str) -> SyncRun:
        """Return the handle of a run by its id."""
        return SyncRun(PORTAL.run(self._workflow.find_run(run_id)))

    def runs(self, limit: int = 20, *, state: str | None = None) -> list[SyncRun]:
        """Return the started runs with the newest fire times."""
        return [SyncRun(run) for run in PORTAL.run(self._workflow.runs(limit, state=state))]

    def pause(self, note: str | None = None) -> None:
        """Pause the workflow: it starts no new runs. Current runs continue."""
        PORTAL.run(self._workflow.pause(note))

    def resume(self, note: str | None = None) -> None:
        """Resume the workflow. Runs of the pause follow the misfire policy."""
        PORTAL.run(self._workflow.resume(note))

    @overload
    def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: ModeName = "missing",
        rate: str | int | None = None,
        max_concurrency: int | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> SyncBackfill: ...
    @overload
    def backfill(
        self, from_: datetime, to: datetime | None = None, *, mode: ModeName = "missing", dry_run: Literal[True]
    ) -> BackfillPlan: ...
    def backfill(self, *arguments: Any, **named: Any) -> SyncBackfill | BackfillPlan:
        """Run past slots of the workflow; a dry run only counts them."""
        verb = cast("Callable[..., Coroutine[Any, Any, Backfill | BackfillPlan]]", self._workflow.backfill)
        made = PORTAL.run(verb(*arguments, **named))
        return SyncBackfill(made) if isinstance(made, Backfill) else made

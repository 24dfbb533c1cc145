"""The methods of a workflow: start a run, list runs, run past slots, pause and resume."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, overload
from uuid import uuid4

from horai.core.errors import Duplicate, Invalid
from horai.core.upcoming import MOST_FIRES
from horai.features.workflow.graph import RunState
from horai.sdk.deferred import runtime
from horai.sdk.job_api import Home
from horai.sdk.payloads import Shape

MOST_RUNS = MOST_FIRES
"""The most runs that one list returns."""


class WorkflowVerbs:
    """The methods of one workflow, which must have been declared: by a worker's start, or by `app.declare()`."""

    def __init__(self, home: Home, name: str, params: Shape[Any], results: Mapping[str, Shape[Any]]) -> None:
        self.name = name
        self._home = home
        self._params = params
        self._results = results

    async def run(
        self, payload: object = None, *, logical_date: datetime | None = None, idempotency_key: str | None = None
    ) -> "runtime.Run":
        """Start a run now and return its handle.

        The run stands for `logical_date`, which must not be in the future; without one, for the time of the call. With
        an `idempotency_key` the first call starts it; later calls get the same run, with `duplicate` set.
        """
        if logical_date is not None and logical_date.tzinfo is None:
            raise Invalid.field("logical_date", "has no UTC offset", "Write datetime(…, tzinfo=UTC).")
        scope = (await self._home.client()).scope
        text = self._params.encode(payload)
        once = runtime.Once(idempotency_key or uuid4().hex, json.dumps([text, str(logical_date)]).encode())
        try:
            row = (await runtime.trigger_run(scope, self.name, runtime.RunRequest(text, logical_date), once)).instance
        except Duplicate as first:
            if (made := first.extra.get("instanceId")) is None:
                raise
            return runtime.Run(
                self._home,
                runtime.view_info(await runtime.read_run(scope, self.name, int(made))),
                self._results,
                duplicate=True,
            )
        return runtime.Run(self._home, runtime.pending_info(self.name, row), self._results)

    async def trigger(self, payload: object = None, *, idempotency_key: str | None = None) -> int:
        """Start a run now, once per key; return its id. `run` returns a handle instead."""
        scope = (await self._home.client()).scope
        text = self._params.encode(payload)
        once = runtime.Once(idempotency_key or str(uuid4()), (text or "null").encode())
        return (await runtime.trigger_run(scope, self.name, runtime.RunRequest(text), once)).instance.id

    async def find_run(self, run_id: int | str) -> "runtime.Run":
        """Return the handle of a run by its id. Raises `NotFound` if there is none."""
        scope = (await self._home.client()).scope
        return runtime.Run(
            self._home, runtime.view_info(await runtime.read_run(scope, self.name, int(run_id))), self._results
        )

    async def runs(self, limit: int = 20, *, state: str | None = None) -> "list[runtime.Run]":
        """Return the started runs with the newest fire times, at most `limit` (1 to 1000), in one state if given."""
        if not 1 <= limit <= MOST_RUNS:
            raise Invalid.field("limit", f"is not between 1 and {MOST_RUNS}")
        if state is not None and state.upper() not in RunState.__members__:
            raise Invalid.field("state", f"{state!r} is not a state", f"Known: {', '.join(RunState.__members__)}.")
        scope = (await self._home.client()).scope
        async with scope.read() as connection:
            found = await runtime.require_workflow(connection, scope, self.name)
            only = runtime.RunFilter(None if state is None else RunState[state.upper()])
            rows = await runtime.list_runs(
                connection, found.row.id, runtime.PageStart.of_all(upwards=False), limit, only
            )
        return [runtime.Run(self._home, runtime.started_info(self.name, row), self._results) for row in rows]

    async def pause(self, note: str | None = None) -> None:
        """Pause the workflow: it starts no new runs. Current runs continue."""
        await runtime.set_paused((await self._home.client()).scope, self.name, note, paused=True)

    async def resume(self, note: str | None = None) -> None:
        """Resume the workflow. Runs of the pause follow the misfire policy."""
        await runtime.set_paused((await self._home.client()).scope, self.name, note, paused=False)

    @overload
    async def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: "runtime.ModeName" = "missing",
        rate: str | int | None = None,
        max_concurrency: int | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> "runtime.Backfill": ...
    @overload
    async def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: "runtime.ModeName" = "missing",
        dry_run: Literal[True],
    ) -> "runtime.BackfillPlan": ...
    async def backfill(
        self,
        from_: datetime,
        to: datetime | None = None,
        *,
        mode: "runtime.ModeName" = "missing",
        rate: str | int | None = None,
        max_concurrency: int | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> "runtime.Backfill | runtime.BackfillPlan":
        """Run past slots of the workflow, from `from_` to before `to` (default: now), as for a job.

        `missing` runs the slots that never ran, `failed` those whose last run is blocked, `all` every slot.
        `max_concurrency` counts whole runs.
        """
        given = {"from": from_, "to": to, "mode": mode, "rate": rate, "maxConcurrency": max_concurrency}
        scope = (await self._home.client()).scope
        return await runtime.backfill_of(scope, self.name, given, note, idempotency_key, dry_run=dry_run)

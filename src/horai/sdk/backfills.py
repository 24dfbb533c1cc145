"""`job.backfill(…)`: run past slots and follow their progress."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from horai.core.backfill_status import BackfillStatus
from horai.core.errors import Invalid
from horai.sdk.deferred import runtime
from horai.sdk.outcomes import seconds_of

ModeName: TypeAlias = Literal["missing", "failed", "all"]

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0


@dataclass(frozen=True, slots=True)
class BackfillPlan:
    """The exact result of a dry run at this moment: `total` of the `slots` in the range would run."""

    slots: int
    total: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """The progress of a backfill: of `total` slots to run, `made` are created, and `running` of these have not ended.

    `rate_per_second` is the recent rate and `eta` the expected end at that rate; each is None when it is not known.
    """

    status: BackfillStatus
    slots: int
    total: int
    made: int
    skipped: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    percent: float
    rate_per_second: float | None
    eta: datetime | None
    is_over: bool
    """True when no slot is left to create and no instance of the backfill is under way."""


class Backfill:
    """A handle of one backfill. `total` is the number of slots to run."""

    __slots__ = ("_scope", "id", "job", "total")

    def __init__(self, scope: "runtime.Scope", row: "runtime.BackfillRow") -> None:
        self._scope = scope
        self.id = str(row.id)
        self.job = row.job
        self.total = row.progress.total

    def __repr__(self) -> str:
        return f"<Backfill {self.id} of {self.job!r}>"

    async def progress(self) -> BackfillProgress:
        """Return the current progress."""
        return _shown(await runtime.backfills.read_backfill(self._scope, int(self.id)))

    async def pause(self, note: str | None = None) -> BackfillProgress:
        """Pause the backfill: create no further slots. Instances that exist continue."""
        return _shown(await runtime.backfills.pause_backfill(self._scope, int(self.id), note))

    async def resume(self, note: str | None = None) -> BackfillProgress:
        """Resume the backfill where it stopped."""
        return _shown(await runtime.backfills.resume_backfill(self._scope, int(self.id), note))

    async def cancel(self, note: str | None = None) -> BackfillProgress:
        """Cancel the backfill: create no further slots and cancel waiting instances. Running ones finish."""
        return _shown(await runtime.backfills.cancel_backfill(self._scope, int(self.id), note))

    async def wait(self, timeout: float | str | timedelta | None = None) -> BackfillProgress:
        """Wait until the backfill has ended and return its progress.

        Raises TimeoutError with its progress after `timeout`. Failed slots are counted, not raised. A paused backfill
        has not ended.
        """
        pause, patience, progress = FIRST_PAUSE, None if timeout is None else seconds_of(timeout), None
        deadline = asyncio.timeout(None if patience is None else patience.total_seconds())
        try:
            async with deadline:
                while not (progress := await self.progress()).is_over:
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, LONGEST_PAUSE)
        except TimeoutError:
            if patience is None or not deadline.expired():
                raise
            raise TimeoutError(self._unfinished(patience, progress)) from None
        return progress

    def _unfinished(self, patience: timedelta, progress: BackfillProgress | None) -> str:
        counts = "its progress could not be read"
        if progress is not None:
            counts = f"it is {progress.status}, with {progress.made} of {progress.total} slots made"
        return f"The backfill {self.id} of {self.job!r} did not end within {patience.total_seconds():g} s: {counts}."


async def backfill_of(
    scope: "runtime.Scope",
    job: str,
    given: Mapping[str, Any],
    note: str | None,
    idempotency_key: str | None,
    *,
    dry_run: bool,
) -> Backfill | BackfillPlan:
    """Start the backfill of a job, or count its slots. `given` are the arguments under their REST names.

    With an `idempotency_key`, a repeated call gets the first backfill.
    """
    wish = wish_of(given)
    if dry_run:
        return plan_of(await runtime.backfills.survey_backfill(scope, job, wish))
    text = json.dumps({**given, "note": note}, default=str)
    once = None if idempotency_key is None else runtime.Once(idempotency_key, text.encode())
    return Backfill(scope, await runtime.backfills.start_backfill(scope, job, wish, once, note))


def wish_of(given: Mapping[str, Any]) -> "runtime.BackfillRequest":
    """Return the request that the arguments describe, under their REST names. Raises `Invalid` with the wrong field."""
    for name in ("from", "to"):
        if (instant := given.get(name)) is not None and instant.tzinfo is None:
            raise Invalid.field(name, "has no UTC offset", "Write datetime(…, tzinfo=UTC).")
    if given["mode"] not in runtime.Mode.__members__:
        raise Invalid.field(
            "mode", f"{given['mode']!r} is not a mode", f"Known: {', '.join(runtime.Mode.__members__)}."
        )
    return runtime.checked_backfill({name: value for name, value in given.items() if value is not None})


def plan_of(survey: "runtime.Survey") -> BackfillPlan:
    """Return the plan that a dry run answers."""
    return BackfillPlan(survey.slots, survey.total, survey.first, survey.last)


def _shown(row: "runtime.BackfillRow") -> BackfillProgress:
    told = row.progress
    return BackfillProgress(
        row.status,
        told.slots,
        told.total,
        told.made,
        told.skipped,
        told.running,
        told.succeeded,
        told.failed,
        told.cancelled,
        told.percent(row.status),
        told.pace,
        told.eta(row.status, row.now, row.rate),
        row.finished_at is not None,
    )

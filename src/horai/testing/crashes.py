"""`crash_everywhere`: a durable function that is killed at every boundary of its steps, one after another."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from horai.core.calls import Call
from horai.features.steps.rules import Kind, StepId
from horai.sdk.app import Horai
from horai.sdk.declaration import Duration
from horai.sdk.handle import InstanceFailed
from horai.sdk.job import Job
from horai.sdk.outcomes import seconds_of
from horai.testing.harness import Harness
from horai.testing.workplace import Workplace

MOST_BOUNDARIES = 1_000


class WorkerKilled(BaseException):
    """The worker dies here: nothing that its function does from now on is stored."""


class CrashMattered(AssertionError):
    """A run that was interrupted differs from the uninterrupted one."""


@dataclass(slots=True)
class CrashReport:
    """The result of the uninterrupted run, its effects, and the boundaries at which a run was killed.

    `error` is the code with which the instance died; None if it has succeeded.
    """

    result: Any = None
    error: str | None = None
    effects: Any = None
    boundaries: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Crasher:
    """Kills the worker at the boundary number `at`, once."""

    workplace: Workplace
    at: int | None
    seen: int = 0
    where: str | None = None

    def reach(self, call: Call, step: StepId, moment: str) -> None:
        self.seen += 1
        if self.seen - 1 == self.at:
            part = "compensation of " if step.kind is Kind.COMPENSATION else ""
            self.where = f"{moment} {part}{step.name}#{step.n}"
            self.workplace.mishaps.lost.add((call.instance_id, call.fence))
            raise WorkerKilled(self.where)


async def crash_everywhere(
    function: Callable[..., Any],
    payload: object = None,
    *,
    effects: Callable[[], Any] | None = None,
    signals: Mapping[str, object] | None = None,
    dies: bool = False,
    within: Duration = "90d",
    start: datetime | str | None = None,
) -> CrashReport:
    """Run a durable function once undisturbed, then again and again, each time killed at another boundary.

    The worker dies before the function of a step, after it but before its record, and after the record. Every run must
    have the same result as the first, and the same `effects()`, which you clear when you return them. A step that was
    killed before its record runs again: make its effect idempotent with `step_key()`. `signals` are sent at the start.
    With `dies`, the instance is to become a dead letter, after the compensations of its steps: every run must die with the
    same code. The jobs of the function's application run too, for its calls, and are killed at their boundaries. Raises `CrashMattered` with the boundary at which a run differs.
    """
    report = CrashReport()
    given = (function, payload, dict(signals or {}), seconds_of(within), start)
    report.result, report.error, _ = await _run(*given, None, dies=dies)
    report.effects = None if effects is None else effects()
    for at in range(MOST_BOUNDARIES):
        result, error, where = await _run(*given, at, dies=dies)
        done = None if effects is None else effects()
        if where is None:
            return report
        if (result, error, done) != (report.result, report.error, report.effects):
            raise CrashMattered(
                f"Killed {where}, the function {_ending(result, error)} with the effects {done!r}; undisturbed it"
                f" {_ending(report.result, report.error)} with {report.effects!r}."
            )
        report.boundaries.append(where)
    raise CrashMattered(f"The function has more than {MOST_BOUNDARIES} boundaries.")


def _ending(result: object, error: str | None) -> str:
    return f"returned {result!r}" if error is None else f"died with {error}"


async def _run(
    function: Callable[..., Any],
    payload: object,
    signals: Mapping[str, object],
    within: Any,
    start: datetime | str | None,
    at: int | None,
    *,
    dies: bool,
) -> tuple[Any, str | None, str | None]:
    """Run the function in a database of its own; return its result, its error, and the boundary at which it was killed."""
    app = Horai("crash_everywhere")
    job = cast("Job[..., Any]", cast("Any", app).job(inspect.unwrap(function)))  # a job is its function
    if isinstance(function, Job) and isinstance(function.home, Horai):
        app.take_jobs(function.home, but=job.name)  # the jobs that it may call
    async with Harness(app, start) as time:
        crasher = _Crasher(time.workplace, at)
        time.workplace.steps.boundary = crasher.reach
        handle = await job.add(payload, {})
        for name, sent in signals.items():
            await handle.signal(name, sent)
        until = time.now + within
        while True:
            coming = await time.workplace.drain()
            if coming is None or coming > until or await time.workplace.has_ended(int(handle.id)):
                break
            await time.workplace.move_to(coming)
        try:
            return await handle.result(timeout=60), None, crasher.where
        except InstanceFailed as died:
            if not dies:
                raise
            return None, died.error_code, crasher.where

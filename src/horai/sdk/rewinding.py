"""The compensations of a durable function: what undoes its finished steps, and the outcome when they have run."""

import asyncio
import inspect
import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from horai.core.limits import MESSAGE_LIMIT
from horai.core.outcome import COMPENSATION_FAILED, Compensated, FailedUnrecoverable, Outcome, Withdrawn
from horai.core.retry import RetryPolicy
from horai.features.steps.rules import Kind, StepId, StepRecord

DEFAULT = RetryPolicy()
"""The retries of a compensation whose step has none of its own."""


class Undo(NamedTuple):
    """The compensation of a finished step, and the result of the step."""

    step: StepId
    function: Callable[[Any], object]
    value: Any
    retry: RetryPolicy

    @property
    def id(self) -> StepId:
        """Return the identity of its record."""
        return StepId(Kind.COMPENSATION, self.step.name, self.step.n)

    @property
    def policy(self) -> RetryPolicy:
        """Return the retries of the step, or the default ones: one failure must not leave a step as it is."""
        return self.retry if self.retry.max_retry else DEFAULT


async def call_anyhow(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that may be async, or else in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(*args)
    value = await asyncio.to_thread(function, *args)
    return await value if inspect.isawaitable(value) else value


async def undo_step(undo: Undo, timeout: timedelta | None) -> None:
    """Call a compensation with the result of its step, for at most the timeout of the job. Its own result is not kept."""
    async with asyncio.timeout(None if timeout is None else timeout.total_seconds()):
        await call_anyhow(undo.function, undo.value)


def outcome_of_rewind(mark: StepRecord, failed: Sequence[str]) -> Outcome:
    """Return the outcome of an instance whose compensations have run, except those that failed."""
    if failed:
        before = (
            "it was cancelled" if mark.error_type is None else f"it had died of {mark.error_type}: {mark.error_msg}"
        )
        message = f"Not compensated: {', '.join(failed)}; {before}"
        return FailedUnrecoverable(COMPENSATION_FAILED, message[:MESSAGE_LIMIT], (COMPENSATION_FAILED.lower(),))
    if mark.error_type is None:
        return Withdrawn(timedelta(0))
    return Compensated(mark.error_type, mark.error_msg or "", tuple(json.loads(mark.result or "[]")))

"""The outcome of a task that Ray reports as failed. Pure: the errors of Ray are known by the names of their classes."""

from collections.abc import Collection
from datetime import timedelta

from horai.core.outcome import FailedRetryable, Lost, NotSent, Outcome
from horai.core.stored_text import clean_text
from horai.sdk.function_outcomes import timed_out

TASK_FAILED = "RAY_TASK_FAILED"
"""Ray or the task could not run the function: the code is missing on the node, or its environment cannot be made."""

CANCELLED = "TaskCancelledError"
CRASHES = frozenset({"WorkerCrashedError", "OutOfMemoryError"})
LOSSES = frozenset(
    {"NodeDiedError", "LocalRayletDiedError", "ObjectLostError", "RaySystemError", "RpcError", "OutOfDiskError"}
)
"""The errors of lost nodes, and the bases of others: an owner that died is an `ObjectLostError`."""


def fate_of(
    names: Collection[str], text: str, *, timeout: timedelta | None = None, is_over: bool = False
) -> Outcome | Lost:
    """Return the outcome of a task that ended with an error of Ray, by the names of the error's class and its bases.

    `timeout` is given if the driver has ended the task because its time was over; `is_over`: its claim was over.
    """
    if timeout is not None:
        return timed_out(timeout)
    if CANCELLED in names:
        return NotSent() if is_over else Lost("The task was cancelled in the Ray cluster.")
    said = clean_text(text.strip())
    if CRASHES & {*names}:
        return Lost(f"The process of the task died: {said}", is_crash=True)
    if LOSSES & {*names}:
        return Lost(f"The Ray cluster has lost the task: {said}")
    return FailedRetryable(TASK_FAILED, said or "Ray gave no reason.")

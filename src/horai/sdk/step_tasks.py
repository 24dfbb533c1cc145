"""The work of steps and calls as a function gives it, and their results and errors as they are recorded."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from horai.core.calls import Call
from horai.core.limits import MESSAGE_LIMIT
from horai.core.retry import RetryPolicy
from horai.core.stored_text import clean_text
from horai.features.steps.rules import RESULT_MOST, Kind, StepId, StepRecord, check_name
from horai.sdk.codecs import UNTYPED, Misfit, Shape, json_text
from horai.sdk.function_outcomes import CODE_LIMIT
from horai.sdk.outcomes import Unrecoverable
from horai.sdk.payloads import result_shape_of, shape_of
from horai.sdk.suspension import StepFailed

ONCE = RetryPolicy(max_retry=0)
Boundary = Callable[[Call, StepId, str], None]
"""Called by tests before and after the function of a step, and after its record."""
SHORT = timedelta(seconds=1)
"""A pause up to this length does not suspend the function."""
PAYLOAD: Shape[Any] = shape_of(Any)
"""The payload of a signal: JSON of any type."""

running_step: ContextVar[str | None] = ContextVar("running_step", default=None)
"""The idempotency key of the step that runs in this context."""
TURNS = 100
"""Turns of the event loop that the other branches of a function get before it ends to be compensated."""
AT_ONCE = {
    Kind.STEP: 'Give each its own key: step(…, key="…").',
    Kind.SLEEP: 'Give each its own key: sleep(…, key="…").',
    Kind.WAIT: "Wait for them one after another.",
    Kind.CALL: 'Give each its own key: job.options(key="…").call(…).',
}
"""The hints for two of one name at once."""


class StepTask(NamedTuple):
    """The work of a step as its caller gives it."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    policy: RetryPolicy = ONCE
    conn: Any = None
    compensate: Callable[[Any], object] | None = None


class ChildTask(NamedTuple):
    """The call of another job. `declare`: declares the job if the database does not have it."""

    job: str
    payload: str | None
    declare: Callable[[], Awaitable[None]]


def named(name: str, key: str | None) -> str:
    """Return the name under which a step is recorded."""
    return check_name(name) if key is None else f"{check_name(name)}#{check_name(key, 'key')}"


def shown(id_: StepId) -> str:
    return f"{id_.name}#{id_.n}"


def told(error: Exception) -> tuple[str, str]:
    return clean_text(type(error).__name__)[:CODE_LIMIT], clean_text(str(error))[:MESSAGE_LIMIT]


def failure(id_: StepId, record: StepRecord | None) -> StepFailed:
    return StepFailed(shown(id_), (record and record.error_type) or "", (record and record.error_msg) or "")


@lru_cache(256)
def result_shape(function: Callable[..., Any]) -> Shape[Any]:
    return result_shape_of(function)


def encoded(id_: StepId, value: object) -> str:
    """Return the result of a step as JSON text. Raises `Unrecoverable` if it cannot be stored."""
    try:
        text = json_text(value, UNTYPED)
    except Misfit as misfit:
        (place, reason), *_ = misfit.faults
        raise Unrecoverable(f"The step {shown(id_)} has run, but its result{place} is not JSON: {reason}.") from None
    if len(text) > RESULT_MOST:
        raise Unrecoverable(f"The step {shown(id_)} has run, but its result is larger than {RESULT_MOST} bytes.")
    return text.decode()

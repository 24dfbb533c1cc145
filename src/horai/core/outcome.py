"""Outcome → Decision: the result of an attempt, and its effect on the instance.

An executor returns an `Outcome`; `plan` turns it into a `Decision`; the settler applies the decision in one transaction
with history, dead letter and event. There are exactly three verbs of completion (seed 001): succeeded, failed
retryable, failed unrecoverable. `NotSent` and `Postponed` are not completions: they never count as failures.

An attempt whose node died has no outcome: `plan_loss` decides about its instance. An attempt whose place of work was lost
while its node lives is `Lost`, no outcome either, and is planned in the same way.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from horai.core.node_results import is_not_ready
from horai.core.retry import ALONE_AFTER, Dice, RetryPolicy, backoff, loss_backoff


@dataclass(frozen=True, slots=True)
class Succeeded:
    """markSuccess. `output` is JSON text of at most `RESULT_LIMIT` bytes, or None."""

    output: str | None = None


@dataclass(frozen=True, slots=True)
class FailedRetryable:
    """markFailRetryable. `retry_after` is the wait that the target requests; the longer of it and the back-off wins."""

    code: str
    message: str
    retry_after: timedelta | None = None
    traceback: str | None = field(default=None, compare=False, repr=False)
    """The full traceback of a function, for the log; it is not stored."""


@dataclass(frozen=True, slots=True)
class FailedUnrecoverable:
    """markFailUnrecoverable: becomes a dead letter at once, with its own `tags` besides the built-in ones."""

    code: str
    message: str
    tags: tuple[str, ...] = ()
    traceback: str | None = field(default=None, compare=False, repr=False)
    """The full traceback of a function, for the log; it is not stored."""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing left this node (bulkhead full, stopping): the instance is released and claimable after `delay`.

    `is_quiet`: nothing is reported, because it may happen again and again.
    """

    delay: timedelta = timedelta(0)
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Postponed:
    """The handler asked to run later (`RetryLater`): not a failure.

    `is_quiet`: the handler only waits for something and has nothing to report.
    """

    delay: timedelta
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Suspended(Postponed):
    """The function sleeps, or waits for a signal, until `until` (None: for a signal without a deadline).

    Neither a failure nor an attempt is counted.
    """

    until: datetime | None = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Withdrawn(Postponed):
    """The instance was cancelled with compensation, and its finished steps are compensated."""


@dataclass(frozen=True, slots=True)
class Compensated(FailedUnrecoverable):
    """The instance had died, and its finished steps are compensated. Code, message and tags are those of its death."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The place that ran the attempt, a remote worker or a node of a Ray cluster, is gone: a loss, not a failure.

    `is_crash`: the process that ran only this attempt died, and the place may live on. After `ALONE_AFTER` losses such a
    crash is a failure of the instance.
    """

    message: str
    is_crash: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """202: the target reports the outcome within `remaining`; nothing is settled yet."""

    remaining: timedelta


Outcome = Succeeded | FailedRetryable | FailedUnrecoverable | NotSent | Postponed
"""The outcomes that can be settled. `Accepted` is not one: it only says that the outcome arrives another way."""
Ending = Outcome | Accepted | Lost
"""The end of a run as its executor reports it."""


@dataclass(frozen=True, slots=True)
class Complete:
    """RUNNING → SUCCESS."""

    output: str | None = None


@dataclass(frozen=True, slots=True)
class RetryAt:
    """RUNNING → FAIL, due again after `delay` by the database's clock. `is_loss`: counts as a loss, not a failure."""

    delay: timedelta
    code: str
    message: str
    is_loss: bool = False


@dataclass(frozen=True, slots=True)
class Bury:
    """RUNNING → DEAD, with a dead letter under `tags`. `is_loss`: counts as a loss, not a failure."""

    code: str
    message: str
    tags: tuple[str, ...] = field(default=())
    is_loss: bool = False
    fingerprint: str | None = None
    """The fingerprint of a message that was sealed since; None: the message itself has it."""


@dataclass(frozen=True, slots=True)
class Release:
    """RUNNING → INIT: no failure is counted; claimable again after `delay`.

    `postponed`: the handler asked for the delay, so it sets the new execute time. A quiet release writes no event.
    """

    delay: timedelta = timedelta(0)
    postponed: bool = False
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Suspend(Release):
    """RUNNING → INIT, due at `until` or with the next signal that the function waits for. No attempt is counted."""

    until: datetime | None = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Withdraw(Release):
    """RUNNING → CANCELLED, after the compensations of a cancel."""


Decision = Complete | RetryAt | Bury | Release


T = TypeVar("T", bound=Ending)


async def outcome_of(run: Outcome | Awaitable[T]) -> Outcome | T:
    """Wait for the outcome of a run that has begun, unless it has ended already."""
    return await run if isinstance(run, Awaitable) else run


SUCCESS = Succeeded()
DONE = Complete()
"""The most frequent outcome, and the decision for it."""


def plan(policy: RetryPolicy, retry_count: int, outcome: Outcome | Lost, dice: Dice, lost: int = 0) -> Decision:
    """Decide about an instance that has failed `retry_count` times, and was lost `lost` times, before `outcome`."""
    match outcome:
        case Succeeded(output):
            return DONE if output is None else _completion(policy, output)
        case Compensated(code, message, tags):
            return Bury(code, message, tags)
        case FailedUnrecoverable(code, message, own):
            return Bury(code, message, tuple(dict.fromkeys((*tags_of(code, spent=False), *own))))
        case FailedRetryable(code, message) if policy.is_spent(retry_count + 1):
            return Bury(code, message, tags_of(code, spent=True))
        case FailedRetryable(code, message, retry_after):
            delay = max(backoff(policy, retry_count + 1, dice), retry_after or timedelta(0))
            return RetryAt(delay, code, message)
        case NotSent(delay, is_quiet):
            return Release(delay, is_quiet=is_quiet)
        case Suspended(until=until):
            return Suspend(until=until)
        case Withdrawn():
            return Withdraw()
        case Postponed(delay, is_quiet):
            return Release(delay, postponed=True, is_quiet=is_quiet)
        case Lost(message, is_crash):
            if is_crash and lost >= ALONE_AFTER:
                return plan(policy, retry_count, FailedRetryable(PROCESS_DIED, message), dice)
            return plan_loss(policy, lost, message, dice)
        case _:
            assert_never(outcome)


def _completion(policy: RetryPolicy, output: str) -> Complete | Release:
    """Decide about a success. The answer of a sensor that it is not ready gives the attempt back."""
    if policy.poll is not None and is_not_ready(output):
        return Release(policy.poll, postponed=True, is_quiet=True)
    return Complete(output)


def plan_loss(policy: RetryPolicy, lost: int, message: str, dice: Dice) -> RetryAt | Bury:
    """Decide about an instance whose node died during the attempt, after `lost` earlier losses.

    Losses never count as failures: the instance may only have run beside the cause. Above `max_lost` it is dead.
    """
    if policy.is_lost_for_good(lost + 1):
        return Bury(NODE_LOST, message, tags_of(NODE_LOST, spent=True), is_loss=True)
    return RetryAt(loss_backoff(policy, lost + 1, dice), NODE_LOST, message, is_loss=True)


TIMEOUT = "TIMEOUT"
NODE_LOST = "NODE_LOST"
PROCESS_DIED = "PROCESS_DIED"
COMPENSATION_FAILED = "COMPENSATION_FAILED"


def tags_of(code: str, *, spent: bool) -> tuple[str, ...]:
    """Return the tags by which a dead letter is found. `transient_error`, for used-up retries, is worth replaying.

    `crash_loop` is added if the process that ran the instance died each time: check the payload before you replay it.
    """
    tags = ["transient_error"] if spent else ["unrecoverable"]
    if code == TIMEOUT:
        tags.append("timeout")
    if code in {NODE_LOST, PROCESS_DIED}:
        tags.append("crash_loop")
    if code.startswith("HTTP_4"):
        tags.append("http_4xx")
    return tuple(tags)

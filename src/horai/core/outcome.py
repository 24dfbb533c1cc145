"""Outcome → Decision: what an attempt came to, and what that makes of its instance.

An executor returns an `Outcome`; `plan` turns it into a `Decision`; the settler applies the decision in one
transaction with history, dead letter and event. There are exactly three verbs of completion (seed 001): succeeded,
failed retryable, failed unrecoverable. `NotSent` and `Postponed` are no completions: nothing counts as failed.

A lost attempt has no outcome: its node died. `plan_loss` decides about its instance.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar, assert_never

from horai.core.retry import Dice, RetryPolicy, backoff, loss_backoff

MESSAGE_LIMIT = 2_000
RESULT_LIMIT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Succeeded:
    """markSuccess. `output` is JSON text of at most `RESULT_LIMIT` bytes, or None."""

    output: str | None = None


@dataclass(frozen=True, slots=True)
class FailedRetryable:
    """markFailRetryable. `retry_after` is the target's own wish; the longer of it and the back-off holds."""

    code: str
    message: str
    retry_after: timedelta | None = None
    traceback: str | None = field(default=None, compare=False, repr=False)
    """A function's, in full, for the log; it is not stored."""


@dataclass(frozen=True, slots=True)
class FailedUnrecoverable:
    """markFailUnrecoverable: straight to the dead letters, under `tags` of its own beside ours."""

    code: str
    message: str
    tags: tuple[str, ...] = ()
    traceback: str | None = field(default=None, compare=False, repr=False)
    """A function's, in full, for the log; it is not stored."""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Nothing left this node (bulkhead full, stopping): the instance goes back, to be claimed after `delay`."""

    delay: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Postponed:
    """The handler asked for later (`RetryLater`): not a failure.

    `is_quiet`: it only waits for something, and has nothing to tell.
    """

    delay: timedelta
    is_quiet: bool = False


@dataclass(frozen=True, slots=True)
class Accepted:
    """202: the outcome will be reported until `deadline` (seconds from now); nothing is settled yet."""

    remaining: timedelta


Outcome = Succeeded | FailedRetryable | FailedUnrecoverable | NotSent | Postponed
"""What can be settled. `Accepted` is not among them: it only says that the outcome comes another way."""


@dataclass(frozen=True, slots=True)
class Complete:
    """RUNNING → SUCCESS."""

    output: str | None = None


@dataclass(frozen=True, slots=True)
class RetryAt:
    """RUNNING → FAIL, due again after `delay` by the database's clock. `is_loss`: counted as a loss, not as a failure."""

    delay: timedelta
    code: str
    message: str
    is_loss: bool = False


@dataclass(frozen=True, slots=True)
class Bury:
    """RUNNING → DEAD, with a dead letter under `tags`. `is_loss`: counted as a loss, not as a failure."""

    code: str
    message: str
    tags: tuple[str, ...] = field(default=())
    is_loss: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """RUNNING → INIT: no failure is counted; claimable again after `delay`.

    `postponed` says that the delay is the handler's wish, and so the new execute time. A quiet release writes no event.
    """

    delay: timedelta = timedelta(0)
    postponed: bool = False
    is_quiet: bool = False


Decision = Complete | RetryAt | Bury | Release


T = TypeVar("T", bound=Outcome | Accepted)


async def outcome_of(run: Outcome | Awaitable[T]) -> Outcome | T:
    """Wait for the outcome of a run that has begun, unless it has ended already."""
    return await run if isinstance(run, Awaitable) else run


SUCCESS = Succeeded()
DONE = Complete()
"""What most attempts come to, and what that makes of their instances."""


def plan(policy: RetryPolicy, retry_count: int, outcome: Outcome, dice: Dice) -> Decision:
    """What `outcome` makes of an instance that has failed `retry_count` times before."""
    match outcome:
        case Succeeded(output):
            return Complete(output) if output is not None else DONE
        case FailedUnrecoverable(code, message, own):
            return Bury(code, message, tuple(dict.fromkeys((*tags_of(code, spent=False), *own))))
        case FailedRetryable(code, message) if policy.is_spent(retry_count + 1):
            return Bury(code, message, tags_of(code, spent=True))
        case FailedRetryable(code, message, retry_after):
            delay = max(backoff(policy, retry_count + 1, dice), retry_after or timedelta(0))
            return RetryAt(delay, code, message)
        case NotSent(delay):
            return Release(delay)
        case Postponed(delay, is_quiet):
            return Release(delay, postponed=True, is_quiet=is_quiet)
        case _:
            assert_never(outcome)


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


def tags_of(code: str, *, spent: bool) -> tuple[str, ...]:
    """The tags a dead letter is found by. Retries used up is `transient_error`: worth replaying.

    `crash_loop` is added when the process that ran it died each time: look at the payload before you replay it.
    """
    tags = ["transient_error"] if spent else ["unrecoverable"]
    if code == TIMEOUT:
        tags.append("timeout")
    if code in {NODE_LOST, PROCESS_DIED}:
        tags.append("crash_loop")
    if code.startswith("HTTP_4"):
        tags.append("http_4xx")
    return tuple(tags)

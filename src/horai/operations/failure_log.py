"""The log of failed attempts and dead letters: a warning per attempt that will be retried, an error per dead letter.

A line names the job, the instance, the attempt and the trace: the instance's idempotency key, which is the same for all
of its attempts and is sent to HTTP targets as `Idempotency-Key`. It carries the code and the first line of the message,
and a function's traceback; no payload, no header, no URL and no body of an answer. Of an encrypted job it carries the
code alone.

The volume is bounded: in one second a process writes at most 10 lines per job and 100 in all, for warnings and for
errors each, and then one line with the number of lines left out.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import structlog

from horai.core.calls import instance_key, slot_key
from horai.core.outcome import Bury, RetryAt
from horai.db.claims import Claim, RunningRow

log = structlog.get_logger(__name__)

WINDOW = 1.0
"""Seconds in which lines are counted."""
LINES_PER_JOB = 10
LINES = 100
JOBS_NAMED = 10
"""At most this many of the jobs whose lines were left out are named."""


class Origin(NamedTuple):
    """The source of a failure, as the log names it."""

    tenant: str
    job: str
    trace: str
    traceback: str | None = None
    is_encrypted: bool = False
    """True if the log must not show the text of the failure."""


class FailureLog:
    """The failure lines of one process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends_at = 0.0
        self._written: Counter[tuple[bool, str, str] | bool] = Counter()
        self._left_out: Counter[str] = Counter()

    def note(self, origin: Origin, held: Claim, decision: RetryAt | Bury, *, is_late: bool = False) -> None:
        """Write the line of one failed attempt. `is_late`: its instance has moved on, so the decision has no effect."""
        is_dead = isinstance(decision, Bury) and not is_late
        if not self._has_room(is_dead, origin):
            return
        said: dict[str, object] = {
            "job": origin.job,
            "tenant": origin.tenant,
            "instance": str(held.id),
            "attempt": held.attempt,
            "trace": origin.trace,
            "code": decision.code,
        }
        if not origin.is_encrypted:
            said["error"] = decision.message.partition("\n")[0]
            if origin.traceback is not None:
                said["exception"] = origin.traceback
        if is_dead:
            log.error("dead letter", **said)
        elif isinstance(decision, RetryAt) and not is_late:
            log.warning("attempt failed", **said, retry_in_s=round(decision.delay.total_seconds(), 3))
        else:
            log.warning("attempt failed after its instance had moved on", **said)

    def _has_room(self, is_dead: bool, origin: Origin) -> bool:
        if self._clock() >= self._ends_at:
            self.flush()
            self._begin()
        own = (is_dead, origin.tenant, origin.job)
        if self._written[own] >= LINES_PER_JOB or self._written[is_dead] >= LINES:
            self._left_out[origin.job] += 1
            return False
        self._written[own] += 1
        self._written[is_dead] += 1
        return True

    def _begin(self) -> None:
        """Begin a window. A timer ends it, so that the last lines left out are counted even if no failure follows."""
        self._written.clear()
        self._ends_at = self._clock() + WINDOW
        asyncio.get_running_loop().call_later(WINDOW, self.flush)

    def flush(self) -> None:
        """Write how many lines were left out since the last such line. Write nothing if there were none."""
        if self._left_out:
            jobs = [job for job, _ in self._left_out.most_common(JOBS_NAMED)]
            log.warning("failures left out of the log", suppressed=self._left_out.total(), jobs=jobs)
            self._left_out.clear()


failures = FailureLog()
"""The failure log of this process: the bound applies to the whole process."""


def trace_of(row: RunningRow) -> str:
    """Return the idempotency key of a row that was claimed earlier."""
    if row.slot >= 0:
        return slot_key(row.held.job_id, row.born_for, row.slot)
    return instance_key(row.held.job_id, row.born_for, row.held.id)

"""The verdicts, and the answer that carries one."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from horai.features.explain.facts import SkippedSlots
from horai.text.phrase import Phrase


class Verdict(StrEnum):
    """A verdict on an instant in the life of a job."""

    FIRED = "FIRED"
    """There was a run, and it has ended."""
    RUNNING = "RUNNING"
    """It runs now."""
    WAITING = "WAITING"
    """There is an instance, and it will run without help: at its time, at its next attempt, or in a moment."""
    HELD = "HELD"
    """Something has to change before it can run: a pause, a limit, an earlier run, or no process that can run it."""
    LATE = "LATE"
    """Its time has come, and it is not created yet; it will be created, or left out by the misfire policy."""
    SKIPPED = "SKIPPED"
    """It was left out, and a record says so."""
    CANCELLED = "CANCELLED"
    """It was created and cancelled."""
    COMING = "COMING"
    """It is a slot whose time has not come."""
    MISSED = "MISSED"
    """It should have been created, and there is no record of it."""
    NOT_A_SLOT = "NOT_A_SLOT"
    """The job has no slot there."""


class VerdictText(NamedTuple):
    """A verdict and the sentences that go with it."""

    verdict: Verdict
    why: Phrase


class Hindrance(StrEnum):
    """A cause that keeps an instance from running."""

    NOT_DUE = "NOT_DUE"
    JOB_PAUSED = "JOB_PAUSED"
    QUEUE_PAUSED = "QUEUE_PAUSED"
    TENANT_PAUSED = "TENANT_PAUSED"
    DISPATCH_PAUSED = "DISPATCH_PAUSED"
    MODE = "MODE"
    OVERLAP = "OVERLAP"
    CONCURRENCY = "CONCURRENCY"
    TENANT_CONCURRENCY = "TENANT_CONCURRENCY"
    CONCURRENCY_KEY = "CONCURRENCY_KEY"
    RATE = "RATE"
    BREAKER = "BREAKER"
    RETRY_BUDGET = "RETRY_BUDGET"
    HOST_FULL = "HOST_FULL"
    PARENTS = "PARENTS"
    KEY_UNAVAILABLE = "KEY_UNAVAILABLE"
    NO_EXECUTOR = "NO_EXECUTOR"
    NO_WORKER = "NO_WORKER"
    NO_HANDLER = "NO_HANDLER"


class Hold(NamedTuple):
    """One cause that keeps an instance from running, as a code and as a phrase."""

    kind: Hindrance
    words: Phrase


@dataclass(frozen=True, slots=True)
class SlotExplanation:
    """The reason why a slot fired, waits, was held or skipped, or why there is none.

    `previous` and `next` are the slots around it.
    """

    at: datetime
    local: str
    verdict: Verdict
    why: Phrase
    instance_id: int | None = None
    skip: SkippedSlots | None = None
    previous: datetime | None = None
    next: datetime | None = None

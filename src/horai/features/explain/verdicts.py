"""The verdicts, and the answer that carries one."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from horai.features.explain.facts import Skip
from horai.text.phrase import Phrase


class Verdict(StrEnum):
    """What became of an instant in the life of a job."""

    FIRED = "FIRED"
    """There was a run, and it has come to its end."""
    RUNNING = "RUNNING"
    """It runs now."""
    WAITING = "WAITING"
    """There is an instance, and it will go by itself: at its time, at its next attempt, or in a moment."""
    HELD = "HELD"
    """Something has to change before it can go: a pause, a limit, a run before it, nobody there to run it."""
    LATE = "LATE"
    """Its time has come, and it is not made yet; it will be made, or left out by the misfire policy."""
    SKIPPED = "SKIPPED"
    """It was left out, and that is on record."""
    CANCELLED = "CANCELLED"
    """It was made and cancelled."""
    COMING = "COMING"
    """It is a slot whose time has not come."""
    MISSED = "MISSED"
    """It should have been made, and nothing is known of it."""
    NOT_A_SLOT = "NOT_A_SLOT"
    """The job has no slot there."""


class VerdictText(NamedTuple):
    """A verdict and the sentences that go with it."""

    verdict: Verdict
    why: Phrase


class Hindrance(StrEnum):
    """What keeps an instance from running."""

    NOT_DUE = "NOT_DUE"
    JOB_PAUSED = "JOB_PAUSED"
    QUEUE_PAUSED = "QUEUE_PAUSED"
    OVERLAP = "OVERLAP"
    CONCURRENCY = "CONCURRENCY"
    RATE = "RATE"
    PARENTS = "PARENTS"
    NO_EXECUTOR = "NO_EXECUTOR"
    NO_WORKER = "NO_WORKER"
    NO_HANDLER = "NO_HANDLER"


class Hold(NamedTuple):
    """One thing in the way of an instance, in a word and in words."""

    kind: Hindrance
    words: Phrase


@dataclass(frozen=True, slots=True)
class SlotExplanation:
    """Why a slot fired, waits, was held or skipped, or is none. `previous` and `next` are the slots around it."""

    at: datetime
    local: str
    verdict: Verdict
    why: Phrase
    instance_id: int | None = None
    skip: Skip | None = None
    previous: datetime | None = None
    next: datetime | None = None

"""Wire models of explanations."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Model
from horai.wire.instances import InstanceOut
from horai.wire.sentences import Sentence

VerdictName = Literal[
    "FIRED", "RUNNING", "WAITING", "HELD", "LATE", "SKIPPED", "CANCELLED", "COMING", "MISSED", "NOT_A_SLOT"
]


HindranceName = Literal[
    "NOT_DUE",
    "JOB_PAUSED",
    "QUEUE_PAUSED",
    "TENANT_PAUSED",
    "DISPATCH_PAUSED",
    "MODE",
    "OVERLAP",
    "CONCURRENCY",
    "TENANT_CONCURRENCY",
    "CONCURRENCY_KEY",
    "RATE",
    "BREAKER",
    "RETRY_BUDGET",
    "HOST_FULL",
    "KEY_UNAVAILABLE",
    "PARENTS",
    "NO_EXECUTOR",
    "NO_WORKER",
    "NO_HANDLER",
]


class HoldOut(Model):
    """One cause that keeps an instance from running, as a code and as a sentence."""

    kind: HindranceName
    detail: str
    detail_said: Sentence


class WhyOut(Model):
    """The reason why an instance does not run, or how it ended. `holds`: everything in its way, first cause first."""

    instance: InstanceOut
    verdict: VerdictName
    why: str
    why_said: Sentence
    holds: list[HoldOut]


class SkipOut(Model):
    """A range of slots that were not created, both ends included; `slots` is null if they were too many to count."""

    from_: Annotated[datetime, From("from_time"), Field(alias="from")]
    to: Annotated[datetime, From("to_time")]
    slots: int | None
    reason: str


class OccurrenceOut(Model):
    """The verdict on an instant in the life of a job.

    `local` is the same instant on the clock of the job's zone; `previous` and `next` are the slots around it.
    """

    at: datetime
    local: str
    verdict: VerdictName
    why: str
    why_said: Sentence
    instance: InstanceOut | None
    skip: SkipOut | None
    previous: datetime | None
    next: datetime | None


class ExplanationOut(OccurrenceOut):
    """The explanation of the requested time; `also` is its other occurrence if the clock showed it twice."""

    also: OccurrenceOut | None

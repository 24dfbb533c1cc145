"""Explanations on the wire."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

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
    "OVERLAP",
    "CONCURRENCY",
    "RATE",
    "PARENTS",
    "NO_EXECUTOR",
    "NO_WORKER",
    "NO_HANDLER",
]


class HoldOut(Model):
    """One thing that keeps an instance from running, in a word and in words."""

    kind: HindranceName
    detail: str
    detail_said: Sentence


class WhyOut(Model):
    """Why an instance does not run, or what has become of it. `holds`: all that is in its way, the first thing first."""

    instance: InstanceOut
    verdict: VerdictName
    why: str
    why_said: Sentence
    holds: list[HoldOut]


class SkipOut(Model):
    """A range of slots that were not made, both ends included; `slots` is null where nobody counted that far."""

    from_: Annotated[datetime, Field(alias="from")]
    to: datetime
    slots: int | None
    reason: str


class OccurrenceOut(Model):
    """What became of an instant in the life of a job.

    `local` is the same instant by the clock of the job's zone, `previous` and `next` are the slots around it.
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
    """The same of a time that was asked for; `also` is its other occurrence, where the clock showed it twice."""

    also: OccurrenceOut | None

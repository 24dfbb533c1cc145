"""Upcoming fires on the wire."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from horai.wire.fields import Instant, Model
from horai.wire.jobs import ScheduleFields
from horai.wire.sentences import Sentence

Count = Annotated[int, Field(ge=1, le=1_000)]
FEW = 10


class PreviewIn(ScheduleFields):
    """`POST /api/v1/schedules/preview`: list the fires of a job with these fields, starting at `from` (now)."""

    from_: Annotated[Instant | None, Field(alias="from")] = None
    count: Count = FEW


class FireOut(Model):
    """An instant at which a job fires, in UTC and in the local time of its zone.

    `note` explains the effect of a clock change or an excluded date. `executeTime` is present if the job's jitter
    delays the fire.
    """

    fire_time: datetime
    local: datetime
    note: str | None
    note_said: Sentence | None = None
    execute_time: datetime | None = None


class FiresOut(Model):
    """The upcoming fires in order, fewer than requested if the schedule ends. `note` is about the job as a whole."""

    fires: list[FireOut]
    note: str | None = None
    note_said: Sentence | None = None

"""Coming fires on the wire."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from horai.wire.fields import Instant, Model
from horai.wire.jobs import ScheduleFields
from horai.wire.sentences import Sentence

Count = Annotated[int, Field(ge=1, le=1_000)]
FEW = 10


class PreviewIn(ScheduleFields):
    """`POST /api/v1/schedules/preview`: when a job with these fields would fire, from an instant on (now)."""

    from_: Annotated[Instant | None, Field(alias="from")] = None
    count: Count = FEW


class FireOut(Model):
    """An instant at which a job fires, in UTC and as the clock of its zone shows it.

    `note` tells where a clock change or an excluded date had a say. `executeTime` is there when the job's jitter puts it
    off.
    """

    fire_time: datetime
    local: datetime
    note: str | None
    note_said: Sentence | None = None
    execute_time: datetime | None = None


class FiresOut(Model):
    """The coming fires, in order; fewer than asked for when there are no more. `note` is about the job as a whole."""

    fires: list[FireOut]
    note: str | None = None
    note_said: Sentence | None = None

"""The forecast on the wire."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from horai.wire.fields import Model
from horai.wire.sentences import Sentence


class ForecastSchedule(Model):
    """When it fires: a cron or an interval, and the zone of its clock."""

    cron: str | None = None
    dialect: str | None = None
    every: str | None = None
    timezone: str


class ScheduleFires(Model):
    """What all the jobs of one schedule come to, in the whole time or in a minute."""

    schedule: ForecastSchedule
    jobs: int
    fires: int
    examples: list[str]
    """The names of some of its jobs; none where they are all run by Horai for workflows or reconcilers."""


class Peak(Model):
    """The minute with the most fires."""

    at: datetime
    fires: int


class Concerned(Model):
    """All that a suggestion is for; of its schedules, `HotSpot.schedules` has the largest."""

    schedules: int
    jobs: int
    fires: int


class HotSpot(Model):
    """A minute that stands out from the hour around it.

    `times`: in parts of what a minute has on average over all. With `suggestedJitter` on every schedule it concerns, that
    minute and those behind it would have at most `peakWithJitter` fires; null where no jitter that they allow would help.
    """

    at: datetime
    fires: int
    times: float
    schedules: list[ScheduleFires]
    concerned: Concerned
    suggested_jitter: str | None
    peak_with_jitter: int | None


class ForecastOut(Model):
    """How many jobs are to fire in each minute, from `from` on, by the definitions of `computedAt`."""

    from_: Annotated[datetime, Field(alias="from")]
    minutes: int
    total: int
    per_minute: list[int]
    peak: Peak | None
    average: float
    schedules: int
    jobs: int
    busiest: list[ScheduleFires]
    hot_spots: list[HotSpot]
    note: str | None
    """What is not in here, if anything is not."""
    note_said: Sentence | None = None
    computed_at: datetime


class JobInMinute(Model):
    """A job, by its name, and its jitter if it has one."""

    name: str
    jitter: str | None


class ScheduleInMinute(Model):
    """What all the jobs of one schedule come to in a minute, and the first hundreds of them."""

    schedule: ForecastSchedule
    jobs: int
    fires: int
    names: list[JobInMinute]


class MinuteForecastOut(Model):
    """What is to fire in one minute: at most 50 schedules, those with the most fires first."""

    at: datetime
    fires: int
    schedules: list[ScheduleInMinute]
    computed_at: datetime

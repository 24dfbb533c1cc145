"""Wire models of the forecast."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from horai.wire.fields import Model
from horai.wire.sentences import Sentence


class ForecastSchedule(Model):
    """A schedule: a cron or an interval, and the zone of its clock."""

    cron: str | None = None
    dialect: str | None = None
    every: str | None = None
    timezone: str


class ScheduleFires(Model):
    """The fires of all jobs of one schedule, in the whole time or in a minute."""

    schedule: ForecastSchedule
    jobs: int
    fires: int
    examples: list[str]
    """The names of some of its jobs; empty if Horai runs all of them for workflows or reconcilers."""


class Peak(Model):
    """The minute with the most fires."""

    at: datetime
    fires: int


class Concerned(Model):
    """The totals of all schedules that a suggestion is for; `HotSpot.schedules` has the largest of them."""

    schedules: int
    jobs: int
    fires: int


class HotSpot(Model):
    """A minute that stands out from the hour around it.

    `times` is the ratio of its fires to the overall average per minute. With `suggestedJitter` on every schedule it
    concerns, that minute and those after it would have at most `peakWithJitter` fires; null if no jitter that they
    allow would help.
    """

    at: datetime
    fires: int
    times: float
    schedules: list[ScheduleFires]
    concerned: Concerned
    suggested_jitter: str | None
    peak_with_jitter: int | None


class HighestMeasured(Model):
    """The most starts of this tenant in one minute that the cluster has shown in the last `days` days.

    The cluster may be able to start more: it has not had to.
    """

    starts: int
    at: datetime
    days: int


class ForecastOut(Model):
    """The number of jobs to fire in each minute from `from` on, by the definitions at `computedAt`."""

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
    highest_measured: HighestMeasured | None
    """Null if no start was measured."""
    note: str | None
    """The jobs that the forecast does not include, if there are any."""
    note_said: Sentence | None = None
    computed_at: datetime


class WhatIfOut(Model):
    """The fires of hypothetical jobs, added to a forecast: nothing is saved.

    `perMinute` has the fires of the existing jobs by the definitions at `computedAt`, `addedPerMinute` those of the
    hypothetical jobs, `total` the sum of the latter. The peaks are the busiest minutes without and with them.
    `minutesAbove…` counts the minutes with more fires than `highestMeasured`, without and with them; null if no start
    was measured.
    """

    schedule: ForecastSchedule
    jobs: int
    from_: Annotated[datetime, Field(alias="from")]
    minutes: int
    total: int
    per_minute: list[int]
    added_per_minute: list[int]
    peak_before: Peak | None
    peak_after: Peak | None
    highest_measured: HighestMeasured | None
    minutes_above_before: int | None
    minutes_above_after: int | None
    computed_at: datetime


class JobInMinute(Model):
    """A job: its name, and its jitter if it has one."""

    name: str
    jitter: str | None


class ScheduleInMinute(Model):
    """The fires of all jobs of one schedule in a minute, and the first 200 of these jobs."""

    schedule: ForecastSchedule
    jobs: int
    fires: int
    names: list[JobInMinute]


class MinuteForecastOut(Model):
    """The fires of one minute: at most 50 schedules, those with the most fires first."""

    at: datetime
    fires: int
    schedules: list[ScheduleInMinute]
    computed_at: datetime

"""Wire models of the outcomes of a job by day."""

import datetime as dates
from typing import Annotated

from pydantic import Field

from horai.wire.fields import Model


class DayOut(Model):
    """A day from `from` until `to`, by the fire times of instances. `more`: only 1,000 of the day were counted."""

    date: dates.date
    from_: Annotated[dates.datetime, Field(alias="from")]
    to: dates.datetime
    succeeded: int
    dead: int
    cancelled: int
    more: bool


class DaysOut(Model):
    """The last days on the clock of a zone, oldest first, including days without finished instances."""

    timezone: str
    days: list[DayOut]

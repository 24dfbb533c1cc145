"""How a job went day by day, on the wire."""

import datetime as dates
from typing import Annotated

from pydantic import Field

from horai.wire.fields import Model


class DayOut(Model):
    """A day from `from` until `to`, by the times that instances were for. `more`: only 1,000 of it were counted."""

    date: dates.date
    from_: Annotated[dates.datetime, Field(alias="from")]
    to: dates.datetime
    succeeded: int
    dead: int
    cancelled: int
    more: bool


class DaysOut(Model):
    """The last days on the clock of a zone, the oldest first; those on which nothing ended included."""

    timezone: str
    days: list[DayOut]

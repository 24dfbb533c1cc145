"""The parsed cron expression, and the error that says why a text is none."""

from dataclasses import dataclass
from enum import StrEnum

from horai.text.phrase import Phrase
from horai.time.cron.phrases import CronFault

NO_NEXT_FIRE = CronFault.NO_NEXT_FIRE()


class Dialect(StrEnum):
    """Which cron is spoken: how weekdays are counted, and what two restricted day fields mean.

    Five fields begin with the minute and are Vixie's unless said otherwise; six or seven begin with the second and end
    with the year, and are Quartz's.
    """

    VIXIE = "vixie"
    """Sunday is 0 or 7; two restricted day fields mean either of them."""
    QUARTZ = "quartz"
    """Sunday is 1; two restricted day fields are refused, ranges may wrap, and `?` stands for any day."""


@dataclass(frozen=True, slots=True)
class MovingDays:
    """The days that fall on another date in each month."""

    before_last: int
    """`L`, `L-3`: the mask of their dates in a month of 31 days."""
    nearest: int
    """`15W`: the mask of the dates to which the nearest weekday is meant."""
    nearest_before_last: int
    """`LW`, `L-3W`: the same, as dates in a month of 31 days."""
    nth_weekdays: tuple[int, int, int, int, int]
    """`FRI#2`: the mask of the weekdays of which the first, second, … fifth is meant."""
    last_weekdays: int
    """`FRIL`: the mask of the weekdays of which the last is meant."""


@dataclass(frozen=True, slots=True)
class Cron:
    """What an expression allows. Bit n of a mask says that the number n is allowed; weekday 0 is Sunday."""

    expression: str
    """Single spaces, upper case, nicknames spelled out: the same for texts that differ only in these."""
    dialect: Dialect
    seconds: int
    minutes: int
    hours: int
    days_of_month: int
    months: int
    days_of_week: int
    is_either_day: bool
    """Whether a day needs to match only one of the two day fields."""
    is_wildcard: bool
    """Whether it follows real time across clock changes: its minute or hour field starts with `*`."""
    moving: MovingDays | None = None
    """What the two day fields allow besides their masks."""
    years: int | None = None
    """None allows every year, a mask none but those of its field."""


class CronError(ValueError):
    """`position` is the index of the first character that is wrong; `hint` what to write instead."""

    def __init__(self, message: Phrase, position: int, hint: Phrase | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.hint = hint

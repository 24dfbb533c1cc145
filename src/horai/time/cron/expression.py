"""The parsed cron expression, and the error for a text that is not one."""

from dataclasses import dataclass
from enum import StrEnum

from horai.text.phrase import Phrase
from horai.time.cron.phrases import CronFault

NO_NEXT_FIRE = CronFault.NO_NEXT_FIRE()


class Dialect(StrEnum):
    """The cron dialect: how weekdays are counted, and what two restricted day fields mean.

    Five fields begin with the minute and are in the Vixie dialect unless another is given; six or seven begin with the
    second and end with the year, and are in the Quartz dialect.
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
    """`15W`: the mask of the dates whose nearest weekday is meant."""
    nearest_before_last: int
    """`LW`, `L-3W`: the same, as dates in a month of 31 days."""
    nth_weekdays: tuple[int, int, int, int, int]
    """`FRI#2`: the mask of the weekdays of which the first, second, … fifth is meant."""
    last_weekdays: int
    """`FRIL`: the mask of the weekdays of which the last is meant."""


@dataclass(frozen=True, slots=True)
class Cron:
    """The values that an expression allows. Bit n of a mask allows the number n; weekday 0 is Sunday."""

    expression: str
    """Single spaces, upper case, nicknames spelled out: equal for texts that differ only in these."""
    dialect: Dialect
    seconds: int
    minutes: int
    hours: int
    days_of_month: int
    months: int
    days_of_week: int
    is_either_day: bool
    """True if a day needs to match only one of the two day fields."""
    is_wildcard: bool
    """True if the cron follows real time across clock changes: its minute or hour field starts with `*`."""
    moving: MovingDays | None = None
    """The days that the two day fields allow besides their masks."""
    years: int | None = None
    """None allows every year; a mask allows only the years of its field."""


class CronError(ValueError):
    """An invalid expression. `position` is the index of the first wrong character; `hint`, what to write instead."""

    def __init__(self, message: Phrase, position: int, hint: Phrase | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.hint = hint

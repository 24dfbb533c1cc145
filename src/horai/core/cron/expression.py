"""The parsed cron expression, and the error that says why a text is none."""

from dataclasses import dataclass
from enum import StrEnum

NO_NEXT_FIRE = "cron has no next fire time"


class Dialect(StrEnum):
    """Which cron is spoken; the number of fields tells."""

    VIXIE = "vixie"
    """minute hour day month weekday, Sunday is 0 or 7; two restricted day fields mean either of them."""
    QUARTZ = "quartz"
    """second minute hour day month weekday, Sunday is 1; two restricted day fields are refused."""


@dataclass(frozen=True, slots=True)
class Cron:
    """What an expression allows. Bit n of a mask says that the number n is allowed; weekday 0 is Sunday."""

    expression: str
    """Single spaces, upper case: the same for texts that differ only in these."""
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


class CronError(ValueError):
    """`position` is the index of the first character that is wrong; `hint` what to write instead."""

    def __init__(self, message: str, position: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.position = position
        self.hint = hint

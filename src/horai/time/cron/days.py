"""The two day fields: plain items as in any other field, and items that fall on another date in each month.

    date    = item | "L" ["-" number] ["W"] | number "W"
    weekday = item | value "#" number | value "L" | "L"

`W` is the weekday, Monday to Friday, nearest to a date and in the same month.
"""

import re
from dataclasses import dataclass

from horai.time.cron.expression import CronError
from horai.time.cron.fields import Field, Token, read_item, read_value
from horai.time.cron.phrases import CronFault

LONGEST_MONTH = 31

_FROM_LAST = re.compile(r"L(?:-(?P<back>\d+))?(?P<near>W)?")
_NEAREST = re.compile(r"(?P<date>\d+)W")
_NTH = re.compile(r"(?P<weekday>[^#-]+)#(?P<nth>\d+)")
_LAST = re.compile(r"(?P<weekday>[^#-]+)L")
_DATE_FORMS = CronFault.DATE_FORMS()
_WEEKDAY_FORMS = CronFault.WEEKDAY_FORMS()


@dataclass(frozen=True, slots=True)
class Dates:
    """The days that a day-of-month field allows; for the masks see `MovingDays`."""

    plain: int = 0
    before_last: int = 0
    nearest: int = 0
    nearest_before_last: int = 0

    def __or__(self, other: "Dates") -> "Dates":
        return Dates(
            self.plain | other.plain,
            self.before_last | other.before_last,
            self.nearest | other.nearest,
            self.nearest_before_last | other.nearest_before_last,
        )


@dataclass(frozen=True, slots=True)
class Weekdays:
    """The days that a day-of-week field allows, with Sunday as 0; for the masks see `MovingDays`."""

    plain: int = 0
    nth: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    last: int = 0

    def __or__(self, other: "Weekdays") -> "Weekdays":
        first, second, third, fourth, fifth = (mine | theirs for mine, theirs in zip(self.nth, other.nth, strict=True))
        return Weekdays(self.plain | other.plain, (first, second, third, fourth, fifth), self.last | other.last)


def read_dates(field: Field, token: Token) -> Dates:
    """Return the days of the month that `token` allows. Raise CronError if it is not such a field."""
    if token.text == "?" and field.may_be_open:
        return Dates(field.everything)
    dates = Dates()
    for item in token.split(","):
        dates |= _read_date(field, item)
    return dates


def read_weekdays(field: Field, token: Token) -> Weekdays:
    """Return the days of the week that `token` allows. Raise CronError if it is not such a field."""
    if token.text == "?" and field.may_be_open:
        return Weekdays(_from_sunday(field, field.everything))
    weekdays = Weekdays()
    for item in token.split(","):
        weekdays |= _read_weekday(field, item)
    return weekdays


def _read_date(field: Field, item: Token) -> Dates:
    if found := _FROM_LAST.fullmatch(item.text):
        back = int(found["back"] or 0)
        if back >= LONGEST_MONTH:
            raise CronError(CronFault.NO_SUCH_DAY(text=item.text), item.position + 2, CronFault.LAST_TAKES())
        date = 1 << (LONGEST_MONTH - back)
        return Dates(nearest_before_last=date) if found["near"] else Dates(before_last=date)
    if found := _NEAREST.fullmatch(item.text):
        return Dates(nearest=1 << read_value(field, Token(found["date"], item.position)))
    if wrong := re.search("[LW]", item.text):
        raise CronError(CronFault.NO_DATE(text=item.text), item.position + wrong.start(), _DATE_FORMS)
    return Dates(read_item(field, item))


def _read_weekday(field: Field, item: Token) -> Weekdays:
    if item.text == "L":
        return Weekdays(_from_sunday(field, 1 << _last_of_week(field, item)))
    if found := _NTH.fullmatch(item.text):
        nth = int(found["nth"])
        if not 1 <= nth <= 5:
            position = item.position + found.start("nth")
            raise CronError(CronFault.NO_NTH(text=item.text), position, CronFault.NTH_TAKES())
        first, second, third, fourth, fifth = (
            _weekday(field, found, item) if number == nth else 0 for number in range(1, 6)
        )
        return Weekdays(nth=(first, second, third, fourth, fifth))
    if found := _LAST.fullmatch(item.text):
        return Weekdays(last=_weekday(field, found, item))
    if wrong := re.search("[L#]", item.text):
        raise CronError(CronFault.NO_WEEKDAY(text=item.text), item.position + wrong.start(), _WEEKDAY_FORMS)
    return Weekdays(_from_sunday(field, read_item(field, item)))


def _last_of_week(field: Field, item: Token) -> int:
    """Return Saturday if Sunday is 1. If Sunday is 0 and 7, raise CronError: the end of a week would be a guess."""
    if field.low == 0:
        raise CronError(CronFault.L_NO_WEEKDAY(), item.position, CronFault.WRITE_SAT())
    return field.high


def _weekday(field: Field, found: re.Match[str], item: Token) -> int:
    number = read_value(field, Token(found["weekday"], item.position))
    return _from_sunday(field, 1 << number)


def _from_sunday(field: Field, mask: int) -> int:
    """Return the mask with Sunday only as 0, for a field that begins at 0 or 1 and may name Sunday twice."""
    mask >>= field.low
    return (mask | mask >> 7) & 0b111_1111

"""Text → `Cron`, without guesses.

Text that is malformed, out of range or never fires is refused at its position.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from horai.text.phrase import Phrase
from horai.time.cron.calendar import next_slot
from horai.time.cron.days import Dates, Weekdays, read_dates, read_weekdays
from horai.time.cron.expression import NO_NEXT_FIRE, Cron, CronError, Dialect, MovingDays
from horai.time.cron.fields import MONTHS, WEEKDAYS, Field, Token, read_field
from horai.time.cron.phrases import CronFault, CronField

LONGEST_EXPRESSION = 256
NICKNAMES = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}

_FORMS = CronFault.FORMS()
_ON_THE_MINUTE = 1 << 0
_NOTHING_MOVES = MovingDays(0, 0, 0, (0, 0, 0, 0, 0), 0)


def _fields(dialect: Dialect) -> tuple[Field, ...]:
    """Return the fields from minute to weekday in `dialect`."""
    is_quartz = dialect is Dialect.QUARTZ
    sunday = 1 if is_quartz else 0
    return (
        Field(CronField.MINUTE(), 0, 59, wraps=is_quartz),
        Field(CronField.HOUR(), 0, 23, wraps=is_quartz),
        Field(CronField.DAY_OF_MONTH(), 1, 31, wraps=is_quartz, may_be_open=is_quartz),
        Field(CronField.MONTH(), 1, 12, MONTHS, wraps=is_quartz),
        Field(CronField.DAY_OF_WEEK(), sunday, 7, WEEKDAYS, wraps=is_quartz, may_be_open=is_quartz),
    )


FIELDS = {Dialect.VIXIE: _fields(Dialect.VIXIE), Dialect.QUARTZ: _fields(Dialect.QUARTZ)}
"""Minute, hour, day of month, month, day of week of each dialect."""
SECOND = Field(CronField.SECOND(), 0, 59, wraps=True)
YEAR = Field(CronField.YEAR(), 1970, 2199)


@dataclass(frozen=True, slots=True)
class Parts:
    """The fields of an expression by name."""

    second: Token | None
    minute: Token
    hour: Token
    day: Token
    month: Token
    weekday: Token
    year: Token | None

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> "Parts":
        """Name the tokens: five without second and year, six with a second, seven with both."""
        second, *rest = [None, *tokens] if len(tokens) == 5 else tokens
        minute, hour, day, month, weekday, *years = [token for token in rest if token]
        return cls(second, minute, hour, day, month, weekday, years[0] if years else None)


def parse(expression: str, dialect: Dialect | None = None) -> Cron:
    """Return the expression as a value that has at least one next fire. Raise CronError for any other text.

    The number of fields determines the first field, minute or second, and the dialect unless one is given. Spring
    writes six fields with the weekdays of Vixie.
    """
    tokens = _tokens(expression)
    if tokens and tokens[0].text.startswith("@"):
        tokens, dialect = _spelled_out(tokens), Dialect.VIXIE
    spoken = _dialect(expression, tokens, dialect)
    parts = Parts.of(tokens)
    cron = _read(parts, spoken, " ".join(token.text for token in tokens))
    if next_slot(cron, 0) is None:
        raise CronError(NO_NEXT_FIRE, parts.day.position, _no_such_day(parts))
    return cron


def _read(parts: Parts, dialect: Dialect, canonical: str) -> Cron:
    minute, hour, day, month, weekday = FIELDS[dialect]
    if parts.second:
        day, weekday = replace(day, may_be_open=True), replace(weekday, may_be_open=True)
    is_quartz = dialect is Dialect.QUARTZ
    seconds = read_field(SECOND, parts.second) if parts.second else _ON_THE_MINUTE
    minutes, hours = read_field(minute, parts.minute), read_field(hour, parts.hour)
    dates, months = read_dates(day, parts.day), read_field(month, parts.month)
    weekdays = read_weekdays(weekday, parts.weekday)
    if is_quartz:
        _refuse_two_restrictions(dates, weekdays, parts.weekday)
    return Cron(
        expression=canonical,
        dialect=dialect,
        seconds=seconds,
        minutes=minutes,
        hours=hours,
        days_of_month=dates.plain,
        months=months,
        days_of_week=weekdays.plain,
        is_either_day=not (
            is_quartz or parts.day.text.startswith(("*", "?")) or parts.weekday.text.startswith(("*", "?"))
        ),
        is_wildcard=parts.minute.text.startswith("*") or parts.hour.text.startswith("*"),
        moving=_moving(dates, weekdays),
        years=read_field(YEAR, parts.year) if parts.year and parts.year.text != "*" else None,
    )


def _tokens(expression: str) -> list[Token]:
    if len(expression) > LONGEST_EXPRESSION:
        raise CronError(CronFault.CRON_TOO_LONG(most=LONGEST_EXPRESSION), LONGEST_EXPRESSION, CronFault.USE_RANGES())
    for position, character in enumerate(expression):
        if not (" " <= character <= "~" or character == "\t"):
            raise CronError(CronFault.CRON_CHARACTER(character=character), position, CronFault.WRITE_ASCII())
    return [Token(found[0].upper(), found.start()) for found in re.finditer(r"[^ \t]+", expression)]


def _spelled_out(tokens: list[Token]) -> list[Token]:
    """Return the five fields of a nickname; their weekday is the same in every dialect: Sunday is 0."""
    nickname, position = tokens[0].text, tokens[0].position
    if nickname == "@REBOOT":
        raise CronError(CronFault.REBOOT(), position, CronFault.TRIGGER_AT_START())
    if nickname == "@EVERY":
        interval = tokens[1].text.lower() if len(tokens) > 1 else "5m"
        raise CronError(CronFault.AT_EVERY(), position, CronFault.USE_EVERY(interval=interval))
    if nickname not in NICKNAMES:
        known = ", ".join(name.lower() for name in NICKNAMES)
        raise CronError(CronFault.NO_NICKNAME(name=nickname.lower()), position, CronFault.WRITE_NICKNAME(names=known))
    if len(tokens) > 1:
        raise CronError(CronFault.STANDS_ALONE(name=nickname.lower()), tokens[1].position, CronFault.LEAVE_OUT())
    return [Token(text, position) for text in NICKNAMES[nickname].split(" ")]


def _dialect(expression: str, tokens: list[Token], given: Dialect | None) -> Dialect:
    match len(tokens):
        case 5:
            return given or Dialect.VIXIE
        case 6 | 7:
            return given or Dialect.QUARTZ
        case count:
            position = tokens[7].position if count > 7 else len(expression)
            raise CronError(CronFault.FIELD_COUNT(count=count), position, _FORMS)


def _refuse_two_restrictions(dates: Dates, weekdays: Weekdays, weekday: Token) -> None:
    """Raise CronError if both day fields are restricted: the choice between them would be a guess."""
    day_of_month, day_of_week = FIELDS[Dialect.QUARTZ][2], FIELDS[Dialect.QUARTZ][4]
    if dates.plain != day_of_month.everything and weekdays.plain != day_of_week.everything >> day_of_week.low:
        raise CronError(
            CronFault.BOTH_DAYS(),
            weekday.position,
            CronFault.WRITE_OPEN(),
        )


def _moving(dates: Dates, weekdays: Weekdays) -> MovingDays | None:
    moving = MovingDays(dates.before_last, dates.nearest, dates.nearest_before_last, weekdays.nth, weekdays.last)
    return None if moving == _NOTHING_MOVES else moving


def _no_such_day(parts: Parts) -> Phrase:
    return CronFault.NO_DAY_HAS(
        years=CronFault.OF_YEARS(years=parts.year.text) if parts.year else "",
        day=parts.day.text,
        month=parts.month.text,
        weekday=parts.weekday.text,
    )

"""Text → `Cron`. Nothing is guessed: what is malformed, out of range or never fires is refused at its position."""

import re
from dataclasses import dataclass

from horai.core.cron.calendar import next_slot
from horai.core.cron.expression import NO_NEXT_FIRE, Cron, CronError, Dialect
from horai.core.cron.fields import MONTHS, WEEKDAYS, Field, Token, read_field

LONGEST_EXPRESSION = 256

_FORMS = "write 5 fields (minute hour day month weekday) or 6 (second minute hour day month weekday)"
_DAY_NOT_YET = re.compile(r"[LW]")
_WEEKDAY_NOT_YET = re.compile(r"#|^(\d+|[A-Z]{3})?L$")


def _fields(dialect: Dialect) -> tuple[Field, ...]:
    """Minute to weekday, as `dialect` takes them."""
    is_quartz = dialect is Dialect.QUARTZ
    sunday = 1 if is_quartz else 0
    return (
        Field("minute", 0, 59, wraps=is_quartz),
        Field("hour", 0, 23, wraps=is_quartz),
        Field("day of month", 1, 31, wraps=is_quartz, may_be_open=is_quartz, not_yet=_DAY_NOT_YET),
        Field("month", 1, 12, MONTHS, wraps=is_quartz),
        Field("day of week", sunday, 7, WEEKDAYS, wraps=is_quartz, may_be_open=is_quartz, not_yet=_WEEKDAY_NOT_YET),
    )


_SECOND = Field("second", 0, 59, wraps=True)
_VIXIE = _fields(Dialect.VIXIE)
_QUARTZ = (_SECOND, *_fields(Dialect.QUARTZ))

_ON_THE_MINUTE = 1 << 0
_EVERY_DAY_OF_MONTH = ((1 << 31) - 1) << 1
_EVERY_WEEKDAY = (1 << 7) - 1


@dataclass(frozen=True, slots=True)
class _Days:
    """The two day fields, read: their masks, and how they go together."""

    of_month: int
    of_week: int
    is_either: bool


def parse(expression: str) -> Cron:
    """The expression as a value that has at least one next fire; CronError for any other text."""
    tokens = _tokens(expression)
    dialect = _dialect(expression, tokens)
    if dialect is Dialect.QUARTZ:
        masks = [read_field(field, token) for field, token in zip(_QUARTZ, tokens, strict=True)]
        days = _quartz_days(masks[3], masks[5], tokens[5])
    else:
        masks = [_ON_THE_MINUTE, *(read_field(field, token) for field, token in zip(_VIXIE, tokens, strict=True))]
        days = _vixie_days(masks[3], masks[5], tokens[2], tokens[4])
    minute, hour, day = tokens[-5], tokens[-4], tokens[-3]
    cron = Cron(
        expression=" ".join(token.text for token in tokens),
        dialect=dialect,
        seconds=masks[0],
        minutes=masks[1],
        hours=masks[2],
        days_of_month=days.of_month,
        months=masks[4],
        days_of_week=days.of_week,
        is_either_day=days.is_either,
        is_wildcard=minute.text.startswith("*") or hour.text.startswith("*"),
    )
    if next_slot(cron, 0) is None:
        raise CronError(NO_NEXT_FIRE, day.position, f"no month of the month field has a day {day.text}")
    return cron


def _tokens(expression: str) -> list[Token]:
    if len(expression) > LONGEST_EXPRESSION:
        raise CronError(
            f"cron is longer than {LONGEST_EXPRESSION} characters", LONGEST_EXPRESSION, "use ranges and steps"
        )
    for position, character in enumerate(expression):
        if not (" " <= character <= "~" or character == "\t"):
            raise CronError(
                f"cron has the character {character!r}, which is not printable ASCII", position, "write it in ASCII"
            )
    return [Token(found[0].upper(), found.start()) for found in re.finditer(r"[^ \t]+", expression)]


def _dialect(expression: str, tokens: list[Token]) -> Dialect:
    if tokens and tokens[0].text.startswith("@"):
        raise CronError(f"{tokens[0].text.lower()} is not supported yet", tokens[0].position, _FORMS)
    match len(tokens):
        case 5:
            return Dialect.VIXIE
        case 6:
            return Dialect.QUARTZ
        case 7:
            raise CronError("a seventh field, the year, is not supported yet", tokens[6].position, _FORMS)
        case count:
            position = tokens[7].position if count > 7 else len(expression)
            raise CronError(f"cron has {count} fields, not 5 or 6", position, _FORMS)


def _vixie_days(of_month: int, of_week: int, day: Token, weekday: Token) -> _Days:
    """Sunday is 0 and 7; a field that starts with `*` restricts nothing, and only two that do mean either."""
    sunday_once = (of_week | of_week >> 7) & _EVERY_WEEKDAY
    return _Days(of_month, sunday_once, not day.text.startswith("*") and not weekday.text.startswith("*"))


def _quartz_days(of_month: int, of_week: int, weekday: Token) -> _Days:
    """Sunday is 1; which of two restricted day fields counts would be a guess."""
    from_sunday = of_week >> 1
    if of_month != _EVERY_DAY_OF_MONTH and from_sunday != _EVERY_WEEKDAY:
        raise CronError(
            "day of month and day of week are both restricted",
            weekday.position,
            "write ? in one of them, or two schedules",
        )
    return _Days(of_month, from_sunday, is_either=False)

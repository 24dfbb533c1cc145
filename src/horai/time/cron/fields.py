"""The numbers that one field of an expression stands for.

    field = item ("," item)*        item = ("*" | value | value "-" value) ["/" step]        value = number | name

Each item is a fixed set of numbers. `days` reads the items that depend on the month (`L`, `15W`, `6#3`).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from horai.text.phrase import Phrase
from horai.time.cron.expression import CronError
from horai.time.cron.phrases import CronFault

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


@dataclass(frozen=True, slots=True)
class Field:
    """The values that one field may contain; `wraps` lets a range run over the end (`FRI-MON`)."""

    name: Phrase
    low: int
    high: int
    names: tuple[str, ...] = ()
    """The names for `low`, `low` + 1, …."""
    wraps: bool = False
    may_be_open: bool = False
    """True if `?` may stand for any value."""

    @property
    def accepted(self) -> Phrase:
        """Return the accepted values, for hints."""
        names = CronFault.OR_NAMES(first=self.names[0], last=self.names[-1]) if self.names else ""
        return CronFault.TAKES(field=self.name, low=self.low, high=self.high, names=names)

    @property
    def everything(self) -> int:
        """Return the mask of all values."""
        return (1 << self.high + 1) - (1 << self.low)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the expression, in upper case, and its position."""

    text: str
    position: int

    def split(self, separator: str) -> list["Token"]:
        """Return the pieces between the separators, each with its own position."""
        pieces: list[Token] = []
        position = self.position
        for text in self.text.split(separator):
            pieces.append(Token(text, position))
            position += len(text) + len(separator)
        return pieces


def read_field(field: Field, token: Token) -> int:
    """Return the mask of the numbers that `token` allows. Raise CronError if it is not such a field."""
    if token.text == "?" and field.may_be_open:
        return field.everything
    mask = 0
    for item in token.split(","):
        mask |= read_item(field, item)
    return mask


def read_item(field: Field, item: Token) -> int:
    """Return the mask of one item of a list."""
    if not item.text:
        raise CronError(CronFault.EMPTY_ITEM(field=field.name), item.position, field.accepted)
    base, *steps = item.split("/")
    if len(steps) > 1:
        raise CronError(CronFault.TWO_STEPS(text=item.text), steps[1].position - 1, CronFault.STEP_ONCE())
    first, last = _span(field, base, is_open_ended=bool(steps))
    step = _read_step(field, steps[0]) if steps else 1
    return _mask_of_span(field, first, last, step)


def _span(field: Field, base: Token, *, is_open_ended: bool) -> tuple[int, int]:
    """Return the first and last number of an item; `5/15` has no last one and runs to the end of the field."""
    if base.text == "*":
        return field.low, field.high
    bounds = [read_value(field, bound) for bound in base.split("-")]
    match bounds:
        case [first]:
            return first, field.high if is_open_ended else first
        case [first, last] if first <= last or field.wraps:
            return first, last
        case [first, last]:
            raise CronError(
                CronFault.BACKWARDS(field=field.name, text=base.text),
                base.position,
                CronFault.WRITE_WRAPPED(first=first, high=field.high, low=field.low, last=last),
            )
        case _:
            raise CronError(CronFault.TWO_DASHES(text=base.text), base.position, CronFault.RANGE_ONCE())


def read_value(field: Field, token: Token) -> int:
    """Return the number that a number or a name stands for."""
    if token.text in field.names:
        return field.low + field.names.index(token.text)
    if not token.text:
        raise CronError(CronFault.EMPTY_VALUE(field=field.name), token.position, field.accepted)
    if token.text == "?":
        hint = CronFault.OPEN_ALONE() if field.may_be_open else CronFault.OPEN_FOR_DAYS()
        raise CronError(CronFault.OPEN_IN_FIELD(field=field.name), token.position, hint)
    if not token.text.isdigit():
        raise CronError(CronFault.NOT_IN_FIELD(text=token.text, field=field.name), token.position, field.accepted)
    number = int(token.text)
    if not field.low <= number <= field.high:
        raise CronError(CronFault.OUT_OF_RANGE(field=field.name, number=number), token.position, field.accepted)
    return number


def _read_step(field: Field, token: Token) -> int:
    hint = CronFault.WRITE_STEP(most=field.high)
    if not token.text.isdigit():
        raise CronError(CronFault.STEP_NO_NUMBER(text=token.text, field=field.name), token.position, hint)
    if not 1 <= int(token.text) <= field.high:
        raise CronError(CronFault.STEP_RANGE(number=int(token.text), field=field.name), token.position, hint)
    return int(token.text)


def _mask_of_span(field: Field, first: int, last: int, step: int) -> int:
    if first <= last:
        return _mask(range(first, last + 1, step))
    size = field.high - field.low + 1
    return _mask(field.low + (number - field.low) % size for number in range(first, last + size + 1, step))


def _mask(numbers: Iterable[int]) -> int:
    mask = 0
    for number in numbers:
        mask |= 1 << number
    return mask

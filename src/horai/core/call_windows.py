"""The options `unique` and `debounce` of a call: how long its instance stands for all calls with the same arguments.

A unique call is not added while the instance of an earlier one is live, or less than the window ago. A debounced call moves
the instance of an earlier one that no worker has started. Arguments are equal if their canonical JSON is.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Any, cast

from horai.core.errors import Invalid
from horai.text import Wrong, told_by
from horai.time.durations import format_duration, parse_duration

LONGEST_WINDOW = timedelta(days=7)
SHORTEST_WINDOW = timedelta(milliseconds=1)


class CallKind(IntEnum):
    """The way in which calls with equal arguments are joined."""

    UNIQUE = 1
    DEBOUNCED = 2


@dataclass(frozen=True, slots=True)
class CallWindow:
    """The kind and the length of a window. A unique call of length zero counts only while its instance is live."""

    kind: CallKind
    span: timedelta

    @property
    def option(self) -> str:
        """Return the name of the option that asks for it."""
        return "unique" if self.kind is CallKind.UNIQUE else "debounce"

    @property
    def sets_time(self) -> bool:
        """Return whether the end of the window is the time of the instance, so that no other time can be given."""
        return self.kind is CallKind.DEBOUNCED


Span = bool | float | str | timedelta | None
"""A duration: a text such as "10m", seconds, or a timedelta; True and False for `unique`."""


def call_window(unique: Span, debounce: Span, field: str = "") -> CallWindow | None:
    """Return the window of a call's options; None without any. `field` precedes the names of the options in errors.

    `unique` is True or a duration, `debounce` a duration. Raises `Invalid`.
    """
    if unique is None or unique is False:
        return None if debounce is None else CallWindow(CallKind.DEBOUNCED, _span(f"{field}debounce", debounce))
    if debounce is not None:
        raise Invalid.field(f"{field}debounce", Wrong.STANDS_BESIDE(other="unique"))
    span = timedelta(0) if unique is True else _span(f"{field}unique", unique)
    return CallWindow(CallKind.UNIQUE, span)


def _span(field: str, given: bool | float | str | timedelta) -> timedelta:
    return span_between(field, given, SHORTEST_WINDOW, LONGEST_WINDOW)


def span_between(field: str, given: bool | float | str | timedelta, low: timedelta, high: timedelta) -> timedelta:
    """Return a duration that is given as a text, seconds, or a timedelta. Raises `Invalid` for one outside the bounds."""
    if isinstance(given, bool):
        raise Invalid.field(field, Wrong.NOT_OF_TYPE(expected="a duration", given="boolean"))
    try:
        span = parse_duration(given) if isinstance(given, str) else _length(given)
    except ValueError as error:
        raise Invalid.field(field, told_by(error)) from error
    if not low <= span <= high:
        raise Invalid.field(field, Wrong.NOT_BETWEEN(low=format_duration(low), high=format_duration(high)))
    return span


def _length(given: float | timedelta) -> timedelta:
    """Return a duration given in seconds or as such. One that timedelta cannot have is too long."""
    try:
        return given if isinstance(given, timedelta) else timedelta(seconds=given)
    except (OverflowError, ValueError):
        return timedelta.max


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def canonical_arguments(payload: str) -> bytes:
    """Return arguments as bytes that are equal for equal JSON: the order of members and white space do not count.

    Numbers are compared as they are written: 1 is not 1.0.
    """
    return _canonical(json.loads(payload, parse_float=_Number, parse_int=_Number)).encode()


def _canonical(value: Any) -> str:
    if isinstance(value, _Number):
        return value
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return "{" + ",".join(f"{json.dumps(name)}:{_canonical(members[name])}" for name in sorted(members)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, cast("list[Any]", value))) + "]"
    return json.dumps(value)

"""The errors that a function raises to choose the outcome of its attempt, and durations as callers write them."""

from collections.abc import Iterable
from datetime import timedelta

from horai.time.durations import parse_duration


class Unrecoverable(Exception):
    """A retry would not help: the instance becomes a dead letter at once. `tags` are your own, to find it by.

    At most 10 tags, each of up to 64 characters without spaces and commas; others are left out, and the letter says so.
    """

    def __init__(self, *message: object, tags: Iterable[str] = ()) -> None:
        super().__init__(*message)
        self.tags = (tags,) if isinstance(tags, str) else tuple(tags)


class RetryLater(Exception):
    """Not now: run again after `delay` (seconds, "10m", or a timedelta). This does not count as a failure."""

    def __init__(self, delay: float | str | timedelta, message: str = "") -> None:
        self.delay = seconds_of(delay)
        super().__init__(message or f"retry in {self.delay.total_seconds():g} s")


class Skip(Exception):
    """There is nothing to do: the instance succeeds, and a node of a workflow is skipped, with this reason.

    Nodes after it are skipped too, unless their trigger rule is `none_failed` or `all_done`.
    """


class NotReady(Exception):
    """The condition of a sensor is not met, for this reason: it is asked again later, and no retry is used up.

    In a job that is not a sensor of a workflow it ends the call, as an ordinary result.
    """


def seconds_of(duration: float | str | timedelta) -> timedelta:
    """Return a duration, given as seconds, text such as "10m", or a timedelta. Raises ValueError if it is negative."""
    match duration:
        case timedelta():
            found = duration
        case str():
            found = parse_duration(duration)
        case _:
            found = timedelta(seconds=duration)
    if found < timedelta(0):
        raise ValueError(f"{duration!r} is below zero")
    return found

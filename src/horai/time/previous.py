"""The last fire of a schedule before an instant, found with the one question that a schedule answers: what comes next."""

from datetime import datetime, timedelta
from functools import lru_cache

from horai.time.schedule import Schedule, next_after

FIRST_LOOK = timedelta(minutes=1)
LONGEST_LOOK = timedelta(days=36_525)
"""A schedule that has not fired for a hundred years counts as one that never did."""
_MOMENT = timedelta(microseconds=1)


@lru_cache(maxsize=4_096)
def previous_before(schedule: Schedule, instant: datetime) -> datetime | None:
    """Return the last fire strictly before `instant`; None if there is none within a hundred years.

    The first guess is a gap as long as the one after `instant`. Otherwise it looks back twice as far each time, and then
    halves the stretch between the last known fire and `instant`, so that dense fires cost no more than rare ones.
    """
    try:
        return _found(schedule, instant)
    except OverflowError:  # it would be before the first year of the calendar
        return None


def _found(schedule: Schedule, instant: datetime) -> datetime | None:
    if (following := next_after(schedule, instant)) is not None and (found := _at_gap(schedule, instant, following)):
        return found
    look = FIRST_LOOK
    while look <= LONGEST_LOOK:
        first = next_after(schedule, instant - look)
        if first is not None and first < instant:
            return _last_between(schedule, first, instant)
        look *= 2
    return None


def _at_gap(schedule: Schedule, instant: datetime, following: datetime) -> datetime | None:
    """Return the last fire before `instant` if it is as far away as the next one."""
    guess = instant - (following - instant)
    is_fire = next_after(schedule, guess - _MOMENT) == guess
    return guess if is_fire and _is_last(schedule, guess, instant) else None


def _is_last(schedule: Schedule, fire: datetime, instant: datetime) -> bool:
    following = next_after(schedule, fire)
    return following is None or following >= instant


def _last_between(schedule: Schedule, fire: datetime, instant: datetime) -> datetime:
    """Return the last fire before `instant`, at or after the fire `fire`."""
    until = instant
    while not _is_last(schedule, fire, instant):
        middle = fire + (until - fire) / 2
        later = next_after(schedule, middle)
        if later is not None and later < instant:
            fire = later
        else:
            until = middle
            fire = next_after(schedule, fire) or fire  # at least one step, however small the stretch
    return fire

"""Times and durations as the answers write them."""

from datetime import datetime, timedelta, tzinfo

from horai.features.explain.phrases import SlotWords
from horai.time.durations import LONGEST, format_duration

_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_MILLISECOND, _MINUTE = timedelta(milliseconds=1), timedelta(minutes=1)


def local(instant: datetime, place: tzinfo) -> str:
    """What the clock of a place shows, with its offset; no finer than it has to be."""
    return instant.astimezone(place).isoformat(timespec="microseconds" if instant.microsecond else "seconds")


def clock(wall: datetime) -> str:
    """The time of the day, without a date."""
    if wall.microsecond:
        return wall.time().isoformat("microseconds")
    return wall.time().isoformat("seconds" if wall.second else "minutes")


def clock_on(wall: datetime, beside: datetime) -> str:
    """The time of the day, with its date unless that is the one of `beside`."""
    if wall.date() == beside.date():
        return clock(wall)
    return SlotWords.ON_DATE(time=clock(wall), day=str(wall.date()))


def about(duration: timedelta) -> str:
    """A duration as people say it: milliseconds under a second, seconds under a day, minutes beyond."""
    duration = max(duration, timedelta(0))
    if duration > LONGEST:
        return SlotWords.DAYS(days=duration.days)
    grain = _MILLISECOND if duration < _SECOND else _SECOND if duration < _DAY else _MINUTE
    return format_duration(duration // grain * grain)

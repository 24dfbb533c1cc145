"""Times and durations as explanations write them."""

from datetime import datetime, timedelta, tzinfo

from horai.features.explain.phrases import SlotWords
from horai.time.durations import LONGEST, format_duration

_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_MILLISECOND, _MINUTE = timedelta(milliseconds=1), timedelta(minutes=1)


def local(instant: datetime, place: tzinfo) -> str:
    """Return the local time with its offset, to the second; to the microsecond if it is not a whole second."""
    return instant.astimezone(place).isoformat(timespec="microseconds" if instant.microsecond else "seconds")


def clock(wall: datetime) -> str:
    """Return the time of day, without a date."""
    if wall.microsecond:
        return wall.time().isoformat("microseconds")
    return wall.time().isoformat("seconds" if wall.second else "minutes")


def clock_on(wall: datetime, beside: datetime) -> str:
    """Return the time of day, with its date unless that equals the date of `beside`."""
    if wall.date() == beside.date():
        return clock(wall)
    return SlotWords.ON_DATE(time=clock(wall), day=str(wall.date()))


def about(duration: timedelta) -> str:
    """Return a truncated duration: milliseconds under a second, seconds under a day, minutes beyond."""
    duration = max(duration, timedelta(0))
    if duration > LONGEST:
        return SlotWords.DAYS(days=duration.days)
    grain = _MILLISECOND if duration < _SECOND else _SECOND if duration < _DAY else _MINUTE
    return format_duration(duration // grain * grain)

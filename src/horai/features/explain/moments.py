"""The question: an instant, or a local time in the job's zone, which may occur once, twice or never."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from horai.text import Hint, Wrong
from horai.time.cron.segments import EPOCH, segment_at

ACCEPTED = Hint.WRITE_MOMENT()

_FORM = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}([.,]\d{1,6})?)?([Zz]|[+\- ]\d{2}:\d{2})?", re.ASCII)
_EARLIEST, _LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Gap:
    """A local time that no clock showed: the clock jumped from `lost_from` to `lost_until` at the instant `end`."""

    wall: datetime
    lost_from: datetime
    lost_until: datetime
    end: datetime


def read_moment(asked: str | datetime) -> datetime:
    """Return an instant, or a local time if there is no offset, cut to milliseconds like the times of instances.

    Raise `ValueError` for anything else. A plus that a URL did not escape arrives as a space and is read as a plus.
    """
    moment = asked if isinstance(asked, datetime) else _read(asked)
    if not _EARLIEST <= (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < _LATEST:
        raise ValueError(Wrong.YEARS())
    return moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)


def _read(text: str) -> datetime:
    if not _FORM.fullmatch(text):
        raise ValueError(Wrong.NOT_A_MOMENT())
    if text[-6] == " " and len(text) > 16:
        text = f"{text[:-6]}+{text[-5:]}"
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(Wrong.NO_SUCH_MOMENT(reason=str(error))) from None


def occurrences(moment: datetime, place: ZoneInfo) -> tuple[datetime, ...]:
    """Return the instants that are meant, in UTC and in order: one, two where the clock went back, none in a gap."""
    if moment.tzinfo is not None:
        return (moment.astimezone(UTC),)
    readings = {moment.replace(tzinfo=place, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return tuple(sorted(at for at in readings if at.astimezone(place).replace(tzinfo=None) == moment))


def gap_around(wall: datetime, place: ZoneInfo) -> Gap:
    """Return the gap that contains a local time without an occurrence."""
    after = wall.replace(tzinfo=place, fold=0).astimezone(UTC)
    segment = segment_at(place, (after - EPOCH) // _SECOND)
    end, offset = EPOCH + segment.start * _SECOND, segment.offset * _SECOND
    until = (end + offset).replace(tzinfo=None)
    since = until if segment.lost_from is None else (EPOCH + segment.lost_from * _SECOND).replace(tzinfo=None)
    return Gap(wall, since, until, end)

"""Days on the clock of a zone: 23, 24 or 25 hours long, never split by a clock change."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class Day:
    """A date, and the instants at which it begins and ends, in UTC."""

    date: date
    since: datetime
    until: datetime


def days_until(now: datetime, zone: ZoneInfo, count: int) -> list[Day]:
    """Return the last `count` days of that zone, ending with the day of `now`."""
    today = now.astimezone(zone).date()
    dates = [today - timedelta(days=back) for back in reversed(range(count))]
    return [Day(one, _midnight(one, zone), _midnight(one + timedelta(days=1), zone)) for one in dates]


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the first instant of a day: after the jump if clocks skip midnight, the first if midnight occurs twice."""
    return datetime.combine(day, time(), zone).astimezone(UTC)

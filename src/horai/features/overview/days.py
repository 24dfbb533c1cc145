"""Days on the clock of a zone: 23, 24 or 25 hours long, and never cut in two by a clock change."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo


@dataclass(frozen=True, slots=True)
class Day:
    """A date, and the instants at which it begins and ends; both in UTC."""

    date: date
    since: datetime
    until: datetime


def days_until(now: datetime, zone: ZoneInfo, count: int) -> list[Day]:
    """The last `count` days of that zone, that of `now` being the last."""
    today = now.astimezone(zone).date()
    dates = [today - timedelta(days=back) for back in reversed(range(count))]
    return [Day(one, _midnight(one, zone), _midnight(one + timedelta(days=1), zone)) for one in dates]


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    """The first instant of a day: where clocks jump over midnight, right after the jump; where it comes twice, the first."""
    return datetime.combine(day, time(), zone).astimezone(UTC)

"""Days of an iCalendar rule (RRULE), found by checking each day of a bounded range.

Libraries that expand rules go on searching, for minutes, when a rule never matches; a check of each day always ends.
Rules of days, weeks, months and years with BYMONTH, BYMONTHDAY and BYDAY are read, others are refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice

YEARS_BACK, YEARS_AHEAD = 5, 10
"""Years around today in which a rule is expanded. A rule with COUNT begins at most `YEARS_BACK` * 4 years before."""

_DAY = timedelta(days=1)
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_READ = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYMONTHDAY", "BYDAY"}
_BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_YEARLY_PLAIN = {"FREQ", "INTERVAL", "BYMONTH", "BYMONTHDAY", "WKST"}


class UnreadRule(ValueError):
    """A rule, or a part of one, that is not read."""


@dataclass(frozen=True, slots=True)
class DayRule:
    """A rule that was read. `weekdays` are pairs of an ordinal within the month (0: each) and a weekday."""

    frequency: str
    begin: date
    interval: int
    months: frozenset[int]
    month_days: frozenset[int]
    weekdays: frozenset[tuple[int, int]]
    count: int | None
    until: date | None

    def days(self, today: date) -> Iterator[date]:
        """Yield the days of the rule around `today`, in order."""
        last = date(max(today.year, self.begin.year) + YEARS_AHEAD, 12, 31)
        last = last if self.until is None else min(last, self.until)
        first = self.begin if self.count is not None else max(self.begin, date(today.year - YEARS_BACK, 1, 1))
        if first < date(max(today.year - 4 * YEARS_BACK, 1), 1, 1):
            raise UnreadRule("COUNT")
        matching = (day for day in _between(first, last) if self._matches(day))
        yield from islice(matching, self.count)

    def _matches(self, day: date) -> bool:
        if self.months and day.month not in self.months:
            return False
        if self.month_days and day.day not in self.month_days and day.day - _length(day) - 1 not in self.month_days:
            return False
        return self._is_weekday(day) and self._is_period(day)

    def _is_weekday(self, day: date) -> bool:
        if not self.weekdays:
            return True
        nth = (day.day - 1) // 7 + 1
        from_end = -((_length(day) - day.day) // 7 + 1)
        return any((ordinal, day.weekday()) in self.weekdays for ordinal in (0, nth, from_end))

    def _is_period(self, day: date) -> bool:
        begin, is_free = self.begin, bool(self.weekdays or self.month_days)
        match self.frequency:
            case "DAILY":
                return (day - begin).days % self.interval == 0
            case "WEEKLY":
                weeks = (day - _DAY * day.weekday()) - (begin - _DAY * begin.weekday())
                return weeks.days // 7 % self.interval == 0 and (is_free or day.weekday() == begin.weekday())
            case "MONTHLY":
                months = (day.year - begin.year) * 12 + day.month - begin.month
                return months % self.interval == 0 and (is_free or day.day == begin.day)
            case _:
                is_month = bool(self.months) or is_free or day.month == begin.month
                is_year = (day.year - begin.year) % self.interval == 0
                return is_year and is_month and (is_free or day.day == begin.day)


def read_rule(parts: Mapping[str, str], begin: date) -> DayRule:
    """Return the rule of an event. Raise `UnreadRule`, or ValueError for a number that is none."""
    frequency = parts.get("FREQ", "")
    if frequency not in {"DAILY", "WEEKLY", "MONTHLY", "YEARLY"} or not parts.keys() <= _READ:
        raise UnreadRule("RRULE")
    weekdays = frozenset(_weekday(text) for text in _listed(parts, "BYDAY"))
    is_by_month = frequency == "MONTHLY" or (frequency == "YEARLY" and "BYMONTH" in parts)
    if any(ordinal for ordinal, _ in weekdays) and not is_by_month:
        raise UnreadRule("BYDAY")
    rule = DayRule(
        frequency,
        begin,
        int(parts.get("INTERVAL", "1")),
        frozenset(int(text) for text in _listed(parts, "BYMONTH")),
        frozenset(int(text) for text in _listed(parts, "BYMONTHDAY")),
        weekdays,
        int(parts["COUNT"]) if "COUNT" in parts else None,
        date.fromisoformat(parts["UNTIL"][:8]) if "UNTIL" in parts else None,
    )
    if rule.interval < 1 or (rule.count is not None and rule.count < 1):
        raise UnreadRule("INTERVAL")
    return rule


def is_every_year(parts: Mapping[str, str], begin: date) -> bool:
    """Return whether the rule is the day of `begin`, each year and without an end."""
    has_both = "BYMONTHDAY" not in parts or "BYMONTH" in parts
    return has_both and (
        parts.get("FREQ") == "YEARLY"
        and parts.keys() <= _YEARLY_PLAIN
        and parts.get("INTERVAL", "1") == "1"
        and parts.get("BYMONTH", str(begin.month)) == str(begin.month)
        and parts.get("BYMONTHDAY", str(begin.day)) == str(begin.day)
    )


def _listed(parts: Mapping[str, str], name: str) -> list[str]:
    return parts[name].split(",")[:100] if name in parts else []


def _weekday(text: str) -> tuple[int, int]:
    if (found := _BYDAY.fullmatch(text)) is None:
        raise UnreadRule(text)
    return int(found[1] or 0), _WEEKDAYS.index(found[2])


def _between(first: date, last: date) -> Iterator[date]:
    return (date.fromordinal(number) for number in range(first.toordinal(), last.toordinal() + 1))


def _length(day: date) -> int:
    """Return the number of days in the month of `day`."""
    following = date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return (following - _DAY).day

"""Schedules: values that answer one question, which instant comes next.

Jobs with an equal `identity` fire at the same instants and may share one row. Every instant is UTC.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache, partial
from typing import Any, assert_never

from horai.text import Wrong
from horai.time import cron, exclusions
from horai.time.calendar_rule import CalendarRule, OnHoliday, next_moved
from horai.time.cron import Cron, Dialect, DstPolicy
from horai.time.cron.calendar import next_slot
from horai.time.cron.fires import Slots
from horai.time.cron.segments import LAST_YEAR, segment_at
from horai.time.durations import LONGEST, format_duration, parse_duration
from horai.time.work_calendar import first_open_instant
from horai.time.zones import zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST_INTERVAL = timedelta(seconds=1)
DEFAULT_DST = DstPolicy()
EXCLUDED_IN_A_ROW = exclusions.MOST + 1
"""A schedule with this many fires in a row on excluded dates counts as one that never fires."""

_MOMENT = timedelta(microseconds=1)
_CENTURY = timedelta(days=36_525)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """A schedule that fires when the wall clock of `timezone` matches `expression`, except on excluded dates.

    `check` validates the values.
    """

    expression: str
    timezone: str = "UTC"
    dst: DstPolicy = DEFAULT_DST
    dialect: Dialect | None = None
    """None: the number of fields determines the dialect."""
    excluded: tuple[str, ...] = ()
    calendar: CalendarRule | None = None

    @property
    def cron(self) -> Cron:
        """Return the parsed expression. Raise CronError if it is invalid."""
        return _parsed(self.expression, self.dialect)


@dataclass(frozen=True, slots=True)
class EverySchedule:
    """A schedule that fires at `anchor` plus any whole multiple of `interval`, before the anchor too.

    The rate is fixed and never drifts. `timezone` is that of the excluded dates and of the calendar, which can leave
    out fires but not move them: an interval has no times of day.
    """

    interval: timedelta
    anchor: datetime = EPOCH
    timezone: str = "UTC"
    excluded: tuple[str, ...] = ()
    calendar: CalendarRule | None = None

    def __post_init__(self) -> None:
        if not SHORTEST_INTERVAL <= self.interval <= LONGEST:
            raise ValueError(Wrong.INTERVAL_RANGE(days=LONGEST.days, given=str(self.interval)))
        if self.interval % timedelta(milliseconds=1):
            raise ValueError(f"an interval is a whole number of milliseconds, not {self.interval}")
        if self.calendar is not None and self.calendar.on_holiday is not OnHoliday.skip:
            raise ValueError(Wrong.INTERVAL_MOVED())
        object.__setattr__(self, "anchor", _utc(self.anchor))


Schedule = CronSchedule | EverySchedule


def next_after(schedule: Schedule, after: datetime) -> datetime | None:
    """Return the first fire strictly after `after`; None if there is none within a hundred years."""
    fire = _next_of_all(schedule, after)
    return fire if fire is None or not _has_days_off(schedule) else _first_open(schedule, fire)


def next_from(schedule: Schedule, instant: datetime) -> datetime | None:
    """Return the first fire at or after `instant`; None if there is none within a hundred years."""
    return next_after(schedule, instant - _MOMENT)


def slots_of(schedule: CronSchedule) -> Slots:
    """Return the times of a cron on a wall clock, moved by its calendar if it has one."""
    if schedule.calendar is None:
        return partial(next_slot, schedule.cron)
    return partial(next_moved, schedule.calendar, schedule.cron)


def _has_days_off(schedule: Schedule) -> bool:
    """Return whether `first_open` decides about fires. The calendar of a cron has moved its times before."""
    return bool(schedule.excluded) or (isinstance(schedule, EverySchedule) and schedule.calendar is not None)


def _next_of_all(schedule: Schedule, after: datetime) -> datetime | None:
    """Return the first fire strictly after `after`, on excluded dates too."""
    match schedule:
        case CronSchedule(_, timezone, dst, _, _, rule):
            slots = None if rule is None else slots_of(schedule)
            return cron.next_fire(schedule.cron, zone(timezone), after, dst, slots)
        case EverySchedule(interval, anchor):
            try:
                return anchor + ((_utc(after) - anchor) // interval + 1) * interval
            except OverflowError:
                return None
        case _:
            assert_never(schedule)


def _first_open(schedule: Schedule, fire: datetime) -> datetime | None:
    """Return the first fire at or after the fire `fire` that is not on an excluded date; None if there is none."""
    first = fire
    for _ in range(EXCLUDED_IN_A_ROW):
        open_at = first_open(schedule, fire)
        if open_at is None or open_at == fire:
            return open_at
        following = _next_of_all(schedule, open_at - _MOMENT)
        if following is None or following - first > _CENTURY:
            return None
        fire = following
    return None


def first_open(schedule: Schedule, instant: datetime) -> datetime | None:
    """Return `instant`, or the first open midnight after it if its date is excluded; None if no date is open again.

    With a calendar, it is the next opening.
    """
    if schedule.calendar is not None:
        return first_open_instant(schedule.calendar.calendar, instant, schedule.timezone)
    if not schedule.excluded:
        return instant
    place = zone(schedule.timezone)
    try:
        day = instant.astimezone(place).date()
    except OverflowError:
        return None
    open_day = exclusions.next_open(schedule.excluded, day)
    if open_day is None or open_day == day:
        return None if open_day is None else instant
    midnight = datetime.combine(open_day, time(), place)
    opens = midnight.astimezone(UTC)
    again = _open_again(schedule, instant, day)
    if again is not None and again < opens:
        return again
    if opens <= instant:
        # The clock was put back just after midnight and shows the day before again: its second midnight is meant.
        return midnight.replace(fold=1).astimezone(UTC)
    # A zone that has jumped over the open day shows a later one, which may be excluded.
    return opens if opens.astimezone(place).date() == open_day else first_open(schedule, opens)


def _open_again(schedule: Schedule, instant: datetime, day: date) -> datetime | None:
    """Return when the clock, put back over midnight, shows the open day before an excluded one again; else None."""
    place = zone(schedule.timezone)
    if instant.year > LAST_YEAR:
        return None
    change = EPOCH + timedelta(seconds=segment_at(place, (instant - EPOCH) // timedelta(seconds=1)).end)
    shown = change.astimezone(place).date()
    return change if shown < day and not exclusions.is_excluded(schedule.excluded, shown) else None


def wall_of(schedule: Schedule, instant: datetime) -> datetime:
    """Return what the clock of the schedule's zone shows at `instant`."""
    return instant.astimezone(zone(schedule.timezone)).replace(tzinfo=None)


def fires_between(schedule: Schedule, after: datetime, until: datetime, limit: int) -> Iterator[datetime]:
    """Yield the fires later than `after` and not later than `until`, in order, at most `limit` of them."""
    for _ in range(limit):
        fire = next_after(schedule, after)
        if fire is None or fire > until:
            return
        yield fire
        after = fire


def check(schedule: Schedule, after: datetime = EPOCH) -> None:
    """Raise ValueError with the reason if the schedule is wrong or never fires after `after`."""
    if next_after(schedule, after) is None:
        raise ValueError(cron.NO_NEXT_FIRE)


def identity(schedule: Schedule) -> str:
    """Return a text that is equal for equal fires.

    Spaces, case and an anchor moved by whole intervals do not change it.
    """
    but = f" but {','.join(schedule.excluded)}" if schedule.excluded else ""
    but += "" if schedule.calendar is None else schedule.calendar.identity
    match schedule:
        case CronSchedule(_, timezone, dst):
            parsed = schedule.cron
            spoken = "" if schedule.dialect is None else f" as {parsed.dialect}"
            return f"cron {parsed.expression}{spoken} in {timezone} gap={dst.gap} overlap={dst.overlap}{but}"
        case EverySchedule(interval, anchor, timezone):
            phase = (anchor - EPOCH) % interval
            where = f" in {timezone}" if but else ""
            return f"every {format_duration(interval)} from {(EPOCH + phase).isoformat()}{where}{but}"
        case _:
            assert_never(schedule)


def to_spec(schedule: Schedule) -> dict[str, Any]:
    """Return the schedule as a JSON object; `from_spec` restores an equal schedule."""
    calendar: dict[str, Any] = {"calendar": list(schedule.excluded)} if schedule.excluded else {}
    if schedule.calendar is not None:
        calendar = {"calendar": schedule.calendar.to_spec()}
    match schedule:
        case CronSchedule(expression, timezone, dst, dialect):
            spoken = {} if dialect is None else {"dialect": dialect.value}
            return {"cron": expression, "timezone": timezone, "dst": asdict(dst), **spoken, **calendar}
        case EverySchedule(interval, anchor, timezone):
            place = {"timezone": timezone} if timezone != "UTC" else {}
            return {"every": format_duration(interval), "anchor": anchor.isoformat(), **place, **calendar}
        case _:
            assert_never(schedule)


def from_spec(spec: Mapping[str, Any]) -> Schedule:
    """Return the schedule of a JSON object. Raise ValueError for a field that is missing, unknown or malformed."""
    fields = spec.keys()
    excluded, rule = _calendar(spec.get("calendar", ()))
    if "cron" in fields and fields <= {"cron", "timezone", "dst", "dialect", "calendar"}:
        dst = DstPolicy.from_spec(spec.get("dst", {}))
        dialect = Dialect(_text(spec, "dialect")) if "dialect" in fields else None
        return CronSchedule(_text(spec, "cron"), _text(spec, "timezone", "UTC"), dst, dialect, excluded, rule)
    if "every" in fields and fields <= {"every", "anchor", "timezone", "calendar"}:
        anchor = datetime.fromisoformat(_text(spec, "anchor", EPOCH.isoformat()))
        interval = parse_duration(_text(spec, "every"))
        return EverySchedule(interval, anchor, _text(spec, "timezone", "UTC"), excluded, rule)
    raise ValueError(f"a schedule has the fields cron, timezone, dst or every, anchor, not {', '.join(fields)}")


def _calendar(days: Mapping[str, Any] | Sequence[str]) -> tuple[tuple[str, ...], CalendarRule | None]:
    return ((), CalendarRule.from_spec(days)) if isinstance(days, Mapping) else (exclusions.check(days), None)


def _text(spec: Mapping[str, Any], field: str, default: str = "") -> str:
    value = spec.get(field, default)
    if isinstance(value, str):
        return value
    raise ValueError(f"{field} must be a string, not {value!r}")


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} names no instant: it needs a UTC offset")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{instant.isoformat()} is beyond the calendar") from None


@lru_cache(maxsize=10_000)
def _parsed(expression: str, dialect: Dialect | None) -> Cron:
    return cron.parse(expression) if dialect is None else cron.parse(expression, dialect)

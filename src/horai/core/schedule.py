"""A schedule is a value that answers one question: which instant comes next.

Jobs with an equal `identity` fire at the same instants and may share one row. Every instant is UTC.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, assert_never

from horai.core import cron
from horai.core.cron import Cron, DstPolicy
from horai.core.durations import LONGEST, format_duration, parse_duration
from horai.core.zones import zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST_INTERVAL = timedelta(seconds=1)
DEFAULT_DST = DstPolicy()


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """Fires when the wall clock of `timezone` matches `expression`; `check` says whether both make sense."""

    expression: str
    timezone: str = "UTC"
    dst: DstPolicy = DEFAULT_DST


@dataclass(frozen=True, slots=True)
class EverySchedule:
    """Fires at `anchor` plus any whole multiple of `interval`, before it too: a fixed rate that never drifts."""

    interval: timedelta
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        if not SHORTEST_INTERVAL <= self.interval <= LONGEST:
            raise ValueError(f"an interval is between 1s and {LONGEST.days}d, not {self.interval}")
        if self.interval % timedelta(milliseconds=1):
            raise ValueError(f"an interval is a whole number of milliseconds, not {self.interval}")
        object.__setattr__(self, "anchor", _utc(self.anchor))


Schedule = CronSchedule | EverySchedule


def next_after(schedule: Schedule, after: datetime) -> datetime | None:
    """The first fire strictly after `after`, or None when there is none within a hundred years."""
    match schedule:
        case CronSchedule(expression, timezone, dst):
            return cron.next_fire(_parsed(expression), zone(timezone), after, dst)
        case EverySchedule(interval, anchor):
            try:
                return anchor + ((_utc(after) - anchor) // interval + 1) * interval
            except OverflowError:
                return None
        case _:
            assert_never(schedule)


def fires_between(schedule: Schedule, after: datetime, until: datetime, limit: int) -> Iterator[datetime]:
    """The fires later than `after` and not later than `until`, in order, at most `limit` of them."""
    for _ in range(limit):
        fire = next_after(schedule, after)
        if fire is None or fire > until:
            return
        yield fire
        after = fire


def check(schedule: Schedule, after: datetime = EPOCH) -> None:
    """Passes a schedule that will fire after `after`; ValueError says what is wrong with any other."""
    if next_after(schedule, after) is None:
        raise ValueError(cron.NO_NEXT_FIRE)


def identity(schedule: Schedule) -> str:
    """A text of which equals mean equal fires; spaces, case and an anchor moved by whole intervals do not change it."""
    match schedule:
        case CronSchedule(expression, timezone, dst):
            return f"cron {_parsed(expression).expression} in {timezone} gap={dst.gap} overlap={dst.overlap}"
        case EverySchedule(interval, anchor):
            phase = (anchor - EPOCH) % interval
            return f"every {format_duration(interval)} from {(EPOCH + phase).isoformat()}"
        case _:
            assert_never(schedule)


def to_spec(schedule: Schedule) -> dict[str, Any]:
    """The schedule as a JSON object; `from_spec` makes an equal schedule of it."""
    match schedule:
        case CronSchedule(expression, timezone, dst):
            return {"cron": expression, "timezone": timezone, "dst": asdict(dst)}
        case EverySchedule(interval, anchor):
            return {"every": format_duration(interval), "anchor": anchor.isoformat()}
        case _:
            assert_never(schedule)


def from_spec(spec: Mapping[str, Any]) -> Schedule:
    """The schedule of a JSON object; ValueError for a field that is missing, unknown or ill-formed."""
    fields = spec.keys()
    if "cron" in fields and fields <= {"cron", "timezone", "dst"}:
        dst = DstPolicy.from_spec(spec.get("dst", {}))
        return CronSchedule(_text(spec, "cron"), _text(spec, "timezone", "UTC"), dst)
    if "every" in fields and fields <= {"every", "anchor"}:
        anchor = datetime.fromisoformat(_text(spec, "anchor", EPOCH.isoformat()))
        return EverySchedule(parse_duration(_text(spec, "every")), anchor)
    raise ValueError(f"a schedule has the fields cron, timezone, dst or every, anchor, not {', '.join(fields)}")


def _text(spec: Mapping[str, Any], field: str, default: str = "") -> str:
    value = spec.get(field, default)
    if isinstance(value, str):
        return value
    raise ValueError(f"{field} is a text, not {value!r}")


def _utc(instant: datetime) -> datetime:
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} names no instant: it needs a UTC offset")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{instant.isoformat()} is beyond the calendar") from None


@lru_cache(maxsize=10_000)
def _parsed(expression: str) -> Cron:
    return cron.parse(expression)

"""The treatment of slots that were not created in time, because the nodes were down or the job was paused.

A slot is late when it is more than `after` past. Slots that are not late are always created. Of the late ones

- `skip` creates none,
- `once` creates the last,
- `all` creates every one, in their order.

`window` leaves out slots that are further back, and `max_catchup` keeps only that many of the newest. Slots that are
left out are reported as one range, regardless of their number.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from horai.text import Wrong
from horai.time.durations import format_duration, parse_duration
from horai.time.schedule import SHORTEST_INTERVAL, Schedule, fires_between, next_after, next_from

COUNT_LIMIT = 10_000
MOST_CATCHUP = 10_000
LATE_AFTER = timedelta(seconds=60)
_MOMENT = timedelta(microseconds=1)
_CHUNK = 1_000


class Policy(StrEnum):
    """The late slots that are created: none, the last, or all."""

    skip = "skip"
    once = "once"
    all = "all"


@dataclass(frozen=True, slots=True)
class MisfireRule:
    """The rule of a job for its late slots. A rule that contradicts itself raises ValueError."""

    policy: Policy = Policy.once
    max_catchup: int | None = None
    window: timedelta | None = None
    after: timedelta = LATE_AFTER

    def __post_init__(self) -> None:
        if self.max_catchup is not None:
            if self.policy is not Policy.all:
                raise ValueError(Wrong.CATCHUP_WITHOUT_ALL())
            if not 1 <= self.max_catchup <= MOST_CATCHUP:
                raise ValueError(Wrong.CATCHUP_RANGE(most=MOST_CATCHUP, given=self.max_catchup))
        if self.window is not None and self.policy is Policy.skip:
            raise ValueError(Wrong.WINDOW_WITH_SKIP())

    @property
    def identity(self) -> str:
        """Return a text that is equal for equal rules; empty for the default."""
        if self == DEFAULT:
            return ""
        most = "" if self.max_catchup is None else f" max={self.max_catchup}"
        window = "" if self.window is None else f" window={format_duration(self.window)}"
        return f" misfire={self.policy}{most}{window} after={format_duration(self.after)}"

    def to_spec(self) -> dict[str, Any]:
        """Return the rule as a JSON object, `after` included; `from_spec` restores an equal rule."""
        most = {} if self.max_catchup is None else {"maxCatchup": self.max_catchup}
        window = {} if self.window is None else {"window": format_duration(self.window)}
        return {"policy": self.policy.value, **most, **window, "after": format_duration(self.after)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "MisfireRule":
        """Return the rule of a JSON object. Raise ValueError for an object that is not one."""
        word = spec.get("policy", Policy.once.value)
        if word not in tuple(Policy):
            raise ValueError(Wrong.NOT_ONE_OF(value=word, allowed=", ".join(Policy)))
        window, after = spec.get("window"), spec.get("after")
        return cls(
            Policy(word),
            spec.get("maxCatchup"),
            None if window is None else parse_duration(window),
            LATE_AFTER if after is None else parse_duration(after),
        )


DEFAULT = MisfireRule()


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of slots, the first and the last included.

    `slots` is their number; None beyond `COUNT_LIMIT`, or if they were not counted.
    """

    first: datetime
    last: datetime
    slots: int | None = None


@dataclass(frozen=True, slots=True)
class CatchUpPlan:
    """The plan for a schedule with late slots: the slots to create, and the slots to leave out before them.

    `goes_on_at` is the first slot that is not late; None if there never is one again.
    """

    goes_on_at: datetime | None
    made: Stretch | None = None
    skipped: Stretch | None = None


def catch_up(
    schedule: Schedule, misfire: MisfireRule, cursor: datetime, now: datetime, until: datetime | None = None
) -> CatchUpPlan:
    """Return the plan for a schedule whose next slot is `cursor`.

    For a job that has ended, the plan covers its slots until the end, `until`.
    """
    late_before = now - misfire.after
    if cursor >= late_before:
        return CatchUpPlan(cursor)
    last = latest_until(schedule, min(late_before - _MOMENT, until or late_before), cursor)
    made_from = _made_from(schedule, misfire, Stretch(cursor, last), now)
    return CatchUpPlan(
        next_after(schedule, last),
        None if made_from is None else Stretch(made_from, last),
        _skipped(schedule, cursor, last if made_from is None else made_from, is_open=made_from is not None),
    )


def _made_from(schedule: Schedule, misfire: MisfireRule, late: Stretch, now: datetime) -> datetime | None:
    """Return the first late slot to create, or None; the last one is then created, too."""
    if misfire.policy is Policy.skip or (misfire.window is not None and late.last < now - misfire.window):
        return None
    if misfire.policy is Policy.once:
        return late.last
    first = late.first
    if misfire.window is not None and first < now - misfire.window:
        first = next_from(schedule, now - misfire.window) or late.last
    if misfire.max_catchup is not None:
        first = _newest(schedule, Stretch(first, late.last), misfire.max_catchup)
    return first


def _newest(schedule: Schedule, late: Stretch, count: int) -> datetime:
    """Return the first of the newest `count` slots of a stretch.

    The search goes back from slot to slot in steps that hold some hundred of them, so that it reads only slots that it
    counts, at any density and across any gaps.
    """
    end, missing, step = late.last, count, timedelta(minutes=1)
    while True:
        start = max(end - step, late.first)
        found = [*fires_between(schedule, start - _MOMENT, end, _CHUNK + 1)]
        if len(found) > _CHUNK:
            step /= 2
            continue
        if len(found) >= missing or start == late.first:
            return found[-missing] if len(found) >= missing else late.first
        missing -= len(found)
        end = latest_until(schedule, start - _MOMENT, late.first)
        step = 2 * step if len(found) < _CHUNK / 2 else step


def latest_until(schedule: Schedule, until: datetime, floor: datetime) -> datetime:
    """Return the last slot not after `until`; `floor` is a known one.

    The search halves the time between them instead of walking over it, so the density of slots does not matter.
    """
    following = next_after(schedule, floor)
    if following is None or following > until:
        return floor
    last, end = following, until
    while end - last >= SHORTEST_INTERVAL:
        middle = last + (end - last) / 2
        fire = next_after(schedule, middle)
        if fire is not None and fire <= until:
            last = fire
        else:
            end = middle
    return last


def _skipped(schedule: Schedule, first: datetime, end: datetime, *, is_open: bool) -> Stretch | None:
    """Return the slots from `first` until `end`, without `end` if `is_open`; None if there are none."""
    if is_open and first == end:
        return None
    last = latest_until(schedule, end - _MOMENT, first) if is_open else end
    between = sum(1 for _ in fires_between(schedule, first, last, COUNT_LIMIT))
    return Stretch(first, last, between + 1 if between < COUNT_LIMIT else None)

"""The fires of a cron: wall-clock matches mapped to the real time of a zone.

An expression whose minute or hour field starts with `*` follows real time: it fires at each instant whose wall time
matches, twice in an overlap, never in a gap. All others name fixed times, and a `DstPolicy` decides about a time that
does not exist or exists twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo

from horai.text import Wrong
from horai.time.cron.calendar import DAY, next_slot
from horai.time.cron.expression import Cron
from horai.time.cron.segments import EPOCH, FIRST_YEAR, LAST_YEAR, Segment, segment_at

Gap = Literal["shift", "skip"]
Overlap = Literal["first", "last", "both"]
Slots = Callable[[int], int | None]
"""Returns the first slot at or after a wall time; None if there is none."""


@dataclass(frozen=True, slots=True)
class DstPolicy:
    """The treatment of a fixed time when the clock is changed.

    `gap` is for times that the clock skips: `shift` fires once, at the first instant after the gap, regardless of how
    many times were lost in it; `skip` drops them. `overlap` is for times that come twice.
    """

    gap: Gap = "shift"
    overlap: Overlap = "first"

    def __post_init__(self) -> None:
        if self.gap not in get_args(Gap):
            raise ValueError(Wrong.DST_GAP(allowed=", ".join(get_args(Gap)), given=self.gap))
        if self.overlap not in get_args(Overlap):
            raise ValueError(Wrong.DST_OVERLAP(allowed=", ".join(get_args(Overlap)), given=self.overlap))

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "DstPolicy":
        """Return the policy of a JSON object with `gap`, `overlap`, both or none. Raise ValueError for any other."""
        match spec:
            case {**fields} if fields.keys() <= {"gap", "overlap"}:
                return cls(**fields)
            case _:
                raise ValueError(f'dst is an object such as {{"gap": "shift", "overlap": "first"}}, not {spec!r}')


REAL_TIME = DstPolicy(gap="skip", overlap="both")
"""The policy of every wildcard expression, instead of its own: only the times that the clock shows count."""

_DEFAULT = DstPolicy()
_SECOND = timedelta(seconds=1)
_BEGIN = (datetime(FIRST_YEAR, 1, 1, tzinfo=EPOCH.tzinfo) - EPOCH) // _SECOND
_END = (datetime(LAST_YEAR, 1, 1, tzinfo=EPOCH.tzinfo) - EPOCH) // _SECOND
_MOST_LOOKS = 100
"""A slot that is lost in a gap costs two checks, and within 40 years each date comes on each weekday: a slot that clock
changes have taken in all of them never fires.
"""


def next_fire(
    cron: Cron, zone: ZoneInfo, after: datetime, dst: DstPolicy = _DEFAULT, slots: Slots | None = None
) -> datetime | None:
    """Return the first fire strictly after `after`, in UTC; None if there is none within a hundred years.

    Years that a year field excludes do not count. `slots` are the cron's times if a calendar has moved some of them.
    """
    if after.tzinfo is None:
        raise ValueError(f"{after.isoformat()} names no instant: it needs a UTC offset")
    policy = REAL_TIME if cron.is_wildcard else dst
    slots = slots or partial(next_slot, cron)
    earliest = max((after - EPOCH) // _SECOND + 1, _BEGIN)
    for _ in range(_MOST_LOOKS):
        if earliest >= _END:
            break
        segment = segment_at(zone, earliest)
        fire = _first_fire(slots, segment, policy, earliest)
        if fire is not None:
            return EPOCH + timedelta(seconds=fire)
        earliest = _next_worth_a_look(slots, segment.end)
    return None


def _first_fire(slots: Slots, segment: Segment, policy: DstPolicy, earliest: int) -> int | None:
    """Return the first fire of `segment` at or after `earliest`, which lies in it; None if there is none."""
    if policy.gap == "shift" and segment.lost_from is not None and earliest == segment.start:
        lost = slots(segment.lost_from)
        if lost is not None and lost < segment.start + segment.offset:
            return segment.start
    begin = max(earliest, segment.repeats_until) if policy.overlap == "first" else earliest
    end = min(segment.end, segment.repeated_from) if policy.overlap == "last" else segment.end
    slot = slots(begin + segment.offset)
    if slot is None or slot - segment.offset >= end:
        return None
    return slot - segment.offset


def _next_worth_a_look(slots: Slots, instant: int) -> int:
    """Return an instant at or after `instant` with no fire in between.

    A wall clock is less than a day off UTC, so no slot before `instant - DAY` can still come, and the next one comes no
    earlier than a day before its wall time: years without a slot are never checked.
    """
    slot = slots(instant - DAY)
    return _END if slot is None else max(instant, slot - DAY)

"""Wakes: hints that something may be there to do, and the text in which processes pass them on.

A wake is never a promise: the row is the truth, and the sweep finds what no wake announced. So text that cannot be read
is passed over, and what does not fit is said more broadly, never wrongly. Due times keep their microseconds: a claimer
moves its cursor back to them, and a rounded one would leave the row behind it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias, assert_never

from horai.core.settings import SHARDS

ENTRIES: Final = 20
"""At most this many wakes in one payload."""
PAYLOAD_LIMIT: Final = 2_000
"""No payload of ours is longer; PostgreSQL refuses 8,000 bytes and aborts the transaction that tries."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_MOMENT = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LANES = 2**31
_IDS = 2**63
_DIGITS = 19
_BEAT = "beat:"


@dataclass(frozen=True, slots=True)
class LaneWake:
    """A row of this lane is claimable from `due` on; no shard means any."""

    shard: int | None
    lane: int
    due: datetime


@dataclass(frozen=True, slots=True)
class ScheduleWake:
    """A schedule is new, or awake again."""

    schedule_id: int
    fire_time: datetime


@dataclass(frozen=True, slots=True)
class OutcomeWake:
    """A claim was ended from outside, by a report, a cancel or a put: its holder waits, or works, for nothing."""

    instance_id: int
    fence: int


@dataclass(frozen=True, slots=True)
class QueueWake:
    """A queue's limits or its pause have changed, or one of its slots is free."""

    queue_id: int


@dataclass(frozen=True, slots=True)
class MoveWaitingWake:
    """A job's rows have to be moved."""


@dataclass(frozen=True, slots=True)
class CatchupWake:
    """A job has late slots to be made."""


@dataclass(frozen=True, slots=True)
class NodesWake:
    """A node has come or gone."""


@dataclass(frozen=True, slots=True)
class EverywhereWake:
    """Anything may have changed: it names nothing and stands for all but outcomes."""


Wake: TypeAlias = (
    LaneWake | ScheduleWake | OutcomeWake | QueueWake | MoveWaitingWake | CatchupWake | NodesWake | EverywhereWake
)


def to_text(wakes: Iterable[Wake]) -> str:
    """The payload that says these wakes; the caller sees to it that they are few enough."""
    return " ".join(_entry(wake) for wake in wakes)


def _entry(wake: Wake) -> str:
    match wake:
        case LaneWake(shard, lane, due):
            return f"w:{'*' if shard is None else shard}:{lane}:{_number(due)}"
        case ScheduleWake(schedule_id, fire_time):
            return f"s:{schedule_id}:{_number(fire_time)}"
        case OutcomeWake(instance_id, fence):
            return f"o:{instance_id}:{fence}"
        case QueueWake(queue_id):
            return f"q:{queue_id}"
        case MoveWaitingWake():
            return "r"
        case CatchupWake():
            return "c"
        case NodesWake():
            return "n"
        case EverywhereWake():
            return "*"
        case _:
            assert_never(wake)


def from_text(payload: str) -> list[Wake]:
    """The wakes of a payload, whoever sent it. What is too long says nothing; an entry that cannot be read is left out.

    A newer version may send entries that this one does not know, beside those it does.
    """
    if len(payload) > PAYLOAD_LIMIT:
        return []
    entries = payload.split(" ")
    if len(entries) > ENTRIES:
        return []
    return [wake for entry in entries if (wake := _wake(entry)) is not None]


def beat_text(incarnation: int) -> str:
    """What a node's heartbeat says on the channel: whoever hears its own knows that it hears."""
    return f"{_BEAT}{incarnation}"


def is_beat(payload: str) -> bool:
    """Whether this is some node's heartbeat."""
    return payload.startswith(_BEAT)


def _wake(entry: str) -> Wake | None:
    """None for what none of us would write."""
    try:
        match entry.split(":"):
            case ["w", shard, lane, due]:
                place = None if shard == "*" else _whole(shard, SHARDS)
                return LaneWake(place, _named(lane, _LANES), _moment(due))
            case ["s", schedule, fire_time]:
                return ScheduleWake(_named(schedule, _IDS), _moment(fire_time))
            case ["o", instance, fence]:
                return OutcomeWake(_named(instance, _IDS), _whole(fence, _IDS))
            case ["q", queue]:
                return QueueWake(_named(queue, _IDS))
            case [word]:
                return _NAMELESS.get(word)
            case _:
                return None
    except ValueError:
        return None


_NAMELESS: dict[str, Wake] = {"r": MoveWaitingWake(), "c": CatchupWake(), "n": NodesWake(), "*": EverywhereWake()}


def _whole(digits: str, below: int) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        raise ValueError("not a whole number")
    number = int(digits)
    if number >= below:
        raise ValueError("too large")
    return number


def _named(digits: str, below: int) -> int:
    """The number of something that exists: none is 0, and lane 0 is for parking."""
    number = _whole(digits, below)
    if number == 0:
        raise ValueError("names nothing")
    return number


def _moment(digits: str) -> datetime:
    return _EPOCH + timedelta(microseconds=_whole(digits, _LAST_MOMENT + 1))


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND

"""Wakes: hints that there may be work, and the text in which processes exchange them.

A wake is never a promise: the row is the truth, and the sweep finds rows that no wake announced. So text that cannot be
read is ignored, and wakes that do not fit are broadened, never wrong. Due times keep their microseconds: a claimer
moves its cursor back to them, and a rounded time would leave the row behind the cursor.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from horai.core.limits import SHARDS

ENTRIES: Final = 20
"""The most wakes in one payload."""
PAYLOAD_LIMIT: Final = 2_000
"""The longest payload in characters; PostgreSQL refuses 8,000 bytes and aborts the transaction that tries."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LAST_MOMENT = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LANES = 2**31
_IDS = 2**63
_DIGITS = 19
_BEAT = "beat:"


@dataclass(frozen=True, slots=True)
class LaneWake:
    """A row of this lane is claimable from `due` on; no shard means any shard."""

    shard: int | None
    lane: int
    due: datetime


@dataclass(frozen=True, slots=True)
class ScheduleWake:
    """A schedule is new, or active again."""

    schedule_id: int
    fire_time: datetime


@dataclass(frozen=True, slots=True)
class OutcomeWake:
    """A report, a cancel or a put ended a claim from outside: its holder waits, or works, in vain."""

    instance_id: int
    fence: int


@dataclass(frozen=True, slots=True)
class QueueWake:
    """The limits or the pause of a queue have changed, or one of its permits is free."""

    queue_id: int


@dataclass(frozen=True, slots=True)
class MoveWaitingWake:
    """The waiting rows of a job have to be moved."""


@dataclass(frozen=True, slots=True)
class CatchupWake:
    """A job has late slots to be created."""


@dataclass(frozen=True, slots=True)
class NodesWake:
    """A node has joined or left."""


@dataclass(frozen=True, slots=True)
class KeysWake:
    """A key was created or revoked, a session has ended, or a group changed: what is remembered of callers is old."""


@dataclass(frozen=True, slots=True)
class DataKeysWake:
    """Data keys were erased: what is remembered of them, and what they opened, is to be forgotten."""


@dataclass(frozen=True, slots=True)
class AuditWake:
    """The audit log has new rows, which are not sealed."""


@dataclass(frozen=True, slots=True)
class EventsWake:
    """There are events that are not recorded in the outbox, or a sink has changed."""


@dataclass(frozen=True, slots=True)
class AlertsWake:
    """A rule, a channel or a silence has changed, or a condition that rules watch may have begun or ended."""


@dataclass(frozen=True, slots=True)
class ParkedKeysWake:
    """Instances that wait for a place of their concurrency key may have one: a job was resumed, a limit was raised, a node was lost."""


@dataclass(frozen=True, slots=True)
class AssetsWake:
    """An asset was updated that jobs wait for, or a success may have updated one."""


@dataclass(frozen=True, slots=True)
class ExpiriesWake:
    """Instances got the last moments at which an attempt may begin."""


@dataclass(frozen=True, slots=True)
class EverywhereWake:
    """Anything may have changed: this wake names nothing and stands for all others but outcomes."""


Wake: TypeAlias = (
    LaneWake
    | ScheduleWake
    | OutcomeWake
    | QueueWake
    | MoveWaitingWake
    | CatchupWake
    | NodesWake
    | KeysWake
    | DataKeysWake
    | AuditWake
    | EventsWake
    | AlertsWake
    | ParkedKeysWake
    | AssetsWake
    | ExpiriesWake
    | EverywhereWake
)


@dataclass(frozen=True, slots=True)
class OverlapWake:
    """A run of these jobs has ended, or one of their slots is held."""

    job_ids: Collection[int]


@dataclass(frozen=True, slots=True)
class RunsWake:
    """These instances have ended, were replayed, or have started a run: a workflow run may wait for them."""

    instance_ids: Collection[int]


@dataclass(frozen=True, slots=True)
class KeyWake:
    """Claims of these concurrency keys have ended, as (job id, key)."""

    keys: Collection[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class CallsWake:
    """Functions of this process have called other jobs, and wait for these instances."""

    children: Collection[int]


LocalWake: TypeAlias = OverlapWake | RunsWake | KeyWake | CallsWake
"""Wakes that stay in their process: the stage that needs them runs in every process that sends them."""


def to_text(wakes: Iterable[Wake]) -> str:
    """Return the payload for these wakes; the caller keeps their number within `ENTRIES`."""
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
        case _:
            return _LETTERS[type(wake)]


def from_text(payload: str) -> list[Wake]:
    """Return the wakes of a payload from any sender.

    A payload that is too long has none; an entry that cannot be read is left out. A newer version may send entries that
    this one does not know, beside those it does.
    """
    if len(payload) > PAYLOAD_LIMIT:
        return []
    entries = payload.split(" ")
    if len(entries) > ENTRIES:
        return []
    return [wake for entry in entries if (wake := _wake(entry)) is not None]


def beat_text(incarnation: int) -> str:
    """Return a node's heartbeat for the channel: a node that hears its own heartbeat knows that it can hear."""
    return f"{_BEAT}{incarnation}"


def is_beat(payload: str) -> bool:
    """Return whether the payload is the heartbeat of a node."""
    return payload.startswith(_BEAT)


def _wake(entry: str) -> Wake | None:
    """Return the wake of an entry; None for an entry that `to_text` would not write."""
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


_NAMELESS: dict[str, Wake] = {
    "r": MoveWaitingWake(),
    "c": CatchupWake(),
    "n": NodesWake(),
    "k": KeysWake(),
    "d": DataKeysWake(),
    "a": AuditWake(),
    "e": EventsWake(),
    "l": AlertsWake(),
    "p": ParkedKeysWake(),
    "u": AssetsWake(),
    "x": ExpiriesWake(),
    "*": EverywhereWake(),
}
_LETTERS: dict[type[Wake], str] = {type(wake): letter for letter, wake in _NAMELESS.items()}


def _whole(digits: str, below: int) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        raise ValueError("not a whole number")
    number = int(digits)
    if number >= below:
        raise ValueError("too large")
    return number


def _named(digits: str, below: int) -> int:
    """Return the number of an existing object: no id is 0, and lane 0 is for parking."""
    number = _whole(digits, below)
    if number == 0:
        raise ValueError("names nothing")
    return number


def _moment(digits: str) -> datetime:
    return _EPOCH + timedelta(microseconds=_whole(digits, _LAST_MOMENT + 1))


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND

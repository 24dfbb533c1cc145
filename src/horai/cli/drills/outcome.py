"""The result of a drill, computed from the writes that clients know, the calls that the target got, and the rows.

RTO is the longer of two times after the failure: the longest pause between two acknowledged writes, and the time until
the last instance that was acknowledged before the failure had ended. RPO is the age, at the failure, of the oldest
acknowledged write that is missing afterwards; 0 if none is missing.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

NONE = timedelta(0)
SUCCESS = "SUCCESS"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A write that a node has acknowledged, and the time at which the client knew it."""

    instance_id: int
    at: datetime


@dataclass(frozen=True, slots=True)
class DrillRecord:
    """The facts of a drill. Times are those of one clock: all processes are on this machine."""

    failed_at: datetime
    ended_at: datetime
    """The time at which the clients stopped writing."""
    acknowledged: Sequence[Acknowledgement]
    refused: int
    calls: Mapping[int, Sequence[int]]
    """The fences of the calls of each instance."""
    ended: Mapping[int, tuple[str, datetime]]
    """The final state of each instance, and its time."""
    losses: Mapping[int, int]
    """The attempts of each instance that ended with their node: these calls were in flight."""
    letters: Collection[int]
    """The dead letters before the failure."""
    letters_after: Collection[int]
    violations: Sequence[str]
    """The violations of invariants, as `horai db verify` finds them."""


@dataclass(frozen=True, slots=True)
class DrillCounts:
    """The figures of a drill."""

    acknowledged: int
    refused: int
    calls: int
    lost: tuple[int, ...]
    """Acknowledged instances that did not end well, or were never called."""
    repeated_in_flight: int
    """Instances that were called again because their node was lost during the call."""
    repeated: tuple[int, ...]
    """Instances that were called again without such a reason, or twice for one claim."""
    letters: int
    letters_lost: int
    violations: tuple[str, ...]
    writes_paused: timedelta
    work_delayed: timedelta
    rpo: timedelta

    @property
    def rto(self) -> timedelta:
        """Return the recovery time: writes are accepted again, and the work from before the failure is done."""
        return max(self.writes_paused, self.work_delayed)


def counted(record: DrillRecord) -> DrillCounts:
    """Compute the figures of a drill."""
    lost = [each for each in record.acknowledged if _is_lost(each, record)]
    repeated = [instance for instance, fences in record.calls.items() if len(fences) > 1]
    outside = [instance for instance in repeated if not _was_in_flight(instance, record)]
    return DrillCounts(
        acknowledged=len(record.acknowledged),
        refused=record.refused,
        calls=sum(map(len, record.calls.values())),
        lost=tuple(each.instance_id for each in lost),
        repeated_in_flight=len(repeated) - len(outside),
        repeated=tuple(outside),
        letters=len(record.letters),
        letters_lost=len(set(record.letters) - set(record.letters_after)),
        violations=tuple(record.violations),
        writes_paused=_longest_pause(record),
        work_delayed=_delay_of_work(record),
        rpo=max((record.failed_at - each.at for each in lost if each.at < record.failed_at), default=NONE),
    )


def _is_lost(write: Acknowledgement, record: DrillRecord) -> bool:
    state, _ = record.ended.get(write.instance_id, (None, None))
    return state != SUCCESS or write.instance_id not in record.calls


def _was_in_flight(instance: int, record: DrillRecord) -> bool:
    """Return whether a lost attempt explains each repeated call, and no claim was called twice."""
    fences = record.calls[instance]
    return len(set(fences)) == len(fences) and len(fences) - 1 <= record.losses.get(instance, 0)


def _longest_pause(record: DrillRecord) -> timedelta:
    """Return the longest time without an acknowledged write, from the failure to the end of the load."""
    times = sorted(each.at for each in record.acknowledged if record.failed_at < each.at < record.ended_at)
    return max(later - earlier for earlier, later in pairwise([record.failed_at, *times, record.ended_at]))


def _delay_of_work(record: DrillRecord) -> timedelta:
    before = [each.instance_id for each in record.acknowledged if each.at <= record.failed_at]
    ends = [record.ended[instance][1] for instance in before if instance in record.ended]
    return max((end - record.failed_at for end in ends if end > record.failed_at), default=NONE)


@dataclass(frozen=True, slots=True)
class DrillLimits:
    """The promises that a drill checks. Without a standby that commits wait for, acknowledged work may be lost."""

    rto: timedelta
    rpo: timedelta
    may_lose: bool = False
    is_existing: bool = False
    """True for a cluster that the drill did not start: it makes no dead letters there, and reads no table."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise: its limit, the measured value, and whether it was kept."""

    text: str
    limit: str
    measured: str
    is_kept: bool


def promises(counts: DrillCounts, limits: DrillLimits) -> list[Promise]:
    """Compare the figures with the promises."""
    found = [
        Promise("recovery time (RTO)", _seconds(limits.rto), _seconds(counts.rto), counts.rto <= limits.rto),
        Promise("recovery point (RPO)", _seconds(limits.rpo), _seconds(counts.rpo), counts.rpo <= limits.rpo),
    ]
    if not limits.is_existing:
        found += [
            Promise("dead letters lost", "0", str(counts.letters_lost), counts.letters_lost == 0),
            Promise("violated invariants", "0", str(len(counts.violations)), not counts.violations),
        ]
    if not limits.may_lose:
        found += [
            Promise("acknowledged instances lost", "0", str(len(counts.lost)), not counts.lost),
            Promise("repeated calls outside work in flight", "0", str(len(counts.repeated)), not counts.repeated),
        ]
    return found


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():.2f} s"

"""The work that a failover without synchronous replication loses and repeats: counted, not forbidden.

The standby may lack the last transactions of the primary. An instance whose creation was among them is lost; one whose
settlement was among them runs again, with its old Idempotency-Key. No other instance is lost or repeated, every
instance that is left ends well, and no invariant of the database is violated.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from faults.outside import LoggedHit, ReceiverProcess, lost_attempts, until, violations
from horai.db.pool import Platform

LATER = float("inf")
LEAD = 60.0
"""Seconds before a failure in which lost or repeated work must have been written: the recovery point of seed 002."""


@dataclass(frozen=True)
class LostWrite:
    """An acknowledged write that is missing. `age` is in seconds before its failure, negative if it came after it."""

    failure: int
    age: float


@dataclass(frozen=True)
class Losses:
    """The result of a run."""

    acknowledged: int
    lost: dict[int, LostWrite]
    repeated: int
    """Instances that were called again because their settlement was lost."""
    unknown: int
    """Instances that were called and are lost."""
    problems: list[str] = field(default_factory=list[str])

    @property
    def rpo(self) -> float:
        """The age of the oldest lost write at its failure; 0 if none is lost."""
        return max((write.age for write in self.lost.values() if write.age > 0), default=0.0)

    def of(self, failure: int) -> int:
        """The number of writes that a failure has lost."""
        return sum(write.failure == failure for write in self.lost.values())


async def reckon_losses(
    connection: Platform,
    receiver: ReceiverProcess,
    acknowledged_at: Mapping[int, float],
    failures: Sequence[tuple[float, float]],
) -> Losses:
    """Wait until nothing is live, then count. `failures` are the times of each failure, and of the first write after it."""

    async def nothing_is_live() -> bool:
        return not await connection.fetchval("select exists (select from horai.instance_live)")

    await until(nothing_is_live, 120, "0 rows in a state that is not final")
    rows = await connection.fetch("select instance_id, idem_key, state, created_at from horai.job_instance")
    known = {row["idem_key"] for row in rows}
    created = {row["instance_id"]: row["created_at"].timestamp() for row in rows}
    hits = receiver.by_key()
    in_flight = await lost_attempts(connection)
    repeated = {key: calls for key, calls in hits.items() if len(calls) - 1 > in_flight.get(key, 0)}
    # A new primary may give the id of a lost instance to another one, which was created later.
    missing = {each: at for each, at in acknowledged_at.items() if created.get(each, LATER) > at}
    lost = {each: _loss(at, failures) for each, at in missing.items()}
    problems = [
        *(f"instance {row['instance_id']} ended {row['state']}" for row in rows if row["state"] != "SUCCESS"),
        *(f"never called: {key}" for key in known - hits.keys()),
        *(f"lost long before or after a failure: {each}, {write}" for each, write in lost.items() if write.age > LEAD),
        *_strange(repeated, failures),
        *await violations(connection),
    ]
    unknown = len(hits.keys() - known)
    return Losses(len(acknowledged_at), lost, len(repeated.keys() & known), unknown, problems[:50])


def _loss(at: float, failures: Sequence[tuple[float, float]]) -> LostWrite:
    """Blame the first failure whose recovery came after the write; without one, no failure explains the loss."""
    for number, (failed, resumed) in enumerate(failures):
        if resumed > at:
            return LostWrite(number, failed - at)
    return LostWrite(-1, float("inf"))


def _strange(repeated: Mapping[str, Collection[LoggedHit]], failures: Sequence[tuple[float, float]]) -> list[str]:
    """The repeated calls that no lost settlement explains: under another unit, or not around a failure."""
    problems: list[str] = []
    for key, calls in repeated.items():
        if len({call.unit for call in calls}) > 1:
            problems.append(f"{key} was called under other units: {calls}")
        first = min(call.at for call in calls)
        if not any(first <= resumed and failed - first <= LEAD for failed, resumed in failures):
            problems.append(f"{key} was called twice, and no failure explains it: {calls}")
    return problems

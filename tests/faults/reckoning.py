"""The result of a fault, in Jepsen's terms: instances acknowledged, fired, lost, duplicated and recovered.

An instance may be called more than once only if it was in flight when its node was lost: it has an attempt that ended
with NODE_LOST for each further call. Every call of it has the same Idempotency-Key and the same Horai-Unit, and a fence
of its own. A call that comes in with a fence that had been taken away is stale: only a node that was frozen in the act
of sending can make one, since no process can look and send in one step.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from faults.outside import LoggedHit, ReceiverProcess, until, violations
from horai.db.pool import Platform

Hits = Mapping[str, Sequence[LoggedHit]]


@dataclass(frozen=True)
class Reckoning:
    """The result of a run. `problems` are what must not be; the figures are for people."""

    acknowledged: int
    ended: int
    calls: int
    duplicated: int
    recovered: int
    late: int
    lost: list[int] = field(default_factory=list[int])
    stale: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} acknowledged, {self.ended} fired and ended well, {self.calls} calls,"
            f" {self.recovered} recovered from a lost node, {self.duplicated} called more than once,"
            f" {self.late} late results, {len(self.stale)} stale calls, {len(self.problems)} problems"
        )


async def reckon(
    connection: Platform, receiver: ReceiverProcess, acknowledged: Collection[int], within: float = 60
) -> Reckoning:
    """Waits until nothing is live, then holds the database against what was promised and what was received."""

    async def nothing_is_live() -> bool:
        return not await connection.fetchval("select exists (select from horai.instance_live)")

    await until(nothing_is_live, within, "0 rows in a state that is not final")
    rows = await connection.fetch("select instance_id, idem_key, state from horai.job_instance")
    succeeded = {row["instance_id"]: row["idem_key"] for row in rows if row["state"] == "SUCCESS"}
    lost = await _lost(connection)
    missing = [instance for instance in acknowledged if instance not in succeeded]
    hits = receiver.by_key()
    problems = [
        *(f"instance {row['instance_id']} ended {row['state']}" for row in rows if row["state"] != "SUCCESS"),
        *(f"lost: instance {instance} was acknowledged" for instance in missing),
        *(f"never called: instance {instance}" for instance, key in succeeded.items() if key not in hits),
        *(f"called and unknown: {key}" for key in hits.keys() - set(succeeded.values())),
        *_doubled(hits, lost),
        *await violations(connection),
    ]
    return Reckoning(
        len(acknowledged),
        len(succeeded),
        sum(len(calls) for calls in hits.values()),
        sum(len(calls) > 1 for calls in hits.values()),
        len(lost.keys() & set(succeeded.values())),
        await connection.fetchval("select count(*) from horai.attempt where late"),
        missing,
        _stale(hits, lost),
        problems[:50],
    )


async def _lost(connection: Platform) -> dict[str, dict[int, datetime]]:
    """By Idempotency-Key: the fences that were taken from lost nodes, and when."""
    rows = await connection.fetch(
        "select idem_key, attempt.fence, attempt.finished_at from horai.attempt join horai.job_instance using (instance_id)"
        " where attempt.error_code = 'NODE_LOST' and not attempt.late"
    )
    lost: dict[str, dict[int, datetime]] = {}
    for row in rows:
        lost.setdefault(row["idem_key"], {})[row["fence"]] = row["finished_at"]
    return lost


def _doubled(hits: Hits, lost: Mapping[str, Mapping[int, datetime]]) -> list[str]:
    problems: list[str] = []
    for key, calls in hits.items():
        taken = lost.get(key, {})
        if len(calls) - 1 > len(taken):
            problems.append(f"{key} was called {len(calls)} times, and lost its node {len(taken)} times")
        if len({call.unit for call in calls}) > 1:
            problems.append(f"{key} was called under other units: {calls}")
        if len({(call.attempt, call.fence) for call in calls}) < len(calls):
            problems.append(f"one claim of {key} was called twice: {calls}")
    return problems


def _stale(hits: Hits, lost: Mapping[str, Mapping[int, datetime]]) -> list[str]:
    return [
        f"{key} was called with fence {call.fence}, which was taken away at {since}: {call}"
        for key, taken in lost.items()
        for call in hits.get(key, ())
        if (since := taken.get(call.fence)) is not None and datetime.fromtimestamp(call.at, UTC) > since
    ]

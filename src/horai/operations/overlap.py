"""Decisions on slots that wait: of jobs that do not allow overlap, or that count from the end of a run.

The job's row is the gate. A decider locks it without waiting, reads the job's instances in a later statement, and
writes the decision in the same transaction: two deciders never see one job at once, and a run that ends meanwhile asks
for another decision.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from horai.core.states import CancelReason
from horai.core.wakes import OutcomeWake
from horai.db import catch_ups, instances, overlap
from horai.db.claims import Claimable
from horai.db.overlap import Gate
from horai.db.pool import AnyWrite
from horai.time.overlap import OverlapDecision, Row, decide


@dataclass(slots=True)
class OpenedGates:
    """The result: rows to claim, claims that ended, jobs that another transaction held, and jobs with waiting slots."""

    woken: list[Claimable] = field(default_factory=list[Claimable])
    ended: list[OutcomeWake] = field(default_factory=list[OutcomeWake])
    busy: set[int] = field(default_factory=set[int])
    waiting: set[int] = field(default_factory=set[int])


async def open_gates(connection: AnyWrite, job_ids: Collection[int]) -> OpenedGates:
    """Decide on the held slots of these jobs, and ignore jobs without a gate. Announce the result after the commit."""
    opened = OpenedGates()
    async with connection.transaction():
        held = await overlap.lock_gates(connection, job_ids)
        active = [gate for gate in held if not gate.is_paused]
        rows = await overlap.rows_at_gates(connection, [gate.job_id for gate in active]) if active else {}
        await _follow_ends(connection, [gate for gate in active if gate.timing is not None], rows, opened)
        await _apply(connection, [gate for gate in active if gate.timing is None], rows, opened)
        if missing := set(job_ids) - {gate.job_id for gate in held}:
            opened.busy = await overlap.with_gates(connection, missing)
    return opened


async def _apply(
    connection: AnyWrite, held: Sequence[Gate], rows: Mapping[int, Sequence[Row]], opened: OpenedGates
) -> None:
    verdicts = {gate: decide(gate.overlap, rows.get(gate.job_id, ())) for gate in held}
    if cancelled := [row for verdict in verdicts.values() for row in verdict.cancelled]:
        ended = await instances.cancel_live(connection, cancelled, CancelReason.OVERLAP, running=True)
        opened.ended += [OutcomeWake(row.id, row.fence) for row in ended if row.fence is not None]
    if released := [(row, gate.lane) for gate, verdict in verdicts.items() for row in verdict.released]:
        opened.woken += await overlap.let_go(connection, released)
    opened.waiting |= {gate.job_id for gate, verdict in verdicts.items() if _waits(rows.get(gate.job_id, ()), verdict)}


def _waits(rows: Sequence[Row], verdict: OverlapDecision) -> bool:
    gone = {*verdict.released, *verdict.cancelled}
    return any(row.is_held and row.is_slot and row.id not in gone for row in rows)


async def _follow_ends(
    connection: AnyWrite, held: Sequence[Gate], rows: Mapping[int, Sequence[Row]], opened: OpenedGates
) -> None:
    """Make the slot after the last one, for jobs that have none under way."""
    idle = [gate for gate in held if not any(row.is_slot for row in rows.get(gate.job_id, ()))]
    if not idle:
        return
    ends = await overlap.last_ends(connection, [gate.job_id for gate in idle])
    coming = [
        (gate.job_id, fire)
        for gate in idle
        if gate.timing and (fire := gate.timing.next_after_finish(ends.get(gate.job_id), gate.active_from)) is not None
    ]
    opened.woken += [slot.woken for slot in await catch_ups.make_late_slots(connection, coming)]

"""Moves a job's waiting instances to where the job now wants them; a deleted job's entities go with them.

A pause, a resume, another queue or a deletion only marks the job: the rows follow in batches, in short transactions
that can be broken off anywhere and taken up again by the engine. Until then the dispatcher refuses what it claims of
a paused or deleted job.
"""

from collections.abc import Sequence

from horai.accept.scope import Scope
from horai.core.states import CancelReason
from horai.db import backfills, entities, jobs, plans
from horai.db.claims import Woken
from horai.db.jobs import Relane
from horai.db.plans import Lanes
from horai.db.pool import Connection, acquire

BATCH = 1_000
BATCHES_AT_ONCE = 10
JOBS_AT_ONCE = 20


async def relane_now(scope: Scope, job_ids: Sequence[int]) -> None:
    """Move the instances of up to `JOBS_AT_ONCE` of these jobs; the engine moves the rest."""
    woken, is_done = list[Woken](), False
    try:
        async with acquire(scope.pool) as connection:
            marked = await jobs.jobs_to_relane(connection, JOBS_AT_ONCE + 1, only=job_ids)
            done = [await _relane(connection, relane, woken) for relane in marked[:JOBS_AT_ONCE]]
            is_done = all(done) and len(marked) <= JOBS_AT_ONCE
    finally:
        scope.wakeups.announce(woken)
        scope.wakeups.gates_asked(job_ids)
        if not is_done:
            scope.wakeups.relane_asked()


async def relane_some(connection: Connection, relane: Relane) -> list[Woken]:
    """Moves or cancels up to `BATCH` × `BATCHES_AT_ONCE` rows, and marks the job when none is left."""
    woken: list[Woken] = []
    await _relane(connection, relane, woken)
    return woken


async def _relane(connection: Connection, relane: Relane, woken: list[Woken]) -> bool:
    """Whether nothing is left to do."""
    for _ in range(BATCHES_AT_ONCE):
        async with connection.transaction():
            if not await jobs.share_version(connection, relane):
                return True  # paused, resumed or deleted meanwhile: whoever did that moves the rows
            lanes = await _lanes(connection, relane)
            moved = await (_take_away(connection, relane) if lanes is None else _move(connection, relane, lanes, woken))
            if not moved:
                return await _mark_if_done(connection, relane, lanes)
    return False


async def _lanes(connection: Connection, relane: Relane) -> Lanes | None:
    """Where its rows belong; None when the job is deleted. What a backfill has made keeps its low priority."""
    if relane.is_deleted:
        return None
    is_backfilled = relane.lane != 0 and await backfills.has_open_backfill(connection, relane.job_id)
    low = await backfills.low_lane(connection, relane.job_id) if is_backfilled else relane.lane
    return Lanes(relane.lane, low, relane.is_gated)


async def _move(connection: Connection, relane: Relane, lanes: Lanes, woken: list[Woken]) -> int:
    moved = await plans.move_to_lane(connection, relane.job_id, lanes, BATCH)
    woken += moved
    return len(moved)


async def _take_away(connection: Connection, relane: Relane) -> int:
    waiting = await plans.lock_waiting(connection, relane.job_id, BATCH)
    cancelled = await plans.cancel_live(connection, waiting, CancelReason.JOB_DELETED, running=False)
    return len(cancelled) + await entities.clear_entities(connection, relane.job_id, BATCH)


async def _mark_if_done(connection: Connection, relane: Relane, lanes: Lanes | None) -> bool:
    """A row that somebody holds was passed over: then the mark stays, and the next round takes it."""
    if lanes is None:
        is_left = await plans.has_waiting(connection, relane.job_id) or await entities.has_entities(
            connection, relane.job_id
        )
    else:
        is_left = await plans.has_waiting_elsewhere(connection, relane.job_id, lanes)
    if not is_left:
        await jobs.mark_relaned(connection, relane)
    return not is_left

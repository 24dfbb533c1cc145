"""The move of a job's waiting instances to the lane that the job now uses; a deleted job's entities go with them.

A pause, a resume, another queue or a deletion only marks the job. The rows follow in batches, in short transactions
that can stop anywhere and are continued by the engine. Until then the dispatcher refuses the rows of a paused or
deleted job that it claims. Rows with a concurrency key stay in the parking lane after a resume: the key gate releases as many
as there are places.
"""

from collections.abc import Sequence

from horai.core.states import CancelReason
from horai.core.wakes import MoveWaitingWake, OverlapWake, ParkedKeysWake
from horai.db import concurrency_keys, instances, jobs
from horai.db.claims import Claimable
from horai.db.instances import WaitingLanes
from horai.db.jobs import WaitingMove
from horai.db.pool import AnyRead, AnyWrite, Plans, Platform
from horai.operations.job_hooks import JobHooks
from horai.operations.scope import Scope

BATCH = 1_000
BATCHES_AT_ONCE = 10
JOBS_AT_ONCE = 20


async def move_waiting_now(scope: Scope, job_ids: Sequence[int]) -> None:
    """Move the instances of up to `JOBS_AT_ONCE` of these jobs; the engine moves the rest."""
    woken, is_done, has_keys = list[Claimable](), False, True
    try:
        async with scope.write(Plans.FRESH, autocommit=True) as connection:
            marked = await jobs.moves_of_jobs(connection, job_ids, JOBS_AT_ONCE + 1)
            done = [await _move(connection, move, scope.hooks, woken) for move in marked[:JOBS_AT_ONCE]]
            is_done = all(done) and len(marked) <= JOBS_AT_ONCE
            has_keys = await concurrency_keys.has_parked_keys(connection, job_ids)
    finally:
        scope.wakeups.announce(woken)
        scope.wakeups.publish(OverlapWake(job_ids))
        if has_keys:
            scope.wakeups.publish(ParkedKeysWake())
        if not is_done:
            scope.wakeups.publish(MoveWaitingWake())


async def move_waiting_batch(connection: Platform, move: WaitingMove, hooks: Sequence[JobHooks]) -> list[Claimable]:
    """Move or cancel up to `BATCH` × `BATCHES_AT_ONCE` rows, and mark the job when none is left."""
    woken: list[Claimable] = []
    await _move(connection, move, hooks, woken)
    return woken


async def _move(connection: AnyWrite, move: WaitingMove, hooks: Sequence[JobHooks], woken: list[Claimable]) -> bool:
    """Move or cancel up to `BATCH` × `BATCHES_AT_ONCE` rows. Return whether none is left."""
    for _ in range(BATCHES_AT_ONCE):
        async with connection.transaction():
            if not await jobs.share_version(connection, move):
                return True  # paused, resumed or deleted meanwhile: that operation moves the rows
            if move.is_deleted:
                if not await _take_away(connection, move, hooks):
                    return await _mark_if(await _is_gone(connection, move, hooks), connection, move)
            else:
                lanes = await _lanes(connection, move, hooks)
                moved = await instances.move_to_lane(connection, move.job_id, lanes, BATCH)
                woken += moved
                if not moved:
                    is_left = await instances.has_waiting_elsewhere(connection, move.job_id, lanes)
                    return await _mark_if(not is_left, connection, move)
    return False


async def _lanes(connection: AnyWrite, move: WaitingMove, hooks: Sequence[JobHooks]) -> WaitingLanes:
    """Return the lanes of a job's waiting rows. Rows that a feature has made may have a lane of their own."""
    if move.lane != 0:
        for hook in hooks:
            if hook.waiting_lane is not None and (low := await hook.waiting_lane(connection, move.job_id)) is not None:
                return WaitingLanes(move.lane, low, move.is_gated)
    return WaitingLanes(move.lane, move.lane, move.is_gated)


async def _take_away(connection: AnyWrite, move: WaitingMove, hooks: Sequence[JobHooks]) -> int:
    waiting = await instances.lock_waiting(connection, move.job_id, BATCH)
    cancelled = await instances.cancel_live(connection, waiting, CancelReason.JOB_DELETED, running=False)
    cleared = [await hook.clear(connection, move.job_id, BATCH) for hook in hooks if hook.clear is not None]
    return len(cancelled) + sum(cleared)


async def _is_gone(connection: AnyRead, move: WaitingMove, hooks: Sequence[JobHooks]) -> bool:
    if await instances.has_waiting(connection, move.job_id):
        return False
    are_clear = [await hook.is_clear(connection, move.job_id) for hook in hooks if hook.is_clear is not None]
    return all(are_clear)


async def _mark_if(is_done: bool, connection: AnyWrite, move: WaitingMove) -> bool:
    """Mark the job as moved if it is done. A row locked by another transaction was skipped: the next round moves it."""
    if is_done:
        await jobs.mark_moved(connection, move)
    return is_done

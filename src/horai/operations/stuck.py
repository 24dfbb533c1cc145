"""Stuck runs, clogged queues and blocked workflow runs of a tenant.

Every function reads what it needs when it is called, and nothing is stored. `now` is the time of the database.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from horai.core.root_cause import RootCause, blocked_by
from horai.core.states import State
from horai.core.stuck import LEAST, LongRun, StuckRun, clogged_at, judged, samples_from
from horai.db import blocked_runs as blocked_store
from horai.db import stuck as stuck_store
from horai.db.blocked_runs import BlockedNode, BlockedRow
from horai.db.instance_queries import LAST
from horai.db.pool import AnyRead
from horai.db.queues import QueueLoad, loads_of_queues

JOBS_JUDGED = 500
"""Jobs whose usual duration is read at most in one call: those with the longest runs."""


async def stuck_runs(
    connection: AnyRead, tenant_id: int, now: datetime, limit: int, after: tuple[datetime, int] | None = None
) -> list[StuckRun]:
    """Return up to `limit` stuck runs, longest first; `after`: those after this time of claim and id."""
    runs = await stuck_store.long_runs(connection, tenant_id, now - LEAST)
    found = await _judged(connection, runs, now)
    return [one for one in found if after is None or (one.run.claimed_at, one.run.id) > after][:limit]


async def stuck_run(connection: AnyRead, tenant_id: int, instance_id: int, now: datetime) -> StuckRun | None:
    """Return one instance if it is a stuck run; None otherwise."""
    run = await stuck_store.running_instance(connection, tenant_id, instance_id, now - LEAST)
    found = [] if run is None else await _judged(connection, [run], now)
    return found[0] if found else None


async def _judged(connection: AnyRead, runs: Iterable[LongRun], now: datetime) -> list[StuckRun]:
    """Return those of the runs that are stuck, in their order."""
    by_job: dict[int, list[LongRun]] = {}
    for run in runs:
        by_job.setdefault(run.job_id, []).append(run)
    ids = [*by_job][:JOBS_JUDGED]
    if not ids:
        return []
    usual = await stuck_store.usual_durations(connection, ids, samples_from(now))
    found = [judged(run, usual.get(job_id), now) for job_id in ids for run in by_job[job_id]]
    return sorted((one for one in found if one is not None), key=lambda one: (one.run.claimed_at, one.run.id))


@dataclass(frozen=True, slots=True)
class CloggedQueue:
    """A queue whose slots stuck runs hold: since when, how many due instances wait, and the holders, longest first."""

    id: int
    name: str
    slots: int
    since: datetime
    waiting: int
    holders: tuple[StuckRun, ...]


async def clogged_queues(
    connection: AnyRead, tenant_id: int, now: datetime, limit: int, after_id: int = 0, name: str | None = None
) -> list[CloggedQueue]:
    """Return up to `limit` clogged queues by id, after `after_id`; with a `name`, only that queue."""
    found = [queue for queue in await find_clogged(connection, tenant_id, now, name) if queue.id > after_id][:limit]
    loads = await loads_of_queues(connection, [queue.id for queue in found]) if found else {}
    return [replace(each, waiting=loads.get(each.id, QueueLoad()).waiting) for each in found]


async def find_clogged(
    connection: AnyRead, tenant_id: int, now: datetime, name: str | None = None
) -> list[CloggedQueue]:
    """Return the clogged queues by id, without the number of instances that wait; with a `name`, only that queue."""
    full = await stuck_store.full_queues(connection, tenant_id, now - LEAST, name)
    stuck = {one.run.id: one for one in await _judged(connection, [run for each in full for run in each.holders], now)}
    found: list[CloggedQueue] = []
    for queue in full:
        holders = tuple(stuck[run.id] for run in queue.holders if run.id in stuck)
        since = clogged_at(queue.slots, holders)
        if since is not None:
            found.append(CloggedQueue(queue.id, queue.name, queue.slots, since, 0, holders))
    return found


@dataclass(frozen=True, slots=True)
class BlockedRun:
    """A blocked run of a workflow, the dead nodes that block it, and the number of nodes that wait."""

    run: BlockedRow
    causes: tuple[RootCause, ...]
    waiting: int


async def blocked_runs(
    connection: AnyRead, tenant_id: int, limit: int, before: tuple[datetime, int] = LAST
) -> list[BlockedRun]:
    """Return up to `limit` blocked runs with their root causes, newest fire time first."""
    rows = await blocked_store.blocked_rows(connection, tenant_id, before, limit)
    if not rows:
        return []
    nodes = await blocked_store.nodes_of_blocked(connection, [row.id for row in rows])
    return [_blocked(row, nodes.get(row.id, [])) for row in rows]


async def causes_of_instance(connection: AnyRead, instance_id: int) -> tuple[RootCause, ...]:
    """Return the dead nodes that a BLOCKED instance waits for, directly or through other nodes."""
    run_id = await blocked_store.run_of_blocked(connection, instance_id)
    if run_id is None:
        return ()
    nodes = (await blocked_store.nodes_of_blocked(connection, [run_id])).get(run_id, [])
    own = next((node.name for node in nodes if node.instance_id == instance_id), None)
    return tuple(cause for cause in _causes(nodes) if own in cause.blocks)


async def causes_of_runs(connection: AnyRead, run_ids: Collection[int]) -> dict[int, tuple[RootCause, ...]]:
    """Return the root causes of blocked runs, by run."""
    nodes = await blocked_store.nodes_of_blocked(connection, run_ids)
    return {run_id: _causes(of_run) for run_id, of_run in nodes.items()}


def _blocked(row: BlockedRow, nodes: Sequence[BlockedNode]) -> BlockedRun:
    return BlockedRun(row, _causes(nodes), sum(node.ended is None for node in nodes))


def _causes(nodes: Sequence[BlockedNode]) -> tuple[RootCause, ...]:
    by_name = {node.name: node for node in nodes}
    graph = {node.name: node.after for node in nodes}
    dead = [node.name for node in nodes if node.ended is State.DEAD]
    waiting = [node.name for node in nodes if node.ended is None]
    return tuple(_cause(by_name[name], blocks) for name, blocks in blocked_by(graph, dead, waiting).items())


def _cause(node: BlockedNode, blocks: tuple[str, ...]) -> RootCause:
    return RootCause(
        node.name,
        node.job,
        node.job_id,
        node.instance_id,
        node.error_code,
        node.error_msg,
        node.died_at,
        node.has_letter,
        blocks,
    )

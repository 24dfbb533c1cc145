"""Queues without a free slot in which instances wait too long, and how much waits behind a stuck run.

Every function reads what it needs when it is called, and nothing is stored. `now` is the time of the database.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from horai.core.stuck import LongRun, StuckRun
from horai.db import stuck as stuck_store
from horai.db.pool import AnyRead
from horai.db.queues import QueueLoad, loads_of_queues
from horai.db.stuck import QueueAtLimit
from horai.operations import stuck
from horai.operations.stuck import CloggedQueue

HOLDERS_NAMED = 5
"""Runs that hold slots of a full queue, and that are named: the longest ones."""


@dataclass(frozen=True, slots=True)
class JammedQueues:
    """The queues whose slots stuck runs hold, and the other full ones in which instances wait too long."""

    clogged: tuple[CloggedQueue, ...]
    full: tuple[QueueAtLimit, ...]

    @property
    def ids(self) -> list[int]:
        """Return the ids of all of them."""
        return [queue.id for queue in (*self.clogged, *self.full)]


async def jammed_queues(
    connection: AnyRead, tenant_id: int, now: datetime, late_before: datetime, limit: int
) -> JammedQueues:
    """Return up to `limit` clogged queues, and up to `limit` other full ones, those in which an instance waits longest first.

    A full queue is one without a free slot in which an instance was due before `late_before`. A clogged one is not listed twice.
    """
    every_clogged = await stuck.find_clogged(connection, tenant_id, now)
    is_clogged = {queue.id for queue in every_clogged}
    at_limit = await stuck_store.queues_at_limit(connection, tenant_id, late_before)
    clogged, full = every_clogged[:limit], [queue for queue in at_limit if queue.id not in is_clogged][:limit]
    loads = await _loads(connection, [queue.id for queue in (*clogged, *full)])
    holders = await stuck_store.longest_holders(connection, [queue.id for queue in full], HOLDERS_NAMED) if full else {}
    return JammedQueues(
        tuple(replace(one, waiting=loads.get(one.id, QueueLoad()).waiting) for one in clogged),
        tuple(
            replace(one, waiting=loads.get(one.id, QueueLoad()).waiting, holders=holders.get(one.id, ()))
            for one in full
        ),
    )


async def holders_of_full(connection: AnyRead, queue_id: int) -> tuple[LongRun, ...]:
    """Return the runs that hold slots of a queue longest, at most `HOLDERS_NAMED`."""
    return (await stuck_store.longest_holders(connection, [queue_id], HOLDERS_NAMED)).get(queue_id, ())


@dataclass(frozen=True, slots=True)
class StuckCause:
    """A stuck run with the number of due instances that wait for a slot of its full queue, and of nodes that wait for its end."""

    stuck: StuckRun
    waiting: int
    blocks: int


async def with_followers(connection: AnyRead, tenant_id: int, found: Sequence[StuckRun]) -> list[StuckCause]:
    """Add to stuck runs how much waits behind each: in its queue if that is full, and in its workflow run."""
    if not found:
        return []
    full = await stuck_store.full_among(connection, tenant_id, {one.run.queue for one in found})
    loads = await _loads(connection, full.values())
    nodes = await stuck_store.nodes_behind(connection, [one.run.id for one in found])
    waiting = {name: loads.get(id_, QueueLoad()).waiting for name, id_ in full.items()}
    return [StuckCause(one, waiting.get(one.run.queue, 0), nodes.get(one.run.id, 0)) for one in found]


async def _loads(connection: AnyRead, queue_ids: Iterable[int]) -> dict[int, QueueLoad]:
    ids = list(queue_ids)
    return await loads_of_queues(connection, ids) if ids else {}

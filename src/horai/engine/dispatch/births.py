"""Claims at birth: instances that are due now are claimed by the statement that inserts them.

A process that inserts an instance of a function it runs itself saves the claim: one write of the row, one index scan and one
round trip. The statement looks at the fence of the node, at the pause of the job and at the limits of the queue as every
claim does, so the rows are leased, fenced and rescued like any others. Rows of lanes with a limit or a rate are left to the
claimer, and so is everything while due rows wait: a new row overtakes none of them.
"""

import asyncio
from collections.abc import Sequence

import structlog

from horai.core.job import Priority
from horai.db import births
from horai.db.births import BornRow
from horai.db.claims import Claimable
from horai.db.pool import Platform
from horai.engine.dispatch.dispatcher import Dispatcher

log = structlog.get_logger(__name__)


class Births:
    """The claims at birth of one process. It serves callers of the event loop of its dispatcher only."""

    def __init__(self, dispatcher: Dispatcher, tenant_id: int) -> None:
        self._dispatcher = dispatcher
        self._parts = dispatcher.parts
        self._tenant_id = tenant_id
        self._lanes: dict[str, int] = {}
        self._loop = asyncio.get_running_loop()

    def note_lane(self, job: str, lane: int) -> None:
        """Note the lane that new instances of a job are inserted into."""
        self._lanes[job] = lane

    def room_for(self, tenant_id: int, job: str) -> int:
        """Return how many instances of the job may be claimed at birth now; 0 if its lane is not known yet."""
        lane_id = self._lanes.get(job)
        if lane_id is None or tenant_id != self._tenant_id or asyncio.get_running_loop() is not self._loop:
            return 0
        if self._dispatcher.is_draining or self._dispatcher.has_backlog or not self._parts.lease.holds():
            return 0
        if not self._is_free(lane_id):
            return 0
        return max(self._parts.in_flight.room_of(self._parts.scans.owner_of(lane_id)), 0)

    def _is_free(self, lane_id: int) -> bool:
        """Return whether rows of the lane start without permits and tokens, and nothing holds them."""
        scans = self._parts.scans
        if not scans.claims_from(lane_id) or scans.is_closed(lane_id):
            return False
        lane = scans[lane_id]
        is_governed = lane.priority is Priority.low and scans.controls.current.low_rate is not None
        return not lane.is_limited and not lane.is_keyed and lane.limits.rate is None and not is_governed

    async def insert(self, connection: Platform, job: str, payloads: Sequence[str | None], most: int) -> list[BornRow]:
        """Insert instances that are due now, claim up to `most` of them, and start those. The rest waits to be claimed.

        Returns an empty list if the job does not exist or is encrypted. The rows are durable when this returns.
        """
        claimer = self._parts.claimer
        try:
            with claimer.numbered() as by:
                lane = self._lanes[job]
                born = await births.enqueue_running(connection, self._tenant_id, job, payloads, by, lane, most)
                claimed = [row.claimed for row in born if row.claimed is not None]
                claimer.take_in(claimed)
        finally:
            if claimer.is_answer_lost:
                self._dispatcher.signal.set()
        if born:
            self.note_lane(job, born[0].lane)
        if claimed:
            self._dispatcher.is_active = True
            try:
                await self._parts.admission.start(connection, claimed, self._parts.clock.now())
            except Exception as error:  # admission has given the rows back, and they are durable
                log.warning("instances that were claimed at birth were given back", job=job, error=repr(error))
        return born


def unclaimed(born: Sequence[BornRow]) -> list[Claimable]:
    """Return the rows that wait to be claimed."""
    return [Claimable(row.id, row.lane, row.due) for row in born if row.claimed is None]

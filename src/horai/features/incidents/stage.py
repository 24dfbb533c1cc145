"""The stage that records an outage: when this node leads, it looks once for a time in which no node was live."""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

import structlog

from horai.core.shards import Role
from horai.db import incidents
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.parts import StageParts

log = structlog.get_logger(__name__)

LONGEST_GAP = timedelta(minutes=1)
"""The longest time without a live node that is no incident: a node that crashed may start again meanwhile."""
TITLE = "No node was live: instances waited"
SELDOM = timedelta(hours=1)


class OutageRecorder:
    """The stage that records outages."""

    name = "incidents"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, lease: Lease) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._looked_as: int | None = None
        """The incarnation of the last look."""

    async def step(self, now: datetime) -> datetime:
        """Look once in each incarnation that leads."""
        if not leads(self._lease) or self._looked_as == self._lease.incarnation:
            return now + SELDOM
        found = await incidents.record_outage(await self.line.get(), LONGEST_GAP, TITLE)
        self._looked_as = self._lease.incarnation
        if found is not None:
            log.warning("no node was live", incident=found[0], since=found[1].isoformat(), until=found[2].isoformat())
        return now + SELDOM


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    stage = OutageRecorder(parts.line("incidents"), parts.lease)
    parts.lease.on_change.append(stage.signal.set)
    return [stage]

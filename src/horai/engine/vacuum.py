"""The stage that vacuums the table of live instances.

A row of this table lives for seconds and leaves several dead rows and index entries. PostgreSQL looks for tables to
vacuum once a minute by default (`autovacuum_naptime`): at 8,000 instances a second the table then grows to ten times its
size, and claims read through it. A server that looks more often, as the embedded one does, leaves nothing to do here.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

from horai.db.live_table import dead_live_rows, vacuum_live_table
from horai.db.stage_connection import StageConnection

OFTEN = timedelta(seconds=10)
SELDOM = timedelta(minutes=10)
"""The interval between looks, and that of a login that may not vacuum the table."""
WORTH_IT = 20_000
"""The number of dead rows that is worth a vacuum; autovacuum of the table has the same threshold."""
LONGEST_VACUUM = timedelta(minutes=10)


class LiveVacuum:
    """The stage that vacuums the table of live instances."""

    name = "live_vacuum"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection) -> None:
        self.line = line
        self.signal = asyncio.Event()

    async def step(self, now: datetime) -> datetime:
        """Vacuum the table if it has enough dead rows. Of several nodes, one does it and the others skip it."""
        connection = await self.line.get()
        dead = await dead_live_rows(connection)
        if dead is None:
            return now + SELDOM
        if dead >= WORTH_IT:
            await vacuum_live_table(connection)
        return now + OFTEN

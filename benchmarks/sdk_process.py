"""A worker in a process of its own, which tells how many no-op functions it has run so far.

python -m benchmarks.sdk_process URL QUEUES. After `"ready"` it waits for a line, then works and writes lines `{"first": …, "calls": …}`.
"""

import asyncio
import sys
import time
from typing import Any

import uvloop

from benchmarks.processes import quiet, tell, told_to_end
from benchmarks.sdk import Application, worker
from horai import Instance

PACE = 0.02
"""Seconds between two lines, as in peers/programs/notes.mjs."""


CONCURRENCY = 2_000
"""As `horai worker --concurrency 2000`: Graphile Worker fetches 2,000 jobs ahead here, and pg-boss 3,000."""


class Counting(Application):
    """Notes the time of the first call by a clock that all processes of this machine share."""

    first = 0.0

    def began(self, instance: Instance[Any]) -> None:
        """Note the first call; `calls` is counted already."""
        if not self.first:
            self.first = time.monotonic()

    async def report(self) -> None:
        """Write a line whenever there were calls since the last one."""
        told = 0
        while True:
            await asyncio.sleep(PACE)
            if self.calls != told:
                told = self.calls
                tell({"first": self.first, "calls": told})


async def _serve(url: str, queues: int) -> None:
    application = Counting(url, queues)
    tell("ready")
    sys.stdin.readline()
    async with worker(url, application.app, CONCURRENCY):
        reporting = asyncio.create_task(application.report())
        await told_to_end()
        reporting.cancel()


if __name__ == "__main__":
    quiet()
    uvloop.run(_serve(sys.argv[1], int(sys.argv[2])))

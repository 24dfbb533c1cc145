"""A worker in a process of its own, which tells how many no-op functions it has run so far.

python -m benchmarks.sdk_process URL. After `"ready"` it writes a line `{"first": …, "calls": …}` while calls are made.
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


async def _serve(url: str) -> None:
    application = Counting(url)
    tell("ready")
    async with worker(url, application.app):
        reporting = asyncio.create_task(application.report())
        await told_to_end()
        reporting.cancel()


if __name__ == "__main__":
    quiet()
    uvloop.run(_serve(sys.argv[1]))

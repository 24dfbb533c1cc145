"""An engine in a process of its own, with an executor that notes when each instance's first line ran.

python -m benchmarks.engine_process URL [JOBS], where JOBS is how the names of the jobs begin that are noted.
"""

import sys
import time

import uvloop

from benchmarks.engines import running_engine
from benchmarks.processes import quiet, tell, told_to_end
from horai.core.calls import Call
from horai.core.outcome import Outcome, Succeeded


class Notes:
    """When each instance's first line ran, by a clock that all processes of this machine share."""

    def __init__(self, jobs: str) -> None:
        self.began: dict[int, float] = {}
        self._jobs = jobs

    async def run(self, call: Call) -> Outcome:
        """Always a success."""
        if call.job.startswith(self._jobs):
            self.began[call.instance_id] = time.monotonic()
        return Succeeded()


async def _serve(url: str, jobs: str = "") -> None:
    notes = Notes(jobs)
    async with running_engine(url, notes):
        tell("ready")
        await told_to_end()
    tell(notes.began)


if __name__ == "__main__":
    quiet()
    uvloop.run(_serve(*sys.argv[1:]))

"""A worker in a process of its own that runs functions with durable steps, and tells how long all of them took.

python -m benchmarks.steps_process URL FUNCTIONS STEPS. After `"ready"` it waits for a line, then writes
`{"seconds": …, "resumed": …}`: until the last result, and from a signal to the result of a function that has finished STEPS
steps and waits.
"""

import asyncio
import sys
import time

import uvloop

from benchmarks.engines import as_node
from benchmarks.processes import quiet, tell
from benchmarks.sdk import worker
from horai import Horai, step, wait_for
from horai.core.states import State


async def one(number: int) -> int:
    """Do nothing, as a step."""
    return number


class Durable:
    """The functions, and their times."""

    def __init__(self, url: str) -> None:
        self.app = Horai("bench", database_url=as_node(url))

        @self.app.job
        async def function(count: int) -> int:
            return sum([await step("one", one, number) for number in range(count)])

        @self.app.job
        async def waiting(count: int) -> int:
            found = sum([await step("one", one, number) for number in range(count)])
            await wait_for("go")
            return found

        self.function, self.waiting = function, waiting

    async def run(self, functions: int, steps: int) -> float:
        """Return the seconds until the last of `functions` functions with `steps` steps each has ended."""
        begun = time.monotonic()
        handles = await self.function.enqueue_many([steps] * functions)
        results = [await handle for handle in handles]
        took = time.monotonic() - begun
        if results != [sum(range(steps))] * functions:
            raise RuntimeError(f"wrong results: {results[:3]}")
        return took

    async def resume(self, steps: int) -> float:
        """Return the seconds from a signal to the result of a function that has finished `steps` steps."""
        handle = await self.waiting.enqueue(steps)
        client = await self.app.client()
        while (row := await client.instance(int(handle.id))).state is not State.INIT or row.fence == 0:
            await asyncio.sleep(0.02)
        begun = time.monotonic()
        await handle.signal("go")
        await handle
        return time.monotonic() - begun


async def _serve(url: str, functions: int, steps: int) -> None:
    durable = Durable(url)
    async with worker(url, durable.app):
        await durable.run(1, 3)
        tell("ready")
        sys.stdin.readline()
        took = await durable.run(functions, steps)
        tell({"seconds": took, "resumed": await durable.resume(steps)})
    await durable.app.close()


if __name__ == "__main__":
    quiet()
    uvloop.run(_serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

"""DBOS: functions side by side in one process, each with its steps one after the other."""

# It runs where its packages are, which is not here.
# pyright: basic, reportMissingImports=false

import asyncio
import sys
import time

from dbos import DBOS
from notes import ARGUMENTS, URL, tell

FUNCTIONS, STEPS = map(int, ARGUMENTS)


@DBOS.step()
async def one(number: int) -> int:
    return number


@DBOS.workflow()
async def function(steps: int) -> int:
    return sum([await one(number) for number in range(steps)])


async def run(functions: int, steps: int) -> float:
    begun = time.monotonic()
    handles = [await DBOS.start_workflow_async(function, steps) for _ in range(functions)]
    results = [await handle.get_result() for handle in handles]
    took = time.monotonic() - begun
    assert results == [sum(range(steps))] * functions
    return took


async def main() -> None:
    DBOS(config={"name": "bench", "system_database_url": URL, "log_level": "ERROR", "run_admin_server": False})
    DBOS.launch()
    await run(1, 3)
    tell("ready")
    sys.stdin.readline()
    tell({"seconds": await run(FUNCTIONS, STEPS)})
    DBOS.destroy()


if __name__ == "__main__":
    asyncio.run(main())

"""The API in a process of its own, as the product serves it: a node whose only role is `api`, with its own protocol and pool.

It prints its address (python -m benchmarks.api_process URL).
"""

import asyncio
import sys
from pathlib import Path

import uvloop

from benchmarks.processes import quiet, tell, told_to_end
from horai.core.shards import Role
from horai.node import NodeSettings, run


async def _serve(url: str) -> None:
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    settings = NodeSettings(Path("/nowhere"), port=0, database_url=url, name="api", roles=frozenset({Role.api}))
    serving = asyncio.create_task(run(settings, stop, address.set_result))
    await asyncio.wait({serving, address}, return_when=asyncio.FIRST_COMPLETED)
    tell({"url": address.result() if address.done() else serving.result()})
    await told_to_end()
    stop.set()
    await serving


if __name__ == "__main__":
    quiet()
    uvloop.run(_serve(sys.argv[1]))

"""`horai up`: everything in one process."""

import asyncio
import signal
import sys
from pathlib import Path

import uvloop

from horai.core.addresses import parse_networks
from horai.core.settings import EngineSettings
from horai.node import NodeSettings, run


def up() -> None:
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8470
    data = Path(sys.argv[3]) if len(sys.argv) > 3 else Path("/var/lib/horai")
    settings = NodeSettings(
        data, port=port, engine=EngineSettings(callback_allow=parse_networks(["127.0.0.0/8", "::1/128"]))
    )

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, stop.set)
        await run(settings, stop, lambda address: print(f"Horai is ready: {address}", flush=True))

    uvloop.run(serve())

"""A worker in the test's own process and event loop."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from harness import FAST

from horai import Horai
from horai.core.settings import EngineSettings
from horai.sdk import worker
from horai.sdk.worker import WorkerSettings


@asynccontextmanager
async def working(app: Horai, engine: EngineSettings = FAST, **changes: Any) -> AsyncGenerator[None]:
    """The application's functions run while this is open; what it is connected to is closed after."""
    settings = replace(WorkerSettings(name="test-worker", engine=engine), **changes)
    stop, is_ready = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(worker.run(app, settings, stop, lambda _: is_ready.set()))
    waiting = asyncio.create_task(is_ready.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        waiting.cancel()
        running.result()
    try:
        yield
    finally:
        stop.set()
        await running
        await app.close()

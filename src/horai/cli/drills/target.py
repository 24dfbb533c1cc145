"""The HTTP target of a drill: it records every call, and so knows which work was done, how often and when."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

CALL_TIME = 0.2
"""Seconds that a call takes, so that some are in flight at the failure."""


@dataclass(slots=True)
class DrillTarget:
    """`work` accepts every call; `refuse` refuses it for good, which makes a dead letter."""

    base: str = ""
    calls: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The fences of the calls of each instance, in their order."""

    @property
    def work(self) -> str:
        return f"{self.base}/work"

    @property
    def refuse(self) -> str:
        return f"{self.base}/refuse"

    async def on_work(self, request: web.Request) -> web.Response:
        """Record a call when it arrives, and answer after `CALL_TIME`."""
        called = await request.json()
        self.calls.setdefault(int(called["instanceId"]), []).append(int(request.headers["Horai-Fence"]))
        await asyncio.sleep(CALL_TIME)
        return web.Response()

    async def on_refuse(self, request: web.Request) -> web.Response:
        """Refuse a call: 410 is not retried."""
        await request.read()
        return web.Response(status=410)


@asynccontextmanager
async def drill_target() -> AsyncGenerator[DrillTarget]:
    """Listen on a free port of loopback."""
    target = DrillTarget()
    application = web.Application()
    application.add_routes([web.post("/work", target.on_work), web.post("/refuse", target.on_refuse)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        target.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield target
    finally:
        await runner.cleanup()

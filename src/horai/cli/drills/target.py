"""The HTTP target of a drill: it records every call, and so knows which work was done, how often and when."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from aiohttp import web

from horai.cli.errors import CommandFailed

CALL_TIME = 0.2
"""Seconds that a call takes, so that some are in flight at the failure."""


@dataclass(slots=True)
class DrillTarget:
    """`work` accepts every call; `refuse` refuses it for good, which makes a dead letter."""

    base: str = ""
    calls: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The fences of the calls of each instance, in their order."""
    answered_at: dict[int, datetime] = field(default_factory=dict[int, datetime])
    """The time of the last answer to a call of each instance."""

    @property
    def work(self) -> str:
        return f"{self.base}/work"

    @property
    def refuse(self) -> str:
        return f"{self.base}/refuse"

    async def on_work(self, request: web.Request) -> web.Response:
        """Record a call when it arrives, and answer after `CALL_TIME`."""
        called = await request.json()
        instance = int(called["instanceId"])
        self.calls.setdefault(instance, []).append(int(request.headers["Horai-Fence"]))
        await asyncio.sleep(CALL_TIME)
        self.answered_at[instance] = datetime.now(UTC)
        return web.Response()

    async def on_refuse(self, request: web.Request) -> web.Response:
        """Refuse a call: 410 is not retried."""
        await request.read()
        return web.Response(status=410)


@asynccontextmanager
async def drill_target(host: str = "127.0.0.1") -> AsyncGenerator[DrillTarget]:
    """Listen on a free port of an address of this machine. Raises `CommandFailed` if it is none."""
    target = DrillTarget()
    application = web.Application()
    application.add_routes([web.post("/work", target.on_work), web.post("/refuse", target.on_refuse)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, 0)
        try:
            await site.start()
        except OSError as error:
            raise CommandFailed(f"The drill cannot listen on {host}: {error.strerror or error}.") from error
        named = f"[{host}]" if ":" in host else host
        target.base = f"http://{named}:{runner.addresses[0][1]}"
        yield target
    finally:
        await runner.cleanup()

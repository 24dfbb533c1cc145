"""A relay between a worker and a server: it records messages, adds unknown ones, and loses connections."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from horai.wire.worker_messages import PATH

Json = dict[str, Any]


class Relay:
    """A server for the worker, and a worker for the server. `upstream` may change between connections."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.base = ""
        self.sent: list[Json] = []
        """The messages of the worker."""
        self.got: list[Json] = []
        """The messages of the server, as they were passed on."""
        self.events: list[tuple[str, Json]] = []
        """Both in their order, as `worker` or `server` and the message."""
        self.connections = 0
        self.passes = asyncio.Event()
        self.passes.set()
        self.repeats_leases = False
        self.loses_answers = False
        self.lost_answers = 0
        self._open: set[web.WebSocketResponse] = set()
        self._news = asyncio.Event()

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Relay one connection."""
        down = web.WebSocketResponse(max_msg_size=0, compress=False)
        headers = {name: request.headers[name] for name in ("Authorization",) if name in request.headers}
        async with aiohttp.ClientSession() as session:
            try:
                up = await session.ws_connect(self.upstream + PATH, headers=headers, max_msg_size=0)
            except aiohttp.WSServerHandshakeError as error:
                raise web.HTTPException from error
            except aiohttp.ClientError as error:
                raise web.HTTPBadGateway from error
            await down.prepare(request)
            self._open.add(down)
            self.connections += 1
            tasks = [asyncio.create_task(self._pass_up(down, up)), asyncio.create_task(self._pass_down(up, down))]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                self._open.discard(down)
                await up.close()
                await down.close(code=up.close_code or 1001)
        return down

    async def _pass_up(self, down: web.WebSocketResponse, up: aiohttp.ClientWebSocketResponse) -> None:
        async for message in down:
            await self.passes.wait()
            self._note("worker", self.sent, json.loads(message.data))
            await up.send_str(message.data)

    async def _pass_down(self, up: aiohttp.ClientWebSocketResponse, down: web.WebSocketResponse) -> None:
        async for message in up:
            await self.passes.wait()
            found = {**json.loads(message.data), "fromTheFuture": {"a": [1]}}
            if found["type"] == "answers" and self.loses_answers:
                self.lost_answers += 1
                self._news.set()
                continue
            self._note("server", self.got, found)
            await down.send_str(json.dumps(found))
            if found["type"] == "welcome":
                await down.send_str('{"type":"from-the-future","x":1}')
            if found["type"] == "leases" and self.repeats_leases:
                await down.send_str(json.dumps(found))

    def _note(self, side: str, messages: list[Json], message: Json) -> None:
        messages.append(message)
        self.events.append((side, message))
        self._news.set()

    async def cut(self) -> None:
        """Lose every connection without a word, as a network does."""
        for socket in list(self._open):
            transport = socket._req.transport if socket._req is not None else None
            if transport is not None:
                transport.abort()

    async def until(self, holds: Any, within: float = 30.0) -> None:
        """Return when a condition on the messages holds."""
        async with asyncio.timeout(within):
            while not holds():
                self._news.clear()
                await self._news.wait()

    def of(self, kind: str) -> list[Json]:
        """The messages of a kind, of either side."""
        return [message for _, message in self.events if message["type"] == kind]


@asynccontextmanager
async def relaying(upstream: str) -> AsyncGenerator[Relay]:
    """A relay on a port of its own."""
    relay, app = Relay(upstream), web.Application()
    app.router.add_get(PATH, relay.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    host, port = site._server.sockets[0].getsockname()[:2]  # pyright: ignore
    relay.base = f"http://{host}:{port}"
    try:
        yield relay
    finally:
        relay.passes.set()
        await runner.cleanup()

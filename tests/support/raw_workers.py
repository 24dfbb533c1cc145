"""A remote worker as a test plays it: it sends and reads single messages of the worker protocol."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
from harness import Client

from horai.wire.worker_messages import PATH

Json = dict[str, Any]


class RawWorker:
    """One connection of a worker. Messages that a test does not wait for are kept in `seen`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.seen: list[Json] = []
        self.welcome: Json = {}

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send_str(json.dumps({"type": kind, **fields}))

    async def next(self, kind: str, within: float = 20.0) -> Json:
        """The next message of this kind."""
        async with asyncio.timeout(within):
            while True:
                if found := next((message for message in self.seen if message["type"] == kind), None):
                    self.seen.remove(found)
                    return found
                got = await self.socket.receive()
                assert got.type is aiohttp.WSMsgType.TEXT, (got, self.socket.close_code)
                self.seen.append(json.loads(got.data))

    async def hello(self, *handlers: str, **fields: Any) -> Self:
        """Greet the server, and keep its welcome."""
        offered = [{"name": name} for name in handlers]
        await self.send("hello", **{"protocol": 1, "name": "raw", "handlers": offered, "credits": 10, **fields})
        self.welcome = await self.next("welcome")
        return self

    @property
    def resume(self) -> Json:
        """The words with which another connection goes on with the session."""
        return {"session": self.welcome["session"], "token": self.welcome["token"]}

    async def leases(self, count: int = 1) -> list[Json]:
        """The next leases, once there are as many."""
        found: list[Json] = []
        while len(found) < count:
            found += (await self.next("leases"))["leases"]
        assert len(found) == count, found
        return found

    async def report(self, lease: Json, result: str = "succeeded", **fields: Any) -> Json:
        """Report an attempt, and return the answer."""
        await self.send("reports", reports=[{**ref_of(lease), "result": result, **fields}])
        return await self.answer_to(lease)

    async def answer_to(self, lease: Json) -> Json:
        while True:
            for answer in (await self.next("answers"))["answers"]:
                if (answer["instance"], answer["fence"]) == (lease["instance"], lease["fence"]):
                    return answer

    async def settle_down(self) -> list[Json]:
        """Exchange a heartbeat, after which everything that the server had to send is here; return the leases."""
        await self.send("heartbeat")
        await self.next("heartbeat")
        leases = [lease for message in self.seen if message["type"] == "leases" for lease in message["leases"]]
        self.seen = [message for message in self.seen if message["type"] != "leases"]
        return leases

    async def closed(self, within: float = 20.0) -> int | None:
        """The code with which the server closes the connection."""
        async with asyncio.timeout(within):
            while (got := await self.socket.receive()).type is aiohttp.WSMsgType.TEXT:
                self.seen.append(json.loads(got.data))
        return got.data if got.type is aiohttp.WSMsgType.CLOSE else self.socket.close_code


def ref_of(lease: Json) -> Json:
    """An attempt as messages name it."""
    return {"instance": lease["instance"], "fence": lease["fence"]}


@asynccontextmanager
async def connected(api: Client, key: str | None = None) -> AsyncGenerator[RawWorker]:
    """A connection that has said nothing yet."""
    key = key if key is not None else getattr(api, "key", None)
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with api.session.ws_connect(api.base + PATH, headers=headers, max_msg_size=0) as socket:
        yield RawWorker(socket)


@asynccontextmanager
async def working(api: Client, *handlers: str, **fields: Any) -> AsyncGenerator[RawWorker]:
    """A worker that the server has welcomed."""
    async with connected(api) as worker:
        yield await worker.hello(*handlers, **fields)

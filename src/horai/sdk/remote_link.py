"""The connection of a remote worker to its servers: it connects again after every loss, with a back-off."""

import asyncio
import json
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import aiohttp
import msgspec
import structlog

from horai import __version__
from horai.core.errors import HoraiError
from horai.sdk.remote_outbox import RemoteOutbox
from horai.wire.worker_messages import (
    PATH,
    ApplicationPart,
    Bye,
    Heartbeat,
    Hello,
    ResumeRequest,
    ServerMessage,
    Welcome,
    WorkerError,
    WorkerMessage,
    decode_server,
    encode,
)

log = structlog.get_logger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
WELCOME_WITHIN = 15.0
TRUST = 0.75
"""Share of the lease, from the last heartbeat that was answered, for which the worker begins calls."""
REFUSALS = frozenset({401, 403, 404, 426})


class ServerRefused(HoraiError):
    """The server does not accept the worker."""

    code = "SCH_403_WORKER_REFUSED"
    status = 403
    title = "Worker refused"


class _Lost(Exception):
    """The connection has ended."""


class RemoteLink:
    """The session of a worker, over one connection after another."""

    def __init__(
        self,
        servers: Sequence[str],
        api_key: str | None,
        greet: Callable[[], Hello],
        hear: Callable[[ServerMessage], None],
        outbox: RemoteOutbox,
        application: ApplicationPart | None = None,
    ) -> None:
        self._servers = servers
        self._headers = {"User-Agent": f"horai/{__version__}"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._greet = greet
        self._hear = hear
        self._outbox = outbox
        self._application = application
        self._next = 0
        self._others: list[WorkerMessage] = []
        self._resume: tuple[str, ResumeRequest] | None = None
        self._sent_at: deque[float] = deque()
        self._heard_at = 0.0
        self._trusted_until = 0.0
        self._is_leaving = False
        self.welcomed = asyncio.Event()
        self._said_bye = asyncio.Event()
        self._news = asyncio.Event()
        self.welcome: Welcome | None = None

    @property
    def is_trusted(self) -> bool:
        """Return whether the server still counts on this worker: what it has leased may begin."""
        return time.monotonic() < self._trusted_until

    def send(self, message: WorkerMessage) -> None:
        """Send a message on the present connection."""
        self._others.append(message)
        self._outbox.wake.set()

    async def heard(self) -> None:
        """Wait until the server has sent another message."""
        self._news.clear()
        await self._news.wait()

    async def left(self) -> None:
        """Wait until the last message is sent, for a second at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._said_bye.wait()

    def move_on(self) -> None:
        """Leave a server that stops for another one. With one server only, wait until it is back."""
        if len(self._servers) > 1:
            self._is_leaving = True
            self._outbox.wake.set()

    async def run(self) -> None:
        """Stay connected until cancelled. Raise `ServerRefused` if the first server refuses the worker."""
        failures = 0
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(sock_connect=WELCOME_WITHIN)) as http:
            while True:
                server = self._servers[self._next % len(self._servers)]
                self._next += 1
                was_welcomed, error = await self._connect(http, server)
                failures = 0 if was_welcomed else failures + 1
                if isinstance(error, ServerRefused) and not self.welcomed.is_set():
                    raise error
                pause = min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE) * random.uniform(0.5, 1.0)  # noqa: S311
                log.warning(
                    "the connection to the server was lost", server=server, error=str(error), pause=round(pause, 2)
                )
                await asyncio.sleep(pause)

    async def _connect(self, http: aiohttp.ClientSession, server: str) -> tuple[bool, Exception]:
        """Serve one connection to its end. Return whether the server welcomed the worker, and the reason of the end."""
        was_welcomed = False
        try:
            async with asyncio.timeout(WELCOME_WITHIN):
                socket = await http.ws_connect(server + PATH, headers=self._headers, max_msg_size=0, compress=0)
            async with socket:
                async with asyncio.timeout(WELCOME_WITHIN):
                    welcome = await self._begin(socket, server)
                was_welcomed = True
                await self._follow(socket, welcome)
        except aiohttp.WSServerHandshakeError as error:
            if error.status in REFUSALS:
                return False, await self._refusal(http, server, error.status)
            return False, error
        except (aiohttp.ClientError, TimeoutError, OSError, _Lost, ServerRefused) as error:
            return was_welcomed, error
        return was_welcomed, _Lost("closed")

    async def _refusal(self, http: aiohttp.ClientSession, server: str, status: int) -> ServerRefused:
        """Return the error of a refused handshake. The body of the refusal is the problem, which a plain request gets too."""
        if status == 404:
            return ServerRefused(
                f"{server} does not serve remote workers.", "Check the address and the version of the server."
            )
        if status == 401:
            return ServerRefused(
                f"{server} does not accept the key.", "Give a key of the role worker: HORAI_API_KEY, or --api-key-file."
            )
        return ServerRefused(
            f"{server} refuses the worker with status {status}.",
            "The key needs the role worker: `horai keys create --role worker`.",
        )

    async def _begin(self, socket: aiohttp.ClientWebSocketResponse, server: str) -> Welcome:
        """Greet the server. A session resumes only at the server that began it."""
        hello = self._greet()
        if self._resume is not None and self._resume[0] == server:
            hello.resume = self._resume[1]
        if not self.welcomed.is_set():
            hello.declare = self._application
        began = time.monotonic()
        await socket.send_str(encode(hello).decode())
        answer = await self._receive(socket)
        if not isinstance(answer, Welcome):
            raise _Lost("the server has not answered hello with welcome")
        self.welcome = answer
        self._resume = server, ResumeRequest(answer.session, answer.token)
        self._heard_at, self._trusted_until = time.monotonic(), began + answer.lease_seconds * TRUST
        self._sent_at.clear()
        self._others.clear()
        self._is_leaving = False
        self._outbox.send_again()
        self._hear(answer)
        self.welcomed.set()
        return answer

    async def _follow(self, socket: aiohttp.ClientWebSocketResponse, welcome: Welcome) -> None:
        tasks = [
            asyncio.create_task(work)
            for work in (self._read(socket, welcome), self._write(socket, welcome), self._beat(welcome))
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, socket: aiohttp.ClientWebSocketResponse, welcome: Welcome) -> None:
        while True:
            message = await self._receive(socket)
            self._heard_at = time.monotonic()
            if isinstance(message, Heartbeat) and self._sent_at:
                self._trusted_until = self._sent_at.popleft() + welcome.lease_seconds * TRUST
            self._hear(message)
            self._news.set()

    async def _write(self, socket: aiohttp.ClientWebSocketResponse, welcome: Welcome) -> None:
        while True:
            await self._outbox.wake.wait()
            self._outbox.wake.clear()
            for text in self._outbox.take(welcome.limits):
                await socket.send_str(text.decode())
            others, self._others = self._others, []
            for message in others:
                if isinstance(message, Heartbeat):
                    self._sent_at.append(time.monotonic())
                await socket.send_str(encode(message).decode())
                if isinstance(message, Bye):
                    self._said_bye.set()
                    return
            if self._is_leaving and not self._greet().holding:
                await socket.send_str(encode(Bye()).decode())
                raise _Lost("the server stops")

    async def _beat(self, welcome: Welcome) -> None:
        while True:
            self.send(Heartbeat())
            await asyncio.sleep(welcome.heartbeat_seconds)
            if time.monotonic() - self._heard_at > welcome.lease_seconds:
                raise _Lost("the server is silent")

    async def _receive(self, socket: aiohttp.ClientWebSocketResponse) -> ServerMessage:
        got = await socket.receive()
        if got.type is not aiohttp.WSMsgType.TEXT:
            raise _Lost(f"closed by the server with code {socket.close_code}")
        try:
            message = decode_server(got.data)
        except msgspec.ValidationError:
            return _unknown(got.data)
        except msgspec.DecodeError as error:
            raise _Lost("the server has sent something that is not JSON") from error
        if isinstance(message, WorkerError) and message.is_fatal:
            raise ServerRefused(message.detail, message.hint or None)
        return message


def _unknown(text: str) -> WorkerError:
    """Return a message of a later version of the protocol as one that is only logged."""
    document: Any = json.loads(text)
    return WorkerError("UNKNOWN_MESSAGE", f"a message of an unknown type: {str(document)[:100]}")

"""A connection to one NATS server, over which many messages wait for their answers at once.

This is the only module of the executors that imports `nats`; it is imported with the first message.
"""

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from horai.core.jetstream import DENIED, UNAUTHENTICATED, LineFault, StreamAnswer
from horai.core.outcome import FailedRetryable, FailedUnrecoverable

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT = 2
"""Seconds for one server; the next one of the cluster is tried after it."""
PING_EVERY = 5
"""Seconds. A server that has not answered two pings is given up."""
_BROKEN: tuple[type[Exception], ...] = (NatsError, OSError, TimeoutError, asyncio.InvalidStateError, ValueError)


class NatsLine:
    """An open connection. It never reconnects: a message is sent to the connection that it was meant for, or not at all."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._client = Client()
        self._inbox = ""
        self._tokens = itertools.count()
        self._waiting: dict[str, tuple[str, asyncio.Future[StreamAnswer]]] = {}
        """The subjects of the messages that wait for their answers, by the last token of the reply subject."""

    @property
    def is_open(self) -> bool:
        """Return whether messages can be sent."""
        return self._client.is_connected

    @property
    def most_bytes(self) -> int:
        """Return the size of the largest message that the server accepts, headers included."""
        return self._client.max_payload

    @property
    def cluster(self) -> list[str]:
        """Return the addresses of the other servers of the cluster, as this one has announced them."""
        return [f"{server.hostname}:{server.port}" for server in self._client.discovered_servers]

    async def open(self, server: str) -> None:
        """Connect to a server. Raises one of the errors of the library."""
        async with asyncio.timeout(CONNECT_TIMEOUT):
            await self._client.connect(
                [server],
                name="horai",
                connect_timeout=CONNECT_TIMEOUT,
                allow_reconnect=False,
                max_reconnect_attempts=1,  # the library would dial a server that refuses 60 times, 2 s apart
                reconnect_time_wait=0,
                ping_interval=PING_EVERY,
                max_outstanding_pings=2,
                pending_size=0,  # never wait for the socket in `publish`: it would swallow a cancellation there
                error_cb=self._note,
                disconnected_cb=self._lost,
            )
        self._inbox = self._client.new_inbox()
        client: Any = self._client  # the type of `subscribe` is partly unknown
        await client.subscribe(f"{self._inbox}.*", cb=self._hear)

    async def publish(self, subject: str, body: bytes, headers: dict[str, str]) -> StreamAnswer:
        """Send a message and wait for its answer. Raises `LineFault` if the connection is lost before it arrives."""
        token = str(next(self._tokens))
        answered: asyncio.Future[StreamAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[token] = subject, answered
        try:
            await self._client.publish(subject, body, reply=f"{self._inbox}.{token}", headers=headers)
            return await answered
        except _BROKEN as error:
            raise LineFault(self._gone(type(error).__name__)) from error
        finally:
            del self._waiting[token]

    async def close(self) -> None:
        """Close the connection. Messages that wait for an answer fail."""
        if not self._client.is_closed:
            await self._client.close()
        await self._lost()

    async def _hear(self, message: Msg) -> None:
        _, answered = self._waiting.get(message.subject.rpartition(".")[2], (None, None))
        if answered is not None and not answered.done():
            answered.set_result(StreamAnswer((message.headers or {}).get("Status"), message.data))

    async def _lost(self) -> None:
        self._fail(LineFault(self._gone("the connection was lost")), lambda _: True)

    async def _note(self, error: Exception) -> None:
        """Fail the messages that a refusal of the server concerns: they get no answer."""
        log.debug("NATS reported an error", broker=self._broker, error=repr(error))
        text = str(error).lower()
        if "permissions violation" not in text:
            return
        if "publish" in text:
            denied = f"the NATS broker {self._broker} does not let Horai publish to this subject"
            quoted = text.partition('"')[2].rpartition('"')[0]
            self._fail(LineFault(FailedUnrecoverable(DENIED, denied)), lambda subject: subject.lower() == quoted)
        else:
            denied = f"the NATS broker {self._broker} does not let Horai subscribe to answers (_INBOX.>)"
            self._fail(LineFault(FailedRetryable(DENIED, denied)), lambda _: True)

    def _fail(self, fault: LineFault, concerns: Callable[[str], bool]) -> None:
        for subject, answered in self._waiting.values():
            if concerns(subject) and not answered.done():
                answered.set_exception(fault)

    def _gone(self, reason: str) -> FailedRetryable:
        return FailedRetryable("CONNECTION", f"the NATS broker {self._broker} has not answered: {reason}")


async def open_line(broker: str, servers: Sequence[str]) -> NatsLine:
    """Connect to the first server that can be reached, in random order. Raises `LineFault` if there is none."""
    fault = FailedRetryable("CONNECTION", f"no server of the NATS broker {broker} can be reached")
    for server in random.sample(servers, len(servers)):
        line = NatsLine(broker)
        try:
            await line.open(server)
        except _BROKEN as error:
            log.debug("a NATS server cannot be reached", broker=broker, error=type(error).__name__)
            if "authorization" in str(error).lower():
                fault = FailedRetryable(UNAUTHENTICATED, f"the NATS broker {broker} does not accept its credentials")
            await line.close()
        except BaseException:
            await line.close()
            raise
        else:
            return line
    raise LineFault(fault)


def joined_servers(given: Sequence[str], announced: Sequence[str]) -> list[str]:
    """Return the given servers and those that the cluster has announced, with the scheme and the user of the first."""
    first = urlsplit(given[0])
    user, at, _ = first.netloc.rpartition("@")
    known = {urlsplit(server).netloc.rpartition("@")[2] for server in given}
    return [*given, *(f"{first.scheme}://{user}{at}{place}" for place in sorted({*announced} - known))]

"""A NATS JetStream consumer: durable, pull-based, with explicit acknowledgement of each message.

This module implements the pull itself, over the connection of the library. The library's `fetch` takes every message
with a `Status` header for a status message of the server, and would neither deliver nor acknowledge it. Here the reply
subject, which only the server can write, tells them apart.
"""

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NothingYet
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy, StreamConfig
from nats.js.errors import NotFoundError

from horai.features.events.source import Message, SourceRefused, SourceUnavailable

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT = 5.0
RECONNECT_WAIT = 1
IDLE = 1.0
LINGER = 0.005
"""Seconds to wait for the next message of a batch after the last one."""
REQUEST_FOR = 5.0
"""Seconds after which the server drops an unanswered request; a request that a reconnect lost is sent again then."""
BATCH_BYTES = 32 * 1024 * 1024
_DELIVERY = "$JS.ACK."
_NO_RESPONDERS = "503"
_HEARTBEAT = "100"


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """The stream, the subject to read, and the name of the consumer.

    `durable` defaults to a name made from the subject.
    """

    servers: tuple[str, ...]
    stream: str
    subject: str
    durable: str | None = None
    creates_stream: bool = False
    only_new: bool = False
    ack_wait: timedelta = timedelta(seconds=60)
    max_ack_pending: int = 2000

    @property
    def consumer(self) -> str:
        """The name of the durable consumer, under which the server stores the acknowledgements."""
        return self.durable or "horai-" + re.sub(r"[^A-Za-z0-9_-]", "_", self.subject)


class NatsSource:
    """A source that reads one durable consumer. Several processes can share it: each message goes to one of them."""

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._connection: Client | None = None
        self._inbox: Subscription | None = None
        self._asked = 0
        self._asked_until = 0.0
        self._requests = 0
        self._request = ""
        self._held: dict[str, Msg] = {}

    @property
    def name(self) -> str:
        """The name of the stream, with the prefix `nats:`: an event id is valid for every consumer of the stream."""
        return f"nats:{self._settings.stream}"

    async def open(self) -> None:
        """Connect, and find or create the consumer. `SourceRefused` says what the operator has to change."""
        try:
            await self._bind()
        except BaseException:
            await self.close()
            raise

    async def receive(self, limit: int) -> Sequence[Message]:
        """Return available messages, at most `limit` and at most a batch in bytes; wait up to 1 s for the first."""
        try:
            inbox = self._inbox or await self._bind()
            return [self._message(delivered) for delivered in await self._pull(inbox, limit)]
        except (NatsError, OSError) as error:
            self._inbox = None
            raise SourceUnavailable(f"NATS did not deliver messages: {error or type(error).__name__}") from error

    async def ack(self, message: Message) -> None:
        """Acknowledge a message without waiting; if the acknowledgement is lost, the server delivers again."""
        if held := self._held.pop(message.place, None):
            await held.ack()

    async def nak(self, message: Message, delay: timedelta) -> None:
        if held := self._held.pop(message.place, None):
            await held.nak(delay.total_seconds())

    async def park(self, message: Message) -> None:
        if held := self._held.pop(message.place, None):
            await held.term()

    async def close(self) -> None:
        """Return received but unprocessed messages to the server, then close the connection."""
        connection, self._connection = self._connection, None
        if connection is None or connection.is_closed:
            return
        if self._inbox is not None and connection.is_connected:
            await self._give_back(self._inbox)
            await connection.flush()
        await connection.close()

    async def _give_back(self, inbox: Subscription) -> None:
        await inbox.unsubscribe()
        for held in self._held.values():
            await held.nak()
        while inbox.pending_msgs:
            waiting = await inbox.next_msg(timeout=LINGER)
            if _is_delivery(waiting):
                await waiting.nak()

    async def _pull(self, inbox: Subscription, limit: int) -> list[Msg]:
        """Read the messages of the open request; send a new request if that one has ended."""
        if not self._asked or time.monotonic() > self._asked_until:
            await self._ask(inbox, limit)
        found: list[Msg] = []
        while len(found) < limit and self._asked:
            try:
                came = await inbox.next_msg(timeout=LINGER if found else IDLE)
            except NothingYet:
                break
            if _is_delivery(came):
                found.append(came)
                self._asked -= 1
            elif came.subject == self._request and (status := (came.headers or {}).get("Status")) != _HEARTBEAT:
                self._asked = 0
                if status == _NO_RESPONDERS and not found:
                    raise NatsError("the server has no responder for the consumer")
        return found

    async def _ask(self, inbox: Subscription, limit: int) -> None:
        """Send a pull request.

        Each request has its own reply subject, so that the status of an earlier request is not taken for this one.
        """
        connection = self._require()
        self._requests += 1
        self._request = inbox.subject.replace("*", str(self._requests))
        request = {
            "batch": limit,
            "expires": int(REQUEST_FOR * 1_000_000_000),
            "max_bytes": max(BATCH_BYTES, 2 * connection.max_payload),
        }
        wanted = f"$JS.API.CONSUMER.MSG.NEXT.{self._settings.stream}.{self._settings.consumer}"
        await connection.publish(wanted, json.dumps(request).encode(), reply=self._request)
        self._asked, self._asked_until = limit, time.monotonic() + REQUEST_FOR

    def _message(self, delivered: Msg) -> Message:
        """Convert a delivery. Its place includes the timestamp, because a recreated stream counts from 1 again."""
        known = delivered.metadata
        place = f"{known.sequence.stream}@{known.timestamp.isoformat()}"
        self._held[place] = delivered
        headers = {name: str(value) for name, value in (delivered.headers or {}).items()}
        return Message(place, delivered.subject, delivered.data, headers, known.num_delivered)

    def _require(self) -> Client:
        if self._connection is None:
            raise NatsError("not connected")
        return self._connection

    async def _bind(self) -> Subscription:
        if self._connection is None or self._connection.is_closed:
            self._connection = await self._connect()
        try:
            await self._prepare(JetStreamContext(self._connection))
            answers = f"{self._connection.new_inbox()}.*"
            self._inbox = await self._connection.subscribe(answers)  # pyright: ignore[reportUnknownMemberType]
        except (NatsError, OSError) as error:
            raise SourceUnavailable(f"JetStream did not answer: {error or type(error).__name__}") from error
        self._asked = 0
        self._held.clear()
        return self._inbox

    async def _connect(self) -> Client:
        async def trouble(error: Exception) -> None:
            log.warning("NATS error", error=repr(error))

        async def again() -> None:
            self._asked = 0  # the request was lost with the connection
            log.info("NATS reconnected")

        client = Client()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await client.connect(
                    list(self._settings.servers),
                    name="horai source",
                    connect_timeout=2,
                    reconnect_time_wait=RECONNECT_WAIT,
                    max_reconnect_attempts=-1,  # once connected, reconnect without a limit
                    error_cb=trouble,
                    reconnected_cb=again,
                )
        except (NatsError, OSError, ValueError) as error:
            await client.close()
            raise SourceUnavailable(
                f"No NATS server answers: {error or type(error).__name__}.", "Check --url: nats://host:4222."
            ) from error
        return client

    async def _prepare(self, jetstream: JetStreamContext) -> None:
        settings = self._settings
        try:
            await jetstream.stream_info(settings.stream)
        except NotFoundError as error:
            if not settings.creates_stream:
                raise SourceRefused(
                    f"There is no stream {settings.stream!r}.", "Create it, or use --create-stream."
                ) from error
            await jetstream.add_stream(StreamConfig(settings.stream, subjects=[settings.subject]))  # pyright: ignore[reportUnknownMemberType]
        try:
            self._check(await jetstream.consumer_info(settings.stream, settings.consumer))
        except NotFoundError:
            await jetstream.add_consumer(settings.stream, self._consumer_config())  # pyright: ignore[reportUnknownMemberType]

    def _consumer_config(self) -> ConsumerConfig:
        return ConsumerConfig(
            durable_name=self._settings.consumer,
            filter_subject=self._settings.subject,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=self._settings.ack_wait.total_seconds(),
            max_ack_pending=self._settings.max_ack_pending,
            deliver_policy=DeliverPolicy.NEW if self._settings.only_new else DeliverPolicy.ALL,
        )

    def _check(self, found: ConsumerInfo) -> None:
        """Raise `SourceRefused` if the existing consumer cannot be used safely as it is."""
        config, named = found.config, f"The consumer {self._settings.consumer!r} of {self._settings.stream!r}"
        if config.ack_policy != AckPolicy.EXPLICIT or config.deliver_subject:
            raise SourceRefused(
                f"{named} is not a pull consumer with explicit acknowledgement.", "Name another: --durable."
            )
        if config.filter_subject != self._settings.subject:
            raise SourceRefused(f"{named} is for {config.filter_subject!r}.", "Name another: --durable.")


def _is_delivery(came: Msg) -> bool:
    return came.reply.startswith(_DELIVERY)

"""The NATS sender: one JetStream message per event, binary CloudEvents.

`Nats-Msg-Id` is the id of the event, so the server drops an event that is sent twice within its duplicate window. The
stream is the operator's: an event without a stream for its subject is not accepted.
"""

import asyncio
from collections.abc import Mapping

import structlog
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import Error as JetStreamError

from horai.features.outbox.rules import binary_headers
from horai.features.outbox.sender import Parcel, ParcelResult, SendFailure

log = structlog.get_logger(__name__)

TIMEOUT = 5
"""Seconds to connect, and for the acknowledgement of a message."""


class NatsSender:
    """Publishes events in order; each is acknowledged before the next is sent."""

    def __init__(self, brokers: Mapping[str, str]) -> None:
        self._brokers = brokers
        self._clients: dict[str, Client] = {}

    async def send(self, parcel: Parcel) -> ParcelResult:
        """Publish the events. An event that is not acknowledged ends it."""
        broker: str = parcel.place["broker"]
        if broker not in self._brokers:
            return ParcelResult(0, SendFailure(f"no NATS broker is named {broker} on this node (--broker)"))
        accepted = 0
        try:
            stream = (await self._client(broker)).jetstream(timeout=TIMEOUT)  # pyright: ignore[reportUnknownMemberType]
            for event in parcel.events:
                headers = {**binary_headers(event, parcel.tenant), "Nats-Msg-Id": event.event_id}
                await stream.publish(parcel.place["subject"], event.data.encode(), headers=headers)
                accepted += 1
        except (NatsError, JetStreamError, OSError, TimeoutError, asyncio.InvalidStateError) as error:
            reason = f"NATS {broker} did not accept an event: {type(error).__name__}"
            return ParcelResult(accepted, SendFailure(reason))
        return ParcelResult(accepted)

    async def _client(self, broker: str) -> Client:
        client = self._clients.pop(broker, None)
        if client is None or not client.is_connected:
            client = Client()
            async with asyncio.timeout(TIMEOUT):
                await client.connect(
                    self._brokers[broker].split(","),
                    error_cb=_note,
                    connect_timeout=TIMEOUT,
                    allow_reconnect=False,  # the next delivery connects again
                    max_reconnect_attempts=1,
                    name="horai outbox",
                )
        self._clients[broker] = client
        return client

    async def close(self) -> None:
        """Close every connection."""
        for client in self._clients.values():
            if not client.is_closed:
                await client.close()


async def _note(error: Exception) -> None:
    """Log an error of a connection; the failed delivery says what follows from it."""
    log.debug("NATS connection failed", error=repr(error))

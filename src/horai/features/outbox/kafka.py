"""The Kafka sender: one message per event, binary CloudEvents, keyed by instance so that a partition keeps their order.

The producer is idempotent and waits for all replicas. librdkafka works in threads of its own.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer

from horai.db.outbox import OutboxEvent
from horai.features.outbox.rules import attributes_of
from horai.features.outbox.sender import Parcel, ParcelResult, SendFailure

TIMEOUT = 10.0
"""Seconds for the acknowledgement of a batch."""


class KafkaSender:
    """Produces events in order. A batch that is not acknowledged in whole is sent again from its first lost event on."""

    def __init__(self, brokers: Mapping[str, str]) -> None:
        self._brokers = brokers
        self._producers: dict[str, Producer] = {}

    async def send(self, parcel: Parcel) -> ParcelResult:
        """Produce the events and wait for their acknowledgements."""
        broker: str = parcel.place["broker"]
        if broker not in self._brokers:
            return ParcelResult(0, SendFailure(f"no Kafka broker is named {broker} on this node (--broker)"))
        accepted = await asyncio.to_thread(self._produce, broker, parcel.place["topic"], parcel.events, parcel.tenant)
        if accepted == len(parcel.events):
            return ParcelResult(accepted)
        self._producers.pop(broker, None)  # it may still hold events that would overtake those sent again
        reason = f"Kafka {broker} acknowledged {accepted} of {len(parcel.events)} events within {TIMEOUT:g} s"
        return ParcelResult(accepted, SendFailure(reason))

    def _produce(self, broker: str, topic: str, events: Sequence[OutboxEvent], tenant: str) -> int:
        """Return how many events, from the first on, were acknowledged."""
        producer = self._producers.get(broker) or self._producers.setdefault(broker, self._connect(broker))
        stored = [False] * len(events)

        def note(number: int) -> Any:
            def told(error: object, _message: object) -> None:
                stored[number] = error is None

            return told

        try:
            for number, event in enumerate(events):
                producer.produce(
                    topic,
                    event.data.encode(),
                    key=attributes_of(event, tenant)["partitionkey"],
                    headers=_headers(event, tenant),
                    on_delivery=note(number),
                )
            left = producer.flush(TIMEOUT)
            if left:
                producer.purge()
                producer.flush(1.0)
        except (KafkaException, BufferError):
            producer.purge()
            producer.flush(1.0)
        return stored.index(False) if False in stored else len(stored)

    def _connect(self, broker: str) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self._brokers[broker].removeprefix("kafka://"),
                "enable.idempotence": True,
                "message.timeout.ms": int(TIMEOUT * 1000),
                "client.id": "horai outbox",
            }
        )

    async def close(self) -> None:
        """Forget the producers: every batch was flushed."""
        self._producers.clear()


def _headers(event: OutboxEvent, tenant: str) -> list[tuple[str, str | bytes | None]]:
    """Return the attributes as headers, with the prefix that the Kafka binding of CloudEvents asks for."""
    attributes = attributes_of(event, tenant)
    media = attributes.pop("datacontenttype")
    return [("content-type", media.encode()), *((f"ce_{name}", value.encode()) for name, value in attributes.items())]

"""The senders for message brokers that the operator has named, as far as their packages are installed."""

from collections.abc import Mapping
from importlib.util import find_spec

from horai.features.outbox.sender import Sender
from horai.features.outbox.store import SinkKind

NATS_SCHEMES = ("nats://", "tls://")
KAFKA_SCHEME = "kafka://"


def broker_senders(brokers: Mapping[str, str]) -> dict[SinkKind, Sender]:
    """Return a sender for each kind of broker that is named and whose package is installed."""
    made: dict[SinkKind, Sender] = {}
    nats = {name: url for name, url in brokers.items() if url.startswith(NATS_SCHEMES)}
    kafka = {name: url for name, url in brokers.items() if url.startswith(KAFKA_SCHEME)}
    if nats and find_spec("nats") is not None:
        from horai.features.outbox.nats import NatsSender  # noqa: PLC0415 - an optional package

        made[SinkKind.NATS] = NatsSender(nats)
    if kafka and find_spec("confluent_kafka") is not None:
        from horai.features.outbox.kafka import KafkaSender  # noqa: PLC0415 - an optional package

        made[SinkKind.KAFKA] = KafkaSender(kafka)
    return made

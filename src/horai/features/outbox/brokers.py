"""The senders for message brokers that the operator has named, as far as their packages are installed."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from horai.core.jetstream import NATS_SCHEMES
from horai.features.outbox.sender import Sender
from horai.features.outbox.store import SinkKind

KAFKA_SCHEME = "kafka://"


def broker_senders(brokers: Mapping[str, str]) -> dict[SinkKind, Sender]:
    """Return a sender for each kind of broker that is named and whose package is installed."""
    made: dict[SinkKind, Sender] = {}
    nats = {name: url for name, url in brokers.items() if url.startswith(NATS_SCHEMES)}
    kafka = {name: url for name, url in brokers.items() if url.startswith(KAFKA_SCHEME)}
    if nats and find_spec("nats") is not None:
        made[SinkKind.NATS] = _module("nats").NatsSender(nats)
    if kafka and find_spec("confluent_kafka") is not None:
        made[SinkKind.KAFKA] = _module("kafka").KafkaSender(kafka)
    return made


def _module(name: str) -> Any:
    """Import a sender whose package may be missing on another node."""
    return import_module(f"horai.features.outbox.{name}")

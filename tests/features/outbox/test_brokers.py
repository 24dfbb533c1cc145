"""Sinks on message brokers: a real NATS server, and the cluster that librdkafka has for tests."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from harness import Client
from nats_server import NatsServer, publisher
from rows import until

SINKS = "/api/v1/sinks"
TYPES = ["horai.instance.done"]


async def finish(api: Client, count: int) -> list[str]:
    """Run instances of a job that a worker of this test's node cannot fail: its target is the server's own health."""
    target = {"type": "http", "url": f"{api.base}/healthz", "method": "GET"}
    assert (await api("POST", "/api/v1/jobs", {"name": "hello", "target": target})).status == 201
    keys = [f"k{number}" for number in range(count)]
    items = [{"key": key} for key in keys]
    assert (await api("POST", "/api/v1/jobs/hello/instances/batch", {"items": items})).status == 200
    return keys


async def until_level(api: Client, name: str) -> None:
    async def is_level() -> bool:
        shown = (await api("GET", f"{SINKS}/{name}")).json
        return shown["behind"] == 0 and shown["delivered"] > 0

    await until(is_level)


async def test_events_reach_a_nats_stream_once_each_also_after_the_server_was_down(url: str, tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "nats").start()
    try:
        async with publisher(server) as stream:
            await stream.add_stream(name="horai", subjects=["horai.events"])
        async with harness.node(url, brokers={"main": server.url}) as api:
            body = {"kind": "nats", "broker": "main", "subject": "horai.events", "types": TYPES}
            assert (await api("PUT", f"{SINKS}/bus", body)).status == 201
            server.kill()
            keys = await finish(api, 50)

            async def has_failed() -> bool:
                return (await api("GET", f"{SINKS}/bus")).json["failures"] > 0

            await until(has_failed)
            server.start()
            assert (await api("POST", f"{SINKS}/bus/resume")).status == 200
            await until_level(api, "bus")
        async with publisher(server) as stream:
            found = await stream.pull_subscribe("horai.events", durable="test")
            messages = await found.fetch(200, timeout=5)
        headers = [message.headers or {} for message in messages]
        assert sorted(json.loads(message.data)["key"] for message in messages) == sorted(keys)
        assert {header["ce-type"] for header in headers} == {*TYPES}
        positions = [int(header["ce-sequence"]) for header in headers]
        assert positions == sorted(set(positions))
        assert all(header["Nats-Msg-Id"] == header["ce-id"] for header in headers)
    finally:
        server.kill()


@pytest.fixture
def kafka() -> Iterator[str]:
    """The addresses of a cluster that listens on loopback as long as its producer lives."""
    owner = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 3})
    metadata = owner.list_topics(timeout=10)
    yield ",".join(f"{broker.host}:{broker.port}" for broker in metadata.brokers.values())
    del owner


def consume(addresses: str, topic: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": addresses, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[Any] = []
    while len(found) < count:
        found += consumer.consume(count - len(found), timeout=20)
        assert found, "no message"
    consumer.close()
    return found


async def test_events_reach_a_kafka_topic_keyed_by_instance(url: str, kafka: str) -> None:
    assert AdminClient({"bootstrap.servers": kafka}).list_topics(timeout=10).brokers
    async with harness.node(url, brokers={"main": f"kafka://{kafka}"}) as api:
        body = {"kind": "kafka", "broker": "main", "topic": "horai", "types": TYPES}
        assert (await api("PUT", f"{SINKS}/bus", body)).status == 201
        keys = await finish(api, 50)
        await until_level(api, "bus")
        messages = await asyncio.to_thread(consume, kafka, "horai", 50)
    assert sorted(json.loads(message.value())["key"] for message in messages) == sorted(keys)
    for message in messages:
        headers = dict(message.headers())
        assert headers["ce_type"] == b"horai.instance.done"
        assert message.key().decode() == json.loads(message.value())["instanceId"]


async def test_a_broker_that_the_operator_did_not_name_is_refused(url: str) -> None:
    async with harness.node(url, brokers={"main": "nats://127.0.0.1:9"}) as api:
        body = {"kind": "nats", "broker": "other", "subject": "horai.events"}
        refused = await api("PUT", f"{SINKS}/bus", body)
        assert (refused.status, refused.json["errors"][0]["field"]) == (422, "broker")

"""The contract of every adapter: each change takes effect at least once. A new one joins `ADAPTERS`."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from adapters import Adapter, FileAdapter, NatsAdapter
from nats_server import NatsServer

from horai.features.events.source import Message, Source

ADAPTERS: dict[str, Callable[[NatsServer, str, Path], Adapter]] = {
    "nats": lambda server, stream, _: NatsAdapter(server, stream),
    "jsonl": lambda _, __, place: FileAdapter(place),
}
SOON = timedelta(milliseconds=10)


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest, nats_server: NatsServer, stream: str, tmp_path: Path) -> Adapter:
    return ADAPTERS[request.param](nats_server, stream, tmp_path)


async def some(source: Source, count: int, limit: int = 100) -> list[Message]:
    """The next `count` messages."""
    found: list[Message] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            found += await source.receive(limit) or ()
    return found


async def is_quiet(source: Source) -> bool:
    """Return true if nothing more comes for as long as a source waits."""
    return not await source.receive(100)


async def test_A3_messages_arrive_as_they_were_published(adapter: Adapter) -> None:
    await adapter.publish([b'{"n": 1.10}', b"\xff\x00"])

    async with adapter.opened() as source:
        found = await some(source, 2)

    assert [message.body.rstrip(b"\n") for message in found] == [b'{"n": 1.10}', b"\xff\x00"]
    assert [message.deliveries for message in found] == [1, 1]
    assert len({message.place for message in found}) == 2


async def test_A3_a_batch_is_no_larger_than_asked_for(adapter: Adapter) -> None:
    await adapter.publish(list(range(25)))

    async with adapter.opened() as source:
        sizes = [len(await source.receive(10) or ()) for _ in range(3)]

    assert sum(sizes) == 25
    assert max(sizes) <= 10


async def test_A3_an_acknowledged_or_parked_message_is_never_delivered_again(adapter: Adapter) -> None:
    await adapter.publish([1, 2])

    async with adapter.opened() as source:
        first, second = await some(source, 2)
        await source.ack(first)
        await source.park(second)

        assert await is_quiet(source)


async def test_A3_a_postponed_message_is_delivered_again_with_the_same_place(adapter: Adapter) -> None:
    await adapter.publish([1, 2])

    async with adapter.opened() as source:
        first, second = await some(source, 2)
        await source.ack(second)
        await source.nak(first, SOON)
        (again,) = await some(source, 1)

        assert (again.place, again.body, again.deliveries) == (first.place, first.body, 2)
        await source.ack(again)
        assert await is_quiet(source)


async def test_A3_an_unacknowledged_message_is_delivered_to_the_next_process_that_opens_the_source(
    adapter: Adapter,
) -> None:
    await adapter.publish([1, 2])
    async with adapter.opened() as source:
        first, second = await some(source, 2)
        name = source.name
        await source.ack(first)

    async with adapter.opened() as source:
        places = {message.place async for message in _all(source)}

        assert source.name == name
    assert second.place in places


async def _all(source: Source) -> AsyncGenerator[Message]:
    for message in await some(source, 1):
        yield message
    for message in await source.receive(100) or ():
        yield message

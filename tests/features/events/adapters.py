"""The adapters as their contract is held against them: publish something, open the source, open it again."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from nats.js.api import StreamConfig
from nats_server import NatsServer, publisher

from horai.features.events.jsonl import JsonLines
from horai.features.events.nats import NatsSettings, NatsSource
from horai.features.events.source import Source

SUBJECT = "article.publish_time_changed"


class Adapter(Protocol):
    """The access of a test to a source."""

    async def publish(self, documents: Sequence[Any]) -> None: ...

    def opened(self) -> Any: ...


@dataclass
class NatsAdapter:
    """A stream of a server."""

    server: NatsServer
    stream: str
    ack_wait: timedelta = timedelta(seconds=30)

    @property
    def settings(self) -> NatsSettings:
        return NatsSettings(
            (self.server.url,), self.stream, f"{self.stream}.{SUBJECT}", creates_stream=True, ack_wait=self.ack_wait
        )

    async def publish(self, documents: Sequence[Any]) -> None:
        async with publisher(self.server) as jetstream:
            await jetstream.add_stream(StreamConfig(self.stream, subjects=[self.settings.subject]))
            stored = [await jetstream.publish_async(self.settings.subject, _body(document)) for document in documents]
            await asyncio.gather(*stored)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Source]:
        source = NatsSource(self.settings)
        await source.open()
        try:
            yield source
        finally:
            await source.close()


@dataclass
class FileAdapter:
    """A file."""

    place: Path
    name: str = field(default_factory=lambda: os.urandom(4).hex())

    async def publish(self, documents: Sequence[Any]) -> None:
        with (self.place / self.name).open("ab") as file:
            file.writelines(_body(document) + b"\n" for document in documents)

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Source]:
        with (self.place / self.name).open("rb") as file:
            yield JsonLines(file, self.name)


def _body(document: Any) -> bytes:
    return document if isinstance(document, bytes) else json.dumps(document).encode()

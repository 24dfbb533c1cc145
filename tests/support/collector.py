"""A real OpenTelemetry collector for tests: it takes spans over OTLP/HTTP and keeps them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from horai.core.trace_context import SpanRecord
from horai.operations.span_queue import SpanQueue


@dataclass(frozen=True, slots=True)
class Span:
    """One span as it was received. Ids are hexadecimal; `links` are (trace id, span id)."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    begun: int
    ended: int
    kind: int
    attributes: dict[str, Any]
    links: tuple[tuple[str, str], ...]
    error: str | None
    resource: dict[str, Any]

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-01"


class Collector:
    """Collects spans on a port of its own. `text` is all that it has received, to search for secrets."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.spans: list[Span] = []
        self.text = b""
        self.requests = 0
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/traces", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.requests += 1
        if self.status == 200:
            self.text += body
            self.spans += spans_of(body)
        self._changed.set()
        return web.Response(status=self.status)

    async def until(self, count: int, name: str, trace_id: str | None = None, within: float = 30.0) -> list[Span]:
        """Wait for `count` spans of this name, in this trace; return them in the order of their begin."""
        async with asyncio.timeout(within):
            while len(found := self.named(name, trace_id)) < count:
                self._changed.clear()
                await self._changed.wait()
        return sorted(found, key=lambda span: span.begun)

    def named(self, name: str, trace_id: str | None = None) -> list[Span]:
        return [span for span in self.spans if span.name == name and trace_id in {None, span.trace_id}]


class Sent:
    """Keeps the spans that a queue exports, in this process."""

    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []
        self.queue = SpanQueue(self._send)

    def _send(self, batch: Sequence[Any]) -> bool:
        self.spans += batch
        return True

    def all(self) -> list[SpanRecord]:
        self.queue.close(timedelta(seconds=10))
        return self.spans


def spans_of(body: bytes) -> list[Span]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        Span(
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            span.kind,
            _values(span.attributes),
            tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
            span.status.message if span.status.code == 2 else None,
            _values(described.resource.attributes),
        )
        for described in request.resource_spans
        for scope in described.scope_spans
        for span in scope.spans
    ]


def _values(attributes: Sequence[Any]) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}

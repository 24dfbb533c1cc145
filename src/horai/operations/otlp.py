"""OpenTelemetry itself: the only module of Horai that imports it. `opened_traces` loads it when traces are on."""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, ProxyTracerProvider, SpanContext, SpanKind, Status, StatusCode
from opentelemetry.trace import TraceFlags as Flags

import horai
from horai.core.trace_context import SpanIds, SpanRecord, parse_traceparent
from horai.operations.span_queue import SpanQueue

TIMEOUT = 5.0
"""Seconds for one export, with its repeats."""
_SCOPE = InstrumentationScope("horai", horai.__version__)


def resource_of(name: str) -> Resource:
    """Describe this process. `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` add to it."""
    own = {"service.version": horai.__version__, "service.instance.id": name}
    return Resource.create(own if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "horai", **own})


def sender(endpoint: str, resource: Resource) -> Callable[[Sequence[Any]], bool]:
    """Return a function that exports spans to a collector and returns whether it took them."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the queue logs drops, once a minute
    exporter = OTLPSpanExporter(endpoint, timeout=TIMEOUT)

    def send(spans: Sequence[Any]) -> bool:
        readable = [_readable(span, resource) if isinstance(span, SpanRecord) else span for span in spans]
        return exporter.export(readable) is SpanExportResult.SUCCESS

    return send


class _ToQueue(SpanProcessor):
    """Passes the spans of functions to the queue of the process."""

    def __init__(self, queue: SpanQueue) -> None:
        self._queue = queue

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._queue.put(span)


def provide_to_functions(queue: SpanQueue, resource: Resource, ratio: float) -> None:
    """Export the spans that functions make, unless their application has set up OpenTelemetry itself."""
    if isinstance(trace.get_tracer_provider(), ProxyTracerProvider):
        provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(ratio)), resource=resource)
        provider.add_span_processor(_ToQueue(queue))
        trace.set_tracer_provider(provider)


def enter(traceparent: str) -> Callable[[], None]:
    """Make this span the parent of spans that the current task makes. Return a function that undoes it."""
    ids, before = parse_traceparent(traceparent), context.get_current()
    if ids is not None:
        context.attach(trace.set_span_in_context(NonRecordingSpan(_context(ids))))

    def leave() -> None:
        context.attach(before)

    return leave


def _context(ids: SpanIds) -> SpanContext:
    flags = Flags(Flags.SAMPLED if ids.is_sampled else Flags.DEFAULT)
    return SpanContext(ids.trace_id, ids.span_id, is_remote=True, trace_flags=flags)


def _readable(span: SpanRecord, resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        span.name,
        _context(span.ids),
        None if span.parent is None else _context(span.parent),
        resource,
        attributes=span.attributes,
        links=[Link(_context(ids)) for ids in span.links],
        kind=SpanKind[span.kind.name],
        status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
        start_time=span.begun,
        end_time=span.ended,
        instrumentation_scope=_SCOPE,
    )

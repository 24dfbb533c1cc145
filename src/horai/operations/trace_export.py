"""Turn traces on for the lifetime of a process: load OpenTelemetry, and export spans until the process stops."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any

from horai import logs
from horai.core.settings import EngineSettings
from horai.core.trace_context import InstanceTraces
from horai.db.cluster import cluster_id
from horai.db.pool import PlatformConnections, acquire
from horai.db.wakeups import Wakeups
from horai.operations.span_queue import SpanQueue
from horai.operations.traces import Traces

FLUSH_WITHIN = timedelta(seconds=5)
"""Time that a stop waits for the collector; less if the grace period is shorter."""


def otlp() -> Any:
    """Return the module `operations/otlp.py`. It is loaded only here: a process without traces never imports it."""
    return import_module("horai.operations.otlp")


@asynccontextmanager
async def opened_traces(
    settings: EngineSettings, pool: PlatformConnections, wakeups: Wakeups, name: str, *, has_functions: bool = False
) -> AsyncGenerator[Traces | None]:
    """Provide the traces of a process with this name; None if they are off. Export the last spans on exit.

    With `has_functions`, the spans of functions are exported as well, below the spans of their attempts.
    """
    if settings.otlp_endpoint is None:
        yield None
        return
    async with acquire(pool) as connection:
        cluster = await cluster_id(connection)
    queue, opened = await asyncio.to_thread(opened_queue, settings.otlp_endpoint, name)
    traces = Traces(InstanceTraces(cluster.bytes, settings.trace_ratio), queue)
    if has_functions:
        otlp().provide_to_functions(queue, opened, settings.trace_ratio)
        traces.enter_function = otlp().enter
    wakeups.on_made = traces.made
    logs.set_stamp(traces.stamp)
    try:
        yield traces
    finally:
        logs.set_stamp(None)
        await asyncio.to_thread(queue.close, min(FLUSH_WITHIN, settings.grace))


ENDPOINT, RATIO, NAME = "HORAI_OTLP_ENDPOINT", "HORAI_TRACE_RATIO", "HORAI_NAME"


def child_variables(settings: EngineSettings, name: str) -> dict[str, str]:
    """Return the variables by which the process of an isolated function exports the spans that the function makes."""
    if settings.otlp_endpoint is None:
        return {}
    return {ENDPOINT: settings.otlp_endpoint, RATIO: str(settings.trace_ratio), NAME: name}


@dataclass(frozen=True, slots=True)
class ChildTraces:
    """The spans of functions in a process of their own. The spans of their attempts are those of the worker."""

    queue: SpanQueue
    enter: Callable[[str], Callable[[], None]]


def child_traces(environ: Mapping[str, str]) -> ChildTraces | None:
    """Return the traces of an isolated process; None if they are off."""
    if not (endpoint := environ.get(ENDPOINT)):
        return None
    queue, described = opened_queue(endpoint, environ.get(NAME, ""))
    otlp().provide_to_functions(queue, described, float(environ.get(RATIO, "1")))
    return ChildTraces(queue, otlp().enter)


def opened_queue(endpoint: str, name: str) -> tuple[SpanQueue, Any]:
    """Return a queue that exports to a collector, and the description of this process."""
    described = otlp().resource_of(name)
    return SpanQueue(otlp().sender(endpoint, described)), described

"""Traces: the spans of requests and instances, as this process sees them.

A request has a span that continues the trace of its caller. An instance has a trace of its own, with the same ids in
every process (core/trace_context.py): `horai.fire` is its root, and each attempt adds `horai.claim`, `horai.attempt`,
`horai.callback` and `horai.settle`. Links connect the trace of a request with those of the instances it creates. No span
has a payload, a key, a header, an error text or a query.
"""

import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from secrets import randbits
from typing import Any, NamedTuple

from horai.core.calls import Call, millis
from horai.core.outcome import (
    NODE_LOST,
    Accepted,
    Bury,
    Complete,
    Decision,
    Ending,
    FailedRetryable,
    FailedUnrecoverable,
    Lost,
    Release,
    RetryAt,
    Succeeded,
    Withdraw,
)
from horai.core.trace_context import (
    InstanceTraces,
    SpanIds,
    SpanKind,
    SpanPart,
    SpanRecord,
    parse_traceparent,
)
from horai.db.claim_lanes import Lane
from horai.db.claims import Claim, ClaimedRow
from horai.operations.span_queue import SpanQueue

LINKS = 128
"""The most links of one span: a batch may create 10,000 instances."""
PLACES = 20_000
"""The most attempts whose queue is remembered from their claim."""

Attributes = dict[str, str | int | bool]


@dataclass(slots=True)
class RequestSpan:
    """The span of a request that is being served, with links to the instances that it has created."""

    ids: SpanIds
    parent: SpanIds | None
    begun: int
    links: list[SpanIds] = field(default_factory=list[SpanIds])


class AttemptSpan(NamedTuple):
    """An attempt that has begun. `call` has the header of the span that its receiver continues."""

    call: Call
    ids: SpanIds
    root: SpanIds
    begun: int
    is_http: bool


serving: ContextVar[RequestSpan | None] = ContextVar("serving", default=None)
"""The span of the request that this task serves."""


class Traces:
    """The traces of one process."""

    def __init__(self, traces: InstanceTraces, queue: SpanQueue, clock: Callable[[], int] = time.time_ns) -> None:
        self._traces = traces
        self._clock = clock
        self._places: dict[tuple[int, int], Attributes] = {}
        self.queue = queue
        self.enter_function: Callable[[str], Callable[[], None]] | None = None
        """Makes an attempt the current span of OpenTelemetry while its function runs. Set in workers."""

    def now(self) -> int:
        """Return the time in nanoseconds since the epoch."""
        return self._clock()

    def trace_id(self, instance_id: int) -> str:
        """Return the trace id of an instance."""
        return self._traces.root(instance_id).trace_text

    def span_id(self, instance_id: int, fence: int) -> str:
        """Return the span id of an attempt."""
        return self._traces.span(self._traces.root(instance_id), fence, SpanPart.ATTEMPT).span_text

    def made(self, instance_ids: Iterable[int], begun: int | None = None) -> None:
        """Record the fires of new instances, and link them with the request that has created them."""
        ended, request = self.now(), serving.get()
        for instance_id in instance_ids:
            root = self._traces.root(instance_id)
            links = ()
            if request is not None:
                links = (request.ids,)
                if len(request.links) < LINKS:
                    request.links.append(root)
            if root.is_sampled:
                since = begun or (ended if request is None else request.begun)
                said = _of_instance(instance_id) | {"messaging.operation.name": "fire"}
                self.queue.put(SpanRecord("horai.fire", SpanKind.PRODUCER, root, None, since, ended, said, links))

    def claimed(self, rows: Sequence[ClaimedRow], lane_of: Callable[[int], Lane]) -> None:
        """Record claims. Each span begins when its row was due: it shows how long the row has waited."""
        now = self.now()
        for row in rows:
            held, lane = row.held, lane_of(row.lane)
            root = self._traces.root(held.id)
            if not root.is_sampled:
                continue
            place: Attributes = {"messaging.destination.name": lane.queue, "horai.priority": lane.priority.name}
            if len(self._places) >= PLACES:
                del self._places[next(iter(self._places))]
            self._places[held.id, held.fence] = place
            said = _of_claim(held) | place | {"messaging.operation.name": "claim"}
            ids = self._traces.span(root, held.fence, SpanPart.CLAIM)
            due = min(_nanoseconds(row.due), now)
            self.queue.put(SpanRecord("horai.claim", SpanKind.CONSUMER, ids, root, due, now, said))

    def begin(self, call: Call, *, is_http: bool) -> AttemptSpan:
        """Begin an attempt. Its call carries the `traceparent` of the callback, or of the attempt for a function."""
        root = self._traces.root(call.instance_id)
        ids = self._traces.span(root, call.fence, SpanPart.ATTEMPT)
        sent = self._traces.span(root, call.fence, SpanPart.CALLBACK) if is_http else ids
        return AttemptSpan(call._replace(traceparent=sent.traceparent), ids, root, self.now(), is_http)

    def attempted(self, span: AttemptSpan, outcome: Ending | None) -> None:
        """Record the end of an attempt; None if it was broken off."""
        call = span.call
        place = self._places.pop((call.instance_id, call.fence), Attributes())
        if not span.ids.is_sampled:
            return
        name, error = _said_of(outcome)
        said: Attributes = _of_instance(call.instance_id) | {
            "messaging.operation.name": "process",
            "horai.tenant": call.tenant,
            "horai.job": call.job,
            "horai.idempotency_key": call.idempotency_key,
            "horai.attempt": call.attempt,
            "horai.fence": call.fence,
            "horai.node": call.node,
            "horai.outcome": name,
            **place,
        }
        if error is not None:
            said["error.type"] = error
        self._end("horai.attempt", SpanKind.CONSUMER, span.ids, span.root, span.begun, said, error)

    def called(self, call: Call, method: str, host: str, begun: int, answer: tuple[int | None, str | None]) -> None:
        """Record an HTTP call of an attempt: its status, None without an answer, and the code of its failure."""
        root = self._traces.root(call.instance_id)
        if not root.is_sampled:
            return
        status, error = answer
        said: Attributes = {"http.request.method": method, "server.address": host, "horai.attempt": call.attempt}
        if status is not None:
            said["http.response.status_code"] = status
        if error is not None:
            said["error.type"] = error
        ids = self._traces.span(root, call.fence, SpanPart.CALLBACK)
        attempt = self._traces.span(root, call.fence, SpanPart.ATTEMPT)
        self._end("horai.callback", SpanKind.CLIENT, ids, attempt, begun, said, error)

    def settled(self, decisions: Iterable[tuple[Claim, Decision]], begun: int) -> None:
        """Record outcomes that were written."""
        for held, decision in decisions:
            self._places.pop((held.id, held.fence), None)
            root = self._traces.root(held.id)
            if root.is_sampled:
                ids = self._traces.span(root, held.fence, SpanPart.SETTLE)
                said = _of_claim(held) | {"messaging.operation.name": "settle", "horai.state": _state_after(decision)}
                if isinstance(decision, RetryAt | Bury):
                    said["error.type"] = decision.code
                self._end("horai.settle", SpanKind.INTERNAL, ids, root, begun, said, None)

    def reported(self, instance_id: int, fence: int) -> None:
        """Link the request that reports the outcome of an attempt with the span of the attempt."""
        if (request := serving.get()) is not None:
            root = self._traces.root(instance_id)
            request.links.append(self._traces.span(root, fence, SpanPart.ATTEMPT))

    def serve(self, traceparents: Sequence[str]) -> RequestSpan:
        """Begin the span of a request. Continue the caller's trace if it sent exactly one header of the right format.

        A caller can keep its trace from being recorded, but not have more recorded than the ratio of this process.
        """
        parent = parse_traceparent(traceparents[0]) if len(traceparents) == 1 else None
        trace_id = randbits(128) or 1 if parent is None else parent.trace_id
        is_sampled = (parent is None or parent.is_sampled) and self._traces.is_sampled(trace_id)
        return RequestSpan(SpanIds(trace_id, randbits(64) or 1, is_sampled), parent, self.now())

    def served(self, span: RequestSpan, method: str, route: str | None, status: int) -> None:
        """Record a request that was answered. Without a `route`, no path is recorded: it is the caller's text."""
        if not span.ids.is_sampled:
            return
        said: Attributes = {"http.request.method": method, "http.response.status_code": status}
        if route is not None:
            said["http.route"] = route
        error = str(status) if status >= 500 else None
        if error is not None:
            said["error.type"] = error
        name = f"horai.api {method} {route}" if route is not None else f"horai.api {method}"
        self._end(name, SpanKind.SERVER, span.ids, span.parent, span.begun, said, error, tuple(span.links))

    def stamp(self, event: MutableMapping[str, Any]) -> None:
        """Add the trace id to a log line about an instance, or of a request."""
        if (instance := event.get("instance")) is not None and str(instance).isdecimal():
            event.setdefault("trace_id", self.trace_id(int(instance)))
        elif (request := serving.get()) is not None:
            event.setdefault("trace_id", request.ids.trace_text)

    def _end(
        self,
        name: str,
        kind: SpanKind,
        ids: SpanIds,
        parent: SpanIds | None,
        begun: int,
        said: Mapping[str, str | int | bool],
        error: str | None,
        links: tuple[SpanIds, ...] = (),
    ) -> None:
        self.queue.put(SpanRecord(name, kind, ids, parent, begun, max(self.now(), begun), said, links, error))


def _of_instance(instance_id: int) -> Attributes:
    return {"messaging.system": "horai", "messaging.message.id": str(instance_id)}


def _of_claim(held: Claim) -> Attributes:
    said = _of_instance(held.id)
    return said | {"horai.attempt": held.attempt, "horai.fence": held.fence, "horai.node": held.node}


def _said_of(outcome: Ending | None) -> tuple[str, str | None]:
    """Return the name of an outcome and the code of a failure."""
    match outcome:
        case None:
            return "FAIL", "NODE_STOPPED"
        case Succeeded():
            return "SUCCESS", None
        case FailedRetryable(code) | FailedUnrecoverable(code):
            return "FAIL", code
        case Lost():
            return "FAIL", NODE_LOST
        case Accepted():
            return "ACCEPTED", None
        case _:
            return "RELEASED", None


def _state_after(decision: Decision) -> str:
    match decision:
        case Complete():
            return "SUCCESS"
        case RetryAt():
            return "FAIL"
        case Bury():
            return "DEAD"
        case Withdraw():
            return "CANCELLED"
        case Release():
            return "INIT"


def _nanoseconds(instant: datetime) -> int:
    return millis(instant) * 1_000_000

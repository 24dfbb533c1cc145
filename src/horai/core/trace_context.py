"""The ids of traces and spans, and the `traceparent` header of W3C Trace Context.

The trace of an instance is not stored: its id and the ids of its spans follow from the cluster, the instance, and the
fence of the attempt. So every process agrees on them, also after a crash and for a retry on another node.
"""

import re
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from hashlib import blake2b
from typing import NamedTuple

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_LONGEST = 512
"""Characters of a header that are read. The format of version 00 has 55."""
_LOW = 2**64 - 1


class SpanPart(IntEnum):
    """The spans of one attempt: each has an id of its own."""

    CLAIM = 1
    ATTEMPT = 2
    CALLBACK = 3
    SETTLE = 4


class SpanKind(StrEnum):
    """The kinds of OpenTelemetry that Horai uses."""

    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"
    INTERNAL = "internal"


class SpanIds(NamedTuple):
    """The place of a span: its trace, its own id, and whether the trace is recorded."""

    trace_id: int
    span_id: int
    is_sampled: bool

    @property
    def trace_text(self) -> str:
        """Return the trace id as logs and responses show it: 32 hexadecimal digits."""
        return f"{self.trace_id:032x}"

    @property
    def span_text(self) -> str:
        """Return the span id as logs and responses show it: 16 hexadecimal digits."""
        return f"{self.span_id:016x}"

    @property
    def traceparent(self) -> str:
        """Return the header that makes this span the parent of the receiver's spans."""
        return f"00-{self.trace_text}-{self.span_text}-{int(self.is_sampled):02x}"


class SpanRecord(NamedTuple):
    """A span that has ended. Times are in nanoseconds since the epoch; `error` is a code, None if there was none."""

    name: str
    kind: SpanKind
    ids: SpanIds
    parent: SpanIds | None
    begun: int
    ended: int
    attributes: Mapping[str, str | int | bool]
    links: tuple[SpanIds, ...] = ()
    error: str | None = None


class InstanceTraces:
    """The traces of the instances of a cluster, of which the share `ratio` is recorded."""

    def __init__(self, cluster: bytes, ratio: float = 1.0) -> None:
        self._cluster = cluster
        self._ratio = ratio

    def root(self, instance_id: int) -> SpanIds:
        """Return the root of the trace of an instance: the span of its fire."""
        digest = blake2b(instance_id.to_bytes(8, "big"), digest_size=24, key=self._cluster).digest()
        trace_id = int.from_bytes(digest[:16], "big") or 1
        return SpanIds(trace_id, int.from_bytes(digest[16:], "big") or 1, self.is_sampled(trace_id))

    def span(self, root: SpanIds, fence: int, part: SpanPart) -> SpanIds:
        """Return the ids of a span of the attempt with this fence."""
        about = root.span_id.to_bytes(8, "big") + fence.to_bytes(8, "big") + bytes((part,))
        digest = blake2b(about, digest_size=8, key=self._cluster).digest()
        return root._replace(span_id=int.from_bytes(digest, "big") or 1)

    def is_sampled(self, trace_id: int) -> bool:
        """Return whether a trace is recorded. Every process with the same ratio decides alike."""
        return (trace_id & _LOW) < round(self._ratio * 2**64)


def parse_traceparent(text: str) -> SpanIds | None:
    """Return the ids of a `traceparent` header; None if it does not have the format of W3C Trace Context."""
    found = _TRACEPARENT.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more is not None) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    return SpanIds(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & 1))

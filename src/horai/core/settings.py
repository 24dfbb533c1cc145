"""What can be set, and its defaults. Where a value comes from (flag, environment, file) is the command line's business."""

from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network

SHARDS = 32
MAX_RETRY_LIMIT = 1000
MAX_LOST_LIMIT = 1000
KEY_LIMIT = 512
PAYLOAD_LIMIT = 1024 * 1024
BODY_LIMIT = 2 * 1024 * 1024
BATCH_BODY_LIMIT = 32 * 1024 * 1024
PAGE_LIMIT = 500
PAGE_DEFAULT = 50
PAGE_BYTES = 4 * 1024 * 1024
LISTED_PAYLOAD_BYTES = 4 * 1024
NESTING_LIMIT = 64
KEPT_KEYS = 10_000_000
"""Idempotency keys of one tenant; past them a request with a new key gets 429."""
KEPT_ANSWER_BYTES = 4 * 1024**3
"""Bytes of answers, compressed, that are kept for the repeats of one tenant."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How the engine paces itself. The defaults suit a laptop and a small server alike."""

    lease: timedelta = timedelta(milliseconds=8000)
    claim_batch: int = 1000
    poll_batch: int = 200
    shared_batch: int = 64
    in_flight: int = 4000
    concurrency: int | None = None
    per_host: int = 64
    settle_batch: int = 1000
    settle_wait: timedelta = timedelta(milliseconds=5)
    sweep: timedelta = timedelta(seconds=30)
    straggler: timedelta = timedelta(seconds=1)
    straggler_reach: timedelta = timedelta(seconds=10)
    rescue: timedelta = timedelta(seconds=2)
    horizon: timedelta = timedelta(seconds=60)
    slot_chunk: int = 10_000
    grace: timedelta = timedelta(seconds=10)
    partitions_ahead: int = 8
    idempotency_keep: timedelta = timedelta(days=7)
    callback_allow: tuple[IPv4Network | IPv6Network, ...] = field(default=())

    @property
    def idle_in_transaction(self) -> timedelta:
        """How long a node that fell silent may keep rows locked: no longer than its lease lasts from its last beat."""
        return self.lease * 2 / 3


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of the HTTP server, in force before a route is reached. Sizes are in bytes.

    A body may take `body_time` and one second more for every `body_rate` bytes received. `connections` is also limited to
    half of the file descriptors of the process, `connections_per_address` to three quarters of the connections. The first
    `body_free` bytes of each body do not count towards `bodies_in_memory`: small requests are served while large bodies wait.
    """

    header_bytes: int = 64 * 1024
    header_fields: int = 100
    header_time: timedelta = timedelta(seconds=10)
    body_time: timedelta = timedelta(seconds=30)
    body_rate: int = 128 * 1024
    body_free: int = 64 * 1024
    bodies_in_memory: int = 64 * 1024 * 1024
    connections: int = 1000
    connections_per_address: int = 750
    readers: int = 100
    readers_per_address: int = 50

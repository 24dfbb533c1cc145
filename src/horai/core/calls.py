"""One attempt to make: everything that an executor needs to know, and nothing that it could change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from horai.core.addresses import TenantReach
from horai.time.previous import previous_before
from horai.time.schedule import Schedule

HTTP_TIMEOUT = timedelta(seconds=5)
"""Default total deadline of an HTTP call (seed 001: the caller protects itself)."""


KEY_UNAVAILABLE = "KEY_UNAVAILABLE"
"""The fault of a target whose secrets this process cannot open: it has no encryption key, or not the right one."""
KEY_PAUSE = timedelta(seconds=10)
"""The pause of a call with this fault. No attempt is counted."""


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """The endpoint that an HTTP job calls.

    A target with `sealed` or `named` is not ready to be called: its URL and its headers lack values.
    """

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    """Named secrets by the headers that send them."""
    sealed: Mapping[str, Any] | None = field(default=None, repr=False)
    """The envelope of the URL and the header values that are shown as `***`."""
    fault: str | None = None
    """The reason why the secrets could not be opened, as the code of an error."""
    batch_size: int = 1
    """Most attempts that are sent in one request; 1 for a target that takes a request for each."""

    @property
    def is_complete(self) -> bool:
        """Return whether every value is here, so that the target can be called."""
        return self.sealed is None and not self.named


@dataclass(frozen=True, slots=True)
class WorkerTarget:
    """A function that a worker has registered under `handler`."""

    handler: str


@dataclass(frozen=True, slots=True)
class NatsTarget:
    """A JetStream subject of a broker that the operator has named.

    The attempt succeeds when the stream has stored the message or, if `is_reported`, when its consumer reports so.
    """

    broker: str
    subject: str
    is_reported: bool = False

    @property
    def handler(self) -> str:
        """Return the handler part of the lane: only nodes that name the broker claim it."""
        return NATS_HANDLER + self.broker


NATS_HANDLER = "nats:"
"""The prefix of the handlers of brokers. The name of a function has no colon."""
Target = HttpTarget | WorkerTarget | NatsTarget


class Call(NamedTuple):
    """One claimed attempt. `payload` is JSON text or None; `timeout` None means no deadline.

    `born_for` and `slot` form the idempotency key and never change; slots below zero do not belong to a schedule.
    `node` is the incarnation that claimed the instance; `retry_count` is the number of its failures so far. `reach`
    is for calls over HTTP, `secrets` are for calls that are signed.
    """

    instance_id: int
    job_id: int
    job: str
    tenant: str
    key: str | None
    fire_time: datetime
    execute_time: datetime
    attempt: int
    fence: int
    born_for: datetime
    slot: int
    payload: str | None
    target: Target
    timeout: timedelta | None
    secrets: tuple[str, ...] = ()
    node: int = 0
    retry_count: int = 0
    tenant_id: int = 0
    reach: TenantReach = TenantReach()
    is_encrypted: bool = False
    traceparent: str | None = None
    """The header that makes the receiver's spans part of the instance's trace; None if traces are off."""
    interval_from: "Schedule | datetime | None" = None
    """The schedule of the job, or the start of the interval if it is known; None if there is no interval."""

    @property
    def interval_start(self) -> datetime | None:
        """Return the start of the data interval: the last fire of the schedule before the fire time, which ends it."""
        known = self.interval_from
        return known if known is None or isinstance(known, datetime) else previous_before(known, self.fire_time)

    @property
    def idempotency_key(self) -> str:
        """Return the key that is fixed at creation and is the same for every attempt."""
        if self.slot >= 0:
            return slot_key(self.job_id, self.born_for, self.slot)
        return instance_key(self.job_id, self.born_for, self.instance_id)

    @property
    def unit(self) -> str:
        """Return the id by which a receiver recognises the business unit: stable across reschedules and retries."""
        return self.unit_of(self.idempotency_key if self.key is None else self.key)

    def unit_of(self, key: str) -> str:
        """Return the unit of a key that is known: it is made once for several headers."""
        return f"{self.tenant}:{self.job}:{key}"


def millis(instant: datetime) -> int:
    """Return the whole milliseconds since the epoch."""
    return (instant - _EPOCH) // _MILLISECOND


def slot_key(job_id: int, fire_time: datetime, generation: int = 0) -> str:
    """Return the `idem_key` of a schedule slot: unique per (job, fire time, generation)."""
    key = f"{job_id}:{millis(fire_time)}"
    return f"{key}:{generation}" if generation else key


def instance_key(job_id: int, born_for: datetime, instance_id: int) -> str:
    """Return the `idem_key` of every other instance: fixed at creation, even if the instance is moved later."""
    return f"{job_id}:{millis(born_for)}:{instance_id}"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

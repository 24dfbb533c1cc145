"""Batches: calls of one job that begin together go to a target that takes batches in one request.

A batch is sent when it is full, or as soon as no further call has joined it for a turn of the event loop: rows that were
claimed together begin one turn after another. Each call waits for its own outcome and may be cancelled alone.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from horai.core.addresses import TenantReach
from horai.core.calls import Call, HttpTarget
from horai.core.http_batches import PAYLOADS_LIMIT
from horai.core.outcome import Accepted, NotSent, Outcome
from horai.engine.executors.bulkhead import HostRoom

QUIET_TURNS = 3
"""Turns of the event loop without a further call after which a batch is sent."""
BATCHES_AHEAD = 4
"""Full batches of a host that may be under way and in line."""

Waiter = asyncio.Future[Outcome | Accepted]
BatchKey = tuple[int, int, TenantReach, tuple[str, ...]]
"""Job, target, reach and signing secrets: what all calls of a batch have in common."""


@dataclass(slots=True, eq=False)
class OpenBatch:
    """The calls of one request, and the futures of their outcomes."""

    key: BatchKey
    size: int
    calls: dict[Waiter, Call] = field(default_factory=dict["Waiter", Call])
    payloads: int = 0
    seen: int = 0
    quiet_turns: int = 0
    sending: asyncio.Task[None] | None = None


class HttpBatches:
    """The batches of this process. `send` makes one request and returns the outcomes in the order of its calls."""

    def __init__(self, send: Callable[[Sequence[Call]], Awaitable[Sequence[Outcome | Accepted]]]) -> None:
        self._send = send
        self._open: dict[BatchKey, OpenBatch] = {}
        self._rows: Counter[str] = Counter()
        self._sizes: dict[str, int] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def room(self, host: str, single: HostRoom) -> HostRoom:
        """Return the room of a host: while it has batches, as many rows as fill `BATCHES_AHEAD` of them."""
        if not self._rows[host]:
            return single
        return HostRoom(max(single.accepts, BATCHES_AHEAD * self._sizes[host]), single.load + self._rows[host])

    async def run(self, call: Call, target: HttpTarget, host: str) -> Outcome | Accepted:
        """Make one attempt, in the request of a batch."""
        if self._is_closed:
            return NotSent()
        waiter: Waiter = asyncio.get_running_loop().create_future()
        batch = self._join(call, target, waiter)
        self._rows[host] += 1
        self._sizes[host] = max(target.batch_size, self._sizes.get(host, 0))
        try:
            return await waiter
        finally:
            self._rows[host] -= 1
            if not self._rows[host]:
                del self._rows[host], self._sizes[host]
            if waiter.cancelled():
                self._leave(batch, waiter)

    def _join(self, call: Call, target: HttpTarget, waiter: Waiter) -> OpenBatch:
        """Add the call to the open batch of its kind, or to a new one."""
        key = (call.job_id, id(target), call.reach, call.secrets)
        payload = len(call.payload or "")
        batch = self._open.get(key)
        if batch is not None and batch.payloads + payload > PAYLOADS_LIMIT:
            self._begin(batch)
            batch = None
        if batch is None:
            batch = self._open[key] = OpenBatch(key, target.batch_size)
            asyncio.get_running_loop().call_soon(self._look, batch)
        batch.calls[waiter] = call
        batch.payloads += payload
        if len(batch.calls) >= batch.size:
            self._begin(batch)
        return batch

    def _look(self, batch: OpenBatch) -> None:
        """Send the batch if no call has joined it lately; otherwise look again, a turn later."""
        if self._open.get(batch.key) is not batch:
            return
        batch.quiet_turns = batch.quiet_turns + 1 if len(batch.calls) == batch.seen else 0
        batch.seen = len(batch.calls)
        if batch.quiet_turns >= QUIET_TURNS:
            self._begin(batch)
        else:
            asyncio.get_running_loop().call_soon(self._look, batch)

    def _begin(self, batch: OpenBatch) -> None:
        del self._open[batch.key]
        if batch.calls:
            batch.sending = asyncio.create_task(self._run(batch))
            self._sending.add(batch.sending)
            batch.sending.add_done_callback(self._sending.discard)

    async def _run(self, batch: OpenBatch) -> None:
        """Send the batch, and give each call that still waits its outcome."""
        calls = dict(batch.calls)
        try:
            outcomes = await self._send([*calls.values()])
        except Exception as error:  # each call reports it as its own
            for waiter in calls:
                if not waiter.done():
                    waiter.set_exception(error)
            return
        for waiter, outcome in zip(calls, outcomes, strict=True):
            if not waiter.done():
                waiter.set_result(outcome)

    def _leave(self, batch: OpenBatch, waiter: Waiter) -> None:
        """Take out a call that was cancelled. A request that no call waits for is broken off."""
        del batch.calls[waiter]
        if batch.sending is not None and not batch.calls:
            batch.sending.cancel()

    async def close(self) -> None:
        """Turn away calls that wait to be sent. Requests under way end with their connections."""
        self._is_closed = True
        for batch in self._open.values():
            for waiter in batch.calls:
                if not waiter.done():
                    waiter.set_result(NotSent())
        self._open.clear()
        await asyncio.gather(*self._sending, return_exceptions=True)

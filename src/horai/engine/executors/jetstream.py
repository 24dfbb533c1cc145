"""The JetStream executor: it hands instances over to the streams of one NATS broker, many at once over one connection.

Every error is an outcome. The deadline is total: it covers the connection and the answer of the stream. `nats` is imported,
and a server is dialled, with the first message. The operator has named the broker, so its address is not checked.
"""

import asyncio
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib import import_module
from typing import Protocol

import structlog

from horai.core.callbacks import body_of
from horai.core.calls import HTTP_TIMEOUT, NATS_HANDLER, Call, NatsTarget
from horai.core.jetstream import (
    LineFault,
    StreamAnswer,
    message_headers,
    message_size,
    outcome_of_answer,
    too_large,
)
from horai.core.outcome import TIMEOUT, Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Succeeded
from horai.engine.executors.bulkhead import Bulkhead, BusyTime
from horai.engine.executors.origins import BROKER_HOST
from horai.operations.nats_brokers import has_nats, nats_brokers
from horai.operations.wall_clock import wall_clock

_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)
IN_FLIGHT = 256
"""Messages that wait for the answers of a broker at once."""
UNSIGNED_PAUSE = timedelta(seconds=1)
"""The pause of a call whose tenant has no signing secret yet."""


class MessageLine(Protocol):
    """An open connection to a server of the broker."""

    @property
    def is_open(self) -> bool: ...

    @property
    def most_bytes(self) -> int: ...

    @property
    def cluster(self) -> list[str]: ...

    async def publish(self, subject: str, body: bytes, headers: dict[str, str]) -> StreamAnswer: ...

    async def close(self) -> None: ...


class JetStreamExecutor:
    """The executor of one broker. Messages share a connection, which is opened by the first and again after a loss.

    `is_held` returns whether the claim still belongs to this node. It is called when the connection is open, just before the
    message is sent.
    """

    def __init__(
        self,
        broker: str,
        url: str,
        *,
        waiting: int,
        is_held: Callable[[Call], bool] = lambda _: True,
    ) -> None:
        self._broker = broker
        self.host = BROKER_HOST + broker
        self._given = [server.strip() for server in url.split(",")]
        self._servers = self._given
        self._is_held = is_held
        self._bulkhead = Bulkhead(in_flight=IN_FLIGHT, waiting=waiting)
        self._line: MessageLine | None = None
        self._opening: asyncio.Task[MessageLine] | None = None
        self._is_closed = False
        self.on_end: Callable[[Call, Outcome | Accepted], None] = lambda _call, _outcome: None
        """Called with the outcome of every call, before `run` returns it."""
        self.hold_back: Callable[[Call], timedelta | None] = lambda _: None
        """Returns how long a call has to wait that got its place after its broker was shut; None if it may be sent."""
        self.on_full: Callable[[Call, BusyTime], None] = lambda _call, _busy: None
        """Called when a call is turned away from its broker, with how long that broker needs no further call."""

    def busy(self, host: str) -> BusyTime:
        """Return how long the calls in line keep the broker busy."""
        return self._bulkhead.busy(host)

    async def close(self) -> None:
        """Turn away waiting calls and close the connection: messages without an answer fail as retryable. Drain first."""
        self._is_closed = True
        self._bulkhead.close()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._line is not None:
            await self._line.close()

    async def run(self, call: Call) -> Outcome | Accepted:
        """Make one attempt. Raises only CancelledError."""
        try:
            outcome = await self._run(call)
        except Exception as error:
            # Log neither the error's text nor the variables of its frames: either could hold the payload or a secret.
            where = "".join(traceback.format_tb(error.__traceback__))
            name = type(error).__name__
            _log.error("a message failed unexpectedly", instance=call.instance_id, error=name, traceback=where)
            outcome = FailedRetryable(
                "EXECUTOR_ERROR", f"Horai failed to send the message ({name}); its log says where"
            )
        self.on_end(call, outcome)
        return outcome

    async def _run(self, call: Call) -> Outcome | Accepted:
        target = call.target
        if not isinstance(target, NatsTarget) or target.broker != self._broker:
            return FailedUnrecoverable(
                "INVALID_TARGET", f"the job is not handed over to the NATS broker {self._broker}"
            )
        if not call.secrets:
            _log.warning("a message was not sent: its tenant has no signing secret", instance=call.instance_id)
            return NotSent(UNSIGNED_PAUSE)
        delay = await self._bulkhead.enter(self.host)
        if delay is not None:
            self.on_full(call, self.busy(self.host))
            return NotSent(delay)
        try:
            if (delay := self.hold_back(call)) is not None:
                return NotSent(delay)
            return await self._send(call, target)
        finally:
            self._bulkhead.leave(self.host)

    async def _send(self, call: Call, target: NatsTarget) -> Outcome | Accepted:
        timeout = call.timeout or HTTP_TIMEOUT
        body = body_of(call)
        headers = message_headers(call, target, body, wall_clock())
        try:
            async with asyncio.timeout(timeout.total_seconds()) as deadline:
                line = await self._open_line()
                if not self._is_held(call):
                    return NotSent()
                if (size := message_size(headers, body)) > line.most_bytes:
                    return too_large(size, line.most_bytes)
                answer = await line.publish(target.subject, body, headers)
        except TimeoutError:
            within = f"{timeout.total_seconds():g} s"
            return FailedRetryable(TIMEOUT, f"the NATS broker {self._broker} did not acknowledge within {within}")
        except LineFault as fault:
            return fault.outcome
        outcome = outcome_of_answer(answer, call, target)
        if target.is_reported and isinstance(outcome, Succeeded):
            remaining = max((deadline.when() or 0.0) - asyncio.get_running_loop().time(), 0.0)
            return Accepted(timedelta(seconds=remaining))
        return outcome

    async def _open_line(self) -> MessageLine:
        """Return the connection. Calls that need a new one wait for the same; it is opened even if all of them give up."""
        if self._line is not None and self._line.is_open:
            return self._line
        if self._is_closed:
            raise LineFault(FailedRetryable("NODE_STOPPED", "the node is stopping"))
        if self._opening is None:
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    async def _open(self) -> MessageLine:
        """Connect to a server of the cluster: a given one, or one that an earlier server has announced."""
        lines = import_module("horai.engine.executors.nats_line")
        if self._line is not None:
            await self._line.close()
        line: MessageLine = await lines.open_line(self._broker, self._servers)
        self._line = line
        self._servers = lines.joined_servers(self._given, line.cluster)
        return line

    def _opened(self, opening: "asyncio.Task[MessageLine]") -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # read: all callers may have given up


def jetstream_executors(
    brokers: Mapping[str, str], waiting: int, is_held: Callable[[Call], bool]
) -> dict[str, JetStreamExecutor]:
    """Return an executor for each NATS broker, by handler; none without the package `nats`."""
    named = nats_brokers(brokers)
    if named and not has_nats():
        _log.warning("jobs are not handed over to NATS brokers: install horai[nats]", brokers=sorted(named))
        return {}
    return {
        NATS_HANDLER + name: JetStreamExecutor(name, url, waiting=waiting, is_held=is_held)
        for name, url in named.items()
    }

"""The HTTP executor: it sends one call, reads the answer, and returns the outcome of the attempt.

Every error is an outcome. The deadline is total: it covers name lookup, connection, sending, and the last byte of the
answer. Messages name the host and the problem, never a payload, a secret or a query.
"""

import asyncio
import errno
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import aiohttp
import structlog

from horai.core.addresses import AddressPolicy, why_refused
from horai.core.callbacks import Answer, body_of, headers_of, outcome_of
from horai.core.calls import HTTP_TIMEOUT, KEY_PAUSE, Call, HttpTarget
from horai.core.http_batches import batch_body, batch_headers, batch_outcomes
from horai.core.outcome import TIMEOUT, Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome
from horai.core.stored_text import clean_text
from horai.core.target_checks import check_target
from horai.engine.executors.bulkhead import Bulkhead, BusyTime, HostRoom
from horai.engine.executors.dial import (
    IDLE_CONNECTION_KEPT_FOR,
    AddressRefused,
    CallbackSessions,
    calling_tenant,
    is_http2,
)
from horai.engine.executors.http2_connection import Http2Connection
from horai.engine.executors.http_batches import HttpBatches
from horai.engine.executors.http_connection import CallRequest, Disconnected, HttpConnection, NotHttp, NotProcessed
from horai.engine.executors.idle_connections import Connection, IdleConnections, Place
from horai.engine.executors.origins import TargetAddress, address_of, origin_of
from horai.operations.traces import Traces

CONNECT_TIMEOUT = timedelta(seconds=5)

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of a node that lacks the resources to connect. The target did not cause them."""

_CONNECT_TIMEOUT = aiohttp.ClientTimeout(
    total=None,
    connect=CONNECT_TIMEOUT.total_seconds(),
    ceil_threshold=math.inf,  # aiohttp would round it up
)
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)
_answered: ContextVar[int | None] = ContextVar("answered", default=None)
"""The status of the answer to the call of this task, for its span."""
_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)
UNSIGNED_PAUSE = timedelta(seconds=1)
"""The pause of a call whose tenant has no signing secret yet."""


Request = tuple[Mapping[str, str], bytes]
"""The headers and the body of a request."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class HttpExecutor:
    """An executor that makes HTTP calls. Before `open` and after `close`, every call is `NotSent`.

    `is_held` returns whether the claim still belongs to this node. It is called when the connection is open: the call
    may have waited for its host, a name or a connection, and the node may have been frozen meanwhile.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        per_host: int = 64,
        waiting_per_host: int = 64,
        clock: Callable[[], datetime] = _utc_now,
        is_held: Callable[[Call], bool] = lambda _: True,
    ) -> None:
        self._policy = policy
        self._is_held = is_held
        self._bulkhead = Bulkhead(in_flight=per_host, waiting=waiting_per_host)
        self._clock = clock
        self.on_end: Callable[[Call, Outcome | Accepted], None] = lambda _call, _outcome: None
        """Called with the outcome of every call, before `run` returns it."""
        self.hold_back: Callable[[Call], timedelta | None] = lambda _: None
        """Returns how long a call has to wait that got its place after its host was shut; None if it may be sent."""
        self.on_full: Callable[[Call, BusyTime], None] = lambda _call, _busy: None
        """Called when a call is turned away from its host, with how long that host needs no further call."""
        self.traces: Traces | None = None
        self._sessions: CallbackSessions | None = None
        self._idle = IdleConnections(IDLE_CONNECTION_KEPT_FOR)
        self._batches = HttpBatches(self._call_all)

    @property
    def in_flight(self) -> int:
        """Return how many calls are being made now."""
        return self._bulkhead.in_flight

    @property
    def waiting(self) -> int:
        """Return how many calls wait for a place. Their deadlines have not begun."""
        return self._bulkhead.waiting

    def busy(self, host: str) -> BusyTime:
        """Return how long the calls in line keep a host busy."""
        return self._bulkhead.busy(host)

    def room(self, host: str) -> HostRoom:
        """Return how many calls a host accepts, and how many of them are under way and in line."""
        return self._batches.room(host, self._bulkhead.room(host))

    async def open(self) -> None:
        self._sessions = CallbackSessions(self._policy)

    async def close(self) -> None:
        """Turn away waiting calls and cut those in flight, which fail as retryable. Drain first."""
        self._bulkhead.close()
        self._idle.close()
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            await sessions.close()
        await self._batches.close()

    async def run(self, call: Call) -> Outcome | Accepted:
        """Make one attempt. Raises only CancelledError, which closes the connection."""
        try:
            outcome = await self._run(call)
        except Exception as error:
            # Log neither the error's text nor the variables of its frames: either could hold the payload or a secret.
            where = "".join(traceback.format_tb(error.__traceback__))
            name = type(error).__name__
            _log.error("an HTTP call failed unexpectedly", instance=call.instance_id, error=name, traceback=where)
            outcome = FailedRetryable("EXECUTOR_ERROR", f"Horai failed to make the call ({name}); its log says where")
        self.on_end(call, outcome)
        return outcome

    async def _run(self, call: Call) -> Outcome | Accepted:
        target = call.target
        if not isinstance(target, HttpTarget):
            return FailedUnrecoverable("INVALID_TARGET", "the job is run by workers, not over HTTP")
        if not target.is_complete:
            return _without_secrets(target)
        try:
            check_target(target)
        except ValueError as error:
            return FailedUnrecoverable("INVALID_TARGET", clean_text(str(error)))
        if not call.secrets:
            _log.warning("a call was not sent: its tenant has no signing secret", instance=call.instance_id)
            return NotSent(UNSIGNED_PAUSE)
        host = origin_of(target.url)
        if target.batch_size > 1:
            return await self._batches.run(call, target, host)
        delay = await self._enter(call, host)
        if delay is not None:
            return NotSent(delay)
        try:
            if (delay := self.hold_back(call)) is not None:
                return NotSent(delay)
            if self.traces is None:
                return await self._call(call, target)
            return await self._call_traced(self.traces, call, target)
        finally:
            self._bulkhead.leave(host)

    async def _enter(self, call: Call, host: str) -> timedelta | None:
        """Take a place at the host and return None, or return how long to keep away from it."""
        delay = await self._bulkhead.enter(host)
        if delay is not None:
            self.on_full(call, self._bulkhead.busy(host))
        return delay

    async def _call_traced(self, traces: Traces, call: Call, target: HttpTarget) -> Outcome | Accepted:
        """Make the call in a span. A call that is kept back has none: nothing was sent."""
        begun = traces.now()
        outcome: Outcome | Accepted = FailedRetryable("NODE_STOPPED", "")
        _answered.set(None)
        try:
            outcome = await self._call(call, target)
            return outcome
        finally:
            self._trace(traces, call, target, begun, outcome, _answered.get())

    def _trace(
        self,
        traces: Traces,
        call: Call,
        target: HttpTarget,
        begun: int,
        outcome: Outcome | Accepted,
        answered: int | None,
    ) -> None:
        if not isinstance(outcome, NotSent):
            is_failure = isinstance(outcome, FailedRetryable | FailedUnrecoverable)
            error = outcome.code if is_failure else None
            traces.called(call, target.method, address_of(target.url).url.host or "", begun, (answered, error))

    async def _call(self, call: Call, target: HttpTarget) -> Outcome | Accepted:
        def written() -> Request | None:
            if not self._is_held(call):
                return None
            content = body_of(call)
            return headers_of(call, content, self._clock()), content

        answer, remaining = await self._exchange(call, target, written)
        if not isinstance(answer, Answer):
            return answer
        if call.traceparent is not None:
            _answered.set(answer.status)
        return outcome_of(answer, self._clock(), remaining)

    async def _call_all(self, calls: Sequence[Call]) -> Sequence[Outcome | Accepted]:
        """Make attempts at several instances of one job in one request. Return their outcomes in the same order."""
        first, begun = calls[0], 0 if self.traces is None else self.traces.now()
        target = first.target
        assert isinstance(target, HttpTarget)  # noqa: S101 — `_run` checked it
        host = origin_of(target.url)
        delay = await self._enter(first, host)
        if delay is not None:
            return [NotSent(delay)] * len(calls)
        sent: list[Call] = []

        def written() -> Request | None:
            sent[:] = [call for call in calls if self._is_held(call)]
            if not sent:
                return None
            now = self._clock()
            content = batch_body(sent, now)
            return batch_headers(sent, content, now), content

        try:
            if any(delays := [self.hold_back(call) for call in calls]):
                return [NotSent(delay or timedelta(0)) for delay in delays]
            answer, remaining = await self._exchange(first, target, written)
        finally:
            self._bulkhead.leave(host)
        if isinstance(answer, Answer):
            said = batch_outcomes(sent, answer, self._clock(), remaining)
        else:
            said = {call.instance_id: answer for call in sent}
        outcomes = [said.get(call.instance_id, NotSent()) for call in calls]
        if self.traces is not None:
            for call, outcome in zip(calls, outcomes, strict=True):
                status = answer.status if isinstance(answer, Answer) else None
                self._trace(self.traces, call, target, begun, outcome, status)
        return outcomes

    async def _exchange(
        self, call: Call, target: HttpTarget, written: Callable[[], Request | None]
    ) -> tuple[Answer | Outcome, timedelta]:
        """Send the request that `written` returns, and return its answer, or the outcome without one.

        `written` is called when the connection is open. Nothing is sent before that, not even headers: this is the last
        moment to withhold attempts that no longer belong to this node. The time is what is left until the deadline.
        """
        address = address_of(target.url)
        timeout = call.timeout or HTTP_TIMEOUT
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout.total_seconds()
        try:
            try:
                answer = await self._answer_of(call, target, written, deadline)
            except NotProcessed:  # the target may have retired the connection: it gets the request once more
                answer = await self._answer_of(call, target, written, deadline)
            if answer is None:
                return NotSent(), timeout
        except aiohttp.ConnectionTimeoutError:
            message = f"no connection to {address.authority} within {_seconds(CONNECT_TIMEOUT)}"
            return FailedRetryable(TIMEOUT, message), timeout
        except TimeoutError:
            message = f"{address.authority} did not answer in full within {_seconds(timeout)}"
            return FailedRetryable(TIMEOUT, message), timeout
        except AddressRefused as refused:
            return _refused(address.authority, call, is_loopback=refused.is_loopback), timeout
        except (aiohttp.ClientError, Disconnected, NotHttp, NotProcessed, OSError) as error:
            return _failure(address.authority, error), timeout
        return answer, timedelta(seconds=max(deadline - loop.time(), 0.0))

    async def _answer_of(
        self, call: Call, target: HttpTarget, written: Callable[[], Request | None], deadline: float
    ) -> Answer | None:
        """Send the request that `written` returns on an open or a new connection. Return None if nothing was sent."""
        address = address_of(target.url)
        place = (call.reach, address.origin)
        connection = self._idle.take(place) or await self._dial(call, place, address, deadline)
        if connection is None:
            return None
        try:
            if (request := written()) is None:
                return None
            return await connection.exchange(CallRequest(target.method, address, *request), deadline)
        finally:
            self._idle.keep(place, connection)

    async def _dial(self, call: Call, place: Place, address: TargetAddress, deadline: float) -> Connection | None:
        """Open a connection, within the time that connections have and before the deadline of the call.

        It speaks HTTP/2 if the target offers it. Return None if the executor is not open.
        """
        if (sessions := self._sessions) is None:
            return None
        calling_tenant.set(call.tenant)
        is_long = (call.timeout or HTTP_TIMEOUT) > CONNECT_TIMEOUT
        async with asyncio.timeout_at(deadline):
            transport, close = await sessions.connect(
                call.reach, address.url, _CONNECT_TIMEOUT if is_long else _NO_TIMEOUT
            )
            if not is_http2(transport):
                return HttpConnection(transport, close)
            connection = Http2Connection(transport, close)
            try:
                await connection.settled()
            except BaseException:
                connection.abort()
                raise
        return self._idle.share(place, connection)


def _without_secrets(target: HttpTarget) -> Outcome:
    """Return the outcome of a call whose secrets could not be opened: it is never sent without them."""
    match target.fault:
        case "SECRET_MISSING":
            names = ", ".join(sorted(target.named.values()))
            message = f"a secret that its headers name does not exist ({names}); create it: PUT /api/v1/secrets/NAME"
            return FailedRetryable("SECRET_MISSING", message)
        case "SECRET_UNREADABLE":
            message = "the secrets of the target were changed or moved in the database; give the target again"
            return FailedRetryable("SECRET_UNREADABLE", message)
        case _:
            return NotSent(KEY_PAUSE)


def _refused(host: str, call: Call, *, is_loopback: bool) -> FailedUnrecoverable:
    return FailedUnrecoverable("ADDRESS_REFUSED", f"{host} {why_refused(call.tenant, call.reach, is_loopback)}")


def _failure(host: str, error: Exception) -> Outcome:
    """Return the outcome of a failed connection. Use only the kind of error: its own text may quote the URL."""
    match error:
        case aiohttp.ClientConnectorError() if error.errno in _SHORTAGES:
            return NotSent(timedelta(seconds=1))
        case aiohttp.ClientConnectorDNSError():
            reason = "its name could not be resolved"
        case aiohttp.ClientConnectorCertificateError():
            reason = "its certificate is not trusted"
        case aiohttp.ClientSSLError():
            reason = "TLS could not be agreed on"
        case aiohttp.ClientConnectorError():
            reason = error.os_error.strerror or "no connection could be made"
        case Disconnected():
            reason = "it closed the connection without an answer"
        case NotProcessed():
            reason = "it did not take the request"
        case NotHttp():
            reason = "its answer was not HTTP"
        case _:
            reason = type(error).__name__
    return FailedRetryable("CONNECTION", clean_text(f"{host}: {reason}"))


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"

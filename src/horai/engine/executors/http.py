"""The HTTP executor: it sends one call, reads the answer, and returns the outcome of the attempt.

Every error is an outcome. The deadline is total: it covers name lookup, connection, sending, and the last byte of the
answer. Messages name the host and the problem, never a payload, a secret or a query.
"""

import asyncio
import errno
import math
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import aiohttp
import structlog
from yarl import URL

from horai.core.addresses import AddressPolicy, why_refused
from horai.core.callbacks import body_of, check_target, clean_text, headers_of, outcome_of
from horai.core.calls import HTTP_TIMEOUT, KEY_PAUSE, Call, HttpTarget
from horai.core.outcome import TIMEOUT, Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome
from horai.engine.executors.bulkhead import Bulkhead, BusyTime, HostRoom
from horai.engine.executors.dial import IDLE_CONNECTION_KEPT_FOR, AddressRefused, CallbackSessions, calling_tenant
from horai.engine.executors.http_connection import Disconnected, HttpConnection, IdleConnections, NotHttp, request_of
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
        return self._bulkhead.room(host)

    async def open(self) -> None:
        self._sessions = CallbackSessions(self._policy)

    async def close(self) -> None:
        """Turn away waiting calls and cut those in flight, which fail as retryable. Drain first."""
        self._bulkhead.close()
        self._idle.close()
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            await sessions.close()

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
        delay = await self._bulkhead.enter(host)
        if delay is not None:
            self.on_full(call, self._bulkhead.busy(host))
            return NotSent(delay)
        try:
            if (delay := self.hold_back(call)) is not None:
                return NotSent(delay)
            if (sessions := self._sessions) is None:
                return NotSent()
            if self.traces is None:
                return await self._call(sessions, call, target)
            return await self._call_traced(self.traces, sessions, call, target)
        finally:
            self._bulkhead.leave(host)

    async def _call_traced(
        self, traces: Traces, sessions: CallbackSessions, call: Call, target: HttpTarget
    ) -> Outcome | Accepted:
        """Make the call in a span. A call that is kept back has none: nothing was sent."""
        begun, host = traces.now(), URL(target.url, encoded=True).host or ""
        outcome: Outcome | Accepted = FailedRetryable("NODE_STOPPED", "")
        _answered.set(None)
        try:
            outcome = await self._call(sessions, call, target)
            return outcome
        finally:
            if not isinstance(outcome, NotSent):
                is_failure = isinstance(outcome, FailedRetryable | FailedUnrecoverable)
                error = outcome.code if is_failure else None
                traces.called(call, target.method, host, begun, (_answered.get(), error))

    async def _call(self, sessions: CallbackSessions, call: Call, target: HttpTarget) -> Outcome | Accepted:
        address = address_of(target.url)
        timeout = call.timeout or HTTP_TIMEOUT
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout.total_seconds()
        try:
            connection = self._idle.take((call.reach, address.origin))
            if connection is None:
                connection = await self._dial(sessions, call, address, deadline)
            try:
                # Nothing is sent before this, not even headers: the last moment to withhold a call of another node.
                if not self._is_held(call):
                    return NotSent()
                content = body_of(call)
                headers = headers_of(call, content, self._clock())
                answer = await connection.exchange(request_of(target.method, address, headers, content), deadline)
            finally:
                self._idle.keep((call.reach, address.origin), connection)
        except aiohttp.ConnectionTimeoutError:
            return FailedRetryable(TIMEOUT, f"no connection to {address.authority} within {_seconds(CONNECT_TIMEOUT)}")
        except TimeoutError:
            return FailedRetryable(TIMEOUT, f"{address.authority} did not answer in full within {_seconds(timeout)}")
        except AddressRefused as refused:
            return _refused(address.authority, call, is_loopback=refused.is_loopback)
        except (aiohttp.ClientError, Disconnected, NotHttp, OSError) as error:
            return _failure(address.authority, error)
        if call.traceparent is not None:
            _answered.set(answer.status)
        return outcome_of(answer, self._clock(), timedelta(seconds=max(deadline - loop.time(), 0.0)))

    async def _dial(
        self, sessions: CallbackSessions, call: Call, address: TargetAddress, deadline: float
    ) -> HttpConnection:
        """Open a connection, within the time that connections have and before the deadline of the call."""
        calling_tenant.set(call.tenant)
        is_long = (call.timeout or HTTP_TIMEOUT) > CONNECT_TIMEOUT
        async with asyncio.timeout_at(deadline):
            transport, close = await sessions.connect(
                call.reach, address.url, _CONNECT_TIMEOUT if is_long else _NO_TIMEOUT
            )
            return HttpConnection(transport, close)


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
        case NotHttp():
            reason = "its answer was not HTTP"
        case _:
            reason = type(error).__name__
    return FailedRetryable("CONNECTION", clean_text(f"{host}: {reason}"))


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"

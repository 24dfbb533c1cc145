"""The HTTP executor: it sends one call, reads the answer, and returns the outcome of the attempt.

Every error is an outcome. The deadline is total: it covers name lookup, connection, sending, and the last byte of the
answer. Messages name the host and the problem, never a payload, a secret or a query.
"""

import asyncio
import errno
import io
import math
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

import aiohttp
import structlog
from yarl import URL

from horai.core.addresses import AddressPolicy, why_refused
from horai.core.callbacks import ANSWER_LIMIT, Answer, body_of, check_target, clean_text, headers_of, outcome_of
from horai.core.calls import HTTP_TIMEOUT, KEY_PAUSE, Call, HttpTarget
from horai.core.outcome import TIMEOUT, Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome
from horai.engine.executors.bulkhead import Bulkhead, BusyTime
from horai.engine.executors.dial import AddressRefused, CallbackSessions, calling_tenant
from horai.engine.executors.origins import origin_of
from horai.operations.traces import Traces

CONNECT_TIMEOUT = timedelta(seconds=5)

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""Errors of a node that lacks the resources to connect. The target did not cause them."""

_answered: ContextVar[int | None] = ContextVar("answered", default=None)
"""The status of the answer to the call of this task, for its span."""
_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)
UNSIGNED_PAUSE = timedelta(seconds=1)
"""The pause of a call whose tenant has no signing secret yet."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class _Body(io.BytesIO):
    """The body of a call, sent in chunks, so that a large one does not block the loop.

    aiohttp reads it when the connection is open. Nothing is sent before that, not even headers: this is the last moment
    to withhold a call that no longer belongs to this node.
    """

    def __init__(self, content: bytes, is_held: Callable[[], bool]) -> None:
        super().__init__(content)
        self._is_held = is_held
        self.is_kept_back = False

    def read(self, size: int | None = -1, /) -> bytes:
        if not self.tell() and not self._is_held():
            self.is_kept_back = True
            raise ConnectionAbortedError
        return super().read(size)


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
        self.per_host_at_most = per_host + waiting_per_host
        """How many calls a host accepts: those under way and those in line."""
        self._clock = clock
        self.on_end: Callable[[Call, Outcome | Accepted], None] = lambda _call, _outcome: None
        """Called with the outcome of every call, before `run` returns it."""
        self.hold_back: Callable[[Call], timedelta | None] = lambda _: None
        """Returns how long a call has to wait that got its place after its host was shut; None if it may be sent."""
        self.on_full: Callable[[Call, BusyTime], None] = lambda _call, _busy: None
        """Called when a call is turned away from its host, with how long that host needs no further call."""
        self.traces: Traces | None = None
        self._sessions: CallbackSessions | None = None

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

    def load(self, host: str) -> int:
        """Return how many calls to a host are under way and in line."""
        return self._bulkhead.load(host)

    async def open(self) -> None:
        self._sessions = CallbackSessions(self._policy)

    async def close(self) -> None:
        """Turn away waiting calls and cut those in flight, which fail as retryable. Drain first."""
        self._bulkhead.close()
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
            if self._sessions is None:
                return NotSent()
            async with self._sessions.session(call.reach) as session:
                if self.traces is None:
                    return await self._call(session, call, target)
                return await self._call_traced(self.traces, session, call, target)
        finally:
            self._bulkhead.leave(host)

    async def _call_traced(
        self, traces: Traces, session: aiohttp.ClientSession, call: Call, target: HttpTarget
    ) -> Outcome | Accepted:
        """Make the call in a span. A call that is kept back has none: nothing was sent."""
        begun, host = traces.now(), URL(target.url, encoded=True).host or ""
        outcome: Outcome | Accepted = FailedRetryable("NODE_STOPPED", "")
        _answered.set(None)
        try:
            outcome = await self._call(session, call, target)
            return outcome
        finally:
            if not isinstance(outcome, NotSent):
                is_failure = isinstance(outcome, FailedRetryable | FailedUnrecoverable)
                error = outcome.code if is_failure else None
                traces.called(call, target.method, host, begun, (_answered.get(), error))

    async def _call(self, session: aiohttp.ClientSession, call: Call, target: HttpTarget) -> Outcome | Accepted:
        url = URL(target.url, encoded=True)  # sent as written: a signed query must not be requoted
        timeout = call.timeout or HTTP_TIMEOUT
        calling_tenant.set(call.tenant)
        content = body_of(call)
        body = _Body(content, lambda: self._is_held(call))
        try:
            async with asyncio.timeout(timeout.total_seconds()) as deadline:
                response = await session.request(
                    target.method,
                    url,
                    data=body,
                    headers=headers_of(call, content, self._clock()),
                    allow_redirects=False,
                    timeout=_connect_timeout(timeout),
                )
                try:
                    answer = await _read(response)
                    if call.traceparent is not None:
                        _answered.set(answer.status)
                finally:
                    response.close()  # no effect if read to its end: the connection is already back in the pool
        except aiohttp.ConnectionTimeoutError:
            return FailedRetryable(TIMEOUT, f"no connection to {url.raw_authority} within {_seconds(CONNECT_TIMEOUT)}")
        except TimeoutError:
            return FailedRetryable(TIMEOUT, f"{url.raw_authority} did not answer in full within {_seconds(timeout)}")
        except AddressRefused as refused:
            return _refused(url.raw_authority, call, is_loopback=refused.is_loopback)
        except (aiohttp.ClientError, OSError) as error:
            return NotSent() if body.is_kept_back else _failure(url.raw_authority, error)
        remaining = max((deadline.when() or 0.0) - asyncio.get_running_loop().time(), 0.0)
        return outcome_of(answer, self._clock(), timedelta(seconds=remaining))


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


async def _read(response: aiohttp.ClientResponse) -> Answer:
    """Read at most `ANSWER_LIMIT` bytes of the body. Mark a longer body, and one that breaks off."""
    body = bytearray()
    fault = None
    try:
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > ANSWER_LIMIT:
                fault = f"is longer than {ANSWER_LIMIT // 1024} kB"
                break
    except aiohttp.ClientError:
        fault = "broke off"
    return Answer(response.status, response.headers, bytes(body), fault)


def _connect_timeout(total: timedelta) -> aiohttp.ClientTimeout:
    """Return the timeout of the connection if it is shorter than `total`.

    The total is not left to aiohttp, which rounds it up.
    """
    connect = CONNECT_TIMEOUT.total_seconds() if total > CONNECT_TIMEOUT else None
    return aiohttp.ClientTimeout(total=None, connect=connect, ceil_threshold=math.inf)


def _refused(host: str, call: Call, *, is_loopback: bool) -> FailedUnrecoverable:
    return FailedUnrecoverable("ADDRESS_REFUSED", f"{host} {why_refused(call.tenant, call.reach, is_loopback)}")


def _failure(host: str, error: aiohttp.ClientError | OSError) -> Outcome:
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
        case aiohttp.ServerDisconnectedError():
            reason = "it closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            reason = "its answer broke off"
        case aiohttp.ClientResponseError():
            reason = "its answer was not HTTP"
        case _:
            reason = type(error).__name__
    return FailedRetryable("CONNECTION", clean_text(f"{host}: {reason}"))


def _seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"

"""One connection of a remote worker: it reads its messages, and sends those of the session in batches."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import asyncpg
import msgspec
import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect

from horai.core.errors import HoraiError
from horai.core.outcome import Outcome
from horai.core.settings import ServerLimits
from horai.db.pool import GONE as NO_DATABASE
from horai.features.remote_workers import service
from horai.features.remote_workers.hub import RESTART, WorkerHub
from horai.features.remote_workers.offers import is_instance, name_of, offer_of, refs_of
from horai.features.remote_workers.phrases import WorkerWords
from horai.features.remote_workers.reports import outcome_of_report
from horai.features.remote_workers.session import Ref, SessionOwner, WorkerSession
from horai.features.remote_workers.session_limits import SessionLimits
from horai.operations.scope import Scope
from horai.text.phrase import Phrase
from horai.wire.worker_messages import (
    PROTOCOL,
    Answer,
    Bye,
    Credits,
    Heartbeat,
    Hello,
    Progress,
    ProtocolLimits,
    Report,
    Reports,
    ServerMessage,
    Welcome,
    WorkerError,
    WorkerMessage,
    decode_worker,
    encode,
)

log = structlog.get_logger(__name__)

HELLO_WITHIN = 10.0
HEARTBEATS = 3
"""Heartbeats in the time of a lease."""
REPORTS_AT_ONCE = 1_000
SETTLED_AT_ONCE = 8
"""Reports of attempts that the session does not hold which are settled at the same time."""
MOST_UNSENT = 10_000
"""Answers that may wait to be sent. The server reads nothing more of a worker that does not read its answers."""
BAD_MESSAGE, NO_KEY, HELLO_LATE, REFUSED = 4400, 4401, 4408, 4429
GOING_AWAY = 1001
GONE = (RuntimeError, OSError, WebSocketDisconnect)
"""The errors of a connection that the worker has closed."""


class _Closed(Exception):
    """The connection is closed."""


class _Fault(Exception):
    """The worker has sent a message that ends the connection with this code."""

    def __init__(self, code: int, error: Phrase | str, hint: str | None = None) -> None:
        super().__init__(error)
        self.code = code
        self.hint = hint

    @property
    def message(self) -> WorkerError:
        """Return the fault as the worker is told."""
        said = self.args[0]
        code = said.code if isinstance(said, Phrase) else "REFUSED"
        return WorkerError(code, str(said), str(self.hint or ""), is_fatal=not isinstance(self, _UnknownMessage))


class _UnknownMessage(_Fault):
    """The worker has sent JSON that is no message of this version. The connection goes on."""


@dataclass(frozen=True, slots=True)
class ConnectionParts:
    """The dependencies of a connection."""

    hub: WorkerHub
    scope: Scope
    owner: SessionOwner
    limits: ServerLimits
    session_limits: SessionLimits
    is_allowed: Callable[[], Awaitable[bool]]
    server: str
    may_declare: bool
    """True if the key may define jobs."""


class WorkerConnection:
    """A WebSocket with a worker at its other end."""

    def __init__(self, socket: WebSocket, parts: ConnectionParts) -> None:
        self._socket = socket
        self._parts = parts
        self._wake = asyncio.Event()
        self._has_sent = asyncio.Event()
        self._closing: tuple[int, str] | None = None
        self._settling: deque[asyncio.Task[None]] = deque()
        self._rouse: Callable[[], None] = self._wake.set

    async def serve(self) -> None:
        """Serve the worker until either side closes the connection."""
        await self._socket.accept()
        try:
            async with asyncio.timeout(HELLO_WITHIN):
                hello = await self._receive()
        except TimeoutError:
            return await self._end(_Fault(HELLO_LATE, WorkerWords.HELLO_FIRST(seconds=f"{HELLO_WITHIN:g}")))
        except _Fault as fault:
            return await self._end(fault)
        except _Closed:
            return None
        if not isinstance(hello, Hello):
            return await self._end(_Fault(BAD_MESSAGE, WorkerWords.HELLO_FIRST(seconds=f"{HELLO_WITHIN:g}")))
        try:
            session, welcome = await self._enter(hello)
            await self._send(welcome)
        except HoraiError as error:
            return await self._end(_Fault(REFUSED, error.detail, error.hint))
        except (asyncpg.PostgresError, *NO_DATABASE) as error:
            log.warning("a remote worker cannot connect now", error=repr(error))
            return await self._shut(RESTART, "the database is not available")
        except _Closed:
            return None
        self._parts.hub.connect(session, refs_of(hello.holding), self._rouse, self._close)
        await self._follow(session)
        return None

    async def _enter(self, hello: Hello) -> tuple[WorkerSession, Welcome]:
        """Find the session to go on with, or begin one."""
        hub, scope = self._parts.hub, self._parts.scope
        offer = offer_of(scope.tenant_id, hello, self._parts.limits.worker_credits)
        session, unknown = None, list[str]()
        if hello.resume is not None:
            session = hub.find(self._parts.owner, hello.resume.session, hello.resume.token)
        is_resumed = session is not None
        if session is not None:
            hub.set_total(session, hello.credits)
        else:
            await self._parts.session_limits.ensure_engine()
            self._parts.session_limits.admit(self._parts.owner)
            if hello.declare is not None and self._parts.may_declare:
                await service.declare_jobs(scope, hello.declare)
            session = hub.open(self._parts.owner, name_of(hello), offer, hello.credits)
            try:
                unknown = await service.record_start(scope, session, hello)
            except BaseException:
                hub.leave(session, "")
                raise
        limits = ProtocolLimits(self._parts.limits.worker_message, REPORTS_AT_ONCE, self._parts.limits.worker_credits)
        welcome = Welcome(
            PROTOCOL,
            session.id,
            session.token,
            self._parts.server,
            scope.tenant,
            hub.lease,
            hub.lease / HEARTBEATS,
            limits,
            is_resumed,
            hello.declare is not None and self._parts.may_declare and not is_resumed,
            unknown,
        )
        return session, welcome

    async def _follow(self, session: WorkerSession) -> None:
        """Read and send side by side until the connection ends."""
        hub = self._parts.hub
        sending = asyncio.create_task(self._send_all(session))
        reading = asyncio.create_task(self._read_all(session))
        try:
            await asyncio.wait({sending, reading}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, reading):
                task.cancel()
            results = await asyncio.gather(sending, reading, return_exceptions=True)
            await asyncio.gather(*self._settling, return_exceptions=True)
            hub.disconnect(session, self._rouse)
        fault = next((result for result in results if isinstance(result, _Fault)), None)
        if fault is not None:
            if fault.code == NO_KEY:
                hub.leave(session, f"The key of the remote worker {session.name} was revoked.")
            await self._end(fault)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, _Closed | _Fault):
                log.error("the connection of a remote worker failed", worker=session.name, error=repr(result))
                await self._shut(GOING_AWAY, "")

    async def _send_all(self, session: WorkerSession) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if session.wake in {self._rouse, None}:  # otherwise another connection sends them
                for message in session.take_messages():
                    await self._send(message)
                self._has_sent.set()
            if self._closing is not None:
                await self._shut(*self._closing)
                raise _Closed

    async def _read_all(self, session: WorkerSession) -> None:
        hub = self._parts.hub
        while True:
            await self._until_sent(session)
            try:
                message = await self._receive()
            except _UnknownMessage as fault:
                session.send(fault.message)
                continue
            hub.hear(session)
            match message:
                case Heartbeat():
                    if not await self._parts.is_allowed():
                        raise _Fault(NO_KEY, WorkerWords.KEY_GONE())
                    session.send(Heartbeat())
                case Reports(reports):
                    for report in reports[:REPORTS_AT_ONCE]:
                        await self._take(session, report)
                case Progress(notes):
                    for note in notes:
                        if is_instance(note.instance) and (note.progress is None or _is_share(note.progress)):
                            hub.note(session, note)
                case Credits(total):
                    session.is_draining = not total
                    hub.set_total(session, min(max(total, 0), self._parts.limits.worker_credits))
                case Bye():
                    hub.leave(session, f"The remote worker {session.name} left without a report.")
                    await self._shut(1000, "")
                    raise _Closed
                case Hello():
                    raise _Fault(BAD_MESSAGE, WorkerWords.HELLO_FIRST(seconds=f"{HELLO_WITHIN:g}"))

    async def _until_sent(self, session: WorkerSession) -> None:
        """Wait while too many answers are unsent."""
        while session.unsent > MOST_UNSENT:
            self._has_sent.clear()
            await self._has_sent.wait()

    async def _take(self, session: WorkerSession, report: Report) -> None:
        """Take a report. One that the session does not wait for is settled by its tenant and its fence."""
        hub = self._parts.hub
        if not is_instance(report.instance):
            detail = WorkerWords.NOT_AN_INSTANCE(instance=report.instance[:40])
            session.send_answer(Answer(report.instance, report.fence, "refused", str(detail)))
            return
        ref, outcome = (int(report.instance), report.fence), outcome_of_report(report)
        if hub.report(session, ref, outcome):
            return
        if hub.is_held_elsewhere(session, ref):
            session.send_answer(Answer(report.instance, report.fence, "refused", str(WorkerWords.HELD_BY_OTHER())))
            return
        self._settling.append(asyncio.create_task(self._settle(session, ref, outcome)))
        if len(self._settling) >= SETTLED_AT_ONCE:
            await self._settling.popleft()

    async def _settle(self, session: WorkerSession, ref: Ref, outcome: Outcome) -> None:
        """Settle a report by itself: the worker's heartbeats are read meanwhile. After an error the worker sends it again."""
        try:
            answer = await service.settle_report(self._parts.scope, ref, outcome)
        except (HoraiError, asyncpg.PostgresError, *NO_DATABASE) as error:
            log.warning("a report could not be settled now", instance=ref[0], error=repr(error))
            self._close(RESTART, "the database is not available")
            return
        self._parts.hub.forget(session, ref)
        session.answer(answer)

    async def _receive(self) -> WorkerMessage:
        got: dict[str, Any] = dict(await self._socket.receive())
        if got["type"] == "websocket.disconnect":
            raise _Closed
        text = got.get("text")
        if text is None:
            raise _Fault(BAD_MESSAGE, WorkerWords.NOT_A_MESSAGE(error="it is not a text"))
        try:
            return decode_worker(text)
        except msgspec.ValidationError as error:
            raise _UnknownMessage(BAD_MESSAGE, WorkerWords.NOT_A_MESSAGE(error=str(error)[:200])) from error
        except (msgspec.DecodeError, UnicodeError) as error:
            raise _Fault(BAD_MESSAGE, WorkerWords.NOT_A_MESSAGE(error=str(error)[:200])) from error

    async def _send(self, message: ServerMessage) -> None:
        text = encode(message).decode()
        try:
            await self._socket.send_text(text)
        except GONE as error:
            raise _Closed from error

    async def _end(self, fault: _Fault) -> None:
        """Tell the worker about the fault, and close the connection."""
        try:
            await self._send(fault.message)
        except _Closed:
            return
        await self._shut(fault.code, str(fault))

    async def _shut(self, code: int, reason: str) -> None:
        with suppress(*GONE):  # the worker has closed it already
            await self._socket.close(code, reason.encode()[:120].decode(errors="ignore"))

    def _close(self, code: int, reason: str) -> None:
        """Close the connection once the waiting messages are sent."""
        self._closing = (code, reason)
        self._wake.set()


def _is_share(progress: float) -> bool:
    return math.isfinite(progress) and 0 <= progress <= 1

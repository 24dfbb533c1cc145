"""A session of a remote worker: the attempts that it holds, and the messages that wait to be sent."""

import asyncio
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec import UNSET, Raw

from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import Lost, Outcome
from horai.features.remote_workers.rules import SessionSlots, WorkPool
from horai.wire.worker_messages import Answer, Answers, AttemptRef, Cancel, LeasedAttempt, Leases, ServerMessage

Ref = tuple[int, int]
"""An attempt: the id of its instance, and its fence."""
ANSWERS_KEPT = 4_000
LEASES_AT_ONCE = 500
BYTES_AT_ONCE = 1024 * 1024
"""Bytes of payloads after which a message with leases is full."""


@dataclass(slots=True, eq=False)
class HeldAttempt:
    """An attempt that waits for a session, or that a session holds."""

    call: Call
    pool: WorkPool
    ended: "asyncio.Future[Outcome | Lost]"
    waits_since: float
    is_alone: bool = False
    session: "WorkerSession | None" = None
    timer: asyncio.TimerHandle | None = None

    @property
    def ref(self) -> Ref:
        """Return the instance and the fence."""
        return self.call.instance_id, self.call.fence

    def end(self, outcome: Outcome | Lost) -> None:
        """Give the engine the end of the attempt, unless it has one."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.ended.done():
            self.ended.set_result(outcome)


@dataclass(frozen=True, slots=True)
class SessionOwner:
    """The tenant and the key that opened a session. Only they may go on with it."""

    tenant_id: int
    tenant: str
    key_id: str


@dataclass(slots=True, eq=False)
class WorkerSession:
    """A worker as one server knows it, over any number of connections one after another."""

    owner: SessionOwner
    name: str
    slots: SessionSlots
    heard_at: float
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    held: dict[Ref, HeldAttempt | None] = field(default_factory=dict[Ref, HeldAttempt | None])
    """The attempts that take a slot; None for those of an earlier session."""
    answers: OrderedDict[Ref, Answer] = field(default_factory=OrderedDict[Ref, Answer])
    wake: Callable[[], None] | None = None
    """Wakes the sender of the present connection; None while there is no connection."""
    close: Callable[[int, str], None] = lambda _code, _reason: None
    is_draining: bool = False
    _leases: list[HeldAttempt] = field(default_factory=list[HeldAttempt])
    _answers: list[Answer] = field(default_factory=list[Answer])
    _cancels: list[Ref] = field(default_factory=list[Ref])
    _others: list[ServerMessage] = field(default_factory=list[ServerMessage])

    def may_resume(self, owner: SessionOwner, token: str) -> bool:
        """Return whether a connection of `owner` with this token may go on with the session."""
        return self.owner == owner and hmac.compare_digest(self.token.encode(), token.encode())

    def lease(self, attempt: HeldAttempt) -> None:
        """Send an attempt to the worker."""
        self._leases.append(attempt)
        self._rouse()

    def answer(self, answer: Answer) -> None:
        """Answer a report, and keep the answer for repeats of the report."""
        ref = (int(answer.instance), answer.fence)
        self.answers[ref] = answer
        if len(self.answers) > ANSWERS_KEPT:
            self.answers.popitem(last=False)
        self.send_answer(answer)

    def send_answer(self, answer: Answer) -> None:
        """Send an answer without keeping it."""
        self._answers.append(answer)
        self._rouse()

    def cancel(self, ref: Ref) -> None:
        """Tell the worker that the outcome of an attempt no longer counts."""
        self._cancels.append(ref)
        self._rouse()

    def send(self, message: ServerMessage) -> None:
        """Send another message."""
        self._others.append(message)
        self._rouse()

    def forget_unsent(self) -> None:
        """Drop the messages of a lost connection. Leases are sent again when the session resumes."""
        self._leases.clear()
        self._answers.clear()
        self._cancels.clear()
        self._others.clear()

    @property
    def unsent(self) -> int:
        """Return how many answers to messages of the worker wait to be sent."""
        return len(self._answers) + len(self._others)

    def _rouse(self) -> None:
        if self.wake is not None:
            self.wake()

    def take_messages(self) -> Iterator[ServerMessage]:
        """Return the messages that wait, and forget them. Several leases or answers are one message."""
        others, self._others = self._others, []
        yield from others
        leases, self._leases = self._leases, []
        yield from _lease_messages(leases)
        answers, self._answers = self._answers, []
        if answers:
            yield Answers(answers)
        cancels, self._cancels = self._cancels, []
        if cancels:
            yield Cancel([AttemptRef(str(instance), fence) for instance, fence in cancels])


def _lease_messages(attempts: list[HeldAttempt]) -> Iterator[Leases]:
    batch, size = list[LeasedAttempt](), 0
    for attempt in attempts:
        batch.append(leased(attempt))
        size += len(attempt.call.payload or "")
        if len(batch) >= LEASES_AT_ONCE or size >= BYTES_AT_ONCE:
            yield Leases(batch)
            batch, size = [], 0
    if batch:
        yield Leases(batch)


def leased(attempt: HeldAttempt) -> LeasedAttempt:
    """Return an attempt as the worker gets it."""
    call = attempt.call
    return LeasedAttempt(
        str(call.instance_id),
        call.fence,
        call.attempt,
        call.target.handler if isinstance(call.target, WorkerTarget) else "",
        call.job,
        call.job_id,
        attempt.pool.queue,
        call.fire_time,
        call.execute_time,
        call.born_for,
        call.slot,
        call.idempotency_key,
        call.unit,
        call.key,
        UNSET if call.payload is None else Raw(call.payload.encode()),
        None if call.timeout is None else call.timeout.total_seconds(),
        call.retry_count,
        call.is_encrypted,
        call.traceparent,
        attempt.is_alone,
        call.interval_start,
    )

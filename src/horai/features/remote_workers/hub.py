"""The hub of remote workers: it gives claimed attempts to sessions, and passes their reports to the engine.

One engine claims for all sessions of the process, as much as they have credits for. A claim is settled by the engine's
settler, guarded by state, attempt, fence and incarnation like that of any worker. The hub adds no second truth: after the
loss of a session, its attempts are settled as lost, and a report that arrives later meets the guard.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from horai.core.calls import Call
from horai.core.outcome import TIMEOUT, FailedRetryable, Lost, NotSent, Outcome
from horai.db.claim_lanes import Lane
from horai.db.claims import Claim
from horai.engine.dispatch.attempts import Executor
from horai.engine.dispatch.in_flight import SlotOwner
from horai.features.remote_workers.rules import ANY, CreditBook, SessionSlots, WorkOffer, WorkPool
from horai.features.remote_workers.session import HeldAttempt, Ref, SessionOwner, WorkerSession
from horai.wire.worker_messages import Answer, AttemptRef, Drain, ProgressPart

PATIENCE = 2.0
"""Seconds for which a claimed attempt waits for a slot. Then another process may claim its instance."""
SILENT_SHARE = 0.6
"""Share of the lease after which a silent worker gets no more work, until it is heard again."""
LEASE = 8.0
EXPIRED = 4408
REPLACED = 4409
RESTART = 1012


class EngineLink(Protocol):
    """The engine that claims for remote workers."""

    def owner_of(self, instance_id: int, fence: int) -> SlotOwner | None:
        """Return the owner of the slot of a claim, or None if it is not in flight."""
        ...

    def make_room(self) -> None:
        """Claim again if there was no room."""
        ...

    def relearn(self) -> None:
        """Read the lanes again: sessions serve other handlers."""
        ...

    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        """Add a note to an attempt."""
        ...


class RemoteExecutors(Mapping[str, Executor]):
    """One executor for every handler. It iterates over the handlers that sessions have offered since the start."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.seen: set[str] = set()

    def __getitem__(self, handler: str) -> Executor:
        return self._executor

    def __contains__(self, handler: object) -> bool:
        return bool(handler)

    def __iter__(self) -> Iterator[str]:
        return iter(self.seen)

    def __len__(self) -> int:
        return len(self.seen)


class LoneExecutor:
    """Makes attempts at instances that were lost with their workers before."""

    def __init__(self, hub: "WorkerHub") -> None:
        self._hub = hub

    async def run(self, call: Call) -> Outcome | Lost:
        """Give an attempt to a session that runs it in a process of its own, if it can."""
        return await self._hub.run(call, is_alone=True)


class WorkerHub:
    """The sessions of one server process, and the attempts that they hold."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.lease = LEASE
        """Seconds for which a silent worker keeps its attempts."""
        self._clock = clock
        self.book = CreditBook()
        self.executors = RemoteExecutors(self)
        self.alone = RemoteExecutors(LoneExecutor(self))
        self.sessions: dict[str, WorkerSession] = {}
        self.of_owner: Counter[SessionOwner] = Counter()
        """The number of sessions of each key."""
        self._session_of: dict[SessionSlots, WorkerSession] = {}
        self.link: EngineLink | None = None
        """The engine; None while it does not run."""
        self.is_draining = False
        self._attempts: dict[Ref, HeldAttempt] = {}
        """The attempts whose outcomes the engine waits for."""
        self._waiting: dict[str, deque[HeldAttempt]] = {}
        self._reported: dict[Ref, list[WorkerSession]] = {}
        """The sessions that wait for the settlement of a report."""

    # The engine's side: the lanes to claim from, the executor, and the settlements.

    def covers(self, lane: Lane) -> bool:
        """Return whether a session takes work of this lane."""
        return self.book.covers(WorkPool(lane.tenant_id, lane.queue, lane.handler))

    def owner_of(self, lane: Lane) -> SlotOwner:
        """Return the pool of a lane, as the owner of its slots."""
        return SlotOwner(self.book.see(WorkPool(lane.tenant_id, lane.queue, lane.handler)), lane.tenant_id)

    async def run(self, call: Call, *, is_alone: bool = False) -> Outcome | Lost:
        """Give an attempt to a session and wait for its report. Raises only if cancelled."""
        owner = None if self.link is None else self.link.owner_of(call.instance_id, call.fence)
        if owner is None:
            return NotSent()
        pool = self.book.pool_named(owner.handler)
        attempt = HeldAttempt(call, pool, asyncio.get_running_loop().create_future(), self._clock(), is_alone)
        self._attempts[attempt.ref] = attempt
        if not self._place(attempt):
            self._waiting.setdefault(pool.name, deque()).append(attempt)
        try:
            return await attempt.ended
        except asyncio.CancelledError:
            self._end_early(attempt)
            raise
        finally:
            del self._attempts[attempt.ref]

    def settled(self, claims: Sequence[Claim], took_effect: bool) -> None:
        """Answer the reports of claims that the settler has written."""
        if not self._reported:
            return
        for claim in claims:
            for session in self._reported.pop((claim.id, claim.fence), ()):
                result = "settled" if took_effect else "stale"
                session.answer(Answer(str(claim.id), claim.fence, result))

    def claim_over(self, instance_id: int, fence: int) -> None:
        """Tell the worker that its attempt was cancelled or replaced. It ends with the worker's report."""
        attempt = self._attempts.get((instance_id, fence))
        if attempt is not None and attempt.session is not None:
            attempt.session.cancel(attempt.ref)
        elif attempt is not None:
            attempt.end(NotSent())

    def _place(self, attempt: HeldAttempt) -> bool:
        """Give the attempt to a session with a free slot. Return False if there is none."""
        slots = self.book.choose(attempt.pool)
        session = None if slots is None else self._session_of[slots]
        if session is None or attempt.ended.done():
            return attempt.ended.done()
        attempt.session = session
        session.held[attempt.ref] = attempt
        self.book.take(session.slots, attempt.pool.handler)
        self.book.begin(attempt.pool)
        if attempt.call.timeout is not None:
            within = attempt.call.timeout.total_seconds() + self.lease
            attempt.timer = asyncio.get_running_loop().call_later(within, self._time_out, attempt)
        session.lease(attempt)
        return True

    def _time_out(self, attempt: HeldAttempt) -> None:
        """End an attempt whose worker has not kept its timeout, a lease after it."""
        limit = attempt.call.timeout
        self._end_early(attempt)
        attempt.end(FailedRetryable(TIMEOUT, f"The worker did not report within its timeout of {limit} and its lease."))

    def _end_early(self, attempt: HeldAttempt) -> None:
        """Stop waiting for a report. The worker keeps its slot until it reports, and is told that it need not go on."""
        if attempt.timer is not None:
            attempt.timer.cancel()
        if attempt.session is not None and attempt.session.held.get(attempt.ref) is attempt:
            self.book.end(attempt.pool)
            attempt.session.held[attempt.ref] = None
            attempt.session.cancel(attempt.ref)

    # The sessions' side.

    def open(self, owner: SessionOwner, name: str, offer: WorkOffer, total: int) -> WorkerSession:
        """Begin a session. It gets work after `connect`."""
        slots, is_new = self.book.enter(offer, total)
        session = WorkerSession(owner, name, slots, self._clock())
        self.sessions[session.id] = session
        self.of_owner[owner] += 1
        self._session_of[slots] = session
        self.executors.seen.update(name for name, _ in offer.handlers)
        if is_new and self.link is not None:
            self.link.relearn()
        return session

    def find(self, owner: SessionOwner, session_id: str, token: str) -> WorkerSession | None:
        """Return the session that a connection may go on with; None if it has ended or the token is not its own."""
        session = self.sessions.get(session_id)
        return session if session is not None and session.may_resume(owner, token) else None

    def connect(
        self,
        session: WorkerSession,
        holding: Iterable[AttemptRef],
        wake: Callable[[], None],
        close: Callable[[int, str], None],
    ) -> None:
        """Bind the session to a connection. Send again the leases that were lost on the way to the worker."""
        if session.wake is not None:
            session.close(REPLACED, "another connection goes on with the session")
        session.forget_unsent()
        session.wake, session.close = wake, close
        theirs = {(int(ref.instance), ref.fence) for ref in holding}
        for ref, attempt in list(session.held.items()):
            if ref in theirs:
                if attempt is None:
                    session.cancel(ref)
            elif attempt is None:
                self._give_back(session, ref)
            else:
                session.lease(attempt)
        for ref in theirs - session.held.keys() - session.answers.keys() - self._reported.keys():
            session.held[ref] = None
            self.book.take(session.slots, ANY)
        self.hear(session)

    def hear(self, session: WorkerSession) -> None:
        """Renew the lease of a session: a message has arrived."""
        session.heard_at = self._clock()
        if session.id not in self.sessions:
            return  # it has ended, and its connection is being closed
        if not session.slots.is_open and not session.is_draining and not self.is_draining:
            self.book.set_open(session.slots, is_open=True)
            self._made_room(session)

    def set_total(self, session: WorkerSession, total: int) -> None:
        """Change how many calls the worker runs at once."""
        if session.id not in self.sessions:
            return
        self.book.set_total(session.slots, total)
        self._made_room(session)

    def disconnect(self, session: WorkerSession, wake: Callable[[], None]) -> None:
        """Note a lost connection. The session keeps its attempts until it resumes or its lease ends."""
        if session.wake == wake:
            session.wake = None
            self.book.set_open(session.slots, is_open=False)

    def leave(self, session: WorkerSession, why: str) -> None:
        """End a session. Attempts that it has not reported are lost."""
        if self.sessions.pop(session.id, None) is None:
            return
        self.book.leave(session.slots)
        self.of_owner[session.owner] -= 1
        del self._session_of[session.slots]
        for attempt in [each for each in session.held.values() if each is not None]:
            self.book.end(attempt.pool)
            attempt.end(Lost(why))
        session.held.clear()
        session.wake = None

    def is_held_elsewhere(self, session: WorkerSession, ref: Ref) -> bool:
        """Return whether another session of this server runs the attempt."""
        attempt = self._attempts.get(ref)
        return attempt is not None and attempt.session not in {None, session}

    def report(self, session: WorkerSession, ref: Ref, outcome: Outcome) -> bool:
        """Take the report of an attempt that the session holds. Return False if it holds none that is under way.

        A repeated report gets the answer of the first one.
        """
        if (known := session.answers.get(ref)) is not None:
            session.send_answer(known)
            return True
        if (waiting := self._reported.get(ref)) is not None:
            if session not in waiting:
                waiting.append(session)
            return True
        attempt = session.held.get(ref)
        if attempt is None or attempt.ended.done():
            return False
        self._give_back(session, ref)
        if isinstance(outcome, NotSent):
            session.answer(Answer(str(ref[0]), ref[1], "settled"))
        else:
            self._reported[ref] = [session]
        attempt.end(outcome)
        return True

    def forget(self, session: WorkerSession, ref: Ref) -> None:
        """Give the slot of an attempt back that no longer counts: its report was answered."""
        if ref in session.held:
            self._give_back(session, ref)

    def note(self, session: WorkerSession, part: ProgressPart) -> None:
        """Pass progress or a log line on, if the attempt is under way."""
        attempt = session.held.get((int(part.instance), part.fence))
        if attempt is not None and self.link is not None:
            self.link.note(attempt.call, part.progress, part.message)

    def _give_back(self, session: WorkerSession, ref: Ref) -> None:
        attempt = session.held.pop(ref)
        if attempt is not None:
            self.book.end(attempt.pool)
        self.book.give_back(session.slots, ANY if attempt is None else attempt.pool.handler)
        self._made_room(session)

    def _made_room(self, session: WorkerSession) -> None:
        """Give waiting attempts to free slots, the longest-waiting pool first; then let the engine claim."""
        group = session.slots.group
        pools = [name for name, line in self._waiting.items() if line and group.covers(line[0].pool)]
        for name in sorted(pools, key=lambda name: self._waiting[name][0].waits_since):
            line = self._waiting[name]
            while line and self._place(line[0]):
                line.popleft()
            if not line:
                del self._waiting[name]
        if self.link is not None:
            self.link.make_room()

    # Time.

    def tick(self) -> None:
        """End sessions whose lease is over, send silent ones no more work, and give back attempts that wait too long."""
        now = self._clock()
        for session in list(self.sessions.values()):
            silent = now - session.heard_at
            if silent > self.lease:
                session.close(EXPIRED, "the worker was silent for longer than its lease")
                self.leave(session, f"The remote worker {session.name} was silent for longer than its lease.")
            elif silent > self.lease * SILENT_SHARE and session.slots.is_open:
                self.book.set_open(session.slots, is_open=False)
        for name, line in list(self._waiting.items()):
            while line and (line[0].ended.done() or now - line[0].waits_since > PATIENCE):
                line.popleft().end(NotSent(is_quiet=True))
            if not line:
                del self._waiting[name]

    @property
    def slots(self) -> int:
        """Return how many calls all sessions run at once."""
        return sum(session.slots.total for session in self.sessions.values())

    def drain(self, told: Drain) -> None:
        """Give out no more work, and tell every worker."""
        self.is_draining = True
        for session in self.sessions.values():
            self.book.set_open(session.slots, is_open=False)
            session.send(told)
        for line in self._waiting.values():
            for attempt in line:
                attempt.end(NotSent(is_quiet=True))
        self._waiting.clear()

    def close_all(self, code: int, reason: str) -> None:
        """End every session and close its connection."""
        for session in list(self.sessions.values()):
            session.close(code, reason)
            self.leave(session, "The server of the remote worker stopped.")

    def forget_reports(self) -> None:
        """Forget the reports that wait for a settlement: the engine has stopped, and the workers send them again."""
        self._reported.clear()

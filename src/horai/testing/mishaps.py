"""Crashes and failures that a test asks for, and how they come about.

A worker that dies leaves its claims behind: nothing is written, and its lease runs out. Here it lets everything else that
it has in hand come to its end first, so that a crash concerns the instance it was meant for and no other.
"""

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Literal

from horai.core.calls import Call
from horai.core.health import EngineHealth
from horai.core.outcome import Accepted, NotSent, Outcome, outcome_of
from horai.core.settings import EngineSettings
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.attempts import Executor
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.settler import Settlement, Settler
from horai.sdk.outcomes import outcome_of_error
from horai.testing.journal import Journal

Moment = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Crash:
    """The worker dies before the function runs, or after it has run and before that is stored."""

    when: Moment


@dataclass(frozen=True, slots=True)
class Failure:
    """The function raises this instead of running."""

    error: Exception


class Mishaps:
    """What is to go wrong, by job, in order; and which claims have been lost by it."""

    def __init__(self) -> None:
        self._planned: defaultdict[str, deque[Crash | Failure]] = defaultdict(deque)
        self.lost: set[tuple[int, int]] = set()

    def plan(self, job: str, mishap: Crash | Failure, times: int) -> None:
        """The next `times` attempts of the job go wrong, after those planned before."""
        self._planned[job].extend([mishap] * times)

    def take(self, job: str) -> Crash | Failure | None:
        """What goes wrong with the attempt that begins now."""
        return self._planned[job].popleft() if self._planned[job] else None


class WatchedExecutor:
    """Makes attempts as `inner` does, notes them, and lets go wrong what shall."""

    def __init__(self, inner: Executor, journal: Journal, mishaps: Mishaps) -> None:
        self._inner = inner
        self._journal = journal
        self._mishaps = mishaps

    async def run(self, call: Call) -> Outcome | Accepted:
        """What the attempt came to; that of a crash is never written."""
        self._journal.begin(call)
        mishap = self._mishaps.take(call.job)
        if isinstance(mishap, Failure):
            return outcome_of_error(mishap.error)
        if mishap is not None:
            self._mishaps.lost.add((call.instance_id, call.fence))
        return NotSent() if mishap == Crash("before") else await outcome_of(self._inner.run(call))


class LosingSettler(Settler):
    """Writes what attempts came to, but for those that were lost in a crash."""

    def __init__(
        self,
        line: StageConnection,
        holdings: InFlight,
        wakeups: Wakeups,
        settings: EngineSettings,
        lost: set[tuple[int, int]],
    ) -> None:
        super().__init__(line, holdings, wakeups, EngineHealth(), settings)
        self._in_hand = holdings
        self._lost = lost

    def submit(self, *settlements: Settlement) -> None:
        """Take outcomes over, except those that a crash has lost."""
        lost = [s.held for s in settlements if (s.held.id, s.held.fence) in self._lost]
        if lost:
            self._in_hand.drop(lost)
            self.signal.set()
        super().submit(*(s for s in settlements if s.held not in lost))

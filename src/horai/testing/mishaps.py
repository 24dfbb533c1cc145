"""Crashes and failures that a test plans.

A worker that dies leaves its claims behind: it writes nothing, and its lease expires. In a test, all other attempts in
flight finish first, so that a crash affects only the planned instance.
"""

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Literal

from horai.core.calls import Call
from horai.core.health import EngineHealth
from horai.core.outcome import Ending, NotSent, outcome_of
from horai.core.settings import EngineSettings
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.attempts import Executor
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.settler import Settlement, Settler
from horai.sdk.function_outcomes import outcome_of_error
from horai.testing.journal import Journal

Moment = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Crash:
    """The worker dies before the function runs, or after it has run but before the outcome is stored."""

    when: Moment


@dataclass(frozen=True, slots=True)
class Failure:
    """The function raises this instead of running."""

    error: Exception


class Mishaps:
    """The planned mishaps of each job, in order, and the claims that were lost by crashes."""

    def __init__(self) -> None:
        self._planned: defaultdict[str, deque[Crash | Failure]] = defaultdict(deque)
        self.lost: set[tuple[int, int]] = set()

    def plan(self, job: str, mishap: Crash | Failure, times: int) -> None:
        """Plan a mishap for the next `times` attempts of the job, after those planned before."""
        self._planned[job].extend([mishap] * times)

    def take(self, job: str) -> Crash | Failure | None:
        """Remove and return the mishap of the attempt that begins now, if one is planned."""
        return self._planned[job].popleft() if self._planned[job] else None


class WatchedExecutor:
    """An executor that runs attempts by `inner`, records them, and applies planned mishaps."""

    def __init__(self, inner: Executor, journal: Journal, mishaps: Mishaps) -> None:
        self._inner = inner
        self._journal = journal
        self._mishaps = mishaps

    async def run(self, call: Call) -> Ending:
        """Run the attempt and return its outcome. The outcome of a crash is never written."""
        self._journal.begin(call)
        mishap = self._mishaps.take(call.job)
        if isinstance(mishap, Failure):
            return outcome_of_error(mishap.error)
        if mishap is not None:
            self._mishaps.lost.add((call.instance_id, call.fence))
        return NotSent() if mishap == Crash("before") else await outcome_of(self._inner.run(call))


class LosingSettler(Settler):
    """A settler that does not write the outcomes that were lost in a crash."""

    def __init__(
        self,
        line: StageConnection,
        in_flight: InFlight,
        wakeups: Wakeups,
        settings: EngineSettings,
        lost: set[tuple[int, int]],
    ) -> None:
        super().__init__(line, in_flight, wakeups, EngineHealth(), settings)
        self._in_hand = in_flight
        self._lost = lost

    def submit(self, *settlements: Settlement) -> None:
        """Take outcomes over, except those that a crash has lost."""
        lost = [s.held for s in settlements if (s.held.id, s.held.fence) in self._lost]
        if lost:
            self._in_hand.drop(lost)
            self.signal.set()
        super().submit(*(s for s in settlements if s.held not in lost))

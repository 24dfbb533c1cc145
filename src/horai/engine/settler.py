"""Writes what attempts came to, in batches.

An outcome is kept until the database has taken it: through lost connections, lost answers to COMMIT, a row somebody
holds, or a row whose text the database refuses. An outcome whose row has moved on is kept as a late result.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg
import structlog

from horai.core.settings import EngineSettings
from horai.core.settlement import Bury, Complete, Decision, Release, Retry
from horai.core.vitals import Vitals
from horai.db import claims, settlements
from horai.db.claims import Held, LateResult
from horai.db.line import Line
from horai.db.pool import GONE, Dedicated
from horai.db.settlements import Applied
from horai.db.wakeups import Wakeups
from horai.engine.holdings import Holdings

log = structlog.get_logger(__name__)

UNSTORABLE = "OUTCOME_UNSTORABLE"
IDLE = timedelta(seconds=60)
LOCKED_PAUSE = timedelta(milliseconds=50)


@dataclass(frozen=True, slots=True)
class Settlement:
    """A decision on a claim. `is_quiet`: its row may be gone in good order (an awaited outcome came another way)."""

    held: Held
    decision: Decision
    is_quiet: bool = False


class Settler:
    """The stage that ends claims."""

    name = "settler"

    def __init__(
        self, line: Line, holdings: Holdings, wakeups: Wakeups, vitals: Vitals, settings: EngineSettings
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._holdings = holdings
        self._wakeups = wakeups
        self._vitals = vitals
        self._settings = settings
        self._waiting: list[Settlement] = []

    def submit(self, settlement: Settlement) -> None:
        """Takes an outcome over; it will be written, however long that takes."""
        self._waiting.append(settlement)
        self._vitals.unsettled = len(self._waiting)
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Writes one batch. What somebody else has locked goes to the back and is tried again soon."""
        if not self._waiting:
            return now + IDLE
        if len(self._waiting) < self._settings.settle_batch:
            await asyncio.sleep(self._settings.settle_wait.total_seconds())
        batch = self._batch()
        locked = await self._write(await self.line.get(), batch)
        taken = {id(settlement) for settlement in batch}
        self._waiting = [s for s in self._waiting if id(s) not in taken] + locked
        self._vitals.unsettled = len(self._waiting)
        if len(self._waiting) == len(locked):
            return now + (LOCKED_PAUSE if locked else IDLE)
        return now

    def _batch(self) -> list[Settlement]:
        """The longest waiting, one of each instance: two claims of one instance are told apart by their fences alone."""
        chosen: dict[int, Settlement] = {}
        for settlement in self._waiting:
            if len(chosen) == self._settings.settle_batch:
                break
            chosen.setdefault(settlement.held.id, settlement)
        return list(chosen.values())

    async def _write(self, connection: Dedicated, batch: Sequence[Settlement]) -> list[Settlement]:
        """Settles a batch and returns what is locked; a row that the database refuses does not fail the others."""
        try:
            return await self._settle(connection, batch)
        except GONE:
            raise
        except asyncpg.PostgresError as error:
            if len(batch) == 1:
                log.error("an outcome cannot be stored", instance=batch[0].held.id, error=repr(error))
                return await self._settle(connection, [_unstorable(batch[0], error)])
            log.warning("a row failed its batch; settling singly", rows=len(batch), error=repr(error))
        return [locked for settlement in batch for locked in await self._write(connection, [settlement])]

    async def _settle(self, connection: Dedicated, batch: Sequence[Settlement]) -> list[Settlement]:
        """One transaction: the decisions, and what came too late for its row."""
        async with connection.transaction():
            applied = await settlements.apply(connection, [(s.held, s.decision) for s in batch])
            left = [settlement for settlement in batch if settlement.held.id not in applied.ids]
            still = await claims.still_running(connection, [s.held for s in left]) if left else set[int]()
            gone = [settlement for settlement in left if settlement.held.id not in still]
            late = [_late(s) for s in gone if not s.is_quiet and not isinstance(s.decision, Release)]
            kept = await claims.keep_late(connection, late) if late else set[int]()
        self._vitals.late_results += len(kept)
        self._done(batch, applied)
        for settlement in gone:
            self._holdings.drop(settlement.held)
        return [settlement for settlement in left if settlement.held.id in still]

    def _done(self, batch: Sequence[Settlement], applied: Applied) -> None:
        now = time.monotonic()
        for settlement in batch:
            if settlement.held.id in applied.ids:
                self._holdings.drop(settlement.held)
                self._note(now, settlement.decision)
        self._wakeups.announce(applied.woken)

    def _note(self, now: float, decision: Decision) -> None:
        if not isinstance(decision, Release):
            self._vitals.observe_outcome(now, is_success=isinstance(decision, Complete))
        if isinstance(decision, Retry):
            self._vitals.retry_backlog += 1


def _unstorable(settlement: Settlement, error: Exception) -> Settlement:
    message = f"The database refused what the attempt came to: {type(error).__name__}."
    return Settlement(settlement.held, Bury(UNSTORABLE, message, ("unrecoverable",)))


def _late(settlement: Settlement) -> LateResult:
    match settlement.decision:
        case Retry(_, code, message) | Bury(code, message):
            return LateResult(settlement.held, "FAIL", code, message)
        case _:
            return LateResult(settlement.held, "SUCCESS", None, None)

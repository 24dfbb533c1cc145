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
        """Writes one batch."""
        if not self._waiting:
            return now + IDLE
        if len(self._waiting) < self._settings.settle_batch:
            await asyncio.sleep(self._settings.settle_wait.total_seconds())
        batch = self._waiting[: self._settings.settle_batch]
        connection = await self.line.get()
        left = await self._write(connection, batch)
        held_by_others = [settlement for settlement in left if not await self._write_alone(connection, settlement)]
        self._waiting = held_by_others + self._waiting[len(batch) :]
        self._vitals.unsettled = len(self._waiting)
        if held_by_others and len(held_by_others) == len(self._waiting):
            return now + LOCKED_PAUSE
        return now if self._waiting else now + IDLE

    async def _write(self, connection: Dedicated, batch: Sequence[Settlement]) -> list[Settlement]:
        """One transaction for the batch; what it did not settle is returned, all of it when a row was refused."""
        try:
            async with connection.transaction():
                applied = await settlements.apply(connection, [(s.held, s.decision) for s in batch])
        except GONE:
            raise
        except asyncpg.PostgresError as error:
            log.warning("a row failed its batch; settling singly", rows=len(batch), error=repr(error))
            return list(batch)
        self._done(batch, applied)
        return [settlement for settlement in batch if settlement.held.id not in applied.ids]

    async def _write_alone(self, connection: Dedicated, settlement: Settlement) -> bool:
        """One row, waited for; False when somebody still holds it, and it has to be tried again."""
        try:
            await self._settle_or_keep(connection, settlement)
        except asyncpg.LockNotAvailableError:
            return False
        except GONE:
            raise
        except asyncpg.PostgresError as error:
            log.error("an outcome cannot be stored", instance=settlement.held.id, error=repr(error))
            message = f"The database refused what the attempt came to: {type(error).__name__}."
            await self._settle_or_keep(
                connection, Settlement(settlement.held, Bury(UNSTORABLE, message, ("unrecoverable",)))
            )
        return True

    async def _settle_or_keep(self, connection: Dedicated, settlement: Settlement) -> None:
        async with connection.transaction():
            await claims.lock_instance(connection, settlement.held.id)
            applied = await settlements.apply(connection, [(settlement.held, settlement.decision)])
            kept: set[int] = set()
            if not applied.ids and not settlement.is_quiet and not isinstance(settlement.decision, Release):
                kept = await claims.keep_late(connection, [_late(settlement)])
        self._vitals.late_results += len(kept)
        self._done([settlement], applied)
        self._holdings.drop(settlement.held)

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


def _late(settlement: Settlement) -> LateResult:
    match settlement.decision:
        case Retry(_, code, message) | Bury(code, message):
            return LateResult(settlement.held, "FAIL", code, message)
        case _:
            return LateResult(settlement.held, "SUCCESS", None, None)

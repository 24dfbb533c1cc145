"""The key gate: the stage that lets instances run that wait for a place of their concurrency key.

A claim that finds no place for a row parks it. When a claim of the key has ended, its holder asks this stage for the next
row: after the settlement has committed, so that the release sees it. The release and the claim lock the key, so a row that is
parked meanwhile is seen as well. The rescuer asks for the claims of lost nodes. A holder may be lost between its settlement
and its question; so a sweep looks at every key for which rows wait: after a node was lost, and every half minute. The nodes
with trigger shards sweep, each the jobs of its own shards. In a process that has heard of no key, the stage does nothing and
has no connection; the janitor tells it once a minute if rows wait.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from itertools import islice

from horai.core.limits import SHARDS
from horai.core.settings import EngineSettings
from horai.core.shards import Duty
from horai.core.wakes import KeyWake, OutcomeWake
from horai.db import concurrency_keys
from horai.db.claims import Claim
from horai.db.concurrency_keys import FIRST_KEY, KeyOfJob
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease

AT_ONCE = 200
"""Keys of one release: it locks them all until it has committed."""
PAGE = 1_000
LOOK_AGAIN = timedelta(seconds=5)
"""Time after a release when the stage looks at the key again: the row may have been cancelled or moved before its claim."""
MOST_LOOKS = 10_000
"""Keys that the stage remembers to look at again. The sweep finds the others."""


class KeyGate:
    """The stage that releases instances which wait for their key."""

    name = "key_gate"

    def __init__(
        self,
        line: StageConnection,
        lease: Lease,
        wakeups: Wakeups,
        settings: EngineSettings,
        now: datetime,
        find_claim: Callable[[int, int], Claim | None] = lambda _id, _fence: None,
    ) -> None:
        """`find_claim` returns the claim in flight of an instance and a fence."""
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._find_claim = find_claim
        self._asked: dict[KeyOfJob, None] = {}
        self._looks: dict[KeyOfJob, datetime] = {}
        self._sweep_at = now
        self._is_sweep_due = False
        self._is_used = False

    def hear(self, wake: KeyWake) -> None:
        """Queue keys of which a claim has ended."""
        self._ask(wake.keys)

    def hear_outcome(self, wake: OutcomeWake) -> None:
        """Queue the key of a claim in flight that was ended from outside: by a cancel, a put or a report."""
        held = self._find_claim(wake.instance_id, wake.fence)
        if held is not None and held.concurrency_key is not None:
            self._ask([(held.job_id, held.concurrency_key)])

    def rescan_all(self) -> None:
        """Request a sweep: a node was lost, rows were moved, or a limit was raised."""
        self._is_used = self._is_sweep_due = True
        self.signal.set()

    def hear_shards(self) -> None:
        """Request a sweep after the shards of this node have changed: the node that was to sweep may have died."""
        if self._is_used:
            self.rescan_all()

    def _ask(self, keys: Iterable[KeyOfJob]) -> None:
        self._asked |= dict.fromkeys(keys)
        if self._asked:
            self._is_used = True
            self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Release waiting rows of the queued keys, and of those that are due for another look."""
        if not self._is_used:
            return now + self._settings.sweep
        if now >= self._sweep_at or self._is_sweep_due:
            await self._sweep(now)
        while self._looks and (key := next(iter(self._looks))) and self._looks[key] <= now:
            del self._looks[key]
            self._asked[key] = None
        await self._release_asked(now)
        return min([self._sweep_at, *islice(self._looks.values(), 1)])

    async def flush(self) -> None:
        """Release what the last settlements of this process have freed."""
        if self._asked:
            await self._release_asked(self._sweep_at)

    async def _release_asked(self, now: datetime) -> None:
        while asked := self._asked:
            self._asked = {}  # before the statements: a claim that ends meanwhile asks again
            try:
                connection = await self.line.get()
                if await concurrency_keys.may_keys_wait(connection):
                    keys = [*asked]
                    for first in range(0, len(keys), AT_ONCE):
                        await self._release(connection, keys[first : first + AT_ONCE], now)
            except BaseException:
                self._asked = asked | self._asked
                raise

    async def _release(self, connection: Platform, keys: list[KeyOfJob], now: datetime) -> None:
        released = await concurrency_keys.release_keys(connection, keys)
        self._wakeups.announce(released)
        for key in {row.key for row in released}:
            self._looks.pop(key, None)  # the dictionary is ordered by the times of the looks
            if len(self._looks) < MOST_LOOKS:
                self._looks[key] = now + LOOK_AGAIN

    async def _sweep(self, now: datetime) -> None:
        """Queue every key of our jobs for which rows wait."""
        shards, after = self._lease.shards(Duty.trigger), FIRST_KEY
        self._is_sweep_due = False  # before reading: rows that are parked meanwhile cause another sweep
        try:
            while shards and (page := await concurrency_keys.parked_keys(await self.line.get(), after, PAGE)):
                self._asked |= dict.fromkeys(key for key in page if key[0] % SHARDS in shards)
                after = page[-1]
                if len(page) < PAGE:
                    break
        except BaseException:
            self._is_sweep_due = True
            raise
        self._sweep_at = now + self._settings.sweep

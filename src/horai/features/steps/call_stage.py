"""The stage of child calls: it wakes callers whose children have ended, and cancels children whose callers have.

The end of a child is in the history, and that of its caller too: a hint only says where to look first. The stage looks at
children that this process has created after 1 s, and then less and less often; the leading node sweeps all open calls.
"""

import asyncio
from datetime import datetime, timedelta

import asyncpg

from horai.core.settings import EngineSettings
from horai.core.states import CancelReason
from horai.core.wakes import CallsWake, MoveWaitingWake, OutcomeWake, RunsWake
from horai.db import instances
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease, leads
from horai.engine.pending_ids import PendingIds
from horai.features.steps import calls

AT_ONCE = 200
BUSY_PAUSE = timedelta(milliseconds=20)
LOOK_PAUSE = timedelta(seconds=1)
"""The time until the first look at children under way; it doubles without news, up to the sweep interval."""
SELDOM = timedelta(seconds=5)
"""The time for which this process remembers that no call is open."""
WATCHED_MOST = 1_000
"""Children that a process looks at by itself; the sweep covers the others."""


class ChildCalls:
    """The stage that tells callers and children of each other's ends."""

    name = "child_calls"

    def __init__(
        self, line: StageConnection, lease: Lease, wakeups: Wakeups, settings: EngineSettings, now: datetime
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._heard = PendingIds(AT_ONCE)
        self._asked = PendingIds(AT_ONCE)
        self._watched: set[int] = set()
        self._has_calls = False
        self._checked_at = now - SELDOM
        self._look_at = self._sweep_at = now
        self._look_pause = LOOK_PAUSE
        self._is_sweep_due = False
        self._is_watch_new = False

    def hear(self, wake: RunsWake) -> None:
        """Queue instances that have ended: they may be children or callers."""
        self._heard.update(wake.instance_ids)
        if self._heard:
            self.signal.set()

    def watch(self, wake: CallsWake) -> None:
        """Look after children that this process has just created."""
        self._has_calls = True
        self._watched |= set(sorted(wake.children)[: max(WATCHED_MOST - len(self._watched), 0)])
        self._is_watch_new = True
        self.signal.set()

    def rescan_all(self) -> None:
        """Request a sweep, because wakes may have been missed."""
        self._is_sweep_due = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Decide on the calls that were named or are due for a look; return the time of the next step."""
        if now >= self._sweep_at or self._is_sweep_due:
            self._is_sweep_due = False
            self._sweep_at = now + self._settings.sweep
            await self._sweep()
        await self._look(now)
        if self._heard:
            await self._name_calls(now)
        await self._asked.decide(self._decide)
        if self._asked:
            return now + BUSY_PAUSE
        return min(self._sweep_at, self._look_at) if self._watched else self._sweep_at

    async def _sweep(self) -> None:
        """Find all calls to decide on, on the node that leads."""
        if not leads(self._lease):
            return
        connection = await self.line.get()
        if await calls.has_open_calls(connection):
            await self._asked.add_pages(lambda after, limit: calls.calls_to_decide(connection, after, limit))

    async def _look(self, now: datetime) -> None:
        """Look at the children under way that are due for it."""
        if self._is_watch_new:
            self._is_watch_new = False
            self._look_at, self._look_pause = now + LOOK_PAUSE, LOOK_PAUSE * 2
        if self._watched and now >= self._look_at:
            self._watched = set(await calls.open_calls_among(await self.line.get(), self._watched))
            self._asked.update(self._watched)
            self._look_at = now + self._look_pause
            self._look_pause = min(self._look_pause * 2, self._settings.sweep)

    async def _name_calls(self, now: datetime) -> None:
        """Find the open calls of the instances that were heard of. Where no call is open, they are forgotten."""
        if not self._has_calls and now >= self._checked_at + SELDOM:
            self._checked_at, self._has_calls = now, await calls.has_open_calls(await self.line.get())
        if self._has_calls:
            await self._heard.decide(self._find)
        self._heard.clear()

    async def _find(self, instance_ids: set[int]) -> set[int]:
        self._asked.update(await calls.open_calls_among(await self.line.get(), instance_ids))
        return set()

    async def _decide(self, children: set[int]) -> set[int]:
        """Wake callers and cancel children. Return the children to decide on again: another transaction held a row."""
        connection = await self.line.get()
        try:
            self._wakeups.announce(await calls.wake_callers(connection, children))
            await self._cancel_orphans(connection, children)
        except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError):
            return children
        return set()

    async def _cancel_orphans(self, connection: Platform, children: set[int]) -> None:
        """Cancel children whose callers have ended or started over. Their own children are found by their ends."""
        orphans = await calls.orphans_among(connection, children)
        if not orphans:
            return
        async with connection.transaction():
            cancelled = await instances.cancel_live(connection, orphans, CancelReason.PARENT, running=True)
            await calls.close_calls(connection, orphans)
        for row in cancelled:
            if row.fence is not None:
                self._wakeups.publish(OutcomeWake(row.id, row.fence))
        self._wakeups.publish(RunsWake([row.id for row in cancelled]))


def build(line: StageConnection, lease: Lease, wakeups: Wakeups, settings: EngineSettings, now: datetime) -> ChildCalls:
    """Build the stage and let it hear of instances that end."""
    stage = ChildCalls(line, lease, wakeups, settings, now)
    wakeups.subscribe(RunsWake, stage.hear)
    wakeups.subscribe(CallsWake, stage.watch)
    wakeups.subscribe(MoveWaitingWake, lambda _: stage.rescan_all())
    lease.on_change.append(stage.rescan_all)
    lease.on_lost_node.append(stage.rescan_all)
    return stage
